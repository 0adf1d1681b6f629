"""Every answer of both models as a table: one row a picture."""

from collections.abc import Iterable, Sequence

from masktune.data.card import DatasetCard
from masktune.data.images import FileImages
from masktune.data.types import Split
from masktune.files import Value, csv_bytes
from masktune.runs.open import RunView
from masktune.scores.flips import answer_changes
from masktune.scores.groups import group_examples, group_name, group_scores
from masktune.scores.result import Pair

MOST_CLASSES = 100
"""Classes whose probabilities are all written down."""


def answers_csv(view: RunView, *, tests: Sequence[str] | None = None) -> bytes:
    """Give every picture of the test sets with both models' answers and probabilities.

    With more than ``MOST_CLASSES`` classes only the probability of each answer: all of them would
    be a file of gigabytes for ImageNet.

    Args:
        view: a finished run.
        tests: names of test sets; None for all of them, and validation.

    Returns:
        UTF-8 text with a head line; probabilities are fractions in [0, 1] at full precision.
    """
    bundle, predictions = view.bundle, view.predictions
    parts: dict[str, tuple[Split, Pair]] = {
        name: (bundle.tests[name], pair) for name, pair in predictions.tests.items()
    }
    parts["validation"] = (bundle.validation, predictions.validation)
    chosen = list(parts) if tests is None else tests
    named = bundle.card.classes if len(bundle.card.classes) <= MOST_CLASSES else ()
    heads = (
        "test set", "position", "file", "label", "group", "before", "after", "state",
        "before sure", "after sure",
        *(f"before: {name}" for name in named),
        *(f"after: {name}" for name in named),
    )  # fmt: skip
    rows = (row for name in chosen for row in _rows(name, *parts[name], bundle.card, bool(named)))
    return csv_bytes(heads, rows)


def _rows(
    name: str, split: Split, pair: Pair, card: DatasetCard, spelled_out: bool
) -> Iterable[Sequence[Value]]:
    ids = group_examples(pair.before, classes=card.classes, attributes=card.attributes).ids
    scores = group_scores(pair.before, classes=card.classes, attributes=card.attributes or None)
    before, after = pair.before, pair.after
    for position, state in enumerate(answer_changes(pair.before, pair.after)):
        was, now = before.probabilities[position], after.probabilities[position]
        yield (
            name,
            position,
            file_of(split, position),
            card.classes[int(before.labels[position])],
            group_name(scores[int(ids[position])]),
            card.classes[int(was.argmax())],
            card.classes[int(now.argmax())],
            state,
            float(was.max()),
            float(now.max()),
            *(was.tolist() if spelled_out else ()),
            *(now.tolist() if spelled_out else ()),
        )


def file_of(split: Split, position: int) -> str:
    """Give the path of a picture; empty for pictures that are in memory only."""
    return str(split.images.paths[position]) if isinstance(split.images, FileImages) else ""
