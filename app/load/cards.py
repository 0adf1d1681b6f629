"""Pieces of the Load page: the groups with their numbers, and samples of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from app.shared.sheets import sheet_html
from masktune.data.types import DatasetBundle, Split
from masktune.files import Value, csv_bytes
from masktune.scores.groups import GroupScore, group_counts, group_name, group_scores, worst_group
from masktune.scores.predictions import Predictions
from masktune.show.painting import enlarged, picture_of
from masktune.show.wording import count, interval, percent

SAMPLES = 4
"""Pictures shown of each group."""

EVEN = 0.05
"""How far above an equal share the usual groups may be to count as equally large."""

TILE = 192
"""Pixels of a sample's side, about twice what is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One group of a dataset.

    Attributes:
        label: class number.
        attribute: attribute number, -1 when the dataset records none.
        name: of the class and the attribute.
        trained: how many training pictures it has.
    """

    label: int
    attribute: int
    name: tuple[str, str]
    trained: int


def groups_of(data: DatasetBundle) -> list[Group]:
    """Give the groups of a dataset with their training counts, in group order."""
    card = data.card
    counts = group_counts(
        data.train.labels.numpy(),
        data.train.attributes.numpy(),
        classes=len(card.classes),
        attributes_count=len(card.attributes),
    )
    named = bool(card.attributes)
    return [
        Group(
            label=label,
            attribute=attribute if named else -1,
            name=(card.classes[label], card.attributes[attribute] if named else ""),
            trained=int(counts[label, attribute]),
        )
        for label in range(counts.shape[0])
        for attribute in range(counts.shape[1])
    ]


def scores_of(data: DatasetBundle, predictions: Predictions) -> list[GroupScore]:
    """Score every group of a split, in group order."""
    return group_scores(
        predictions, classes=data.card.classes, attributes=data.card.attributes or None
    )


def groups_html(groups: Sequence[Group], scores: Sequence[GroupScore] | None) -> str:
    """Give a table of groups: training pictures, accuracy with interval and n, the worst marked.

    Args:
        groups: of the dataset.
        scores: of the same groups in the same order; None while there is no model.
    """
    most = max(group.trained for group in groups)
    worst = worst_group(scores) if scores else None
    rows = []
    for number, group in enumerate(groups):
        label, attribute = (escape(word) for word in group.name)
        width = 90 * group.trained / max(most, 1)
        cells = (
            f"<td><b>{label}</b>{', ' + attribute if attribute else ''}</td>"
            f"<td>{count(group.trained)}</td>"
            f'<td class="left"><i class="count" style="width:{width:.0f}px"></i></td>'
        )
        if scores:
            cells += _score_cells(scores[number], scores[number] is worst)
        rows.append(f"<tr>{cells}</tr>")
    head = '<th>Group</th><th>Training pictures</th><th class="left"></th>'
    if scores:
        head += (
            '<th>Accuracy</th><th class="left">0 to 100%, with 95% interval</th><th>n</th><th></th>'
        )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _score_cells(score: GroupScore, is_worst: bool) -> str:
    if score.accuracy is None or score.interval is None:
        return '<td>–</td><td class="left"><small>no pictures here</small></td><td>0</td><td></td>'
    low, high = score.interval
    said = f"{percent(score.accuracy)}, interval {interval(score.interval)}"
    line = (
        f'<div class="strip" role="img" aria-label="{said}" title="{said}">'
        f'<i class="bar before" style="left:{100 * low:.2f}%;width:{100 * (high - low):.2f}%"></i>'
        f'<i class="dot before" style="left:{100 * score.accuracy:.2f}%"></i></div>'
    )
    mark = '<span class="worst">▾ worst</span>' if is_worst else ""
    return (
        f"<td><b>{percent(score.accuracy)}</b></td><td>{line}</td>"
        f"<td>{count(score.count)}</td><td>{mark}</td>"
    )


def groups_csv(groups: Sequence[Group], scores: Sequence[GroupScore] | None) -> bytes:
    """Give the table of groups as CSV, fractions in [0, 1]."""
    rows: list[Sequence[Value]] = []
    for number, group in enumerate(groups):
        score = scores[number] if scores else None
        numbers = (score.count, score.accuracy, *(score.interval or ("", ""))) if score else ()
        rows.append((*group.name, group.trained, *numbers))
    heads = ("label", "attribute", "train", "n", "accuracy", "low", "high")
    return csv_bytes(heads, rows, end="\r\n")


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
    rare = min(groups, key=lambda group: group.trained)
    return (
        f"{percent(usual / total)} of the training pictures are in the usual group of their class. "
        f"Only {count(rare.trained)} are {rare.name[0]} with {rare.name[1]}."
    )


def sample_positions(split: Split, groups: Sequence[Group], each: int = SAMPLES) -> list[list[int]]:
    """Choose the first pictures of every group, by group."""
    labels, attributes = split.labels.numpy(), split.attributes.numpy()
    return [
        np.flatnonzero((labels == g.label) & (attributes == g.attribute))[:each].tolist()
        for g in groups
    ]


def samples_html(
    data: DatasetBundle, positions: Sequence[int], predictions: Predictions | None, *, photos: bool
) -> str:
    """Give a few training pictures with the model's answer under each.

    Args:
        data: the dataset.
        positions: in the training split.
        predictions: for these pictures in this order; None while there is no model.
        photos: whether to encode with a little loss.
    """
    tiles = [enlarged(picture_of(image), TILE) for image in data.train.images.batch(positions)]
    captions = [""] * len(positions)
    labels = [data.card.classes[int(data.train.labels[position])] for position in positions]
    if predictions is not None:
        sure = predictions.probabilities.max(axis=1)
        right = predictions.correct()
        for number, answer in enumerate(predictions.answers()):
            chip = "" if right[number] else '<span class="chip broken" title="wrong">✕</span> '
            name = escape(data.card.classes[int(answer)])
            captions[number] = f"{chip}<b>{name}</b><small>{percent(float(sure[number]))}</small>"
    return sheet_html(tiles, captions, labels=labels, across=SAMPLES, photos=photos)


def worst_sentence(scores: Sequence[GroupScore], part: str) -> str:
    """Say which group fares worst, with n and interval."""
    worst = worst_group(scores)
    return (
        f"On {part} the worst group is {group_name(worst)}: {percent(worst.accuracy)} right, "
        f"95% interval {interval(worst.interval)}, n = {count(worst.count)}."
    )
