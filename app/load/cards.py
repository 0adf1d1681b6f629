"""Pieces of the Load page: the groups with their numbers, and samples of each."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from markupsafe import Markup

from app.shared.sheets import picture_links
from masktune.data.card import UNKNOWN
from masktune.data.types import DatasetBundle, Split
from masktune.scores.groups import ANY, GroupScore, group_name, worst_group
from masktune.scores.marks import GroupMark
from masktune.scores.predictions import Predictions
from masktune.scores.result import training_groups
from masktune.show.contact_sheets import photos, picture_tiles
from masktune.show.marks import mark_link
from masktune.show.markup import piece, sheet_html, strip
from masktune.show.tables import Cell, Column, Table
from masktune.show.wording import MOST_NAMED, NOTHING, count, interval, percent

SAMPLES = 4
"""Pictures shown of each group."""

EVEN = 0.05
"""How far above an equal share the usual groups may be to count as equally large."""


class Group(NamedTuple):
    """Class and attribute by number (-1: none is recorded) and by name, and training pictures."""

    label: int
    attribute: int
    name: tuple[str, str]
    trained: int


def groups_of(data: DatasetBundle) -> list[Group]:
    """Give the groups of a dataset with their training counts, in group order."""
    card = data.card
    counts = training_groups(card, data.train)
    numbers = np.ndindex(counts.shape)
    if not card.attributes:
        return [Group(n, UNKNOWN, (card.classes[n], ""), int(counts[n, 0])) for n, _ in numbers]
    return [
        Group(n, at, (card.classes[n], card.attributes[at]), int(counts[n, at]))
        for n, at in numbers
    ]


def groups_table(
    groups: Sequence[Group], scores: Sequence[GroupScore] | None, *, part: str = ""
) -> Table:
    """Show training pictures and accuracy with interval and n by group, the worst marked.

    Without scores, as long as there is no model, only the pictures are counted. Counts lead to the
    pictures of training and of ``part``, on which the scores are.
    """
    most = max(1, *(group.trained for group in groups))
    worst = worst_group(scores) if scores else None
    asked = scores is not None
    return Table(
        name="Groups",
        columns=(
            Column("Group", ("label", "attribute")),
            Column("Training pictures", ("train",)),
            Column("", (), left=True),
            Column("Accuracy", ("n", "accuracy", "low", "high"), shown=asked),
            Column("0 to 100%, with 95% interval", (), left=True, shown=asked, roomy=True),
            Column("n", (), shown=asked),
            Column("", (), shown=asked),
        ),
        rows=[
            (
                Cell(piece("group", name=group.name), values=group.name),
                _linked("train", number, group.trained),
                Cell(piece("bar", width=90 * group.trained / most)),
                *_score_cells(scores[number] if scores else None, worst, part, number),
            )
            for number, group in enumerate(groups)
        ],
    )


def _linked(split: str, group: int, pictures: int) -> Cell:
    words = count(pictures)
    return Cell(
        mark_link(GroupMark(split, group), words) if split and pictures else words,
        values=(pictures,),
    )


def _score_cells(
    score: GroupScore | None, worst: GroupScore | None, part: str, group: int
) -> tuple[Cell, ...]:
    if score is None:
        return (Cell(values=()), Cell(), Cell(), Cell())
    values = (score.count, score.accuracy, *(score.interval or (None, None)))
    if score.accuracy is None:
        return (Cell(NOTHING, values=values), Cell(small="no pictures here"), Cell("0"), Cell())
    return (
        Cell(percent(score.accuracy), values=values, strong=True),
        Cell(strip(score.accuracy, None, before_interval=score.interval)),
        _linked(part, group, score.count),
        Cell(piece("worst") if score is worst else ""),
    )


def correlation_sentence(groups: Sequence[Group]) -> str:
    """Say in words how far attribute and label go together in training."""
    if any(group.attribute < 0 for group in groups):
        return "No attribute is recorded, so the worst class stands in for the worst group."
    total = sum(group.trained for group in groups)
    by_label: dict[int, int] = {}
    for group in groups:
        by_label[group.label] = max(by_label.get(group.label, 0), group.trained)
    usual = sum(by_label.values())
    if usual / total < 1 / len({group.attribute for group in groups}) + EVEN:
        return "The groups of a class are about equally large: in training nothing gives it away."
    return (
        f"{percent(usual / total)} of the training pictures are in the usual group of their class. "
        f"{_rare_words(groups)}"
    )


def _rare_words(groups: Sequence[Group]) -> str:
    few = min(group.trained for group in groups)
    rare = [" with ".join(group.name) for group in groups if group.trained == few]
    if len(rare) == 1:
        return f"Only {count(few)} {'is' if few == 1 else 'are'} in the group {rare[0]}."
    if len(rare) > MOST_NAMED:
        return f"Each of the {len(rare)} smallest groups has only {count(few)}."
    return f"Only {count(few)} each are in the groups {', '.join(rare[:-1])} and {rare[-1]}."


def sample_positions(split: Split, groups: Sequence[Group], each: int = SAMPLES) -> list[list[int]]:
    """Choose the first pictures of every group, by group."""
    labels, attributes = split.labels.numpy(), split.attributes.numpy()
    return [
        np.flatnonzero((labels == g.label) & (attributes == g.attribute))[:each].tolist()
        for g in groups
    ]


def samples_html(
    data: DatasetBundle,
    positions: Sequence[int],
    predictions: Predictions | None,
    rows: range,
    *,
    linked: bool = False,
) -> Markup:
    """Return a few training pictures with the model's answer under each.

    The predictions have theirs at ``rows``; there are none while there is no model. ``linked`` says
    whether each leads to a page of its own.
    """
    classes = data.card.classes
    tiles = picture_tiles(data.train, positions)
    captions = [""] * len(positions)
    if predictions is not None:
        answers, right = predictions.answers(), predictions.correct()
        sure = predictions.probabilities.max(axis=1)
        captions = [
            piece("said", right=right[row], name=classes[answers[row]], sure=percent(sure[row]))
            for row in rows
        ]
    labels = [classes[data.train.labels[position]] for position in positions]
    return sheet_html(
        tiles,
        captions,
        labels=labels,
        across=SAMPLES,
        photos=photos(data),
        links=picture_links("train", positions) if linked else (),
    )


def worst_sentence(scores: Sequence[GroupScore], part: str) -> str:
    """Say which group or class fares worst, with n and interval."""
    worst = worst_group(scores)
    kind = "class" if worst.attribute == ANY else "group"
    return (
        f"On {part} the worst {kind} is {group_name(worst)}: {percent(worst.accuracy)} right, "
        f"95% interval {interval(worst.interval)}, n = {count(worst.count)}."
    )
