"""The line: load, train, heat, keep, finetune, predict, score, report."""

import platform
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.compute import accelerator
from masktune.config import RunConfig, names_code
from masktune.data.types import DatasetBundle
from masktune.progress import Progress, Watcher, unwatched
from masktune.report.page import report_html
from masktune.runs.folder import RunFolder
from masktune.runs.load import load_for
from masktune.runs.open import RunView
from masktune.runs.resume import (
    Saved,
    claimed,
    save_before,
    save_data,
    save_training,
    save_tuned,
)
from masktune.scores.metrics import bg_gap
from masktune.scores.result import RunPredictions, RunResult, score_document, scorer
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
        return RunResult(folder.path, folder.read_json("result.json"))

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
        return RunResult(folder.path, _line(context, folder, saved))


def _line(context: Context, folder: RunFolder, saved: Saved) -> dict[str, Any]:
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
    document = {
        "run": str(folder.path),
        "dataset": context.config.dataset,
        "seed": context.config.seed,
        "config": context.config.to_json(),
        "device": context.compute.device.type,
        **_scores(context.bundle, predictions),
        "masking": tuned.document(),
        "data": {
            "findings": [*context.bundle.findings, *filter(None, [context.bundle.left_out])],
            "skipped": [skipped._asdict() for skipped in context.bundle.skipped],
        },
        "seconds": {part: round(value, 3) for part, value in context.seconds.items()},
        "versions": _versions(),
    }
    _report(context, folder, document, predictions, before, tuned)
    folder.write_json("result.json", document)
    return document


def _scores(bundle: DatasetBundle, predictions: RunPredictions) -> dict[str, Any]:
    """Score everything; for the Backgrounds Challenge also what the background is worth."""
    document = score_document(predictions, score=scorer(bundle))
    gaps = {
        moment: bg_gap({name: test[moment]["average"] for name, test in document["test"].items()})
        for moment in ("before", "after")
    }
    return document if None in gaps.values() else {**document, "bg_gap": gaps}


def _report(
    context: Context,
    folder: RunFolder,
    document: dict[str, Any],
    predictions: RunPredictions,
    before: Checkpoint,
    tuned: Tuned,
) -> None:
    if not folder.writes:
        return
    view = RunView(
        path=folder.path,
        config=context.config,
        document=document,
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
    return {"python": platform.python_version(), **packages}
