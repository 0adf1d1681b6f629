"""Bounded caches round the core's loaders: no model is read or asked twice for the same thing.

Keys are content hashes and settings, never arrays; what comes out is shared by all sessions and is
never changed.
"""

import hashlib
import stat
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from pathlib import Path

import streamlit as st
import torch

from app.joined import Work, joined, leave
from app.kept import DRAWN
from masktune.cache import Cache, Made
from masktune.checkpoints.checkpoint import Checkpoint, bundled_checkpoint, load_checkpoint
from masktune.checkpoints.inspect import Diagnosis, arch_of, diagnose
from masktune.checkpoints.settings import OPTIONS
from masktune.compute import accelerator
from masktune.config import AUTO, BUNDLED, MaskingConfig, RunConfig, names_code, order_listed
from masktune.data.fingerprint import stamp
from masktune.data.frame import Frame
from masktune.data.frame import frame as frame_named
from masktune.data.preprocess import Keeper, Preprocess
from masktune.data.splits import part as part_of
from masktune.data.types import DatasetBundle, Split
from masktune.errors import ModelError
from masktune.files import written_path
from masktune.heat import layers as layers_of
from masktune.heat.explain import explain
from masktune.heat.explainers import METHODS
from masktune.heat.store import HeatStore
from masktune.models.predict import predict
from masktune.progress import Steps, Watcher, unwatched
from masktune.runs.load import load_for
from masktune.scores.predictions import Predictions
from masktune.studies.advice import Trial
from masktune.studies.sweep import quick_look
from masktune.training.context import Context

_PICTURES = Cache(most=4)
_MODELS = Cache(most=4)
_ANSWERS = Cache(most=16)
_SAMPLES = Cache(most=16)
_LAYERS = Cache(most=8)
_HEAT = Cache(most=4)
_SOME_HEAT = Cache(most=16)
_WAYS = Cache(most=64)  # of one picture each, apart from the sheets'
_THRESHOLDS = Cache(most=16)
_DIGESTS = Cache(most=64)
_DIAGNOSES = Cache(most=16)


def _source(subject: RunConfig) -> Hashable:
    """Return what tells pictures apart: where they come from, how they are read, their state."""
    read = (o.of(subject) for o in OPTIONS.values() if o.part == "pictures" and o.name != "title")
    files = (subject.root, subject.attributes)
    return (*read, *("" if file is None else stamp(written_path(file)) for file in files))


def known(subject: RunConfig) -> Hashable:
    """Return what tells apart all that follows from pictures and model: the content of both."""
    return _source(subject), None if subject.model is None else _weights(subject)


def _weights(subject: RunConfig) -> Hashable:
    """Return what tells models apart: the content of the file, and how it is read."""
    return digest(model_path(subject)), subject.arch, subject.class_order


def drawn(subject: RunConfig, what: Hashable, make: Callable[[], Made]) -> Made:
    """Return what is drawn of the pictures, perhaps with the model's answers; drawn once."""
    return DRAWN.get((known(subject), what), make)


def bundle(subject: RunConfig, *, watcher: Watcher = unwatched) -> DatasetBundle:
    """Give the pictures of a run or a subject; the watcher hears how checking their files goes."""
    return _PICTURES.get(_source(subject), lambda: load_for(subject, watcher=watcher))


def model_path(subject: RunConfig) -> Path:
    """Give the checkpoint file of a subject."""
    if subject.model == BUNDLED:
        return bundled_checkpoint(subject.dataset)
    return Path(subject.model or "")


def digest(path: Path) -> str:
    """Give the hash of a file's content; a file that did not change is read once.

    What cannot be read has what is wrong with it instead: only those who need the file complain.
    """

    def hashed() -> str:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    try:
        state = path.stat()
        if not stat.S_ISREG(state.st_mode):  # a folder; or a pipe, which might never end
            return "no file"
        return _DIGESTS.get((str(path), state.st_mtime_ns, state.st_size), hashed)
    except (OSError, ValueError) as error:
        return type(error).__name__


def checkpoint(subject: RunConfig) -> Checkpoint:
    """Give the model of a subject."""
    path = model_path(subject)
    if names_code(subject.arch):
        raise ModelError(
            f"This model is built by code of its own, {subject.arch}.",
            "Look at it on the command line: the page runs no code that a file or an address "
            "names. python -m masktune report has its subject.",
        )
    card = bundle(subject).card
    arch = None if subject.arch == AUTO or subject.model == BUNDLED else subject.arch
    classes = len(card.classes)
    order = () if subject.class_order is None else order_listed(subject.class_order)

    def read() -> Checkpoint:
        with st.spinner("Reading the model"):
            return load_checkpoint(path, arch=arch, classes=classes, pool=card.pool, order=order)

    return _MODELS.get((str(path), _weights(subject), classes, card.pool), read)


def diagnosis(path: str, arch: str | None) -> Diagnosis:
    """Give the doctor's verdict on a checkpoint file."""
    file = Path(path)
    return _DIAGNOSES.get((path, digest(file), arch), lambda: diagnose(file, arch=arch))


def body_of(path: str, likely: str) -> str:
    """Give the architecture of pretrained weights in a file, which may lack their last layer."""
    file = Path(path)
    key = (path, digest(file), "body", likely)
    return _DIAGNOSES.get(key, lambda: arch_of(file, likely=likely))


def splits(data: DatasetBundle) -> dict[str, Split]:
    """Give the splits of a dataset by name."""
    return {"train": data.train, "validation": data.validation, **data.tests}


def preprocess(data: DatasetBundle) -> Preprocess:
    """Give the way from a dataset's bytes to the network's input."""
    return Preprocess(mean=data.card.mean, std=data.card.std)


def frame(subject: RunConfig) -> Frame:
    """Give what a model sees of the pictures of a subject; they are read where nobody chose it."""
    if subject.frame is not None:
        return frame_named(subject.frame)
    data = bundle(subject)
    return data.train.images.frame or Frame(resize=data.card.size)


def ask(
    subject: RunConfig, part: Split, *, keep: Keeper | None = None, watcher: Watcher = unwatched
) -> Predictions:
    """Ask the model about examples, anew each time."""
    model, way = checkpoint(subject).model, preprocess(bundle(subject))
    return predict(model, part, preprocess=way, keep=keep, watcher=watcher)


def answers(subject: RunConfig, part: str, *, watcher: Watcher = unwatched) -> Predictions:
    """Give what the model says about "train", "validation" or a test set.

    A rerun joins the asking that is under way.
    """
    asked = splits(bundle(subject))[part]
    return joined(
        _ANSWERS,
        (known(subject), part),
        lambda watch: ask(subject, asked, watcher=watch),
        watcher=watcher,
    )


def leave_answers(subject: RunConfig, part: str) -> None:
    """Give up asking the model about a part, unless somebody else waits for it."""
    leave(_ANSWERS, (known(subject), part))


def has_answers(subject: RunConfig, part: str) -> bool:
    """Tell whether the model was asked about a part already."""
    return (known(subject), part) in _ANSWERS


def sample(subject: RunConfig, positions: Sequence[int]) -> Split:
    """Give a few training pictures as a split of their own, in this order."""
    return part_of(bundle(subject).train, torch.as_tensor(positions))


def sample_answers(subject: RunConfig, positions: tuple[int, ...]) -> tuple[Predictions, float]:
    """Give what the model says about a few training pictures in this order, and the seconds."""
    return _SAMPLES.get(
        (known(subject), positions),
        lambda: _timed(lambda few: ask(subject, sample(subject, few)), positions),
    )


def _timed(look: Callable[[Sequence[int]], Made], positions: Sequence[int]) -> tuple[Made, float]:
    # The first picture warms up: counted, it would make all others seem many times slower.
    look(positions[:1])
    start = time.monotonic()
    return look(positions), time.monotonic() - start


def heat_layer(subject: RunConfig, layer: str | None) -> str:
    """Give the name of the layer that heat is read at; None takes the last spatial map."""
    if layer is None:
        return _layers(subject)[0]
    model, size = checkpoint(subject).model, bundle(subject).card.size
    return layers_of.heat_layer(model, layer, size=size)


def layers(subject: RunConfig) -> list[str]:
    """Name the layers of the model whose heat can be read, the latest first."""
    return _layers(subject)[1]


def _layers(subject: RunConfig) -> tuple[str, list[str]]:
    """Search the layers, which runs the model: once for its file and the pictures' size."""
    card = bundle(subject).card
    model = (_weights(subject), len(card.classes), card.pool)
    return _LAYERS.get(
        (model, card.size),
        lambda: layers_of.usual_and_all(checkpoint(subject).model, size=card.size),
    )


def heat_size(subject: RunConfig, layer: str) -> tuple[int, int]:
    """Give (h, w) of the heat that is read at a layer."""
    store, _ = some_heat(subject, (0,), method="xgradcam", layer=layer)
    height, width = store.rounds[0].shape[1:]
    return height, width


def heat(subject: RunConfig, *, method: str, layer: str, watcher: Watcher = unwatched) -> HeatStore:
    """Give the heat of the whole training set; a rerun joins the work under way."""
    return joined(*heat_work(subject, method=method, layer=layer), watcher=watcher)


def heat_work(subject: RunConfig, *, method: str, layer: str) -> Work[HeatStore]:
    """Return what looks at the whole training set, and whether that is done."""
    key, train = (known(subject), method, layer), bundle(subject).train
    return Work(_HEAT, key, lambda watch: _heat_of(subject, train, method, layer, watch))


def some_heat(
    subject: RunConfig,
    positions: tuple[int, ...],
    *,
    method: str,
    layer: str,
    watcher: Watcher = unwatched,
) -> tuple[HeatStore, float]:
    """Give the heat of a few training pictures in this order, and the seconds that it took."""
    return _SOME_HEAT.get(
        (known(subject), method, layer, positions),
        lambda: _timed(
            lambda few: _heat_of(
                subject,
                sample(subject, few),
                method,
                layer,
                watcher if len(few) == len(positions) else unwatched,
            ),
            positions,
        ),
    )


def every_heat(
    subject: RunConfig, position: int, *, layer: str, watcher: Watcher = unwatched
) -> dict[str, HeatStore | str]:
    """Give the heat of one training picture by every explainer, or why one cannot explain it."""

    def look(watch: Watcher) -> dict[str, HeatStore | str]:
        steps = Steps(watch, "heat", total=len(METHODS))
        found: dict[str, HeatStore | str] = {}
        for method in METHODS:
            try:
                found[method] = _heat_of(
                    subject, sample(subject, [position]), method, layer, steps.next()
                )
            except ModelError as error:
                found[method] = error.problem
        return found

    return joined(_WAYS, (known(subject), layer, position), look, watcher=watcher)


def _heat_of(
    subject: RunConfig, part: Split, method: str, layer: str, watcher: Watcher = unwatched
) -> HeatStore:
    model, way = checkpoint(subject).model, preprocess(bundle(subject))
    return explain(model, part, layer=layer, method=method, preprocess=way, watcher=watcher)


def thresholds(
    subject: RunConfig, masking: MaskingConfig, *, watcher: Watcher = unwatched
) -> tuple[Trial, ...]:
    """Give what each k does to a sample of the training pictures, without a finetune.

    Of ``masking`` only method, layer, statistics and fill count.
    """
    data, layer = bundle(subject), heat_layer(subject, masking.layer)
    whole = heat_work(subject, method=masking.method, layer=layer)
    return _THRESHOLDS.get(
        _tried(subject, masking),
        lambda: quick_look(
            Context(
                config=replace(subject, masking=masking),
                bundle=data,
                compute=accelerator(subject.device),
                watcher=watcher,
            ),
            checkpoint(subject).model,
            store=joined(*whole, watcher=unwatched) if whole.done else None,
        ),
    )


def has_thresholds(subject: RunConfig, masking: MaskingConfig) -> bool:
    """Tell whether the thresholds were looked at already."""
    return _tried(subject, masking) in _THRESHOLDS


def _tried(subject: RunConfig, masking: MaskingConfig) -> Hashable:
    layer = heat_layer(subject, masking.layer)
    return known(subject), masking.method, layer, masking.statistics, masking.fill
