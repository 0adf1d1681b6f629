"""JTT, just train twice (Liu et al., ICML 2021): the errors of a short ERM are shown many times.

First a model is trained by ERM for ``error_epochs`` and asked about the training pictures, as they
are and in evaluation mode. Then a fresh one is trained on a set in which each of its errors stands
``error_weight`` times and every other picture once; an epoch is that whole set. It needs nothing
but labels; the authors choose epochs, weight and the best epoch by the worst group of validation,
which ``--best worst-group`` does for the epoch.

The weight of 50 is theirs for CelebA, with one epoch of ERM; for Waterbirds 100 after 60 of 300
epochs, hence a fifth of ``--epochs``. Their paper's formula is followed; their code adds the errors
so many times to a set that has them already. The first training is the recipe in fewer epochs:
a cosine ends with them and the warm-up shrinks in proportion. Both begin alike, also by
``--start erm``.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.config import RunConfig, TrainConfig
from masktune.data.batches import shuffled
from masktune.data.types import Split
from masktune.progress import Steps
from masktune.training.by_recipe import beginning, best_of, by_group, finished, learn_by
from masktune.training.context import Context, Tuned
from masktune.training.fit import ERM


class Repeated(ERM):
    """ERM on a set in which some pictures stand several times."""

    def __init__(self, errors: Tensor, *, weight: int, smoothing: float = 0.0) -> None:
        """Take which pictures, (N,) bool, and how often each of them stands in the set."""
        super().__init__(smoothing=smoothing)
        times = torch.where(errors, weight, 1)
        self.positions = torch.arange(len(errors)).repeat_interleave(times)

    def draw(self, split: Split, generator: torch.Generator) -> Sequence[int]:
        """Return the positions of the whole set in random order."""
        del split
        order: list[int] = self.positions[shuffled(len(self.positions), generator)].tolist()
        return order


def first_training(config: RunConfig) -> TrainConfig:
    """Return how the model whose errors count is trained."""
    training = config.training
    warmup = training.warmup * config.error_epochs / training.epochs
    return replace(training, epochs=config.error_epochs, warmup=warmup)


def tune(context: Context, before: Checkpoint) -> Tuned:
    """Train twice by the recipe, the second time on the errors of the first as well."""
    config, bundle = context.config, context.bundle
    smoothing = config.training.label_smoothing
    start = beginning(context, before)
    first = learn_by(
        context,
        start.model,
        ERM(smoothing=smoothing),
        part="errors",
        training=first_training(config),
    )
    with context.timed("evaluate"):
        # Under the name of the first training: a page knows no answers between two of them.
        watcher = Steps(context.watcher, "errors", total=1).next()
        said = context.ask(first, bundle.train, watcher=watcher)
    errors = torch.from_numpy(~said.correct())
    objective = Repeated(errors, weight=config.rival_settings.error_weight, smoothing=smoothing)
    model = learn_by(context, start.model, objective, best=best_of(context))
    facts = {"errors": int(errors.sum()), "share of errors": by_group(bundle, errors.float())}
    return finished(context, replace(start, model=model), facts=facts)
