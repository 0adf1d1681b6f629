"""Let a model answer in the classes of a dataset when it knows finer ones."""

from functools import partial

import torch
from torch import Tensor, nn

from masktune.models.eval_mode import hooked
from masktune.models.logits import logits_of


def with_class_map(model: nn.Module, classes: tuple[int, ...]) -> nn.Module:
    """Give each class of a dataset the highest logit among a model's classes that belong to it.

    The answer is then the class of the model's own arg-max, which is how the Backgrounds Challenge
    scores models of ImageNet's 1000 classes; and as the highest logit is the one explained, heat is
    that of the model's own answer too. Weights and their names stay as they are; copies of the
    model answer so too.

    ``classes`` has for each logit a class from 0 up, every one of them at least once; where one
    logit stands for two classes it is (0, 1) or (1, 0).
    """
    hooked(model, partial(_mapped, classes))
    return model


def _mapped(classes: tuple[int, ...], _: nn.Module, inputs: object, output: object) -> Tensor:
    del inputs
    logits = logits_of(output)
    if logits.shape[1] == 1:
        # One logit stays one: a second, constant one would have no gradient, and no heat.
        return -logits if classes == (1, 0) else logits
    index = torch.tensor(classes, device=logits.device).expand_as(logits)
    lowest = logits.new_full((len(logits), max(classes) + 1), -torch.inf)
    return lowest.scatter_reduce(1, index, logits, "amax")
