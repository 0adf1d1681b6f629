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
                before, after = (
                    [run["test"][test][moment]["groups"][number]["accuracy"] for run in runs]
                    for moment in ("before", "after")
                )
                # Seeds without pictures of the class have no accuracy.
                known = [both for both in zip(before, after, strict=True) if None not in both]
                changes = [now - was for was, now in known]
                row = {
                    "arm": arm,
                    "test": test,
                    "label": group["label"],
                    "before": statistics.fmean(was for was, _ in known) if known else None,
                    "after": statistics.fmean(now for _, now in known) if known else None,
                    "values": changes,
                    "mean": statistics.fmean(changes) if changes else None,
                    "interval": student_interval(changes),
                }
                rows.append(row)
    return rows
