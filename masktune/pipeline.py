"""The line: load, train, heat, keep, finetune, predict, score, report."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from accelerate import Accelerator

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.compute import accelerator
from masktune.config import RunConfig, names_code
from masktune.heat.strategies import check
from masktune.progress import Progress, Watcher, unwatched
from masktune.report.page import report_html
from masktune.runs.folder import RunFolder
from masktune.runs.load import load_for
from masktune.runs.open import OpenRun
from masktune.runs.resume import (
    Saved,
    check_known,
    claimed,
    forget_tuning,
    resume_tuning,
    save_before,
    save_data,
    save_regions,
    save_training,
    save_tuned,
)
from masktune.scores.json_types import as_type
from masktune.scores.result import RESULT, MaskingResult, RunResult, score
from masktune.scores.trained import TrainResult, score_before
from masktune.training.by_recipe import model_before
from masktune.training.context import Context, Foretold, Known
from masktune.training.fit import Resume
from masktune.training.foretell import foretell
from masktune.training.methods import RIVALS


def run(
    config: RunConfig,
    *,
    out: str | Path | None = None,
    watcher: Watcher = unwatched,
    tell: Callable[[Foretold], None] = lambda _: None,
    known: Known | None = None,
) -> RunResult:
    """Carry out a run from its settings to its report, into a run folder.

    A folder that the same settings left unfinished is taken up where it stopped; one they
    finished gives its result at once.

    Args:
        config: the settings.
        out: the run folder; by default a new one under $MASKTUNE_HOME/runs.
        watcher: told after every step; what it raises stops the run.
        tell: called before the first epoch of finetuning with its rate, with an order of the
            classes in which a given model does better, and with what hiding takes away.
        known: what another run has found out about the same model before and the same pictures:
            it is taken as it is, so that the result is the same.
    """
    began = time.process_time()
    compute = accelerator(config.device)
    folder = claimed(config, out, compute)
    if folder.finished():
        return RunResult.read(folder.path)
    with _under_way(folder, config, compute, watcher) as (begun, saved):
        bundle = begun.bundle
        check_known(bundle, known)
        context = replace(
            begun,
            saved=saved.tuned,
            save=partial(save_tuned, folder, config),
            resume=partial(resume_tuning, folder),
            tell=tell,
            known=known,
            said={} if known is None else known.said,
        )
        method = RIVALS[config.rival]
        method.check(bundle, config)
        check(config.masking, bundle.train)
        save_regions(folder, config)
        before = _before(context, folder, saved)
        context = foretell(context, before)
        tuned = method.tune(context, before)  # heat, keep, finetune: training/masktune.py
        with context.timed("evaluate"):
            said = context.ask_both(before, tuned.after, tuned.own)
        folder.write("predictions.npz", said.to_bytes())
        result = score(
            said,
            bundle,
            config=config,
            folder=folder.path,
            masking=as_type(MaskingResult, tuned.document()),
            device=compute.device.type,
            best_epoch=before.epoch if config.model is None else None,
            rival=tuned.facts,
            seconds=dict(context.seconds),
        )
        if folder.writes:
            # From what is in memory: nothing is read again.
            made = OpenRun(
                folder.path,
                config=config,
                bundle=bundle,
                before=before,
                after=tuned.after,
                store=tuned.store,
                predictions=said,
                result=result,
            )
            with context.timed("report"):
                folder.write("report.html", report_html(made).encode())
            context.watcher(Progress(stage="report", done=1, total=1))
        used = round(time.process_time() - began, 3)
        result = replace(result, seconds=context.seconds, cpu_seconds=used)
        forget_tuning(folder)
        folder.write_json(RESULT, result.to_json())  # last: a folder that has it is finished
        return result


def train_before(
    config: RunConfig, *, out: str | Path | None = None, watcher: Watcher = unwatched
) -> TrainResult:
    """Train the model before of a run, as the run would, and stop there.

    The arguments are those of ``run``; of the settings those of the training count.
    """
    began = time.process_time()
    compute = accelerator(config.device)
    folder = claimed(config, out, compute)
    if folder.finished():
        return TrainResult.read(folder.path)
    with _under_way(folder, config, compute, watcher) as (context, saved):
        before = _before(context, folder, saved)
        with context.timed("evaluate"):
            said = context.ask_all(before)
        result = score_before(
            said,
            context.bundle,
            config=config,
            folder=folder.path,
            device=compute.device.type,
            best_epoch=before.epoch,
            seconds={part: taken for part, taken in context.seconds.items() if taken},
            cpu_seconds=round(time.process_time() - began, 3),
        )
        folder.write_json(RESULT, result.to_json())  # last: a folder that has it is finished
        return result


@contextmanager
def _under_way(
    folder: RunFolder, config: RunConfig, compute: Accelerator, watcher: Watcher
) -> Iterator[tuple[Context, Saved]]:
    """Load the pictures of a run, and what an earlier try has saved; record how it ends."""

    def watch(progress: Progress) -> None:
        folder.watch(progress)
        watcher(progress)

    with folder.recording():
        saved = Saved.read(folder, arch=config.arch if names_code(config.arch) else None)
        compute.wait_for_everyone()  # nobody writes before everybody has read
        bundle = load_for(config, watcher=watch)
        save_data(folder, bundle, config, saved)
        watch(Progress(stage="load", done=1, total=1))
        context = Context(config=config, bundle=bundle, compute=compute, watcher=watch)
        context.seconds["load"] = time.time() - folder.began
        yield context, saved


def _before(context: Context, folder: RunFolder, saved: Saved) -> Checkpoint:
    with context.timed("train"):
        resume = Resume(state=saved.training, save=partial(save_training, folder))
        before = saved.before or model_before(context, resume=resume)
        save_before(folder, before, context.config)
    return before
