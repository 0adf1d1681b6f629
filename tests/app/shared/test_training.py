"""The form of training: every option of it is on one page, with a hint of one sentence."""

from pathlib import Path

import pytest

from app.shared import training
from app.shared.training import (
    EPOCH,
    FIELDS,
    LABELS,
    LEARNS,
    RATE,
    START,
    STEP,
    by_labels,
    in_use,
    label_of,
)
from masktune.checkpoints.settings import OPTIONS
from masktune.config import ERM_ONLY, TrainConfig, options

ELSEWHERE = {"epochs", "batch_size", "lr", "augment"}


def test_every_option_of_training_is_on_a_page_once():
    drawn = [*RATE, *EPOCH, *START, *STEP, *LEARNS]

    assert sorted([*drawn, "head", "start", "statistics"]) == sorted(FIELDS)
    assert {*drawn} == {option.name for option in options(TrainConfig)} - ELSEWHERE | {"batch_norm"}
    # Load asks what only a training heeds, Finetune what its epoch heeds too.
    assert {*RATE, *EPOCH, *START} == {*ERM_ONLY} - {"weights", "head", "epochs", "lr"}


def test_every_choice_has_words_and_every_hint_is_one_sentence():
    for name, about in FIELDS.items():
        assert about.hint.endswith(".")
        assert ". " not in about.hint
        assert "--" not in about.hint
        if OPTIONS[name].choices:
            assert tuple(about.words) == OPTIONS[name].choices


def test_only_what_would_change_something_is_asked():
    demo = {"dataset": "biased-mnist-5k"}

    assert in_use(RATE, demo) == ["schedule", "decay_at", "warmup"]
    assert in_use(RATE, {**demo, "decay_at": "4"}) == [*RATE]
    assert in_use(RATE, {**demo, "schedule": "cosine"}) == ["schedule", "warmup"]
    assert in_use(EPOCH, demo) == ["best"]
    assert in_use(EPOCH, {**demo, "best": "average"}) == [*EPOCH]
    assert "momentum" not in in_use(STEP, {**demo, "optimizer": "adam"})
    assert in_use([*START, *LEARNS], {**demo, "freeze": "body"}) == ["freeze"]
    # What cannot be used is said where the settings are; until then all is asked.
    assert in_use(STEP, {**demo, "momentum": 7.0}) == [*STEP]


@pytest.mark.parametrize("name", OPTIONS)
def test_no_flag_of_an_option_is_left_in_what_a_page_shows(name):
    flag = OPTIONS[name].flag

    shown = by_labels(f"{flag} 7 would do nothing: leave {flag} out (--no-{flag[2:]}).")

    assert "--" not in shown
    assert shown.count(f"“{label_of(name)}”") == 3


def test_a_flag_is_said_whole_and_a_choice_in_its_words():
    assert by_labels("Give --lr-of 3 or --out x.") == "Give --lr-of 3 or --out x."
    assert by_labels("Leave --batch-size, not --batch-norm frozen.") == (
        "Leave “Batch size”, not “Batch norm in the finetune: Mean and deviation kept”."
    )


def test_every_label_that_a_page_is_said_to_have_is_there():
    here = Path(training.__file__)
    pages = "".join(p.read_text("utf-8") for p in here.parents[1].rglob("*.py") if p != here)

    assert [label for label in LABELS.values() if f'"{label}"' not in pages] == []
