"""Bounded caches round the core's loaders: no model is read or asked twice for the same thing.

Keys are content hashes and settings, never arrays; what comes out is shared by all sessions and is
never changed.
"""

import hashlib
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import streamlit as st
import torch

from masktune.cache import Cache
from masktune.checkpoints.checkpoint import Checkpoint, bundled_checkpoint, load_checkpoint
from masktune.checkpoints.inspect import Diagnosis, diagnose
from masktune.compute import accelerator
from masktune.config import AUTO, BUNDLED, MaskingConfig, RunConfig, names_code
from masktune.data.changed import stamp
from masktune.data.images import TensorImages
from masktune.data.preprocess import Preprocess
from masktune.data.types import DatasetBundle, Split
from masktune.datasets.catalogue import load
from masktune.errors import ModelError
from masktune.files import written_path
from masktune.heat import layers as layers_of
from masktune.heat.explain import explain
from masktune.heat.store import HeatStore
from masktune.models.predict import predict
from masktune.progress import Watcher, unwatched
from masktune.runs.jobs import runs_home
from masktune.runs.open import RunView, view
from masktune.scores.predictions import Predictions
from masktune.studies.advice import Trial
from masktune.studies.sweep import quick_look
from masktune.training.context import Context

Made = TypeVar("Made")


MOST_KEPT = 4
"""Datasets and heats kept at once."""


@st.cache_resource(show_spinner=False)
def _kept(what: str, most: int) -> Cache:
    """Keep what was used last. Not a cached function: those may not draw progress on the page."""
    del what
    return Cache(most=most)


def _keeping(what: str, key: Hashable, make: Callable[[], Made], most: int = MOST_KEPT) -> Made:
    return _kept(what, most).get(key, make)


def bundle(subject: RunConfig, *, watcher: Watcher = unwatched) -> DatasetBundle:
    """Give the pictures of a subject; the watcher hears how far checking their files is."""
    source = (subject.dataset, subject.root, subject.seed, subject.frame, subject.normalise)
    return _keeping(
        "pictures",
        (
            *source,
            subject.validation,
            "" if subject.root is None else stamp(written_path(subject.root)),
        ),
        lambda: load(
            subject.dataset,
            root=subject.root,
            seed=subject.seed,
            frame=subject.frame,
            normalise=subject.normalise,
            validation=subject.validation,
            watcher=watcher,
        ),
    )


def model_path(subject: RunConfig) -> Path:
    """Give the checkpoint file of a subject."""
    if subject.model == BUNDLED:
        return bundled_checkpoint(subject.dataset)
    return Path(subject.model or "")


@st.cache_data(max_entries=64, show_spinner=False)
def _digest(path: str, changed: tuple[int, int]) -> str:
    del changed  # part of the key: a file written anew is read anew
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest(path: Path) -> str:
    """Give the hash of a file's content; a file that did not change is read once."""
    try:
        stat = path.stat()
    except (OSError, ValueError):
        return "missing"
    return _digest(str(path), (stat.st_mtime_ns, stat.st_size))


@st.cache_resource(max_entries=4, show_spinner="Reading the model")
def _checkpoint(
    path: str, content: str, arch: str | None, classes: int, pool: tuple[int, ...]
) -> Checkpoint:
    del content  # only tells files of the same name apart
    return load_checkpoint(path, arch=arch, classes=classes, pool=pool)


def checkpoint(subject: RunConfig) -> Checkpoint:
    """Give the model of a subject."""
    path = model_path(subject)
    if names_code(subject.arch):
        raise ModelError(
            f"This model is built by code of its own, {subject.arch}.",
            "Look at it on the command line: the page runs no code that a file or an address "
            "names. python -m masktune report has its pictures.",
        )
    card = bundle(subject).card
    arch = None if subject.arch == AUTO or subject.model == BUNDLED else subject.arch
    return _checkpoint(str(path), digest(path), arch, len(card.classes), card.pool)


def _asked(subject: RunConfig, part: str) -> Hashable:
    return (subject, digest(model_path(subject)), part)


def answers(subject: RunConfig, part: str, *, watcher: Watcher = unwatched) -> Predictions:
    """Give what the model says about "train", "validation" or a test set."""
    data = bundle(subject)
    return _keeping(
        "answers",
        _asked(subject, part),
        lambda: predict(
            checkpoint(subject).model,
            split(data, part),
            preprocess=preprocess(data),
            watcher=watcher,
        ),
        most=16,
    )


def has_answers(subject: RunConfig, part: str) -> bool:
    """Tell whether the model was asked about a part already."""
    return _asked(subject, part) in _kept("answers", 16)


@st.cache_resource(max_entries=16, show_spinner=False)
def _sample_answers(subject: RunConfig, content: str, positions: tuple[int, ...]) -> Predictions:
    del content
    data = bundle(subject)
    return predict(
        checkpoint(subject).model, part_of(data.train, positions), preprocess=preprocess(data)
    )


def sample_answers(subject: RunConfig, positions: tuple[int, ...]) -> Predictions:
    """Give what the model says about a few training pictures, in this order."""
    return _sample_answers(subject, digest(model_path(subject)), positions)


def seconds_a_picture(subject: RunConfig) -> float:
    """Give how long the model takes to answer about one picture, files and all."""

    def timed() -> float:
        data = bundle(subject)
        few = list(range(min(16, len(data.train))))
        for start in (time.monotonic() for _ in range(2)):  # the first time also warms up
            part = part_of(data.train, few)
            predict(checkpoint(subject).model, part, preprocess=preprocess(data))
            seconds = time.monotonic() - start
        return seconds / len(few)

    return _keeping("pace", _asked(subject, ""), timed, most=16)


@st.cache_data(max_entries=16, show_spinner=False)
def _diagnosis(path: str, content: str, arch: str | None) -> Diagnosis:
    del content
    return diagnose(Path(path), arch=arch)


def diagnosis(path: str, arch: str | None) -> Diagnosis:
    """Give the doctor's verdict on a checkpoint file."""
    return _diagnosis(path, digest(Path(path)), arch)


def part_of(split: Split, positions: Sequence[int]) -> Split:
    """Give a few examples of a split as a split of their own, in this order."""
    index = torch.as_tensor(positions)
    return Split(
        name=split.name,
        images=TensorImages(split.images.batch(positions)),
        labels=split.labels[index],
        attributes=split.attributes[index],
    )


def some(predictions: Predictions, rows: Sequence[int]) -> Predictions:
    """Give the predictions of some examples, by row."""
    index = list(rows)
    return Predictions(
        predictions.probabilities[index], predictions.labels[index], predictions.attributes[index]
    )


def split(data: DatasetBundle, part: str) -> Split:
    """Give a split by name."""
    return {"train": data.train, "validation": data.validation, **data.tests}[part]


def preprocess(data: DatasetBundle) -> Preprocess:
    """Give the way from a dataset's bytes to the network's input."""
    return Preprocess(mean=data.card.mean, std=data.card.std)


def heat_layer(subject: RunConfig, layer: str | None) -> str:
    """Give the name of the layer that heat is read at; None takes the last spatial map."""
    model, size = checkpoint(subject).model, bundle(subject).card.size
    return layers_of.heat_layer(model, layer, size=size)


def heat_size(subject: RunConfig, layer: str) -> tuple[int, int]:
    """Give (h, w) of the heat that is read at a layer."""
    store, _ = some_heat(subject, (0,), method="xgradcam", layer=layer)
    height, width = store.rounds[0].shape[1:]
    return height, width


@st.cache_data(max_entries=8, show_spinner=False)
def _layers(subject: RunConfig, content: str) -> list[str]:
    del content
    return layers_of.spatial_layers(checkpoint(subject).model, size=bundle(subject).card.size)


def layers(subject: RunConfig) -> list[str]:
    """Name the layers of the model whose heat can be read, the latest first."""
    return _layers(subject, digest(model_path(subject)))


def heat(subject: RunConfig, *, method: str, layer: str, watcher: Watcher = unwatched) -> HeatStore:
    """Give the heat of the whole training set; the watcher hears how far it is."""
    return _keeping(
        "heat",
        _looked(subject, method, layer),
        lambda: _heat_of(subject, bundle(subject).train, method, layer, watcher),
    )


def has_heat(subject: RunConfig, *, method: str, layer: str) -> bool:
    """Tell whether the heat of the whole training set is known already."""
    return _looked(subject, method, layer) in _kept("heat", MOST_KEPT)


def some_heat(
    subject: RunConfig, positions: tuple[int, ...], *, method: str, layer: str
) -> tuple[HeatStore, float]:
    """Give the heat of a few training pictures in this order, and the seconds that it took."""

    def look() -> tuple[HeatStore, float]:
        few = part_of(bundle(subject).train, positions)
        start = time.monotonic()
        store = _heat_of(subject, few, method, layer, unwatched)
        return store, time.monotonic() - start

    return _keeping("some heat", (_looked(subject, method, layer), positions), look, most=16)


def _looked(subject: RunConfig, method: str, layer: str) -> Hashable:
    return (subject, digest(model_path(subject)), method, layer)


def _heat_of(
    subject: RunConfig, part: Split, method: str, layer: str, watcher: Watcher
) -> HeatStore:
    data = bundle(subject)
    return explain(
        checkpoint(subject).model,
        part,
        layer=layer,
        method=method,
        preprocess=preprocess(data),
        watcher=watcher,
    )


def thresholds(
    subject: RunConfig, masking: MaskingConfig, *, watcher: Watcher = unwatched
) -> tuple[Trial, ...]:
    """Give what each k does to a sample of the training pictures, without a finetune.

    Of ``masking`` only method, layer and statistics count.
    """
    data, layer = bundle(subject), heat_layer(subject, masking.layer)
    known = has_heat(subject, method=masking.method, layer=layer)
    return _keeping(
        "thresholds",
        _tried(subject, masking),
        lambda: quick_look(
            Context(
                config=replace(subject, masking=masking),
                bundle=data,
                compute=accelerator(subject.device),
                watcher=watcher,
            ),
            checkpoint(subject).model,
            store=heat(subject, method=masking.method, layer=layer) if known else None,
        ),
        most=16,
    )


def has_thresholds(subject: RunConfig, masking: MaskingConfig) -> bool:
    """Tell whether the thresholds were looked at already."""
    return _tried(subject, masking) in _kept("thresholds", 16)


def _tried(subject: RunConfig, masking: MaskingConfig) -> Hashable:
    layer = heat_layer(subject, masking.layer)
    return (_looked(subject, masking.method, layer), masking.statistics)


@st.cache_resource(max_entries=6, show_spinner="Reading the run")
def _run(run_id: str, finished: float) -> RunView:
    del finished
    return view(runs_home() / run_id)


def run(run_id: str) -> RunView:
    """Give a finished run with its models, heat and predictions."""
    result = runs_home() / run_id / "result.json"
    return _run(run_id, result.stat().st_mtime if result.is_file() else 0.0)
