"""What an experiment came to, number by number, beside the paper's."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import product
from typing import Any

from masktune.scores.interval import student_interval
from masktune.scores.result import RunResult
from masktune.studies.classes import class_rows
from masktune.studies.experiments import ONE_MORE, Experiment, experiment
from masktune.studies.paper import Number, Printed
from masktune.studies.reproduce import Planned, Request

COVERAGES = (1.0, 0.95, 0.9, 0.85, 0.8)


def document(request: Request, done: Sequence[tuple[Planned, RunResult]]) -> dict[str, Any]:
    """Give an experiment's results as a JSON document.

    Every number has its value by seed, mean, sample standard deviation, n and Student's 95 %
    interval, and the paper's number where there is one. Accuracies are fractions.
    """
    asked = experiment(request.recipe).at(request.scale)
    base = asked.recipe
    by_arm: dict[str, list[Mapping[str, Any]]] = {}
    for planned, result in done:
        by_arm.setdefault(planned.arm, []).append(result.document)
    some = done[0][1].document
    return {
        "recipe": request.recipe,
        "scale": request.scale,
        "dataset": base.dataset,
        "arch": done[0][0].config.arch if request.model is None else "as in the checkpoint",
        "training": asdict(base.training),
        "epochs": base.training.epochs if request.model is None else None,
        "frame": base.frame,
        "model": request.model and _last(request.model),
        "seeds": sorted({planned.seed for planned, _ in done}),
        "rows": [
            _row(number, _values(by_arm[number.arm], number), asked.printed.get(number))
            for number in _numbers(asked, by_arm)
        ],
        "classes": class_rows({arm: by_arm[arm] for arm in (asked.arms[0].name, ONE_MORE)}),
        "findings": some.get("data", {}).get("findings", []),
        "seconds": round(sum(sum(r.document["seconds"].values()) for _, r in done), 1),
        "device": some["device"],
        "versions": some["versions"],
        "command": command(request),
    }


def command(request: Request) -> str:
    """Give the command that repeats an experiment; paths by their last part."""
    words = ["python -m masktune reproduce", request.recipe, f"--scale {request.scale}"]
    if request.seeds is not None:
        words.append(f"--seeds {request.seeds}")
    for name in ("root", "model", "weights"):
        if (value := getattr(request, name)) is not None:
            words.append(f"--{name} {_last(value)}")
    if request.validation != "own":
        words.append(f"--validation {request.validation}")
    return " ".join(words)


def _last(path: str) -> str:
    """Give the last part of a path: results must not tell whose machine they were made on."""
    return path.rstrip("/").rsplit("/", 1)[-1]


def _numbers(
    asked: Experiment, by_arm: Mapping[str, Sequence[Mapping[str, Any]]]
) -> Iterator[Number]:
    """List the numbers of an experiment: every ERM model's once, then every arm's."""
    some = by_arm[ONE_MORE][0]
    first = asked.arms[0].name
    trained = {first, *(arm.name for arm in asked.arms if arm.training is not None)}
    for arm in (*(arm.name for arm in asked.arms), ONE_MORE):
        # A seed may have stopped early: the others' later rounds are shown all the same.
        rounds = max(len(run["masking"]["rounds"]) for run in by_arm[arm])
        for test in some["test"]:
            if arm in trained:
                yield from _accuracies(arm, test, "before", some)
            if rounds == 1:
                yield from _accuracies(arm, test, "after", some)
                continue
            for number in range(1, rounds + 1):
                yield Number(arm=arm, test=test, moment="after", measure="average", rounds=number)
    if any(number.target is not None for number in asked.printed):
        # The control too: a joint score of any two models may be the better one.
        scores = [(first, "joint"), (first, "before"), (first, "after")]
        scores += [(ONE_MORE, "joint"), (ONE_MORE, "after")]
        for test, (arm, moment), target, measure in product(
            some["test"], scores, COVERAGES, ("coverage", "error")
        ):
            yield Number(arm=arm, test=test, moment=moment, measure=measure, target=target)


def _accuracies(arm: str, test: str, moment: str, some: Mapping[str, Any]) -> Iterator[Number]:
    yield Number(arm=arm, test=test, moment=moment, measure="average")
    if some["test"][test]["before"]["worst_is"] == "group":
        yield Number(arm=arm, test=test, moment=moment, measure="worst_group")


def reading(run: Mapping[str, Any], number: Number) -> float | None:
    """Read a number off a run's result; None where the run has none, such as an early stop."""
    found: Mapping[str, float | None]
    if number.target is not None:
        wanted = (number.moment, number.target)
        rows = [r for r in run["selective"][number.test] if (r["score"], r["target"]) == wanted]
        found = rows[0] if rows else {}
    elif number.rounds is not None:
        rounds = run["masking"]["rounds"][number.rounds - 1 : number.rounds]
        found = rounds[0]["test"][number.test] if rounds else {}
    else:
        found = run["test"][number.test][number.moment]
    return found.get(number.measure)


def _values(runs: Sequence[Mapping[str, Any]], number: Number) -> list[float]:
    return [value for run in runs if (value := reading(run, number)) is not None]


def _row(number: Number, values: Sequence[float], paper: Printed | None) -> dict[str, Any]:
    """Return a row of a document: a number over the seeds that have it, beside the paper's."""
    mean = statistics.fmean(values) if values else None
    beside = None
    if paper is not None:
        beside = {
            "value": paper.value,
            "std": paper.std,
            "source": paper.source,
            "tolerance": paper.tolerance,
            "within": None if mean is None else abs(mean - paper.value) <= paper.tolerance,
        }
    return {
        **asdict(number),
        "title": number.title,
        "values": [*values],
        "n": len(values),
        "mean": mean,
        "std": statistics.stdev(values) if len(values) > 1 else None,
        "interval": interval(values),
        "paper": beside,
    }


def interval(values: Sequence[float]) -> list[float] | None:
    """Give Student's 95 % interval of a mean of shares, kept in [0, 1]."""
    found = student_interval(values)
    return None if found is None else [max(0.0, found[0]), min(1.0, found[1])]
