"""The Load page: empty, full, refused and kept."""

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from app.components.load_cards import (
    Group,
    correlation_sentence,
    groups_csv,
    groups_html,
    groups_of,
    sample_positions,
    worst_sentence,
)
from masktune.data.catalogue import load
from masktune.groups import GroupScore

DEMO = "biased-mnist-5k"


@pytest.fixture(scope="module")
def digits():
    return load(DEMO)


def texts(at: AppTest) -> str:
    return " ".join(str(e.value) for kind in ("markdown", "caption", "error") for e in at.get(kind))


def group(label: int, attribute: int, trained: int) -> Group:
    name = (("cow", "camel")[label], ("grass", "desert")[attribute])
    return Group(label=label, attribute=attribute, name=name, trained=trained)


FOUR = [group(0, 0, 95), group(0, 1, 5), group(1, 0, 10), group(1, 1, 90)]
SCORES = [
    GroupScore("cow", "grass", 10, 1.0, (0.7, 1.0)),
    GroupScore("cow", "desert", 4, 0.25, (0.05, 0.7)),
    GroupScore("camel", "grass", 0, None, None),
    GroupScore("camel", "desert", 10, 0.9, (0.6, 0.98)),
]


def test_groups_carry_their_training_counts_in_group_order(digits):
    groups = groups_of(digits)

    assert [g.name for g in groups] == [
        ("0–4", "no square"), ("0–4", "square"), ("5–9", "no square"), ("5–9", "square"),
    ]  # fmt: skip
    assert sum(g.trained for g in groups) == 3500
    assert groups[0].trained + groups[3].trained < 50


def test_the_table_marks_the_worst_group_and_says_where_there_is_no_picture():
    html = groups_html(FOUR, SCORES)

    rows = html.split("<tr>")[2:]
    assert ["worst" in row for row in rows] == [False, True, False, False]
    assert "no pictures here" in rows[2]
    assert "25.0%" in rows[1]


def test_without_a_model_the_table_holds_counts_only():
    assert "Accuracy" not in groups_html(FOUR, None)


def test_the_sentence_counts_the_usual_groups_and_names_the_rarest():
    # 95 + 90 of 200 pictures are in the larger group of their class.
    assert correlation_sentence(FOUR) == (
        "92.5% of the training pictures are in the usual group of their class. "
        "Only 5 are cow with desert."
    )


def test_the_worst_group_is_named_with_n_and_interval():
    said = worst_sentence(SCORES, "'balanced'")

    assert "cow, desert: 25.0% right, 95% interval 5.0 to 70.0%, n = 4" in said


def test_the_csv_holds_every_group():
    lines = groups_csv(FOUR, SCORES).splitlines()

    assert lines[0] == "label,attribute,train,n,accuracy,low,high"
    assert lines[2] == "cow,desert,5,4,0.25,0.05,0.7"
    assert lines[3].startswith("camel,grass,10,0,")


def test_samples_are_the_first_of_their_group(digits):
    groups = groups_of(digits)

    chosen = sample_positions(digits.train, groups)

    labels = digits.train.labels.numpy()
    assert [len(c) for c in chosen] == [4, 4, 4, 4]
    assert all(np.all(labels[c] == g.label) for c, g in zip(chosen, groups, strict=True))
    assert chosen == [sorted(c) for c in chosen]


def test_the_first_visit_loads_the_demo_and_shows_its_groups(home, open_page):
    at = open_page("load")

    assert not at.exception
    assert at.title[0].value == "Load"
    assert "worst group is" in texts(at)


def test_a_folder_that_does_not_exist_is_explained_and_what_was_loaded_stays(home, open_page):
    at = open_page("load", dataset=DEMO)

    at.segmented_control[0].set_value("Catalogue").run()
    at.text_input[0].set_value("/nowhere/at/all").run()
    at.segmented_control(key="model_source_biased-mnist").set_value("Train here").run()

    assert not at.exception
    assert "does not exist" in at.error[0].value
    assert at.session_state["masktune"].subject.dataset == DEMO


def test_a_checkpoint_that_is_not_there_is_explained(home, open_page):
    at = open_page("load", dataset=DEMO)

    at.segmented_control(key=f"model_source_{DEMO}").set_value("Checkpoint file").run()
    at.text_input[0].set_value("/nowhere/model.safetensors").run()

    assert not at.exception
    assert "no checkpoint" in at.error[0].value
    assert at.session_state["masktune"].subject.model == "bundled"


def test_a_model_to_be_trained_here_has_no_accuracy_yet(home, open_page):
    at = open_page("load", dataset=DEMO)

    at.segmented_control(key=f"model_source_{DEMO}").set_value("Train here").run()

    assert not at.exception
    assert at.session_state["masktune"].subject.model == "train"
    assert any(b.label == "Go to Finetune" for b in at.button)


def test_the_model_of_a_run_brings_the_seed_of_its_split(home_with_run, finished_run, open_page):
    at = open_page("load", dataset=DEMO)

    at.segmented_control(key=f"model_source_{DEMO}").set_value("From a run").run()

    assert not at.exception
    assert at.session_state["masktune"].subject.model.endswith("before.safetensors")
