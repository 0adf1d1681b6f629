"""Bounded caches round the core's loaders: no model is read or asked twice for the same thing.

Keys are content hashes and settings, never arrays; what comes out is shared by all sessions and is
never changed.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

import streamlit as st
import torch

from app.jobs import runs_home
from app.subject import Subject
from masktune.checkpoints import Checkpoint, bundled_checkpoint, load_checkpoint
from masktune.data.base import DatasetBundle, Split, TensorImages
from masktune.data.catalogue import load
from masktune.data.frames import Preprocess
from masktune.explain import explain
from masktune.heatstore import HeatStore
from masktune.models import cam_layer, layer_named, name_of, spatial_layers
from masktune.predictions import Predictions, predict
from masktune.progress import Watcher, unwatched
from masktune.view import RunView, view


@st.cache_resource(max_entries=4, show_spinner="Reading the pictures")
def _bundle(dataset: str, root: str | None, seed: int) -> DatasetBundle:
    return load(dataset, root=root, seed=seed)


def bundle(subject: Subject) -> DatasetBundle:
    """Give the pictures of a subject."""
    return _bundle(subject.dataset, subject.root, subject.seed)


def model_path(subject: Subject) -> Path:
    """Give the checkpoint file of a subject."""
    if subject.model == "bundled":
        return bundled_checkpoint(subject.dataset)
    return Path(subject.model)


@st.cache_data(max_entries=64, show_spinner=False)
def _digest(path: str, changed: tuple[int, int]) -> str:
    del changed  # part of the key: a file written anew is read anew
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest(path: Path) -> str:
    """Give the hash of a file's content; a file that did not change is read once."""
    if not path.is_file():
        return "missing"
    stat = path.stat()
    return _digest(str(path), (stat.st_mtime_ns, stat.st_size))


@st.cache_resource(max_entries=4, show_spinner="Reading the model")
def _checkpoint(path: str, content: str, classes: int) -> Checkpoint:
    del content  # only tells files of the same name apart
    return load_checkpoint(path, classes=classes)


def checkpoint(subject: Subject) -> Checkpoint:
    """Give the model of a subject."""
    path = model_path(subject)
    return _checkpoint(str(path), digest(path), len(bundle(subject).card.classes))


@st.cache_resource(max_entries=16, show_spinner="Asking the model")
def _answers(subject: Subject, content: str, part: str) -> Predictions:
    del content
    data = bundle(subject)
    return predict(checkpoint(subject).model, split(data, part), preprocess=preprocess(data))


def answers(subject: Subject, part: str) -> Predictions:
    """Give what the model says about "train", "validation" or a test set."""
    return _answers(subject, digest(model_path(subject)), part)


@st.cache_resource(max_entries=16, show_spinner=False)
def _sample_answers(subject: Subject, content: str, positions: tuple[int, ...]) -> Predictions:
    del content
    data = bundle(subject)
    return predict(
        checkpoint(subject).model, part_of(data.train, positions), preprocess=preprocess(data)
    )


def sample_answers(subject: Subject, positions: tuple[int, ...]) -> Predictions:
    """Give what the model says about a few training pictures, in this order."""
    return _sample_answers(subject, digest(model_path(subject)), positions)


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


def heat_layer(subject: Subject, layer: str | None) -> str:
    """Give the name of the layer that heat is read at; None takes the last spatial map."""
    model, size = checkpoint(subject).model, bundle(subject).card.size
    if layer is not None:
        layer_named(model, layer)
        return layer
    return name_of(model, cam_layer(model, size=size))


@st.cache_data(max_entries=8, show_spinner=False)
def _layers(subject: Subject, content: str) -> list[str]:
    del content
    return spatial_layers(checkpoint(subject).model, size=bundle(subject).card.size)


def layers(subject: Subject) -> list[str]:
    """Name the layers of the model whose heat can be read, the latest first."""
    return _layers(subject, digest(model_path(subject)))


MOST_HEATS = 4


@st.cache_resource(show_spinner=False)
def _heats() -> "OrderedDict[tuple[Subject, str, str, str], HeatStore]":
    """Keep the heat used last. Not a cached function: those may not draw progress on the page."""
    return OrderedDict()


def heat(subject: Subject, *, method: str, layer: str, watcher: Watcher = unwatched) -> HeatStore:
    """Give the heat of the whole training set; the watcher hears how far it is."""
    known, key = _heats(), (subject, digest(model_path(subject)), method, layer)
    if key not in known:
        data = bundle(subject)
        found = explain(
            checkpoint(subject).model,
            data.train,
            layer=layer,
            method=method,
            preprocess=preprocess(data),
            watcher=watcher,
        )
        empty = HeatStore(rounds=(), size=data.card.size, layer=layer, method=method)
        known[key] = empty.adding(found)
    store = known[key]
    known.move_to_end(key)
    while len(known) > MOST_HEATS:
        known.popitem(last=False)
    return store


@st.cache_resource(max_entries=6, show_spinner="Reading the run")
def _run(run_id: str, finished: float) -> RunView:
    del finished
    return view(runs_home() / run_id)


def run(run_id: str) -> RunView:
    """Give a finished run with its models, heat and predictions."""
    result = runs_home() / run_id / "result.json"
    return _run(run_id, result.stat().st_mtime if result.is_file() else 0.0)
