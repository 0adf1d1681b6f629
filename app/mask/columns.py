"""Columns of the Mask page: the first, and others that differ from it in one thing each."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

from app import loaded as cached
from app.mask.sheet import Choice
from app.shared.run_rows import run_labels, run_title
from masktune.checkpoints.hugging_face import weights_file
from masktune.checkpoints.settings import settings
from masktune.checkpoints.trained import settings_of, trained_in
from masktune.config import AUTO, BUNDLED, Method, RunConfig
from masktune.datasets.catalogue import CATALOGUE, OWN
from masktune.errors import ConfigError
from masktune.files import is_there, written_path
from masktune.heat.explainers import SLOW
from masktune.runs import jobs
from masktune.runs.folder import BEFORE
from masktune.runs.resume import AFTER

EXPLAINER, LAYER, MODEL = "explainer:", "layer:", "model:"
"""A column says by its name in what it differs from the first, and what it has instead."""

BUNDLED_TITLE = "the bundled model"

_FILES = {"before": BEFORE, "after": AFTER}


def offered(choice: Choice, runs: Sequence[jobs.Job], *, layers: Sequence[str]) -> dict[str, str]:
    """Return the columns that can stand beside the first, by name, in the words of the page."""
    labels = run_labels(runs, dataset=False)
    subject = choice.subject
    found = {
        f"{MODEL}{job.id}/{part}": f"{part} of {labels[job.id]}"
        for job in runs
        if same_classes(job.config, subject)
        for part in ("after", "before")
        if (path := job.path / _FILES[part]).is_file() and str(path) != subject.model
    }
    if CATALOGUE[subject.dataset].bundled and subject.model != BUNDLED:
        found[f"{MODEL}{BUNDLED}"] = BUNDLED_TITLE
    for method in get_args(Method):
        if method != choice.method:
            found[f"{EXPLAINER}{method}"] = f"{method} (slow)" if method in SLOW else method
    return found | {
        f"{LAYER}{layer}": f"layer {layer}" for layer in layers if layer != choice.layer
    }


def same_classes(one: RunConfig, other: RunConfig) -> bool:
    """Tell whether the models of two runs answer with the same classes."""
    same_folder = one.dataset != OWN or one.root == other.root  # others hold other classes
    return one.dataset == other.dataset and same_folder


def column(name: str, choice: Choice, *, run: str | None) -> tuple[str, Choice]:
    """Return the title of a column and what it shows; ``run`` is the run that the pages show.

    Raises:
        ConfigError: there is no such column.
        MaskTuneError: its model cannot be read.
    """
    kind, _, value = name.partition(":")
    if f"{kind}:" == EXPLAINER and value in get_args(Method):
        return value, replace(choice, method=value)  # type: ignore[arg-type]
    if f"{kind}:" == LAYER:
        return f"layer {value}", replace(choice, layer=cached.heat_layer(choice.subject, value))
    # What is typed in is the path of a checkpoint.
    title, subject = _model(value if f"{kind}:" == MODEL else name, choice.subject, run)
    layer = choice.layer
    if layer not in cached.layers(subject):
        layer = cached.heat_layer(subject, None)
        title = f"{title}, layer {layer}"
    return title, replace(choice, subject=subject, layer=layer)


def _model(value: str, subject: RunConfig, run: str | None) -> tuple[str, RunConfig]:
    """Return the title of a model and the subject with it in place of its own."""
    trained: RunConfig | None
    normalise = subject.normalise
    found, _, part = value.rpartition("/")
    job = jobs.find(found) if part in _FILES else None
    if value == BUNDLED and CATALOGUE[subject.dataset].bundled:
        title, model = BUNDLED_TITLE, BUNDLED
        trained = settings({"dataset": subject.dataset, "model": BUNDLED})
    elif job is not None and same_classes(job.config, subject):
        title = part if job.id == run else f"{part}, {run_title(job)}"
        model, trained = str(_file(job.path / _FILES[part], value)), job.config
    else:
        typed = written_path(value)
        path = _file(trained_in(value) or weights_file(typed), value)
        trained, told = settings_of(path), cached.diagnosis(str(path), None)
        if not told.ok:
            remedy = "Choose it as the model on Load, which says what it needs."
            raise ConfigError(told.problem, told.remedy if path.is_dir() else remedy)
        title, model = path.stem if path == typed else typed.name, str(path)
        normalise = told.normalisation or normalise
    if trained is not None and trained.dataset == subject.dataset:
        _check_frame(title, trained, subject)
        normalise = trained.normalise
    # How the first column's checkpoint is to be read says nothing of this one.
    own = replace(subject, model=model, arch=AUTO, class_order=None, normalise=normalise)
    return title, own


def _file(path: Path, value: str) -> Path:
    """Return the path of a model, refused where there is nothing."""
    if not is_there(path):
        raise ConfigError(
            f"There is no model {value}.",
            "Choose a run's model from the list, or type the path of a checkpoint file, or of the "
            "folder of a training or of the Hugging Face hub.",
        )
    return path


def _check_frame(title: str, trained: RunConfig, subject: RunConfig) -> None:
    """Refuse a model that was made with pictures in another frame: all columns share one sheet."""
    its, here = (cached.frame(replace(subject, frame=one.frame)) for one in (trained, subject))
    if its != here:
        raise ConfigError(
            f"{title} was trained with pictures in the frame “{its}”, and those of this sheet, "
            f"which all columns share, are in “{here}”.",
            "Choose it as the model on Load: there it brings its frame along, and this page then "
            "shows where it looks.",
        )


def first_title(choice: Choice, names: Sequence[str]) -> str:
    """Say what the first column is, in those things in which others differ from it."""
    kinds = {EXPLAINER: choice.method, LAYER: f"layer {choice.layer}"}
    said = [words for kind, words in kinds.items() if any(n.startswith(kind) for n in names)]
    if any(not name.startswith((EXPLAINER, LAYER)) for name in names):
        said.insert(0, "this model")
    return ", ".join(said)
