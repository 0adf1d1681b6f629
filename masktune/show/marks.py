"""The pictures behind a mark: links to them, their captions, their rows in a file."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from markupsafe import Markup

from masktune.data.card import DatasetCard
from masktune.data.types import Split
from masktune.files import Value, csv_bytes
from masktune.scores.groups import group_examples, group_name, group_scores
from masktune.scores.marks import Examples, Mark, Rows, written
from masktune.scores.predictions import Predictions
from masktune.show.answers import answer_at
from masktune.show.markup import piece
from masktune.show.tables import Cell, count_cell
from masktune.show.wording import percent


def mark_link(mark: Mark, text: str, *, name: str = "") -> Markup:
    """Return a link that opens the pictures behind a mark; a name is heard instead of its text.

    >>> from masktune.scores.marks import GroupMark
    >>> mark_link(GroupMark("my test", 1), "<cow>")
    Markup('<a class="mark" href="?shown=group%3Amy%2520test%3A1">&lt;cow&gt;</a>')
    """
    return piece("mark", shown=written(mark), text=text, name=name)


def linked_cell(mark: Mark | None, number: int) -> Cell:
    """Return a cell with a number of pictures, which leads to them if there are any.

    Without a mark it leads nowhere, as in a report.
    """
    cell = count_cell(number)
    return cell if mark is None or not number else replace(cell, text=mark_link(mark, cell.text))


def marks_line(marks: Mapping[str, Mark]) -> Markup:
    """Return a line of links by their texts: the way to a chart's pictures without a pointer."""
    return piece("marks", links=[mark_link(mark, text) for text, mark in marks.items()])


def of_split(
    split: Split,
    card: DatasetCard,
    *,
    said: Mapping[str, Predictions],
    clues: Sequence[Rows] = (),
) -> Examples:
    """Return the pictures of a split that perhaps one model was asked about."""
    labels, attributes = split.labels.numpy(), split.attributes.numpy()
    nobody = np.full((len(labels), len(card.classes)), 1 / len(card.classes))
    asked = Predictions(nobody, labels, attributes)
    names = {"classes": card.classes, "attributes": card.attributes}
    return Examples(
        labels=labels,
        groups=group_examples(asked, **names).ids,
        classes=card.classes,
        names=[group_name(score) for score in group_scores(asked, **names)],
        said=said,
        clues=clues,
    )


def of_two(this: Examples, other: Predictions) -> Examples:
    """Return pictures with what the model after of another run says, then that of this run."""
    said = {"by the other run": other, "by this run": this.said["after"]}
    return replace(this, said=said, ranked={})


def captions(
    of: Examples, rows: Sequence[int], said: Predictions | None, *, score: str = ""
) -> list[tuple[Markup, str]]:
    """Return what stands under some pictures, each with plain text for those who cannot see it.

    Args:
        of: the split.
        rows: positions of the pictures.
        said: what the only model says about them, in this order; not looked at where both models
            were asked about all.
        score: by which they were chosen; one of both models together has answers of its own.
    """
    if len(of.said) == 2:
        first, second = of.said
        answers = [
            answer_at(
                row,
                *of.said.values(),
                group=of.names[of.groups[row]],
                classes=of.classes,
                said_by=(first, second),
            )
            for row in rows
        ]
        tuned = "after" in of.said  # and not of two runs, of which neither was mended or harmed
        told = [(answer.html(with_state=tuned), answer.words()) for answer in answers]
        if score not in of.ranked or score in of.said:
            return told
        found = of.ranked[score].correct
        judged = [f"{'right' if found[row] else 'wrong'} by the {score} score" for row in rows]
        return [
            (shown + piece("small", text=words), f"{heard}, {words}")
            for (shown, heard), words in zip(told, judged, strict=True)
        ]
    told = []
    for place, row in enumerate(rows):
        group = of.names[of.groups[row]]
        if said is None:
            told.append((piece("caption", strong=group, small=""), f"position {row}, {group}"))
            continue
        answer, sure = int(said.answers()[place]), percent(float(said.probabilities[place].max()))
        name, right = of.classes[answer], bool(answer == of.labels[row])
        words = f"position {row}, {group}, {'right' if right else 'wrong'}: {name} ({sure} sure)"
        shown = piece("said", right=right, name=name, sure=sure)
        told.append((shown + piece("small", text=group), words))
    return told


def pictures_csv(
    of: Examples, rows: Sequence[int], *, split: str, files: Sequence[Path] = ()
) -> bytes:
    """Return some pictures as a file, in this order, with what is known of each.

    ``files`` are those of the whole split; none where its pictures lie in memory.
    """
    heads = ["split", "position", "file", "label", "group"]
    for model in of.said:
        heads += [model, f"{model} sure"]

    def values(row: int) -> list[Value]:
        label, group = of.classes[of.labels[row]], of.names[of.groups[row]]
        known: list[Value] = [split, row, str(files[row]) if files else "", label, group]
        for said in of.said.values():
            probabilities = said.probabilities[row]
            known += [of.classes[int(probabilities.argmax())], float(probabilities.max())]
        return known

    return csv_bytes(heads, map(values, rows))
