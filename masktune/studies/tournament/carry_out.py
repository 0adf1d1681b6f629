"""Carrying out a tournament: run after run, with what they share computed once."""

from dataclasses import replace
from pathlib import Path

from masktune.checkpoints.start import given_model
from masktune.compute import accelerator
from masktune.pipeline import run
from masktune.progress import Progress, Watcher, unwatched
from masktune.runs.folder import DATA, RunFolder
from masktune.runs.load import load_for
from masktune.runs.open import OpenRun
from masktune.scores.result import VALIDATION, RunResult
from masktune.show.wording import duration
from masktune.studies.study import Study
from masktune.studies.tournament.page import write
from masktune.studies.tournament.plan import (
    NONE,
    Outcome,
    Planned,
    Request,
    check_needs,
    plan,
    seconds_left,
)
from masktune.studies.tournament.table import document
from masktune.training.context import Known
from masktune.training.masktune import finetune_rate


def tournament(request: Request, *, out: Path, watcher: Watcher = unwatched) -> Outcome:
    """Do every run of a tournament that is not done yet, or go on where one was interrupted.

    The watcher hears the steps of each run, with the run and how long all of them still take before
    the stage; what it raises stops the tournament. ``study.json`` is written after every run.
    """
    out = out.absolute()  # runs name their model before by it, from wherever they go on
    first = replace(request.configs[NONE], seed=request.first_seed)
    bundle = load_for(first, watcher=watcher)
    check_needs(request, bundle)
    by_groups, usual = bundle.knows_groups(bundle.validation), None
    if not request.trains and request.rates != (1.0,):
        usual = finetune_rate(first, given_model(str(first.model), bundle.card, config=first))
    del bundle  # every run reads its own
    runs = [*plan(request, out=out, usual=usual)]
    compute = accelerator(first.device)
    study = Study.claim(
        out,
        kind="tournament",
        about={**request.given},
        plan=[one.to_json(out=out) for one in runs],
        compute=compute,
    )
    done: dict[Planned, RunResult] = {}
    known: dict[int, Known] = {}
    with study.recording():
        for number, planned in enumerate(runs, start=1):
            study.stage, study.eta = planned.title, seconds_left(runs, done)
            study.say("running")
            left = "" if study.eta is None else f", {duration(study.eta)} left in all"
            name = f"{number}/{len(runs)} {planned.title}{left}: "

            def watch(progress: Progress, name: str = name) -> None:
                watcher(replace(progress, stage=name + progress.stage))

            told = known.get(planned.seed)
            done[planned] = run(planned.config, out=planned.path, watcher=watch, known=told)
            compute.wait_for_everyone()  # nobody reads what the first is still writing
            if told is None or told.heat is None:
                known[planned.seed] = _known(planned.path)
            outcome = Outcome(
                request=request, out=out, runs=runs, done={**done}, by_groups=by_groups
            )
            study.done, study.eta = len(done), seconds_left(runs, done)
            study.table = document(outcome)
            study.say("running")
        write(study.table, study.folder)
    return outcome


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
