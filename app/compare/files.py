"""The Compare page's downloads: CSV with fractions in [0, 1] at full precision, and PNG sheets."""

from collections.abc import Mapping, Sequence

from app.compare.outcome import Outcome
from masktune.files import Value, csv_bytes
from masktune.scores.flips import class_changes, group_flips, overall_change
from masktune.scores.metrics import METRICS
from masktune.show.painting import Picture, png_bytes, sheet


def groups_csv(every: Mapping[str, Outcome]) -> bytes:
    """Give the accuracy of every group of every test set, before and after."""
    heads = (
        "test set", "label", "attribute", "n", "before", "before low", "before high", "after",
        "after low", "after high", "change", "fixed", "broken",
    )  # fmt: skip
    rows: list[Sequence[Value]] = []
    for name, outcome in every.items():
        test, card = outcome.test, outcome.card
        changes = group_flips(
            test.pair.before, test.pair.after, classes=card.classes, attributes=card.attributes
        )
        for was, now, flip in zip(test.before.scores, test.after.scores, changes, strict=True):
            rows.append(
                (
                    name,
                    was.label,
                    was.attribute,
                    was.count,
                    was.accuracy,
                    *(was.interval or (None, None)),
                    now.accuracy,
                    *(now.interval or (None, None)),
                    _change(was.accuracy, now.accuracy),
                    flip.fixed,
                    flip.broken,
                )
            )
    return csv_bytes(heads, rows)


def averages_csv(every: Mapping[str, Outcome]) -> bytes:
    """Give the worst group and the three averages of every test set, before and after."""
    rows: list[Sequence[Value]] = []
    for name, outcome in every.items():
        test = outcome.test
        for metric in METRICS:
            what = metric.name(test.before).partition(" (")[0]
            before, after = metric.of(test.before), metric.of(test.after)
            rows.append((name, what, len(test), before, after, _change(before, after)))
    return csv_bytes(("test set", "what", "n", "before", "after", "change"), rows)


def classes_csv(outcome: Outcome) -> bytes:
    """Give the change of every class with its interval."""
    pair = outcome.test.pair
    changes = (
        *class_changes(pair.before, pair.after, classes=outcome.card.classes),
        overall_change(pair.before, pair.after),
    )
    return csv_bytes(
        ("class", "n", "before", "after", "change", "low", "high", "fixed", "broken"),
        (
            (
                change.label,
                change.count,
                change.before,
                change.after,
                change.change,
                *(change.interval or (None, None)),
                change.fixed,
                change.broken,
            )
            for change in changes
        ),
    )


def rounds_csv(series: Mapping[str, Sequence[float | None]], hidden: Sequence[float]) -> bytes:
    """Give accuracies and the hidden share of every round; round 0 is before."""
    rows = zip((0.0, *hidden), *series.values(), strict=True)
    return csv_bytes(
        ("round", "hidden", *series), ((number, *row) for number, row in enumerate(rows))
    )


def sheet_png(tiles: Sequence[Picture], across: int) -> bytes:
    """Give a contact sheet as a PNG file."""
    return png_bytes(sheet(tiles, across))


def _change(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else after - before
