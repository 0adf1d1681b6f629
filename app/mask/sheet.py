"""The sheet of the Mask page: which pictures, their heat, and the model's answers after hiding."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import cast

import numpy as np
import torch

from app import loaded as cached
from app.shared.scrubber import AfterHiding, Column, Sheet, Way, encode
from masktune.cache import Cache
from masktune.config import MaskingConfig, Method, RunConfig, Statistics, Strategy
from masktune.data.fills import FILLS, Chance, Filled, FillName, noise_seeds, other_classes
from masktune.data.preprocess import Keeper
from masktune.data.types import DatasetBundle
from masktune.heat.keep import heat_statistics, keep_hot, keep_masks
from masktune.heat.store import HeatStore
from masktune.heat.strategies import STRATEGIES, Round, keeper
from masktune.progress import Watcher, unwatched
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
    keeps_hot: bool = False  # whether what is not hot is hidden
    fill: FillName = "black"  # what the model is shown in the place of hidden pixels


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """One column of the sheet."""

    title: str  # what tells it from the others
    choice: Choice  # of the same pictures; the subject may have another model
    store: HeatStore  # heat of the sheet's pictures, in their order


def chosen_positions(
    choice: Choice, data: DatasetBundle, scores: torch.Tensor | None = None
) -> list[int]:
    """Choose training pictures by a seeded draw, and put them in the order of their groups.

    They are drawn from all, so that groups are as frequent as in training; or as evenly over the
    groups as these allow; or from one group. With scores, (N,) of all training pictures, those with
    the highest come instead, the highest first, and other pictures are the ones that come next.
    """
    numbers = group_numbers(data.train, len(data.card.attributes))
    skipped = 0
    if scores is None:
        order = torch.randperm(len(numbers), generator=stream(choice.draw, "sheet"))
    else:
        order = scores.argsort(descending=True, stable=True)
        inside = numbers >= 0 if choice.by in (TRAINING, ALIKE) else numbers == choice.by
        sheets = -(-int(inside.sum()) // choice.count)
        skipped = choice.draw % max(sheets, 1) * choice.count
    queues = [order[numbers[order] == number].tolist() for number in sorted(set(numbers.tolist()))]
    if choice.by != ALIKE:
        queues = [order[(numbers[order] == choice.by) | (choice.by == TRAINING)].tolist()]
    positions: list[int] = []
    most = skipped + choice.count
    for turn in zip_longest(*queues):
        positions += [position for position in turn if position is not None]
        if len(positions) >= most:
            break
    positions = positions[skipped:most]
    if scores is not None:
        return positions
    return sorted(positions, key=lambda position: int(numbers[position]))


def how_chosen(choice: Choice, data: DatasetBundle, *, first: str = "") -> str:
    """Say how the pictures of the sheet were chosen; ``first`` says which of them come first."""
    numbers = group_numbers(data.train, len(data.card.attributes))
    if first:
        whose, more = f"all {count(len(numbers))} training pictures", ""
        if choice.by == ALIKE:
            more = ", as many of every group as there are places"
        elif choice.by != TRAINING:
            size = int((numbers == choice.by).sum())
            whose = f"the {count(size)} training pictures of {group_names(data)[choice.by]}"
        return f"Of {whose}{more}: {first}. They do not show what is usual in training."
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


def sheet_blob(columns: Sequence[Beside], positions: tuple[int, ...]) -> bytes:
    """Give the scrubber's payload; the same choices, the same bytes.

    Every column has the heat of the training pictures at these positions, in this order.
    """
    known = tuple((one.title, one.choice, cached.known(one.choice.subject)) for one in columns)
    what = ("scrubber", known, positions)
    subject = columns[0].choice.subject
    return cached.drawn(subject, what, lambda: encode(_sheet(columns, positions)))


def _sheet(columns: Sequence[Beside], positions: tuple[int, ...]) -> Sheet:
    choice = columns[0].choice
    data = cached.bundle(choice.subject)
    few, names = cached.sample(choice.subject, positions), group_names(data)
    groups = tuple(names[n] for n in group_numbers(few, len(data.card.attributes)).tolist())
    pictures = few.images.batch(range(len(positions)))
    return Sheet(
        pictures=np.stack([picture_of(image) for image in pictures]),
        columns=tuple(_column(one, positions, data.card.classes) for one in columns),
        names=tuple(f"{group} (no. {p})" for group, p in zip(groups, positions, strict=True)),
        groups=groups,
        labels=tuple(data.card.classes[label] for label in few.labels),
        keeps_hot=choice.keeps_hot,
    )


def _column(one: Beside, positions: tuple[int, ...], classes: Sequence[str]) -> Column:
    mu, sigma = heat_statistics(_fine(one.store), statistics=one.choice.statistics)
    answers, _ = cached.sample_answers(one.choice.subject, positions)
    return Column(
        heat=one.store.rounds[0].numpy(),
        mu=mu.numpy(),
        sigma=sigma.numpy(),
        answers=tuple(classes[answer] for answer in answers.answers()),
        confidences=answers.probabilities.max(axis=1),
        title=one.title,
    )


def ways(choice: Choice, position: int, *, watcher: Watcher = unwatched) -> list[Way]:
    """Return where the model looks in one training picture, by every explainer."""
    found = cached.every_heat(choice.subject, position, layer=choice.layer, watcher=watcher)
    return [_way(method, store, choice.statistics) for method, store in found.items()]


def _way(method: str, store: HeatStore | str, statistics: Statistics) -> Way:
    if isinstance(store, str):
        return Way(title=method, problem=store)
    mu, sigma = heat_statistics(_fine(store), statistics=statistics)
    heat = store.rounds[0][0].numpy()
    return Way(title=method, heat=heat, mu=float(mu[0]), sigma=float(sigma[0]))


def _fine(store: HeatStore) -> torch.Tensor:
    """Give the heat of every picture of a small store at the picture's size."""
    return store.fine(torch.arange(len(store)))


def hiding_words(choice: Choice, strategy: Strategy) -> str:
    """Say what is hidden and what stands there, where that is not MaskTune's; empty if it is.

    Args:
        choice: what the sheet shows, hidden by a threshold k.
        strategy: what the finetune is to hide; one without a k hides something else than the sheet.
    """
    words = []
    if not STRATEGIES[strategy].uses_k:
        words.append(
            "This page hides what is hotter than k, and judges that. The finetune is set to "
            f"another rule, in which k does nothing: {STRATEGIES[strategy].short}."
        )
    if choice.keeps_hot:
        words.append("All but the hot part is hidden; a picture where nothing is hot stays whole.")
    if choice.fill != "black":
        words.append(
            "Hidden pixels are drawn black here. The model's answers after hiding are to pictures "
            f"in which they are filled: {FILLS[choice.fill].hint}."
        )
    return " ".join([*words, "Chosen on Finetune."]) if words else ""


def hiding(choice: Choice, positions: tuple[int, ...], k: float, store: HeatStore) -> Keeper:
    """Return what hides the sheet's pictures, by their place on it, as the first round would.

    A fill that needs pictures of another class takes those that the run would take.
    """
    train, seed = cached.bundle(choice.subject).train, choice.subject.seed
    chosen, lent = torch.as_tensor(positions), torch.empty(0, dtype=torch.int64)
    if choice.fill == "another":
        lent = other_classes(train.labels, seed=seed, stage="1")[chosen]
        others, _ = cached.some_heat(
            choice.subject, tuple(lent.tolist()), method=choice.method, layer=choice.layer
        )
        store = replace(store, rounds=(torch.cat([store.rounds[0], others.rounds[0]]),))
    rule = keep_hot if choice.keeps_hot else keep_masks
    kept = rule(_fine(store), k, statistics=choice.statistics)

    def keep(rows: torch.Tensor) -> torch.Tensor:
        return kept[rows.cpu()].to(rows.device)

    if choice.fill == "black":
        return keep
    seeds = noise_seeds(len(train), seed=seed, stage="1")
    chance = Chance(
        split=cached.sample(choice.subject, [*positions, *lent.tolist()]),
        keep=keep,
        seeds=seeds[chosen],
        partners=torch.arange(len(lent)) + len(positions),
    )
    return Filled(fill=FILLS[choice.fill], chance=chance)


def hiding_all(choice: Choice, k: float, store: HeatStore) -> Keeper:
    """Return what the first round would hide in all training pictures; the store has their heat."""
    train = cached.bundle(choice.subject).train
    masking = MaskingConfig(
        strategy="cold" if choice.keeps_hot else "heat",
        fill=choice.fill,
        k=k,
        statistics=choice.statistics,
    )
    now = Round(
        masking=masking,
        store=store,
        size=store.size,
        count=len(train),
        number=1,
        seed=choice.subject.seed,
        split=train,
    )
    return cast(Keeper, keeper(now))  # both strategies hide something


def answers_after(
    choice: Choice, positions: tuple[int, ...], k: float, store: HeatStore
) -> list[AfterHiding]:
    """Ask the model again about the sheet's pictures with their pixels hidden at k."""

    def ask() -> list[AfterHiding]:
        before, _ = cached.sample_answers(choice.subject, positions)
        after = cached.ask(
            choice.subject,
            cached.sample(choice.subject, positions),
            keep=hiding(choice, positions, k, store),
        )
        classes = cached.bundle(choice.subject).card.classes
        support = after.probabilities[np.arange(len(positions)), before.answers()]
        return [
            AfterHiding(answer=classes[answer], confidence=float(row.max()), support=float(kept))
            for answer, row, kept in zip(after.answers(), after.probabilities, support, strict=True)
        ]

    return _AFTER.get((cached.known(choice.subject), choice, positions, k), ask)
