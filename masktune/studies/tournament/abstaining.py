"""What the methods of a tournament come to when they may abstain: errors by coverage, and AURC.

Every method is ranked by the score that it declares, and beside it by one that tells who answers
from who chooses: a method's gain may come from its selector or from the better classifier under it.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from masktune.config import MASKTUNE
from masktune.runs.open import OpenRun
from masktune.scores.evidence import Direction, Interval, compare_areas, compare_risks
from masktune.scores.groups import wilson
from masktune.scores.result import RunResult, SelectiveScore
from masktune.scores.selective import TARGETS, Ranked, aurc_interval
from masktune.show.tables import Cell, Column, Table
from masktune.show.wording import area, percent
from masktune.studies.tournament.over_seeds import AREA, VALUES, against, over_seeds, score_cell
from masktune.studies.tournament.plan import ERM, NONE, RANDOM
from masktune.training.methods import RIVALS

TITLE = "When it may abstain"
PRODUCT = "joint"

SCORES = {
    "joint": "both models' product",
    "own": "its own",
    "before": "softmax response",
    "after": "softmax response",
}
"""What the scores are called; those of one model are named alike, for they are one rule."""

NOTES = (
    "Error is the share of wrong answers among those given, at thresholds that give the coverage "
    "in the head on validation pictures; below it the share of test pictures that is answered "
    "there. At 100% the classifier speaks, and the score chooses nothing.",
    "AURC is the area under the error over all coverages, a plain fraction; lower is safer.",
    "Scores: the largest product of both models' probabilities, MaskTune's own way; the softmax "
    "response, a model's largest probability; what a method has learnt to abstain by, its own. A "
    "method with another score stands there by softmax response as well, and MaskTune's controls "
    "by the product: so one sees who answers and who chooses.",
    "Differences are from MaskTune by the product; with one seed their intervals, and those of "
    "AURC, are a bootstrap over the same pictures.",
)


def scores_of(method: str) -> tuple[str, ...]:
    """List the scores that a method is ranked by, the one it declares first.

    >>> scores_of("masktune"), scores_of("osp"), scores_of("jtt"), scores_of("none")
    (('joint', 'after'), ('own', 'after'), ('after',), ('after', 'joint'))
    """
    if method == ERM:
        return ("before",)
    if method == MASKTUNE:
        return ("joint", "after")
    if method in (RANDOM, NONE):
        return ("after", "joint")
    return ("own", "after") if RIVALS[method].has_own_score else ("after",)  # type: ignore[index]


@dataclass(frozen=True, slots=True)
class _Seen:
    """A run on a test set, by one score."""

    run: RunResult
    test: str
    score: str

    @property
    def aurc(self) -> float:
        return self.run.test[self.test].areas[self.score].aurc

    def at(self, target: float) -> SelectiveScore:
        rows = self.run.test[self.test].selective
        return next(row for row in rows if (row.score, row.target) == (self.score, target))

    def ranked(self) -> Ranked:
        return OpenRun(self.run.folder).predictions.tests[self.test].ranked()[self.score]


def abstaining(
    method: str, results: Mapping[int, RunResult], own: Mapping[int, RunResult]
) -> list[dict[str, Any]]:
    """Give what a method comes to by each of its scores, as JSON objects.

    Args:
        method: a method of a tournament, or ``ERM``.
        results: its chosen runs by seed.
        own: MaskTune's, which the differences are from.
    """
    tests = next(iter(results.values())).test
    found = []
    for score in scores_of(method):
        by_test = {}
        for test in tests:
            seen = [_Seen(result, test, score) for result in results.values()]
            pairs = [
                (_Seen(own[seed], test, PRODUCT), _Seen(result, test, score))
                for seed, result in results.items()
                if seed in own and (method, score) != (MASKTUNE, PRODUCT)
            ]
            by_test[test] = {
                "error": [_error(seen, pairs, target) for target in TARGETS],
                "aurc": _aurc(seen, pairs),
            }
        found.append({"score": score, "test": by_test})
    return found


def _error(
    seen: Sequence[_Seen], pairs: Sequence[tuple[_Seen, _Seen]], target: float
) -> dict[str, Any]:
    points = [one.at(target) for one in seen]
    size = len(seen[0].run.test[seen[0].test])
    # Where a seed answers nothing it has no error.
    known = [(point, point.error) for point in points if point.error is not None]
    both = [(pair, pair[0].at(target), pair[1].at(target)) for pair in pairs]
    answered = [
        (pair, ours, theirs, theirs.error - ours.error)
        for pair, ours, theirs in both
        if ours.error is not None and theirs.error is not None
    ]

    def of_one() -> Interval | None:
        point, error = known[0]
        accepted = round(point.coverage * size)
        return wilson(round(error * accepted), accepted)

    def compared() -> tuple[Interval | None, Direction]:
        (one, other), ours, theirs, _ = answered[0]
        found = compare_risks(one.ranked(), other.ranked(), gammas=(_gamma(ours), _gamma(theirs)))
        return found.interval, found.direction

    return {
        "target": target,
        "coverage": statistics.fmean(point.coverage for point in points),
        **over_seeds([error for _, error in known], of_one=of_one),
        **_beside(against([change for *_, change in answered], of_one=compared)),
    }


def _gamma(point: SelectiveScore) -> float:
    return -math.inf if point.gamma is None else point.gamma


def _aurc(seen: Sequence[_Seen], pairs: Sequence[tuple[_Seen, _Seen]]) -> dict[str, Any]:
    def of_one() -> Interval:
        ranked = seen[0].ranked()
        return aurc_interval(ranked, generator=np.random.default_rng(len(ranked)))

    def compared() -> tuple[Interval | None, Direction]:
        one, other = pairs[0]
        found = compare_areas(one.ranked(), other.ranked())
        return found.interval, found.direction

    changes = [theirs.aurc - ours.aurc for ours, theirs in pairs]
    return {
        **over_seeds([one.aurc for one in seen], of_one=of_one),
        **_beside(against(changes, of_one=compared)),
    }


def _beside(difference: dict[str, Any] | None) -> dict[str, Any]:
    return {} if difference is None else {"against_masktune": difference}


def tables_of(told: Mapping[str, Any]) -> list[Table]:
    """Return a table for each test set; none of a document from before there were any."""
    if not any(row.get("abstaining") for row in told["rows"]):
        return []
    return [_table(told, test) for test in told["worst_is"]]


def _table(told: Mapping[str, Any], test: str) -> Table:
    rows = [
        (row, entry["score"], entry["test"][test])
        for row in told["rows"]
        for entry in row.get("abstaining", ())
    ]
    targets = [error["target"] for error in rows[0][2]["error"]]
    return Table(
        name=f"{TITLE}, test set “{test}”",
        columns=(
            Column("Method", ("method",), left=True),
            Column("Test set", ("test set",), shown=False),
            Column("Score", ("score",), left=True, hint="By which it chooses what to answer."),
            *(
                Column(f"{target:.0%}", _names(f"error at {target:.0%}", "coverage"))
                for target in targets
            ),
            Column("AURC", _names("AURC"), hint=NOTES[1]),
        ),
        rows=[_cells(row, test, score, found) for row, score, found in rows],
        spans=[("", 1), ("Error at coverage", len(targets)), ("", 1)],
        kind="abstaining",
        caption=True,
    )


def _names(measure: str, *more: str) -> tuple[str, ...]:
    return tuple(f"{measure} {each}" for each in (*VALUES, *more))


def _cells(row: Mapping[str, Any], test: str, score: str, found: Mapping[str, Any]) -> list[Cell]:
    declared = score == scores_of(row["method"])[0]
    return [
        Cell(row["title"], strong=row["method"] == MASKTUNE and declared),
        Cell(test),
        Cell(SCORES[score], values=(score,)),
        *(_error_cell(error) for error in found["error"]),
        score_cell(found["aurc"], unit=AREA),
    ]


def _error_cell(error: Mapping[str, Any]) -> Cell:
    cell = score_cell(error, further=f"{percent(error['coverage'])} answered")
    return replace(cell, values=(*(cell.values or ()), error["coverage"]))


def abstaining_lines(told: Mapping[str, Any]) -> list[str]:
    """Say the tables in lines for a terminal."""
    lines = []
    for row in told["rows"]:
        for entry in row.get("abstaining", ()):
            for test, found in entry["test"].items():
                errors = ", ".join(
                    f"{percent(error['mean'])} at {error['target']:.0%}" for error in found["error"]
                )
                aurc, mark = found["aurc"], ""
                if (beside := aurc.get("against_masktune")) is not None:
                    noise = ", within noise" if beside["within_noise"] else ""
                    change = area_change(beside["difference"])
                    mark = f" ({change} from MaskTune by {SCORES[PRODUCT]}{noise})"
                lines.append(
                    f"{row['title']} by {SCORES[entry['score']]}; {test}: error {errors} "
                    f"coverage, AURC {AREA.number(aurc['mean'])}{mark}"
                )
    return lines


def area_change(change: float) -> str:
    """Write a difference of two areas, with its sign.

    >>> area_change(0.0123), area_change(-0.0123), area_change(0.0)
    ('+0.0123', '−0.0123', '0.0000')
    """
    text = area(change)
    return f"+{text}" if change > 0 else text
