"""AFR (Qiu et al., ICML 2023): the last layer again, with more weight on what it is unsure of.

With p_y the probability that the model before gives the true class of a picture, and n_y the
pictures of that class, its weight is

    exp(-focus * p_y) / n_y, normalised to sum 1.

Only the last layer learns, beginning as it is, by ``STEPS`` steps of gradient descent at ``RATE``
over all pictures at once; the loss is the weighted cross entropy plus ``penalty`` times the squared
distance from where the layer began. Defaults are the authors' for Waterbirds: focus 10, penalty 0.

No groups are needed, but pictures that the model before has not learnt from: of those that it has
learnt from, it is sure. The authors leave a fifth of the training pictures out of the ERM for it
and choose the step to stop at by the groups of further ones. Here these pictures are the
validation ones, without their groups, and the last step's layer is taken. Where a run abstains,
gamma is chosen on the same pictures; coverage on test may come out below what was asked for.
"""

import torch
from torch import Tensor

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.models.logits import class_loss, class_probabilities
from masktune.progress import Progress, Steps, Watcher, unwatched
from masktune.training.by_recipe import finished
from masktune.training.context import Context, Tuned
from masktune.training.last_layer import Numbers, last_layer, logits_by

PENALTY = 0.0
RATE = 0.01
STEPS = 500


def tune(context: Context, before: Checkpoint) -> Tuned:
    """Retrain the last layer on the validation pictures, weighted."""
    split, settings = context.bundle.validation, context.config.rival_settings
    layer = last_layer(context, before)
    steps = Steps(context.watcher, "finetune", total=2)
    with context.timed("finetune"):
        features = layer.features(split, watcher=steps.next()).double()
        logits = logits_by(layer.numbers, features)
        weights = picture_weights(logits, split.labels, focus=settings.focus)
        numbers = descended(
            layer.numbers,
            features,
            split.labels,
            weights=weights,
            penalty=PENALTY if settings.penalty is None else settings.penalty,
            watcher=steps.next(),
        )
    wrong = class_probabilities(logits).argmax(dim=1) != split.labels
    facts = {"weight of wrong answers": round(float(weights[wrong].sum()), 4)}
    return finished(context, layer.after(numbers), facts=facts)


def picture_weights(logits: Tensor, labels: Tensor, *, focus: float) -> Tensor:
    """Return the weight of every picture, (N,) summing to 1, from logits (N, K) and labels."""
    sure = class_probabilities(logits).gather(1, labels[:, None])[:, 0]
    weights = torch.exp(-focus * sure) / torch.bincount(labels)[labels]
    return weights / weights.sum()


def descended(
    numbers: Numbers,
    features: Tensor,
    labels: Tensor,
    *,
    weights: Tensor,
    penalty: float,
    rate: float = RATE,
    steps: int = STEPS,
    watcher: Watcher = unwatched,
) -> Numbers:
    """Return a last layer after so many steps of gradient descent on weighted pictures."""
    began = [each for each in numbers if each is not None]
    now = [each.clone().requires_grad_() for each in began]
    for step in range(1, steps + 1):
        logits = logits_by((now[0], now[1] if len(now) > 1 else None), features)
        loss = (weights * class_loss(logits, labels, reduction="none")).sum()
        far = sum((each - first).square().sum() for each, first in zip(now, began, strict=True))
        slopes = torch.autograd.grad(loss + penalty * far, now)
        now = [
            (each - rate * slope).detach().requires_grad_()
            for each, slope in zip(now, slopes, strict=True)
        ]
        watcher(Progress(stage="finetune", done=step, total=steps))
    weight, *bias = (each.detach() for each in now)
    return weight, bias[0] if bias else None
