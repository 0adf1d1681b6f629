"""The line: load, train, heat, keep, finetune, predict, score, report."""

import platform
from functools import partial
from importlib import metadata
from pathlib import Path

from masktune import __version__
from masktune.checkpoints.checkpoint import Checkpoint
from masktune.compute import accelerator
from masktune.config import RunConfig, names_code
from masktune.progress import Progress, Watcher, unwatched
from masktune.report.page import report_html
from masktune.runs.folder import RunFolder
from masktune.runs.load import load_for
from masktune.runs.open import OpenRun
from masktune.runs.resume import Saved, claimed, save_before, save_data, save_training, save_tuned
from masktune.scores.result import (
    RESULT,
    VALIDATION,
    DataNotes,
    MaskingResult,
    RunPredictions,
    RunResult,
    scorer,
)
from masktune.training.before import model_before
from masktune.training.context import Context, Tuned
from masktune.training.fit import Resume
from masktune.training.methods import RIVALS, USUAL


def run(
    config: RunConfig, *, out: str | Path | None = None, watcher: Watcher = unwatched
) -> RunResult:
    """Carry out a run from its settings to its report, into a run folder.

    A folder that the same settings left unfinished is taken up where it stopped; one they
    finished gives its result at once.

    Args:
        config: the settings.
        out: the run folder; by default a new one under $MASKTUNE_HOME/runs.
        watcher: told after every step; what it raises stops the run.
    """
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
        watch(Progress(stage="load", done=1, total=1))
        context = Context(
            config=config,
            bundle=bundle,
            compute=compute,
            watcher=watch,
            saved=saved.tuned,
            save=partial(save_tuned, folder, config),
        )
        return _line(context, folder, saved)


def _line(context: Context, folder: RunFolder, saved: Saved) -> RunResult:
    rival = RIVALS[USUAL]
    rival.check(context.bundle)
    with context.timed("train"):
        resume = Resume(state=saved.training, save=partial(save_training, folder))
        before = saved.before or model_before(context, resume=resume)
        save_before(folder, before, context.config)
    tuned = rival.tune(context, before)
    with context.timed("evaluate"):
        predictions = context.ask_both(before, tuned.after)
    folder.write("predictions.npz", predictions.to_bytes())
    config, bundle, score = context.config, context.bundle, scorer(context.bundle)
    result = RunResult(
        folder=folder.path,
        dataset=config.dataset,
        seed=config.seed,
        config=config.to_json(),
        device=context.compute.device.type,
        test=score.tests(predictions),
        validation=score.split(VALIDATION, predictions.validation),
        masking=MaskingResult.from_json(tuned.document()),
        data=DataNotes(
            findings=(*bundle.findings, *filter(None, [bundle.left_out])),
            skipped=bundle.skipped,
            train=len(bundle.train),
        ),
        seconds=context.seconds,
        versions=_versions(),
    )
    _report(context, folder, result, predictions, before, tuned)
    folder.write_json(RESULT, result.to_json())
    return result


def _report(
    context: Context,
    folder: RunFolder,
    result: RunResult,
    predictions: RunPredictions,
    before: Checkpoint,
    tuned: Tuned,
) -> None:
    if not folder.writes:
        return
    view = OpenRun(
        folder.path,
        config=context.config,
        result=result,
        bundle=context.bundle,
        predictions=predictions,
        before=before,
        after=tuned.after,
        store=tuned.store,
    )
    folder.write("report.html", report_html(view).encode())
    context.watcher(Progress(stage="report", done=1, total=1))


def _versions() -> dict[str, str]:
    # Asked for by name: importing torchvision takes seconds, and few networks need it.
    packages = {name: metadata.version(name) for name in ("torch", "torchvision")}
    return {"masktune": __version__, "python": platform.python_version(), **packages}
