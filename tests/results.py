"""Results of runs that nobody did, for tests that only read them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from masktune.scores.result import RunResult


def both(before: float, after: float) -> dict:
    """Give the scores of one class, of which the models get these shares right."""
    return {
        "before": scores([("all", "any", 100, before)]),
        "after": scores([("all", "any", 100, after)]),
    }


def scores(groups: Sequence[tuple[str, str, int, float | None]]) -> dict:
    """Give the scores of groups, each as (label, attribute, n, accuracy)."""
    heads = ("label", "attribute", "count", "accuracy")
    known = [(n, accuracy) for _, _, n, accuracy in groups if accuracy is not None]
    return {
        "average": sum(n * accuracy for n, accuracy in known) / sum(n for n, _ in known),
        "train_weighted": None,
        "group_mean": sum(accuracy for _, accuracy in known) / len(known),
        "worst_group": min(accuracy for _, accuracy in known),
        "worst_is": "class" if {a for _, a, *_ in groups} == {"any"} else "group",
        "groups": [{**dict(zip(heads, g, strict=True)), "interval": None} for g in groups],
    }


def a_result(
    tests: Mapping[str, dict],
    *,
    rounds: Sequence[dict],
    seconds: Mapping[str, float] | None = None,
    **parts: object,
) -> RunResult:
    """Give the result of a run; a round says only what differs from 10 % hidden, fitted.

    ``parts`` are further ones of ``result.json``.
    """
    usual = {"k": 2.0, "hidden_fraction": 0.1, "empty_fraction": 0.0, "fitted": True}
    document = {
        "dataset": "herd",
        "seed": 0,
        "config": {},
        "device": "cpu",
        "test": dict(tests),
        "validation": next(iter(tests.values())),
        "masking": {"rounds": [{**usual, **one} for one in rounds], "layer": "features"},
        "seconds": {"train": 1.0} if seconds is None else dict(seconds),
        "versions": {"torch": "2"},
        **parts,
    }
    return RunResult.from_json(document, folder=Path("a-run"))
