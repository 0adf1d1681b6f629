"""Carrying out a study: run after run; what runs from one model before share is computed once."""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from masktune.pipeline import run
from masktune.progress import Progress, Watcher
from masktune.runs.folder import BEFORE, DATA, RunFolder
from masktune.runs.open import OpenRun
from masktune.scores.result import VALIDATION, RunResult
from masktune.show.wording import duration
from masktune.studies.study import Step, Study
from masktune.training.context import Known


def carry_out(
    study: Study[Step],
    *,
    watcher: Watcher,
    table: Callable[[Mapping[Step, RunResult]], Mapping[str, Any]],
) -> dict[Step, RunResult]:
    """Do every run that is not done yet; ``study.json`` is written after each, with its table.

    The watcher hears the steps of each run, with the run and how long all of them still take before
    the stage; what it raises stops the study.
    """
    runs = study.runs
    done: dict[Step, RunResult] = {}
    known: dict[tuple[int, str], Known] = {}
    for number, planned in enumerate(runs, start=1):
        study.stage, study.eta = planned.title, seconds_left(runs, done)
        study.say("running")
        left = "" if study.eta is None else f", {duration(study.eta)} left in all"
        name = f"{number}/{len(runs)} {planned.title}{left}: "

        def watch(progress: Progress, name: str = name) -> None:
            watcher(replace(progress, stage=name + progress.stage))

        before = planned.config.seed, planned.config.model or str(planned.path / BEFORE)
        told = known.get(before)
        done[planned] = run(planned.config, out=planned.path, watcher=watch, known=told)
        study.compute.wait_for_everyone()  # nobody reads what the first is still writing
        if told is None or told.heat is None:
            known[before] = _known(planned.path)
        study.done, study.eta = len(done), seconds_left(runs, done)
        study.table = table({**done})
        study.say("running")
    return done


def seconds_left(runs: Sequence[Step], done: Mapping[Step, RunResult]) -> float | None:
    """Estimate how long the runs take that are not done, by those that are.

    A run takes as long as others of its method did, or as all did; None before any is done.
    """
    if not done:
        return None

    def like(method: str) -> float:
        own = [result.took for one, result in done.items() if one.method == method]
        return statistics.fmean(own or [result.took for result in done.values()])

    return math.fsum(like(one.method) for one in runs if one not in done)


def _known(path: Path) -> Known:
    """Return what a finished run has found out about its model before and its pictures."""
    opened = OpenRun(path)
    said, heat = opened.predictions, opened.store
    return Known(
        fingerprint=RunFolder(path).read_json(DATA)["fingerprint"],
        said={VALIDATION: said.validation.before}
        | {name: pair.before for name, pair in said.tests.items()},
        heat=None if heat is None else replace(heat, rounds=heat.rounds[:1]),
    )
