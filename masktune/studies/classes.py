"""The no-harm check of an experiment: what tuning does to every class where no clue misleads.

The paper asks whether MaskTune harms when there may be nothing spurious, and answers with the
accuracy on all of ImageNet and on single classes that improved. Classes that lost are shown here
just as well, and one more epoch beside them: what it changes too is not the masks' doing.
"""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from masktune.scores.interval import student_interval


def class_rows(by_arm: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Give the change of every class's accuracy by every arm, over the seeds.

    Args:
        by_arm: ``result.json`` of every seed's run, by name of the arm.

    Returns:
        Rows with the accuracies before and after and the change, in [-1, 1], by seed in
        ``values``; none for datasets with an attribute, whose groups say more than classes.
    """
    rows = []
    for arm, runs in by_arm.items():
        for test, scores in runs[0]["test"].items():
            if scores["before"]["worst_is"] != "class":
                continue
            for number, group in enumerate(scores["before"]["groups"]):
                seeds = [_both(run["test"][test], number) for run in runs]
                known = [both for both in seeds if None not in both]
                rows.append(_row(arm, test, group["label"], known))
    return rows


def _both(scores: Mapping[str, Any], number: int) -> tuple[float, float]:
    """Give a class's accuracy before and after; None without pictures of it."""
    before, after = (scores[moment]["groups"][number]["accuracy"] for moment in ("before", "after"))
    return before, after


def _row(arm: str, test: str, label: str, known: Sequence[tuple[float, float]]) -> dict[str, Any]:
    changes = [after - before for before, after in known]
    return {
        "arm": arm,
        "test": test,
        "label": label,
        "before": statistics.fmean(before for before, _ in known) if known else None,
        "after": statistics.fmean(after for _, after in known) if known else None,
        "values": changes,
        "mean": statistics.fmean(changes) if changes else None,
        "interval": student_interval(changes),
    }


def class_markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """Give the check as Markdown: which classes clearly gained and lost, then all of them."""
    arms = list(dict.fromkeys(row["arm"] for row in rows))
    cells = {(row["test"], row["label"], row["arm"]): row for row in rows}
    parts = [
        "No-harm check: the change of each class's accuracy in points, in brackets Student's 95% "
        "interval of its mean over the seeds. " + " ".join(_verdict(rows, arm) for arm in arms)
    ]
    for test in dict.fromkeys(row["test"] for row in rows):
        heads = [f"class of {test}", "ERM", *arms]
        lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
        for label in dict.fromkeys(row["label"] for row in rows if row["test"] == test):
            changed = [cells[test, label, arm] for arm in arms]
            line = [label, _percent(changed[0]["before"]), *map(_points, changed)]
            lines.append("| " + " | ".join(line) + " |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _verdict(rows: Sequence[Mapping[str, Any]], arm: str) -> str:
    known = [row for row in rows if row["arm"] == arm and row["interval"] is not None]
    gained = [row["label"] for row in known if row["interval"][0] > 0]
    lost = [row["label"] for row in known if row["interval"][1] < 0]
    return (
        f"{arm}: clearly gained {', '.join(gained) or 'none'}; "
        f"clearly lost {', '.join(lost) or 'none'}."
    )


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


def _points(row: Mapping[str, Any]) -> str:
    if row["mean"] is None:
        return "–"
    text = f"**{100 * row['mean']:+.1f}**"
    if row["interval"] is not None:
        low, high = row["interval"]
        text += f" [{100 * low:+.1f}, {100 * high:+.1f}]"
    return text.replace("-", "−")
