"""The sheet of the Mask page: which pictures, their heat, and the model's answers after hiding."""

from dataclasses import dataclass

import numpy as np
import torch

from app import loaded as cached
from app.shared.scrubber import AfterHiding, Sheet, encode
from masktune.cache import Cache
from masktune.config import Method, RunConfig, Statistics
from masktune.data.types import DatasetBundle
from masktune.heat.keep import heat_statistics, keep_masks
from masktune.heat.store import HeatStore
from masktune.seeds import stream
from masktune.show.clues import group_numbers, names_of_groups
from masktune.show.painting import picture_of
from masktune.show.wording import count

SIZES = (6, 12, 24, 48, 96)
TRAINING, ALIKE = -1, -2
"""Ways to choose pictures; a number from 0 up is a group to be looked at alone."""

_AFTER = Cache(most=256)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What the sheet shows; hashable, the key of everything cached about it."""

    subject: RunConfig
    method: Method
    layer: str
    statistics: Statistics
    count: int  # pictures on the sheet
    draw: int  # how often other pictures were asked for
    by: int  # how they are chosen, see TRAINING


def chosen_positions(choice: Choice, data: DatasetBundle) -> list[int]:
    """Choose training pictures by a seeded draw, and put them in the order of their groups.

    They are drawn from all, so that groups are as frequent as in training; or as evenly over the
    groups as these allow; or from one group.
    """
    numbers = group_numbers(data.train, len(data.card.attributes))
    order = torch.randperm(len(numbers), generator=stream(choice.draw, "sheet"))
    queues = [order[numbers[order] == number].tolist() for number in sorted(set(numbers.tolist()))]
    if choice.by != ALIKE:
        queues = [order[(numbers[order] == choice.by) | (choice.by == TRAINING)].tolist()]
    positions: list[int] = []
    while len(positions) < choice.count and any(queues):
        for queue in queues:
            if queue and len(positions) < choice.count:
                positions.append(queue.pop(0))
    return sorted(positions, key=lambda position: int(numbers[position]))


def how_chosen(choice: Choice, data: DatasetBundle) -> str:
    """Say how the pictures of the sheet were chosen."""
    numbers = group_numbers(data.train, len(data.card.attributes))
    if choice.by == TRAINING:
        # Of a group that is rarer than one picture of such a sheet.
        sizes = numbers.bincount()
        rare = bool(((sizes > 0) & (sizes * choice.count < len(numbers))).any())
        return (
            f"Drawn at random from all {count(len(numbers))} training pictures: groups show as "
            f"often as in training{', rare ones hardly ever' if rare else ''}."
        )
    if choice.by == ALIKE:
        return (
            "Drawn at random, as many of every group as there are places: rare groups show far "
            "more often than in training."
        )
    name, size = group_names(data)[choice.by], int((numbers == choice.by).sum())
    if size <= choice.count:
        return f"All {count(size)} training pictures of {name}."
    return f"Drawn at random from the {count(size)} training pictures of {name}."


def group_names(data: DatasetBundle) -> dict[int, str]:
    """Name the groups that have training pictures, by number."""
    numbers = group_numbers(data.train, len(data.card.attributes))
    return names_of_groups(data, sorted(set(numbers.tolist())))


def sheet_blob(choice: Choice, positions: tuple[int, ...], store: HeatStore) -> bytes:
    """Give the scrubber's payload; the same choice, the same bytes.

    The store holds the heat of the training pictures at these positions, in this order.
    """
    what = ("scrubber", choice, positions)
    return cached.drawn(choice.subject, what, lambda: encode(_sheet(choice, positions, store)))


def _sheet(choice: Choice, positions: tuple[int, ...], store: HeatStore) -> Sheet:
    data = cached.bundle(choice.subject)
    mu, sigma = heat_statistics(_fine(store), statistics=choice.statistics)
    answers, _ = cached.sample_answers(choice.subject, positions)
    few, names = cached.sample(choice.subject, positions), group_names(data)
    groups = tuple(names[n] for n in group_numbers(few, len(data.card.attributes)).tolist())
    pictures = few.images.batch(range(len(positions)))
    return Sheet(
        pictures=np.stack([picture_of(image) for image in pictures]),
        heat=store.rounds[0].numpy(),
        mu=mu.numpy(),
        sigma=sigma.numpy(),
        names=tuple(f"{group} (no. {p})" for group, p in zip(groups, positions, strict=True)),
        groups=groups,
        answers=tuple(data.card.classes[answer] for answer in answers.answers()),
        confidences=answers.probabilities.max(axis=1),
        labels=tuple(data.card.classes[label] for label in few.labels),
    )


def _fine(store: HeatStore) -> torch.Tensor:
    """Give the heat of every picture of a small store at the picture's size."""
    return store.fine(torch.arange(len(store)))


def answers_after(
    choice: Choice, positions: tuple[int, ...], k: float, store: HeatStore
) -> list[AfterHiding]:
    """Ask the model again about the sheet's pictures with their pixels hidden at k."""

    def ask() -> list[AfterHiding]:
        keep = keep_masks(_fine(store), k, statistics=choice.statistics)
        before, _ = cached.sample_answers(choice.subject, positions)
        after = cached.ask(
            choice.subject,
            cached.sample(choice.subject, positions),
            keep=lambda rows: keep[rows.cpu()].to(rows.device),
        )
        classes = cached.bundle(choice.subject).card.classes
        support = after.probabilities[np.arange(len(positions)), before.answers()]
        return [
            AfterHiding(answer=classes[answer], confidence=float(row.max()), support=float(kept))
            for answer, row, kept in zip(after.answers(), after.probabilities, support, strict=True)
        ]

    return _AFTER.get((cached.known(choice.subject), choice, positions, k), ask)
