"""Which training pictures come first on the Mask page: as drawn, or by what the model says."""

from dataclasses import replace

import torch
from torch import Tensor

from app import loaded as cached
from app.joined import Work
from app.mask.sheet import Choice, group_names, hiding_all
from masktune.cache import Cache
from masktune.data.types import DatasetBundle
from masktune.progress import Steps, Watcher
from masktune.scores.predictions import Predictions
from masktune.show.clues import group_numbers

TRAINING, WRONG, UNSURE, SURE, DROP, HEAT = "training", "wrong", "unsure", "sure", "drop", "heat:"
"""Orders; the last is followed by the number of a group."""

_TITLES = {
    TRAINING: "as in training",
    WRONG: "wrong answers",
    UNSURE: "least sure answers",
    SURE: "surest answers",
    DROP: "largest drop after hiding",
}
_FIRST = {
    WRONG: "wrong answers first, the least likely for their own class before the others",
    UNSURE: "the least sure answers first",
    SURE: "the surest answers first",
}

_SCORES = Cache(most=8)


def orders(data: DatasetBundle) -> dict[str, str]:
    """Return what can come first, by name, in the words of the page."""
    groups = group_names(data)
    alike = {f"{HEAT}{number}": f"heat as in {name}" for number, name in groups.items()}
    return {**_TITLES, **alike}


def first_words(order: str, data: DatasetBundle, *, k: float) -> str:
    """Say which pictures come first; empty where they are drawn."""
    if order == TRAINING:
        return ""
    if order == DROP:
        return f"those first whose answer loses most when they are hidden at k = {k:g}"
    if order.startswith(HEAT):
        name = group_names(data)[int(order.removeprefix(HEAT))]
        return f"those first whose heat is most like the mean heat of {name}"
    return _FIRST[order]


def passes(order: str, choice: Choice) -> tuple[int, int]:
    """Return over how many pictures the model must be asked for an order, and must be looked at."""
    pictures = len(cached.bundle(choice.subject).train)
    by_heat = order.startswith(HEAT)
    answers = 0 if by_heat or order == TRAINING else not cached.has_answers(choice.subject, "train")
    whole = cached.heat_work(choice.subject, method=choice.method, layer=choice.layer)
    looks = (by_heat or order == DROP) and not whole.done
    return (answers + (order == DROP)) * pictures, looks * pictures


def scoring(order: str, choice: Choice, *, k: float) -> Work[Tensor]:
    """Return what scores every training picture, (N,) float64, the higher the earlier it comes.

    ``k`` is what they are hidden at where that counts.
    """
    how = replace(choice, count=0, draw=0, by=0)  # whatever is on the sheet
    key = (order, cached.known(choice.subject), how, k if order == DROP else None)
    return Work(_SCORES, key, lambda watch: _scored(order, choice, k, watch))


def _scored(order: str, choice: Choice, k: float, watcher: Watcher) -> Tensor:
    subject, how = choice.subject, {"method": choice.method, "layer": choice.layer}
    data = cached.bundle(subject)
    if order.startswith(HEAT):
        store = cached.heat(subject, **how, watcher=watcher)
        numbers = group_numbers(data.train, len(data.card.attributes))
        return likeness(store.rounds[0], numbers == int(order.removeprefix(HEAT)))
    steps = Steps(watcher, "order", total=3 if order == DROP else 1)
    before = cached.answers(subject, "train", watcher=steps.next())
    if order != DROP:
        return by_answers(order, before)
    store = cached.heat(subject, **how, watcher=steps.next())
    keep = hiding_all(choice, k, store)
    return drop(before, cached.ask(subject, data.train, keep=keep, watcher=steps.next()))


def by_answers(order: str, said: Predictions) -> Tensor:
    """Score answers: the wrong ones, the least sure or the surest highest."""
    probabilities = torch.from_numpy(said.probabilities).double()  # (N, K)
    sure = probabilities.amax(dim=1)
    if order == WRONG:
        labels = torch.from_numpy(said.labels)
        own = probabilities.gather(1, labels[:, None])[:, 0]
        wrong = torch.from_numpy(said.answers()) != labels
        return wrong.double() + (1 - own) / 2  # any wrong answer before any right one
    return sure if order == SURE else -sure


def drop(before: Predictions, after: Predictions) -> Tensor:
    """Score pictures by how much of the first answer's probability hiding takes away."""
    first = torch.from_numpy(before.answers())[:, None]
    was, now = (torch.from_numpy(said.probabilities).double() for said in (before, after))
    return (was.gather(1, first) - now.gather(1, first))[:, 0]


def likeness(heat: Tensor, members: Tensor) -> Tensor:
    """Score heat, (N, h, w), by its cosine to the mean heat of some pictures, (N,) bool.

    A picture without heat scores 0.
    """
    flat = heat.double().flatten(1)
    mean = flat[members].mean(dim=0)
    return torch.nn.functional.cosine_similarity(flat, mean[None], dim=1)
