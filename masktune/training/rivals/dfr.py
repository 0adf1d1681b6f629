"""DFR (Kirichenko et al., ICLR 2023): the last layer anew, on as many pictures of every group.

The network before its last layer stays as it is: it has learnt the right features too, and only
the last layer leans on the wrong ones. What goes into that layer is standardised, and a logistic
regression with an L1 penalty takes its place:

    of each group half chooses: fitted to one half, in which every group is cut down by chance to
        the size of the smallest, the C among ``PENALTIES`` that answers the worst group of the
        other half best, of equal ones the first;
    ``REFITS`` fits with that C on all, each on another such draw, are averaged.

It needs validation pictures whose groups are known: it learns from them, not from the training
pictures. Where a run abstains, gamma is chosen on the same pictures, which the model after has then
learnt from; coverage on test may come out below what was asked for.

As in the authors' code, but for three decisions. They take mean and deviation from the training
pictures for the refits and from the half for the choice; here both are those of all validation
pictures, so that C means the same twice. They halve all pictures together; here each group is
halved, or a small one could be missing from a half. They have two classes; with more the
regression is multinomial. A last layer without bias is fitted without one, to features that are
divided by their deviation and not centred. Standardisation becomes part of the layer's numbers, so
that the model after is an ordinary checkpoint; its two logits are minus and plus half of the
regression's one.
"""

import warnings
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.config import RunConfig
from masktune.data.types import DatasetBundle
from masktune.errors import DataError
from masktune.progress import Progress, Steps
from masktune.seeds import stream, stream_seed
from masktune.training.by_recipe import finished
from masktune.training.context import Context, Tuned
from masktune.training.last_layer import Numbers, last_layer

PENALTIES = (1.0, 0.7, 0.3, 0.1, 0.07, 0.03, 0.01)
"""What C is chosen from; the smaller it is, the stronger the penalty."""

REFITS = 20

FAINT = 1e-6
"""Share of the largest deviation under which a feature counts as constant: rounding moves it."""

Floats = npt.NDArray[np.float64]


def check(bundle: DatasetBundle, config: RunConfig) -> None:
    """Refuse a class without a validation picture."""
    del config
    groups_of(bundle)


def tune(context: Context, before: Checkpoint) -> Tuned:
    """Retrain the last layer on balanced draws of the validation pictures."""
    bundle, seed = context.bundle, context.config.seed
    layer = last_layer(context, before)
    groups = groups_of(bundle)
    labels = bundle.validation.labels
    steps = Steps(context.watcher, "finetune", total=2)
    with context.timed("finetune"):
        features = layer.features(bundle.validation, watcher=steps.next()).double()
        hear = steps.next()
        total = len(PENALTIES) + REFITS

        def told(done: int) -> None:
            hear(Progress(stage="finetune", done=done, total=total))

        weight, bias = layer.numbers
        mean, scale = standard(features, centred=bias is not None)
        known = ((features - mean) / scale).numpy()

        def fitted(chosen: Tensor, penalty: float, name: str) -> LogisticRegression:
            return regression(
                known[chosen],
                labels[chosen].numpy(),
                penalty=penalty,
                intercept=bias is not None,
                seed=stream_seed(seed, name),
            )

        learns, judges = halves(groups, generator=stream(seed, "dfr/halves"))
        drawn = learns[balanced(groups[learns], generator=stream(seed, "dfr/choice"))]
        worst: list[float] = []
        for number, penalty in enumerate(PENALTIES, start=1):
            model = fitted(drawn, penalty, "dfr/choice")
            right = torch.from_numpy(model.predict(known[judges])) == labels[judges]
            worst.append(worst_share(right, groups[judges]))
            told(number)
        best = PENALTIES[worst.index(max(worst))]
        found: list[LogisticRegression] = []
        for number in range(REFITS):
            drawn = balanced(groups, generator=stream(seed, f"dfr/{number}"))
            found.append(fitted(drawn, best, f"dfr/{number}"))
            told(len(PENALTIES) + number + 1)
        numbers = folded(found, mean=mean, scale=scale, logits=len(weight))
    facts = {"C": best, "pictures of a group": int(torch.bincount(groups)[groups].min())}
    # A layer without bias was fitted without one to features that were not centred: it stays 0.
    return finished(
        context, layer.after((numbers[0], None if bias is None else numbers[1])), facts=facts
    )


def groups_of(bundle: DatasetBundle) -> Tensor:
    """Return the group of every validation picture, label times attribute, (N,) int64.

    Raises:
        DataError: there is a class without a validation picture.
    """
    validation, card = bundle.validation, bundle.card
    counts = torch.bincount(validation.labels, minlength=len(card.classes))
    if absent := [name for name, n in zip(card.classes, counts, strict=True) if n == 0]:
        raise DataError(
            f"No validation picture of '{card.key}' is of {' or '.join(map(repr, absent))}, and "
            "DFR learns from validation pictures.",
            "Add some, or choose a method that learns from training pictures.",
        )
    return validation.labels * len(card.attributes) + validation.attributes


def standard(features: Tensor, *, centred: bool) -> tuple[Tensor, Tensor]:
    """Return mean and deviation of features (N, D), (D,) each; the mean is 0 if not ``centred``.

    The deviation of a feature that is constant, such as that of a dead unit, counts as 1.
    """
    mean = features.mean(dim=0)
    deviation = features.std(dim=0, correction=0)
    varies = deviation > FAINT * deviation.max()
    scale = torch.where(varies, deviation, torch.ones_like(deviation))
    return mean if centred else torch.zeros_like(mean), scale


def halves(groups: Tensor, *, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Part positions in two, half of every group by chance in each; an odd one is in the first."""
    first: list[Tensor] = []
    second: list[Tensor] = []
    for members in _members(groups, generator):
        middle = (len(members) + 1) // 2
        first.append(members[:middle])
        second.append(members[middle:])
    return torch.cat(first), torch.cat(second)


def balanced(groups: Tensor, *, generator: torch.Generator) -> Tensor:
    """Draw positions without replacement, as many of every group as the smallest has."""
    members = _members(groups, generator)
    count = min(map(len, members))
    return torch.cat([some[:count] for some in members])


def _members(groups: Tensor, generator: torch.Generator) -> list[Tensor]:
    """Return the positions of each group that there is, in random order."""
    found = ((groups == group).nonzero()[:, 0] for group in sorted(set(groups.tolist())))
    return [some[torch.randperm(len(some), generator=generator)] for some in found]


def worst_share(right: Tensor, groups: Tensor) -> float:
    """Return the share of right answers (N,) bool in the group where it is smallest."""
    return min(float(right[groups == group].double().mean()) for group in set(groups.tolist()))


def regression(
    features: Floats, labels: npt.NDArray[np.int64], *, penalty: float, intercept: bool, seed: int
) -> LogisticRegression:
    """Fit a logistic regression with an L1 penalty to features (N, D) and labels (N,)."""
    # liblinear, as the authors have it, knows two classes only.
    model = LogisticRegression(
        l1_ratio=1.0,
        C=penalty,
        solver="liblinear" if labels.max() < 2 else "saga",
        fit_intercept=intercept,
        random_state=seed % 2**32,
    )
    with warnings.catch_warnings():
        # Fits are averaged: one that stopped after the usual 100 rounds is good enough.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(features, labels)


def folded(
    models: Sequence[LogisticRegression], *, mean: Tensor, scale: Tensor, logits: int
) -> Numbers:
    """Return the mean of regressions as a last layer for features that are not standardised.

    ``mean`` and ``scale`` (D,) are what the regressions' features were standardised by, ``logits``
    how many the layer gives.
    """
    weight = torch.from_numpy(np.mean([model.coef_ for model in models], axis=0)) / scale
    bias = torch.from_numpy(
        np.mean([np.broadcast_to(model.intercept_, len(weight)) for model in models], axis=0)
    )
    bias = bias - weight @ mean
    if len(weight) == 1 and logits == 2:
        return torch.cat([-weight, weight]) / 2, torch.cat([-bias, bias]) / 2
    return weight, bias
