"""The line: load, train, heat, keep, finetune, predict, score, report."""

import platform
from pathlib import Path
from typing import Any

import torch
import torchvision

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.checkpoints.start import given_model, start_model
from masktune.compute import accelerator
from masktune.config import RunConfig, names_code
from masktune.data.types import DatasetBundle
from masktune.errors import ConfigError
from masktune.progress import Progress, Watcher, unwatched
from masktune.report.page import report_html
from masktune.runs.folder import RunFolder, new_run_path
from masktune.runs.load import load_for
from masktune.runs.open import RunView
from masktune.runs.resume import Saved, save_before, save_data, save_training
from masktune.scores.metrics import bg_gap
from masktune.scores.predictions import Predictions
from masktune.scores.result import Pair, RunPredictions, RunResult, score_document, scorer
from masktune.training.context import Work
from masktune.training.fit import Resume, train
from masktune.training.masktune import Rounds, run_rounds


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
    if out is None and compute.num_processes > 1:
        raise ConfigError("A run of several processes needs one folder.", "Name it with --out.")
    path = Path(out) if out is not None else new_run_path(config)
    with compute.main_process_first():
        folder = RunFolder.claim(path, config, writes=compute.is_main_process)
    # The first goes no further before the others have looked: they would find a running run.
    compute.wait_for_everyone()
    if folder.finished():
        return RunResult(path, folder.read_json("result.json"))

    def watch(progress: Progress) -> None:
        folder.watch(progress)
        watcher(progress)

    with folder.recording():
        saved = Saved.read(folder, arch=config.arch if names_code(config.arch) else None)
        compute.wait_for_everyone()  # nobody writes before everybody has read
        bundle = load_for(config, watcher=watch)
        save_data(folder, bundle, config, saved)
        watch(Progress(stage="load", done=1, total=1))
        work = Work(config=config, bundle=bundle, folder=folder, compute=compute, watcher=watch)
        return RunResult(path, _line(work, saved))


def _line(work: Work, saved: Saved) -> dict[str, Any]:
    with work.timed("train"):
        before = saved.before or _before(work, saved)
        save_before(work.folder, before, work.config)
    rounds = run_rounds(work, before, saved)
    with work.timed("evaluate"):
        predictions = _predict(work, before, rounds.after)
    work.folder.write("predictions.npz", predictions.to_bytes())
    document = {
        "run": str(work.folder.path),
        "dataset": work.config.dataset,
        "seed": work.config.seed,
        "config": work.config.to_json(),
        "device": work.compute.device.type,
        **_scores(work.bundle, predictions),
        "masking": rounds.document(),
        "data": {
            "findings": [*work.bundle.findings, *filter(None, [work.bundle.left_out])],
            "skipped": [skipped._asdict() for skipped in work.bundle.skipped],
        },
        "seconds": {part: round(value, 3) for part, value in work.seconds.items()},
        "versions": _versions(),
    }
    _report(work, document, predictions, before, rounds)
    work.folder.write_json("result.json", document)
    return document


def _scores(bundle: DatasetBundle, predictions: RunPredictions) -> dict[str, Any]:
    """Score everything; for the Backgrounds Challenge also what the background is worth."""
    document = score_document(predictions, score=scorer(bundle))
    gaps = {
        moment: bg_gap({name: test[moment]["average"] for name, test in document["test"].items()})
        for moment in ("before", "after")
    }
    return document if None in gaps.values() else {**document, "bg_gap": gaps}


def _before(work: Work, saved: Saved) -> Checkpoint:
    """Load the model before, or train it by ERM."""
    config, card = work.config, work.bundle.card
    if config.model is not None:
        return given_model(config.model, card, config=config)
    classes = len(card.classes)
    model = train(
        start_model(config, card),
        work.bundle.train,
        config=config.training,
        preprocess=work.preprocess,
        seed=config.seed,
        compute=work.compute,
        watcher=work.watcher,
        resume=Resume(state=saved.training, save=lambda state: save_training(work.folder, state)),
    )
    return Checkpoint(
        model=model,
        arch=config.arch,
        classes=classes,
        lr=config.training.last_lr,
        mean=card.mean,
        std=card.std,
    )


def _predict(work: Work, before: Checkpoint, after: Checkpoint) -> RunPredictions:
    """Ask both models about validation and every test set, under one progress."""
    splits = [work.bundle.validation, *work.bundle.tests.values()]
    calls = [(split, which) for split in splits for which in (before, after)]
    answers: list[Predictions] = []

    def watch(progress: Progress) -> None:
        share = round(100 * (len(answers) + progress.done / progress.total))
        work.watcher(Progress(stage="predict", done=share, total=100 * len(calls)))

    for split, which in calls:
        answers.append(work.ask(which.model, split, watcher=watch))
    pairs = [Pair(*two) for two in zip(answers[::2], answers[1::2], strict=True)]
    tests = dict(zip(work.bundle.tests, pairs[1:], strict=True))
    return RunPredictions(validation=pairs[0], tests=tests)


def _report(
    work: Work,
    document: dict[str, Any],
    predictions: RunPredictions,
    before: Checkpoint,
    rounds: Rounds,
) -> None:
    if not work.folder.writes:
        return
    view = RunView(
        config=work.config,
        document=document,
        bundle=work.bundle,
        predictions=predictions,
        before=before,
        after=rounds.after,
        store=rounds.store if rounds.store.rounds else None,
    )
    work.folder.write("report.html", report_html(view).encode())
    work.watcher(Progress(stage="report", done=1, total=1))


def _versions() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torchvision": torchvision.__version__,
    }
