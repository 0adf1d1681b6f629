"""The Load page: empty, full, refused and kept."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from streamlit.testing.v1 import AppTest

from app import loaded
from app.load.cards import (
    Group,
    correlation_sentence,
    groups_of,
    groups_table,
    sample_positions,
    worst_sentence,
)
from app.load.sees import AUGMENTATIONS
from masktune.data.augment import COLOURS, MOVES
from masktune.datasets.catalogue import load
from masktune.errors import ModelError
from masktune.models.build import build
from masktune.recipes import RECIPES
from masktune.scores.groups import ANY, GroupScore
from masktune.show.tables import csv, html
from tests.app.conftest import address
from tests.layouts import stamped_pets

DEMO, PETS = "biased-mnist-5k", "stamped-pets"


@pytest.fixture(scope="module")
def digits():
    return load(DEMO)


def shown(at: AppTest) -> str:
    """Give the light table's HTML."""
    return " ".join(str(e.value) for e in at.get("html"))


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
    rows = html(groups_table(FOUR, SCORES)).split("<tr>")[2:]
    assert ["worst" in row for row in rows] == [False, True, False, False]
    assert "no pictures here" in rows[2]
    assert "25.0%" in rows[1]


def test_without_a_model_the_table_holds_counts_only():
    assert "Accuracy" not in html(groups_table(FOUR, None))


def test_the_sentence_counts_the_usual_groups_and_names_the_rarest():
    # 95 + 90 of 200 pictures are in the larger group of their class.
    assert correlation_sentence(FOUR) == (
        "92.5% of the training pictures are in the usual group of their class. "
        "Only 5 are in the group cow with desert."
    )


def test_groups_that_are_equally_rare_are_all_named():
    tie = [group(0, 0, 95), group(0, 1, 5), group(1, 0, 5), group(1, 1, 95)]
    alone = [group(0, 0, 95), group(0, 1, 5), group(1, 0, 1), group(1, 1, 95)]

    assert correlation_sentence(tie).endswith(
        "Only 5 each are in the groups cow with desert and camel with grass."
    )
    assert correlation_sentence(alone).endswith("Only 1 is in the group camel with grass.")


def test_groups_of_equal_size_are_not_called_rare():
    even = [group(0, 0, 52), group(0, 1, 48), group(1, 0, 50), group(1, 1, 50)]

    assert correlation_sentence(even).startswith("The groups of a class are about equally large")


def test_the_worst_group_is_named_with_n_and_interval():
    said = worst_sentence(SCORES, "'balanced'")

    assert "worst group is cow, desert: 25.0% right, 95% interval 5.0 to 70.0%, n = 4" in said
    assert "worst class is cow: 25" in worst_sentence([replace(SCORES[1], attribute=ANY)], "'test'")


def test_the_csv_holds_every_group():
    lines = csv(groups_table(FOUR, SCORES)).decode().splitlines()

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


def test_samples_lead_to_their_pages_once_there_is_a_model_to_ask(home, open_page):
    asked, untrained = (
        open_page("load", dataset=DEMO),
        open_page("load", dataset=DEMO, model="train"),
    )

    links = [f'href="picture?picture=train%2F{n}"' in shown(asked) for n in range(3500)]
    assert sum(links) == 16  # four of each group
    assert "picture?picture=" not in shown(untrained)


def test_a_folder_that_does_not_exist_is_explained_and_what_was_loaded_stays(home, open_page):
    at = open_page("load", dataset=DEMO)

    at.segmented_control[0].set_value("Catalogue").run()
    at.text_input[0].set_value("/nowhere/at/all").run()
    at.segmented_control(key="model_source_biased-mnist").set_value("Train here").run()

    assert not at.exception
    assert "does not exist" in at.error[0].value
    assert at.session_state["dataset"] == DEMO


def with_checkpoint(at: AppTest, path: str, dataset: str = DEMO) -> AppTest:
    at.segmented_control(key=f"model_source_{dataset}").set_value("My checkpoint").run()
    return at.text_input(key=f"weights_path_{dataset}").set_value(path).run()


def test_a_checkpoint_that_is_not_there_is_explained(home, open_page):
    at = with_checkpoint(open_page("load", dataset=DEMO), "/nowhere/model.safetensors")

    assert not at.exception
    assert "There is no" in at.error[0].value
    assert at.session_state["model"] == "bundled"
    assert "Still loaded: Biased MNIST" in texts(at)


def test_a_web_page_in_place_of_weights_gets_its_own_sentence_and_the_demo_stays(
    home, open_page, tmp_path
):
    (tmp_path / "model.pth").write_text("<!DOCTYPE html><html><body>Not found</body></html>")

    at = with_checkpoint(open_page("load", dataset=DEMO), str(tmp_path / "model.pth"))

    assert not at.exception
    assert "web page" in at.error[0].value
    assert at.session_state["model"] == "bundled"


@pytest.mark.parametrize("page", ["load", "mask"])
def test_a_folder_in_place_of_weights_is_one_problem_with_a_remedy(home, open_page, tmp_path, page):
    at = open_page(page, dataset=DEMO, model=str(tmp_path))

    assert not at.exception
    (problem,) = at.error
    assert "is a folder" in problem.value
    assert "Give the file of weights." in problem.value


@pytest.fixture
def weights(tmp_path) -> str:
    """Give a checkpoint as DataParallel leaves it: a resnet20 with "module." before each name."""
    torch.manual_seed(0)  # always the same weights: what they answer is asked once
    state = build("resnet20", 2).state_dict()
    path = tmp_path / "resnet20.pth"
    named = {f"module.{name}": value for name, value in state.items()}
    torch.save({"state_dict": named, "epoch": 7}, path)
    return str(path)


@pytest.mark.slow
def test_a_checkpoint_of_another_program_is_recognised_and_asked_at_once(home, open_page, weights):
    at = with_checkpoint(open_page("load", dataset=DEMO), weights)

    assert not at.exception
    assert at.session_state["model"] == weights
    said = shown(at)
    assert "resnet20, 2 classes" in said
    assert "saved at epoch 7" in said
    assert "Layer for heat: layer3" in said
    assert "worst group is" in texts(at)


def test_a_frame_that_was_written_out_is_what_the_model_sees(home, open_page, slow_looks):
    at = open_page("load", dataset=DEMO)

    at.selectbox(key=f"frame_{DEMO}").set_value("write").run()
    at.text_input(key=f"frame_{DEMO}_written").set_value("resize 56").run()

    assert not at.exception
    assert at.session_state["frame"] == "resize 56"
    assert "3 × 56 × 56 numbers a picture" in texts(at)


def test_a_frame_that_cannot_be_read_is_explained_and_the_earlier_one_stays(home, open_page):
    at = open_page("load", dataset=DEMO)

    at.selectbox(key=f"frame_{DEMO}").set_value("write").run()
    at.text_input(key=f"frame_{DEMO}_written").set_value("as large as you like").run()

    assert not at.exception
    assert "cannot be read" in at.error[0].value
    assert at.session_state["frame"] == ""


def test_another_normalisation_changes_the_numbers_that_enter_the_model(home, open_page):
    at = open_page("load", dataset=DEMO)
    assert "from 0.00 to 1.00" in texts(at)

    at.selectbox(key=f"normalise_{DEMO}_usual").set_value("half").run()

    assert not at.exception
    assert "from −1.00 to 1.00" in texts(at)


@pytest.fixture
def folder(tmp_path) -> str:
    """Give ten red and ten blue pictures, one folder a class, and a file that is no picture."""
    for name, colour in (("blue", (0, 0, 255)), ("red", (255, 0, 0))):
        (tmp_path / "own" / name).mkdir(parents=True)
        for number in range(10):
            picture = Image.new("RGB", (40, 40), colour)
            picture.putpixel((number, 0), (255, 255, 255))
            picture.save(tmp_path / "own" / name / f"{number}.png")
    (tmp_path / "own" / "red" / "broken.png").write_bytes(b"<html>")
    return str(tmp_path / "own")


def test_a_folder_of_pictures_opens_without_groups_and_names_the_file_left_out(
    home, open_page, folder
):
    at = open_page("load", dataset=DEMO)

    at.segmented_control[0].set_value("Folder").run()
    at.text_input(key="own_root").set_value(folder).run()
    at.segmented_control(key="model_source_folder").set_value("Train here").run()

    assert not at.exception
    assert not at.error
    assert at.session_state["root"] == folder
    assert "1 file left out, unusable: red/broken.png" in shown(at)
    assert "worst class stands in for the worst group" in texts(at)


def test_what_to_train_is_the_recipe_unless_something_else_is_chosen(home, open_page):
    at = open_page("load", dataset=DEMO)

    at.segmented_control(key=f"model_source_{DEMO}").set_value("Train here").run()
    assert at.session_state["arch"] == "small-cnn"
    at.selectbox(key=f"train_arch_{DEMO}").set_value("resnet20").run()
    at.number_input(key=f"train_epochs_{DEMO}").set_value(2).run()

    now = [at.session_state[name] for name in ("arch", "epochs", "model")]
    assert now == ["resnet20", 2, ""]


def test_another_network_takes_neither_weights_nor_layers_nor_statistics_of_the_recipes(
    home, open_page, monkeypatch
):
    usual = RECIPES[DEMO]
    training = replace(usual.training, freeze="features.3", erm_batch_norm="frozen")
    backbone = replace(usual, training=training, weights="w.pt", batch_norm="frozen")
    monkeypatch.setitem(RECIPES, DEMO, backbone)
    at = open_page("load", dataset=DEMO, model="train")
    names = ("weights", "freeze", "erm_batch_norm", "batch_norm")
    assert [at.session_state[name] for name in names] == ["w.pt", "features.3", "frozen", "frozen"]

    at.segmented_control(key=f"train_start_{DEMO}").set_value("Fresh").run()
    at.selectbox(key=f"train_arch_{DEMO}").set_value("resnet20").run()

    assert not at.exception
    assert [at.session_state[name] for name in names] == ["none", "none", "learnt", "learnt"]


def test_how_a_model_is_trained_is_set_under_more_settings_and_can_be_taken_back(home, open_page):
    at = open_page("load", dataset=DEMO, model="train")
    assert f"train_patience_{DEMO}" not in {box.key for box in at.number_input}

    at.selectbox(key=f"train_schedule_{DEMO}").set_value("cosine").run()
    at.number_input(key=f"train_warmup_{DEMO}").set_value(1.5).run()
    at.selectbox(key=f"train_best_{DEMO}").set_value("worst-group").run()
    at.number_input(key=f"train_patience_{DEMO}").set_value(3).run()

    assert not at.exception
    said = {"schedule": "cosine", "warmup": "1.5", "best": "worst-group", "patience": "3"}
    assert said.items() <= address(at).items()
    assert f"train_decay_at_{DEMO}" not in {box.key for box in at.text_input}
    again = at.switch_page("start/page.py").run().switch_page("load/page.py").run()
    assert again.number_input(key=f"train_patience_{DEMO}").value == 3
    assert again.selectbox(key=f"train_schedule_{DEMO}").value == "cosine"

    again.number_input(key=f"train_patience_{DEMO}").set_value(None).run()
    assert "patience" not in address(again)
    again.selectbox(key=f"train_schedule_{DEMO}").set_value("steps").run()
    again.text_input(key=f"train_decay_at_{DEMO}").set_value("4, 8").run()
    again.number_input(key=f"train_decay_factor_{DEMO}").set_value(0.1).run()
    assert {"decay_at": "4,8", "decay_factor": "0.1"}.items() <= address(again).items()
    assert "The training is over" not in texts(again)


def test_a_fall_after_the_last_epoch_is_named_at_its_field(home, open_page):
    at = open_page("load", dataset=DEMO, model="train", epochs="12")

    at.text_input(key=f"train_decay_at_{DEMO}").set_value("12,999").run()

    assert not at.exception
    assert "over after 12 epochs: the rate does not fall after epoch 999." in texts(at)


@pytest.mark.parametrize(
    ("field", "typed", "problem"),
    [
        ("epochs", 0, "number of epochs is 0"),
        ("epochs", 999999999, "number of epochs is 999,999,999"),
        ("lr", -1.0, "learning rate is -1.0"),
        ("lr", 1e12, "learning rate is 1e+12"),
    ],
)
def test_what_cannot_be_trained_with_is_explained_under_the_model(
    field, typed, problem, home, open_page
):
    at = open_page("load", dataset=DEMO, model="train")

    at.number_input(key=f"train_{field}_{DEMO}").set_value(typed).run()

    assert not at.exception
    (error,) = at.columns[0].error
    assert problem in error.value.replace("\\", "")
    assert at.session_state[field] != typed


def test_an_address_cannot_name_code_to_be_run(home, open_page):
    at = open_page("load", dataset=DEMO, model="train", arch="os:system")

    assert not at.exception
    assert at.session_state["arch"] == "small-cnn"


def test_exceptions_can_be_chosen_where_the_pictures_have_some(home, open_page, folder):
    at = open_page("load", dataset=DEMO)
    before = shown(at)
    assert "It was trained with the exceptions" not in texts(at)

    at.segmented_control(key=f"exceptions_{DEMO}").set_value("authors").run()

    assert not at.exception
    assert "It was trained with the exceptions “Any, by chance”." in texts(at)
    assert at.session_state["exceptions"] == "authors"
    assert shown(at) != before  # other pictures carry the square
    at = open_page("load", dataset="folder", root=folder, exceptions="authors")
    assert not at.exception
    assert not [c for c in at.segmented_control if c.label == "Exceptions"]
    assert at.session_state["exceptions"] == "random"


def test_stamps_and_their_share_can_be_chosen_where_some_are_planted(home, open_page, tmp_path):
    root = stamped_pets(tmp_path / "pets", each=8)
    at = open_page("load", dataset=PETS, root=str(root))
    before = shown(at)
    assert not at.exception

    at.segmented_control(key=f"stamp_{PETS}").set_value("one-sided").run()
    at.slider(key=f"correlation_{PETS}").set_value(0.75).run()

    assert not at.exception
    assert (at.session_state["stamp"], at.session_state["correlation"]) == ("one-sided", 0.75)
    assert shown(at) != before
    at.segmented_control(key=f"stamp_{PETS}").set_value("none").run()
    assert not at.exception
    assert at.session_state["correlation"] == 0.99  # without stamps there is none to choose
    assert not [slider for slider in at.slider if slider.label == "Correlation"]


def test_augmented_pictures_are_shown_where_an_augmentation_is_chosen(home, open_page):
    at = open_page("load", dataset=DEMO)
    assert at.multiselect(key=f"augment_{DEMO}").value == []
    assert "And again" not in shown(at)

    at.multiselect(key=f"augment_{DEMO}").set_value(["flip", "rotate15"]).run()

    assert not at.exception
    assert at.session_state["augment"] == "flip,rotate15"
    assert "And again" in shown(at)
    assert "two draws (Flip left and right, Turn, up to 15°)" in texts(at)


def test_augmented_pictures_are_drawn_again_by_other_chances(home, open_page):
    at = open_page("load", dataset=DEMO, augment="rotate15")
    first = shown(at)

    next(b for b in at.button if b.label == "Draw again").click().run()

    assert not at.exception
    assert shown(at) != first
    assert "Draw again" not in {b.label for b in open_page("load", dataset=DEMO).button}


def test_an_address_carries_the_augmentation(home, open_page):
    at = open_page("load", dataset=DEMO, augment="crop4")

    assert not at.exception
    assert at.multiselect(key=f"augment_{DEMO}").value == ["crop4"]


def test_every_augmentation_has_words_on_the_page():
    assert [*AUGMENTATIONS] == [*MOVES, *COLOURS]


def test_an_address_carries_the_exceptions(home, open_page):
    at = open_page("load", dataset=DEMO, exceptions="authors")

    assert not at.exception
    assert at.segmented_control(key=f"exceptions_{DEMO}").value == "authors"
    assert at.session_state["exceptions"] == "authors"


def test_a_model_to_be_trained_here_has_no_accuracy_yet(home, open_page):
    at = open_page("load", dataset=DEMO)

    at.segmented_control(key=f"model_source_{DEMO}").set_value("Train here").run()

    assert not at.exception
    assert at.session_state["model"] == ""
    assert any(b.label == "Start the training" for b in at.button)
    assert "Evaluate on" not in [control.label for control in at.segmented_control]


def test_the_model_of_a_run_brings_the_seed_of_its_split(home_with_run, finished_run, open_page):
    at = open_page("load", dataset=DEMO)

    at.segmented_control(key=f"model_source_{DEMO}").set_value("Made here").run()

    assert not at.exception
    assert at.session_state["model"].endswith("before.safetensors")


def test_all_else_is_there_before_the_model_is_asked_about_every_picture(
    home, open_page, monkeypatch
):
    def asked(*_, **__):
        raise ModelError("Asked about every picture.", "Wait.")

    monkeypatch.setattr(loaded, "answers", asked)

    at = open_page("load", dataset=DEMO)

    assert [e.value.startswith("**Asked") for e in at.error] == [True]
    assert any(b.label == "Look at the heat" for b in at.button)
    assert "3 × 28 × 28 numbers a picture" in texts(at)
