"""Carrying out a tournament."""

from collections.abc import Callable
from pathlib import Path

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.checkpoints.start import given_model
from masktune.compute import accelerator
from masktune.progress import Watcher, unwatched
from masktune.runs.load import load_for
from masktune.studies.carry_out import carry_out
from masktune.studies.study import Study
from masktune.studies.tournament.page import write
from masktune.studies.tournament.plan import NONE, Done, Outcome, Request, check_needs, plan
from masktune.studies.tournament.rates import learning
from masktune.studies.tournament.table import document
from masktune.training.by_recipe import check_network, untrained
from masktune.training.context import Context
from masktune.training.rates import FinetuneRate


def tournament(
    request: Request,
    *,
    out: Path,
    watcher: Watcher = unwatched,
    tell: Callable[[str], None] = lambda _: None,
) -> Outcome:
    """Do every run of a tournament that is not done yet, or go on where one was interrupted.

    The watcher hears the steps of each run, with the run and how long all of them still take before
    the stage; what it raises stops the tournament. ``study.json`` is written after every run.
    Before the first, ``tell`` hears at which rates methods learn, a sentence at a time.
    """
    out = out.absolute()  # runs name their model before by it, from wherever they go on
    first = request.configs[NONE]
    bundle = load_for(first, watcher=watcher)
    check_needs(request, bundle)
    compute = accelerator(first.device)
    before = _start(Context(config=first, bundle=bundle, compute=compute, watcher=watcher))
    for method in request.methods:
        for _, config in request.variants[method]:
            check_network(Context(config=config, bundle=bundle, compute=compute), before)
    by_groups = bundle.knows_groups(bundle.validation)
    usual = FinetuneRate.of(first, before, pictures=len(bundle.train)).lr
    rates = learning(request, before, pictures=len(bundle.train))
    del bundle, before  # every run reads its own
    runs = [*plan(request, out=out, usual=usual)]
    study = Study.claim(out, runs, kind="tournament", about={**request.given}, compute=compute)

    def outcome(done: Done) -> Outcome:
        return Outcome(
            request=request, out=out, runs=runs, done=done, by_groups=by_groups, learning=rates
        )

    for words in rates["words"]:
        tell(words)
    with study.recording():
        done = carry_out(study, watcher=watcher, table=lambda done: document(outcome(done)))
        write(study.table, study.folder)
    return outcome(done)


def _start(context: Context) -> Checkpoint:
    """Return the model before where it is given, else the network that becomes it."""
    config = context.config
    if config.model is None:
        return untrained(context)
    return given_model(config.model, context.bundle.card, config=config)
