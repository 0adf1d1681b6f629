"""What an experiment came to, number by number, beside the paper's."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

from masktune.recipes import Recipe
from masktune.scores.interval import student_interval
from masktune.scores.result import RunResult
from masktune.studies.classes import class_rows
from masktune.studies.paper import MEASURES, ONE_MORE, Figure
from masktune.studies.reproduce import Planned, Request, scaled

COVERAGES = (1.0, 0.95, 0.9, 0.85, 0.8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """Which number: as in ``masktune.studies.paper.Figure``."""

    arm: str
    test: str
    moment: str
    measure: str
    target: float | None = None
    rounds: int | None = None


def document(request: Request, done: Sequence[tuple[Planned, RunResult]]) -> dict[str, Any]:
    """Give an experiment's results as a JSON document.

    Every number has its value by seed, mean, sample standard deviation, n and Student's 95 %
    interval, and the paper's number where there is one. Accuracies are fractions.
    """
    base = scaled(request)
    by_arm: dict[str, list[Mapping[str, Any]]] = {}
    for planned, result in done:
        by_arm.setdefault(planned.arm, []).append(result.document)
    figures = {key_of(figure): figure for figure in base.figures}
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
            row_of(key, _values(by_arm[key.arm], key), figures.get(key))
            for key in _keys(base, by_arm)
        ],
        "classes": class_rows({arm: by_arm[arm] for arm in (base.arms[0].name, ONE_MORE)}),
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


def key_of(figure: Figure) -> Key:
    """Tell which number of a run a figure of the paper is."""
    return Key(
        arm=figure.arm,
        test=figure.test,
        moment=figure.moment,
        measure=figure.measure,
        target=figure.target,
        rounds=figure.rounds,
    )


def _keys(base: Recipe, by_arm: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[Key]:
    """List the numbers of an experiment: every ERM model's once, then every arm's."""
    some = by_arm[ONE_MORE][0]
    # Where the paper prints the ERM's numbers under an arm, they are shown there.
    shown = {key_of(figure) for figure in base.figures}
    first = base.arms[0].name
    trained = {first, *(arm.name for arm in base.arms if arm.training is not None)}
    for arm in (*(arm.name for arm in base.arms), ONE_MORE):
        for test in some["test"]:
            if arm in trained:
                yield from _accuracy_keys(arm, test, "before", some)
            rounds = by_arm[arm][0]["masking"]["rounds"]
            if len(rounds) > 1:
                for number in range(1, len(rounds) + 1):
                    yield Key(arm=arm, test=test, moment="after", measure="average", rounds=number)
            else:
                yield from _accuracy_keys(arm, test, "after", some)
    if any(key.target is not None for key in shown):
        # The control too: a joint score of any two models may be the better one.
        scores = [(first, "joint"), (first, "before"), (first, "after")]
        scores += [(ONE_MORE, "joint"), (ONE_MORE, "after")]
        for test, (arm, moment), target, measure in product(
            some["test"], scores, COVERAGES, ("coverage", "error")
        ):
            yield Key(arm=arm, test=test, moment=moment, measure=measure, target=target)


def _accuracy_keys(arm: str, test: str, moment: str, some: Mapping[str, Any]) -> Iterator[Key]:
    yield Key(arm=arm, test=test, moment=moment, measure="average")
    if some["test"][test]["before"]["worst_is"] == "group":
        yield Key(arm=arm, test=test, moment=moment, measure="worst_group")


def reading(run: Mapping[str, Any], key: Key) -> float | None:
    """Read one number off a run's result; None where the run has none, such as an early stop."""
    if key.target is not None:
        for row in run["selective"][key.test]:
            if row["score"] == key.moment and row["target"] == key.target:
                value: float | None = row[key.measure]
                return value
        return None
    if key.rounds is not None:
        rounds = run["masking"]["rounds"]
        return (
            rounds[key.rounds - 1]["test"][key.test][key.measure]
            if key.rounds <= len(rounds)
            else None
        )
    number: float | None = run["test"][key.test][key.moment][key.measure]
    return number


def _values(runs: Sequence[Mapping[str, Any]], key: Key) -> list[float]:
    return [value for run in runs if (value := reading(run, key)) is not None]


def row_of(key: Key, values: Sequence[float], figure: Figure | None = None) -> dict[str, Any]:
    """Give a row of a document: one number over the seeds that have it, beside the paper's."""
    mean = statistics.fmean(values) if values else None
    row: dict[str, Any] = {
        "arm": key.arm,
        "test": key.test,
        "moment": key.moment,
        "measure": key.measure,
        "target": key.target,
        "rounds": key.rounds,
        "title": title(key),
        "values": [*values],
        "n": len(values),
        "mean": mean,
        "std": statistics.stdev(values) if len(values) > 1 else None,
        "interval": interval(values),
        "paper": None,
    }
    if figure is not None:
        row["paper"] = {
            "value": figure.value,
            "std": figure.std,
            "source": figure.source,
            "tolerance": figure.tolerance,
            "within": None if mean is None else abs(mean - figure.value) <= figure.tolerance,
        }
    return row


def title(key: Key) -> str:
    """Say which number it is."""
    if key.measure == "coverage" and key.target is not None:
        return f"coverage reached, of {key.target:.0%} aimed at"
    at = f" at {key.target:.0%} coverage" if key.target is not None else ""
    after = f" after round {key.rounds}" if key.rounds is not None else ""
    return f"{MEASURES[key.measure]}{at}{after}"


def interval(values: Sequence[float]) -> list[float] | None:
    """Give Student's 95 % interval of a mean of shares, kept in [0, 1]."""
    found = student_interval(values)
    return None if found is None else [max(0.0, found[0]), min(1.0, found[1])]
