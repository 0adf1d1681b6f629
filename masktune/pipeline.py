"""The line: load, train, heat, keep, finetune, predict, score, report."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from masktune.compute import accelerator
from masktune.config import RunConfig, names_code
from masktune.heat.strategies import check
from masktune.progress import Progress, Watcher, unwatched
from masktune.report.page import report_html
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
from masktune.scores.hiding import Hiding
from masktune.scores.json_types import as_type
from masktune.scores.result import RESULT, MaskingResult, RunResult, score
from masktune.training.by_recipe import model_before
from masktune.training.context import Context, Known
from masktune.training.fit import Resume
from masktune.training.methods import RIVALS


def run(
    config: RunConfig,
    *,
    out: str | Path | None = None,
    watcher: Watcher = unwatched,
    tell: Callable[[Hiding], None] = lambda _: None,
    known: Known | None = None,
) -> RunResult:
    """Carry out a run from its settings to its report, into a run folder.

    A folder that the same settings left unfinished is taken up where it stopped; one they
    finished gives its result at once.

    Args:
        config: the settings.
        out: the run folder; by default a new one under $MASKTUNE_HOME/runs.
        watcher: told after every step; what it raises stops the run.
        tell: called with what hiding takes away, before the first epoch of finetuning.
        known: what another run has found out about the same model before and the same pictures:
            it is taken as it is, so that the result is the same.
    """
    began = time.process_time()
    compute = accelerator(config.device)
    folder = claimed(config, out, compute)
    if folder.finished():
        return RunResult.read(folder.path)

    def watch(progress: Progress) -> None:
        folder.watch(progress)
        watcher(progress)

    with folder.recording():
        saved = Saved.read(folder, arch=config.arch if names_code(config.arch) else None)
        compute.wait_for_everyone()  # nobody writes before everybody has read
        bundle = load_for(config, watcher=watch)
        save_data(folder, bundle, config, saved)
        check_known(bundle, known)
        watch(Progress(stage="load", done=1, total=1))
        context = Context(
            config=config,
            bundle=bundle,
            compute=compute,
            watcher=watch,
            saved=saved.tuned,
            save=partial(save_tuned, folder, config),
            resume=partial(resume_tuning, folder),
            tell=tell,
            known=known,
        )
        context.seconds["load"] = time.time() - folder.began
        method = RIVALS[config.rival]
        method.check(bundle, config)
        check(config.masking, bundle.train)
        save_regions(folder, config)
        with context.timed("train"):
            resume = Resume(state=saved.training, save=partial(save_training, folder))
            before = saved.before or model_before(context, resume=resume)
            save_before(folder, before, config)
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
            watch(Progress(stage="report", done=1, total=1))
        used = round(time.process_time() - began, 3)
        result = replace(result, seconds=context.seconds, cpu_seconds=used)
        forget_tuning(folder)
        folder.write_json(RESULT, result.to_json())  # last: a folder that has it is finished
        return result
