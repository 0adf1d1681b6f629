"""What an experiment came to, number by number, beside the paper's."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import product
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from masktune.config import MASKTUNE, Best
from masktune.datasets.catalogue import card
from masktune.scores.evidence import student_interval
from masktune.scores.metrics import METRICS
from masktune.scores.result import RunResult
from masktune.scores.selective import TARGETS
from masktune.studies.experiments import ONE_MORE, Experiment
from masktune.studies.figures_of_rivals import FIGURES, figures_words
from masktune.studies.paper import Number, Printed
from masktune.studies.reproduce import Planned, Request
from masktune.training.methods import RIVALS

if TYPE_CHECKING:  # tables are read without PyTorch
    from masktune.studies.given import Given

WORST_CLASS = "worst-class accuracy"
"""What stands for the worst group where no attribute is recorded."""


def document(
    request: Request,
    done: Sequence[tuple[Planned, RunResult]],
    *,
    given: "Given" = MappingProxyType({}),
) -> dict[str, Any]:
    """Give an experiment's results as a JSON document; ``given`` are those of released weights.

    Every number has its value by seed, mean, sample standard deviation, n and Student's 95 %
    interval, and the paper's number where there is one. Accuracies are fractions. An experiment
    that is not finished has the rows of the arms that are.
    """
    asked = request.asked()
    base = asked.recipe
    by_arm: dict[str, list[RunResult]] = {}
    for planned, result in done:
        by_arm.setdefault(planned.method, []).append(result)
    some = done[0][1]
    return {
        "recipe": request.recipe,
        "scale": request.scale,
        "changes": request.changes(),
        "dataset": base.dataset,
        "exceptions": None,
        **{name: getattr(base, name) for name in card(base.dataset).heeds},
        "arch": done[0][0].config.arch if request.model is None else "as in the checkpoint",
        "training": asdict(base.training),
        "epochs": base.training.epochs if request.model is None else None,
        "frame": base.frame,
        "normalise": base.normalise,
        "own_figures": {
            RIVALS[arm.rival].title: figures_words(FIGURES[request.recipe][arm.rival])
            for arm in asked.arms
            if arm.rival != MASKTUNE and arm.training is not None
        },
        "told": _told(asked),
        "model": request.model and _last(request.model),
        "seeds": sorted({planned.seed for planned, _ in done}),
        "rows": [
            _row(number, by_arm.get(number.arm, ()), asked.printed.get(number), given=given)
            for number in dict.fromkeys(
                (*_numbers(asked, by_arm), *_of_given(given), *_only_printed(asked))
            )
        ],
        "classes": class_rows(
            {arm: by_arm[arm] for arm in (asked.arms[0].name, ONE_MORE) if arm in by_arm}
        ),
        "findings": [_nameless(found, request.root) for found in some.data.findings],
        "seconds": round(sum(result.took for _, result in done), 1),
        "cpu_seconds": _sum([result.cpu_seconds for _, result in done]),
        "device": some.device,
        "versions": {**some.versions},
        "command": command(request),
    }


def _told(asked: Experiment) -> dict[str, list[str]]:
    """List what each arm is told beside pictures and labels; nothing where there are no rivals."""
    if all(arm.rival == MASKTUNE for arm in asked.arms):
        return {}
    found = {ONE_MORE: _by_epoch(asked.recipe.training.best)}  # and so is the ERM
    for arm in asked.arms:
        rival = RIVALS[arm.rival]
        best = arm.best if rival.by_recipe else asked.recipe.training.best
        found[arm.name] = list(dict.fromkeys((*rival.needs, *_by_epoch(best))))
    return found


def _by_epoch(best: Best) -> list[str]:
    return ["validation groups"] if best == "worst-group" else []


def _sum(values: Sequence[float | None]) -> float | None:
    """Add up what every run knows; None where one is from before it was recorded."""
    known = [value for value in values if value is not None]
    return round(sum(known), 1) if len(known) == len(values) else None


def command(request: Request) -> str:
    """Give the command that repeats an experiment; paths by their last part."""
    words = ["python -m masktune reproduce", request.recipe, f"--scale {request.scale}"]
    if request.seeds is not None:
        words.append(f"--seeds {request.seeds}")
    for name in ("root", "model", "weights"):
        if (value := getattr(request, name)) is not None:
            words.append(f"--{name} {_last(value)}")
    words += [f"--given {name}={_last(file)}" for name, file in request.given]
    if request.validation != "own":
        words.append(f"--validation {request.validation}")
    words += [f"--{name} {said}" for name, said in request.changes().items()]
    return " ".join(words)


def _last(path: str) -> str:
    """Give the last part of a path: results must not tell whose machine they were made on."""
    return path.rstrip("/").rsplit("/", 1)[-1]


def _nameless(text: str, root: str | None) -> str:
    return text if root is None else text.replace(root, _last(root))


def _numbers(asked: Experiment, by_arm: Mapping[str, Sequence[RunResult]]) -> Iterator[Number]:
    """List the numbers of an experiment: every ERM model's once, then every arm's."""
    some = by_arm[ONE_MORE][0]
    first = asked.arms[0].name
    trained = {first, *(arm.name for arm in asked.arms if arm.has_own_erm)}
    for arm in (*(arm.name for arm in asked.arms if arm.name in by_arm), ONE_MORE):
        # A seed may have stopped early: the others' later rounds are shown all the same.
        rounds = max(len(run.masking.rounds) for run in by_arm[arm])
        moments = ["before"] if arm in trained else []
        if rounds <= 1:  # a rival has none
            moments.append("after")
        for name, test in some.test.items():
            # Of an arm without groups among others that have some, the worst class.
            measures = ("average", "worst_group") if test.kind == "groups" else ("average",)
            for moment, measure in product(moments, measures):
                yield Number(arm=arm, test=name, moment=moment, measure=measure)
            for number in range(1, rounds + 1) if rounds > 1 else ():
                yield Number(arm=arm, test=name, moment="after", measure="average", rounds=number)
    if any(number.target is not None for number in asked.printed):
        # The control too: a joint score of any two models may be the better one.
        scores = [(first, moment) for moment in ("joint", "before", "after") if first in by_arm]
        for one in asked.arms:  # by the score that it learnt, and as if it had none
            if one.name in by_arm and RIVALS[one.rival].has_own_score:
                scores += [(one.name, "own"), (one.name, "after")]
        scores += [(ONE_MORE, "joint"), (ONE_MORE, "after")]
        for name, (arm, moment), target, measure in product(
            some.test, scores, TARGETS, ("coverage", "error")
        ):
            yield Number(arm=arm, test=name, moment=moment, measure=measure, target=target)


def _of_given(given: "Given") -> Iterator[Number]:
    """List the numbers of released weights."""
    for arm, tests in given.items():
        for name in tests:
            yield Number(arm=arm, test=name, moment="after", measure="average")


def _only_printed(asked: Experiment) -> Iterator[Number]:
    """List the paper's numbers of methods that are not run: given weights, or nobody's code."""
    arms = {arm.name for arm in asked.arms}
    for number in asked.printed:
        if number.arm not in arms:
            yield number


def reading(run: RunResult, number: Number) -> float | None:
    """Read a number off a run's result; None where the run has none, such as an early stop."""
    test, measure = run.test.get(number.test), number.measure
    if test is None:
        return None
    if number.target is not None:
        rows = {(row.score, row.target): row for row in test.selective}
        return getattr(rows.get((number.moment, number.target)), measure, None)
    if number.rounds is not None:
        rounds = run.masking.rounds[number.rounds - 1 : number.rounds]
        return next((getattr(one.test[number.test], measure) for one in rounds if one.test), None)
    return next(m.of(getattr(test, number.moment)) for m in METRICS if m.key == measure)


def class_rows(by_arm: Mapping[str, Sequence[RunResult]]) -> list[dict[str, Any]]:
    """Give the no-harm check: the change of every class's accuracy by every arm, over the seeds.

    The paper asks whether MaskTune harms when there may be nothing spurious, and answers with the
    accuracy on all of ImageNet and on single classes that improved. Classes that lost are shown
    here just as well, and one more epoch beside them: what it changes too is not the masks' doing.

    Args:
        by_arm: the run of every seed, by name of the arm.

    Returns:
        Rows with the accuracies before and after and the change, in [-1, 1], by seed in
        ``values``; none for datasets with an attribute, whose groups say more than classes.
    """
    rows = []
    for arm, runs in by_arm.items():
        for name, test in runs[0].test.items():
            if test.kind == "groups":
                continue
            for number, group in enumerate(test.before.scores):
                splits = [run.test[name] for run in runs]
                both = [
                    (split.before.scores[number].accuracy, split.after.scores[number].accuracy)
                    for split in splits
                ]
                # Seeds without pictures of the class have no accuracy.
                known = [(was, now) for was, now in both if was is not None and now is not None]
                changes = [now - was for was, now in known]
                row = {
                    "arm": arm,
                    "test": name,
                    "label": group.label,
                    "before": _mean([was for was, _ in known]),
                    "after": _mean([now for _, now in known]),
                    "values": changes,
                    "mean": _mean(changes),
                    "interval": student_interval(changes),
                }
                rows.append(row)
    return rows


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None


def _row(
    number: Number, runs: Sequence[RunResult], paper: Printed | None, *, given: "Given"
) -> dict[str, Any]:
    """Return a row of a document: a number over the seeds that have it, beside the paper's."""
    values = [value for run in runs if (value := reading(run, number)) is not None]
    if (released := given.get(number.arm, {}).get(number.test)) is not None:
        values = [released.average]
    mean = _mean(values)
    beside = None
    if paper is not None:
        within = None if mean is None else abs(mean - paper.value) <= paper.tolerance
        names = ("value", "std", "source", "tolerance")
        beside = {**{name: getattr(paper, name) for name in names}, "within": within}
    return {
        **asdict(number),
        "title": _title(number, runs),
        "values": values,
        "n": len(values),
        "mean": mean,
        "std": statistics.stdev(values) if len(values) > 1 else None,
        "interval": interval(values),
        "paper": beside,
    }


def _title(number: Number, runs: Sequence[RunResult]) -> str:
    test = runs[0].test.get(number.test) if runs else None
    ungrouped = test is not None and test.kind != "groups" and number.measure == "worst_group"
    return WORST_CLASS if ungrouped else number.title


def interval(values: Sequence[float]) -> list[float] | None:
    """Give Student's 95 % interval of a mean of shares, kept in [0, 1]."""
    found = student_interval(values)
    return None if found is None else [max(0.0, found[0]), min(1.0, found[1])]
