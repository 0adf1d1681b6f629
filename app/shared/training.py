"""The settings of training and finetune that few people change, one widget for an option."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from masktune.checkpoints.settings import OPTIONS, settings
from masktune.config import BODY, Option, Value, idle
from masktune.data.augment import NONE
from masktune.datasets.catalogue import CATALOGUE
from masktune.errors import ConfigError

if TYPE_CHECKING:  # the first screen needs no PyTorch
    from torch import nn


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """What a page says of an option.

    Attributes:
        label: its name.
        hint: what it does, one sentence.
        words: of each choice.
        step: of a number.
        most: of a number that may be no larger.
        empty: what an empty field stands for.
    """

    label: str
    hint: str
    words: Mapping[str, str] = field(default_factory=dict)
    step: float = 1.0
    most: float | None = None
    empty: str | None = None


BATCH_NORM = {"learnt": "Mean and deviation learnt", "frozen": "Mean and deviation kept"}

FIELDS = {
    "schedule": Field(
        label="Learning rate over the epochs",
        hint="How the rate changes while the model is trained; the finetune takes the rate it ends "
        "with, unless it is given one.",
        words={
            "steps": "Falls in steps",
            "cosine": "Falls along a cosine, to a hundredth",
            "constant": "Stays the same",
        },
    ),
    "decay_at": Field(
        label="Falls after epochs",
        hint="The epochs after which the rate falls, with commas between, such as 25,50,75; none "
        "for never.",
        empty="as the recipe has it",
    ),
    "decay_factor": Field(
        label="By the factor",
        hint="What the rate is multiplied by each time it falls: 0.5 halves it.",
        step=0.1,
    ),
    "warmup": Field(
        label="Warm-up, epochs",
        hint="Epochs at the start, 0.5 for half of one, in which the rate rises step by step, so "
        "that fresh weights are not thrown about; 0 for none.",
        step=0.5,
    ),
    "best": Field(
        label="Which epoch's model is taken",
        hint="The last one, or the one that answers the validation pictures best, on average or in "
        "the group that it answers worst.",
        words={
            "last": "The last",
            "average": "The best on average",
            "worst-group": "The best in the worst group",
        },
    ),
    "patience": Field(
        label="Patience, epochs",
        hint="Training ends early once so many epochs in a row were no better on validation.",
        empty="never ends early",
    ),
    "erm_batch_norm": Field(
        label="Batch norm in the training",
        hint="Batch norm scales features by their mean and deviation, which it keeps track of; "
        "those of pretrained weights may be kept as they are.",
        words=BATCH_NORM,
    ),
    "optimizer": Field(
        label="Optimiser",
        hint="The rule that makes a step out of the loss, in training and finetune; Adam and AdamW "
        "usually want a smaller learning rate than SGD.",
        words={"sgd": "SGD", "adam": "Adam", "adamw": "AdamW"},
    ),
    "momentum": Field(
        label="Momentum",
        hint="The share of its last step that SGD takes again with the next, from 0 to below 1.",
        step=0.01,
        most=0.999,
    ),
    "weight_decay": Field(
        label="Weight decay",
        hint="How strongly every weight is pulled towards zero at each step, so that none grows "
        "without need.",
        step=0.0001,
    ),
    "label_smoothing": Field(
        label="Label smoothing",
        hint="The share of every label that is spread over all classes, so that the model is not "
        "pushed to be entirely sure; 0 for none.",
        step=0.05,
        most=0.999,
    ),
    "head": Field(
        label="Last layer",
        hint="A new one learns these classes from the start; the one in the file goes on learning.",
        words={"new": "New", "kept": "Kept, trained on"},
    ),
    "freeze": Field(
        label="Frozen layers",
        hint="Layers that keep their weights in training and finetune: up to the one you choose or "
        "type, in the order in which they run.",
        words={NONE: "None, all may learn", BODY: "All but the last layer"},
    ),
    "statistics": Field(
        label="Mean and sigma over",
        hint="The authors' code leaves pixels without heat out of mean and sigma; the paper's text "
        "takes all pixels.",
        words={"positive": "positive heat (authors' code)", "all": "all heat (paper's text)"},
    ),
    "start": Field(
        label="Begins",
        hint="Afresh, as the model before began, with a new network or pretrained weights; or with "
        "the model before itself.",
        words={"scratch": "Afresh", "erm": "Model before"},
    ),
    "batch_norm": Field(
        label="Batch norm in the finetune",
        hint="Batch norm scales features by their mean and deviation, which it keeps track of; if "
        "they are kept, covered pictures do not change them.",
        words=BATCH_NORM,
    ),
}
"""Every option that this form knows."""

LABELS = {
    "arch": "Architecture",
    "attributes": "Attributes from a CSV",
    "augment": "Augmentation",
    "batch_size": "Batch size",
    "class_names": "Class names",
    "class_order": "Take this order of the classes",
    "correlation": "Correlation",
    "device": "Device",
    "epochs": "Epochs",
    "exceptions": "Exceptions",
    "fill": "Hidden pixels show",
    "finetune_lr": "Learning rate",
    "frame": "Resize and crop",
    "k": "Threshold k",
    "layer": "Layer",
    "lr": "Learning rate",
    "method": "Explainer",
    "model": "Which model",
    "normalise": "Normalisation",
    "regions": "Boxes round the clue (CSV)",
    "rival": "Method",
    "root": "Folder on this computer",
    "rounds": "Rounds",
    "stamp": "Stamp",
    "strategy": "What to hide",
    "title": "Name",
    "validation": "It has seen all training pictures",
    "weights": "Pretrained weights",
}
"""What pages call the options whose widgets they draw by themselves."""

_FLAG = re.compile(
    f"--(?:no-)?({'|'.join(option.flag[2:] for option in OPTIONS.values())})(?![\\w-])( [\\w-]+)?"
)

_USUAL = settings({"dataset": next(iter(CATALOGUE))})

RATE: Sequence[str] = ("schedule", "decay_at", "decay_factor", "warmup")
EPOCH: Sequence[str] = ("best", "patience")
START: Sequence[str] = ("erm_batch_norm",)
STEP: Sequence[str] = ("optimizer", "momentum", "weight_decay", "label_smoothing")
LEARNS: Sequence[str] = ("freeze", "batch_norm")


def freezable(model: "nn.Module") -> list[str]:
    """Name the larger parts of a model, up to which it may be frozen.

    Without its last one and what holds it: up to there, nothing would be left to learn.
    """
    learn = [n for n, m in model.named_modules() if n and any(True for _ in m.parameters())]
    return [n for n in learn if n.count(".") < 2 and not f"{learn[-1]}.".startswith(f"{n}.")]


def label_of(name: str) -> str:
    """Return what a page calls an option."""
    if name in FIELDS:
        return FIELDS[name].label
    return LABELS.get(name, name.replace("_", " ").capitalize())


def by_labels(text: str) -> str:
    """Return a text of the command line with options and choices as a page calls them.

    >>> by_labels("--decay-at 999 would do nothing: leave --start erm out.")
    '“Falls after epochs” 999 would do nothing: leave “Begins: With the model before” out.'
    """

    def said(found: re.Match[str]) -> str:
        name, value = found[1].replace("-", "_"), found[2] or ""
        words = FIELDS[name].words.get(value.strip()) if name in FIELDS else None
        return f"“{label_of(name)}”{value}" if words is None else f"“{label_of(name)}: {words}”"

    return _FLAG.sub(said, text)


def _plain_field(option: Option) -> Field:
    """Say of an option what the command line does."""
    return Field(
        label=label_of(option.name),
        hint=by_labels(f"{option.help[:1].upper()}{option.help[1:]}."),
        words={word: word.capitalize() for word in option.choices},
        step=0.1 if option.kind is float else 1.0,
        empty="its own" if option.of(_USUAL) is None else None,
    )


def in_use(names: Sequence[str], given: Mapping[str, Value]) -> list[str]:
    """Return the options that would change something in a run with what is given."""
    try:
        unused = idle(settings(given, without_effect="left out"))
    except ConfigError:  # which is said where the settings are used
        return list(names)
    return [name for name in names if name not in unused]


def draw_option(
    place: DeltaGenerator, name: str, *, holder: Mapping[str, Any], more: Sequence[str] = ()
) -> Value:
    """Draw the widget of an option; return what it holds.

    Args:
        place: where to draw it.
        name: of the option.
        holder: what makes the widget the holder of a name that the state knows, with a "key".
        more: words to choose from, where the options' table does not have all.
    """
    option = OPTIONS[name]
    about = FIELDS.get(name) or _plain_field(option)
    state, key = st.session_state, holder["key"]
    how: dict[str, Any] = {"help": about.hint, **holder}
    if about.words:
        chosen: Value = place.selectbox(
            about.label,
            option.choices or list(dict.fromkeys((*about.words, *more, state[key]))),
            format_func=lambda word: about.words.get(word, f"Up to {word}"),
            accept_new_options=not option.choices,
            **how,
        )
        return chosen
    how["placeholder"] = about.empty
    if option.kind is str:
        return str(place.text_input(about.label, **how))
    if about.empty:
        how["value"] = None
    most = about.most
    if state[key] is not None:
        state[key] = option.kind(state[key])  # settings made in Python may say 1 for 1.0
        most = None if most is None else max(most, state[key])
    # What cannot be used must not come into the state: every page reads it.
    number: Value = place.number_input(
        about.label,
        option.kind(0),
        most,
        step=option.kind(about.step),
        format="%g" if option.kind is float else "%d",
        **how,
    )
    return number
