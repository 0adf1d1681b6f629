"""How well a model does, on Load: on every part, with other normalisations, in another order."""

import json
import shutil
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event

import numpy as np
import pytest
import streamlit as st
import torch
from PIL import Image
from safetensors.torch import save_file

from app import loaded as cached
from app.kept import COMPUTED
from app.load import does
from app.load.does import (
    Trial,
    asked_later,
    candidates,
    does_table,
    gain_words,
    trial_words,
    trials_table,
)
from app.shared.progress import shown_progress
from masktune.cache import Cache
from masktune.checkpoints.checkpoint import bundled_checkpoint, read_tensors
from masktune.checkpoints.settings import settings
from masktune.errors import DataError
from masktune.models.build import build
from masktune.progress import Progress, unwatched
from masktune.scores.class_order import OtherOrder
from masktune.scores.flips import Change
from masktune.scores.overall import Overall
from masktune.scores.predictions import Predictions
from masktune.show.tables import csv, html
from tests.app.conftest import address
from tests.app.load.test_page import DEMO, shown, texts
from tests.layouts import waterbirds


def said(right: int, count: int = 100) -> Predictions:
    """Give answers of which the first are right and the others wrong."""
    labels = np.zeros(count, dtype=np.int64)
    return Predictions(np.eye(2)[(np.arange(count) >= right).astype(int)], labels)


def test_parts_are_asked_about_at_once_as_long_as_all_of_them_take_little():
    sizes = {"validation": 100, "biased": 250, "original": 40}

    assert asked_later(sizes, pace=0.1, at_once=30.0) == ["biased"]
    assert asked_later(sizes, pace=0.01, at_once=30.0) == []
    assert asked_later(sizes, pace=1.0, at_once=30.0) == ["validation", "biased", "original"]


def test_a_part_that_was_not_asked_about_has_no_numbers():
    table = does_table({"validation": Overall(200, 150, 0.5)}, {"validation": 200, "test": 1000})

    head, asked, later = csv(table).decode().splitlines()
    assert head == "part,accuracy,low,high,loss,n"
    assert asked.startswith("validation,0.75,0.685")
    assert later == "test,,,,,1000"
    assert "75.0%" in html(table)
    assert "68.6 to 80.5%" in html(table)


def test_the_better_normalisation_is_said_with_n_and_whether_it_may_be_chance():
    now, clear, chance = (
        Trial(name, f"with {name}", said(right))
        for name, right in ((None, 41), ("imagenet", 93), ("half", 43))
    )

    assert trial_words([now, clear, chance]) == (
        "On 100 validation pictures: 41.0% right with this normalisation, 93.0% with “with "
        "imagenet”, clearly more."
    )
    assert trial_words([now, chance]).endswith("43.0% with “with half”, which may be chance.")
    assert trial_words([clear, now]) == (
        "On 100 validation pictures none does better than the one in use, 93.0% right."
    )
    assert "in use" in html(trials_table([now, clear])).split("imagenet")[0]


def test_each_normalisation_is_tried_once_whatever_it_is_called_and_the_present_one_first():
    birds = settings({"dataset": "waterbirds", "model": "x.pth"})  # usually imagenet's

    assert [*candidates(birds, None)] == [None, "none", "in9", "half"]
    assert [*candidates(replace(birds, normalise="half"), "0.1 / 0.2")] == [
        "half", None, "0.1 / 0.2", "none", "in9",
    ]  # fmt: skip
    assert [*candidates(replace(birds, normalise="imagenet"), None)] == [
        "imagenet", "none", "in9", "half",
    ]  # fmt: skip


def test_what_another_order_gains_is_said_with_its_evidence():
    change = Change("all", count=50, right_before=5, fixed=40, broken=0)

    words = gain_words(OtherOrder((1, 0), change), ["cat", "dog"])

    assert "10.0% right as it is, 90.0% if its first class is dog, then cat" in words
    assert "the same 50 validation pictures" in words


def test_the_page_says_accuracy_and_loss_of_every_part_and_a_normalisation_is_taken_by_a_click(
    home, open_page
):
    COMPUTED.clear()
    at = open_page("load", dataset=DEMO)
    table = next(str(e.value) for e in at.get("html") if "How well it does" in str(e.value))
    assert all(part in table for part in ("validation", "biased", "original"))

    tried = next(b for b in at.button if b.label == "Try other normalisations").click().run()
    taken = tried.button(key="take_normalisation_half").click().run()

    assert not taken.exception
    assert taken.session_state["normalise"] == "half"
    assert taken.selectbox(key=f"normalise_{DEMO}_usual_1").value == "half"
    assert address(taken)["normalise"] == "half"
    # What was tried is not tried again: only which one is in use has changed.
    assert "Try other normalisations" not in [b.label for b in taken.button]
    assert {b.key: b.label for b in taken.button}["take_normalisation_the usual"] == (
        "Take the usual"  # the file says nothing of its own
    )


def test_where_it_takes_long_the_model_is_asked_when_somebody_wants_it(
    home, open_page, monkeypatch
):
    monkeypatch.setattr(does, "AT_ONCE", -1.0)  # the clock of these tests stands still
    monkeypatch.setattr(cached, "_ANSWERS", type(cached._ANSWERS)(most=16))

    at = open_page("load", dataset=DEMO)
    ask = next(b for b in at.button if b.label.startswith("Ask about all 2,500 pictures"))
    assert "worst group is" not in texts(at)

    ask.click().run()

    assert "worst group is" in texts(at)
    assert not [b for b in at.button if b.label.startswith("Ask about") or b.label == "Stop"]


@pytest.fixture
def interrupted(monkeypatch):
    """End every script run where it first draws progress, as a click does; work goes on."""

    @contextmanager
    def shown_progress(*_, **__):
        yield lambda _: st.stop()

    monkeypatch.setattr(does, "shown_progress", shown_progress)


class Held:
    """Asks a model as ever, but holds on to what somebody watches until it is let go or left."""

    def __init__(self, ask):
        self.ask, self.begun, self.ended, self.go_on = ask, 0, Event(), Event()

    def __call__(self, *given, watcher=unwatched, **how):
        if watcher is not unwatched:
            self.begun += 1
            try:
                while not self.go_on.wait(0.01):
                    watcher(Progress(stage="predict", done=1, total=2))
            finally:
                self.ended.set()
        return self.ask(*given, watcher=watcher, **how)


def test_asking_about_all_goes_on_while_somebody_clicks_until_it_is_stopped(
    home, open_page, monkeypatch, interrupted
):
    monkeypatch.setattr(does, "AT_ONCE", -1.0)
    monkeypatch.setattr(cached, "_ANSWERS", Cache(most=16))
    monkeypatch.setattr(cached, "ask", held := Held(cached.ask))
    at = open_page("load", dataset=DEMO)
    subject = settings({"dataset": DEMO, "model": "bundled"})
    assert "at once where that takes up to" in texts(at)

    at.button(key="ask_asking").click().run()
    at.segmented_control(key="load_part").set_value("validation").run()

    assert not at.exception
    assert held.begun == 1
    assert not held.ended.is_set()
    assert "ask_asking" not in [b.key for b in at.button]
    at.button(key="stop_asking").click().run()
    assert held.ended.wait(10)
    assert not at.exception
    assert not cached.has_answers(subject, "validation")
    assert [b.label for b in at.button if b.key == "ask_asking"] == [
        "Ask about all 2,500 pictures (about 0.0 s)"  # by the clock of these tests
    ]
    assert "stop_asking" not in [b.key for b in at.button]


def test_what_was_asked_while_somebody_clicked_is_there_for_the_next_run(
    home, open_page, monkeypatch, interrupted
):
    monkeypatch.setattr(does, "AT_ONCE", -1.0)
    monkeypatch.setattr(cached, "_ANSWERS", Cache(most=16))
    monkeypatch.setattr(cached, "ask", held := Held(cached.ask))
    at = open_page("load", dataset=DEMO)
    at.button(key="ask_asking").click().run()
    held.go_on.set()
    assert held.ended.wait(10)
    monkeypatch.setattr(does, "shown_progress", shown_progress)

    at.run()

    assert not at.exception
    assert held.begun == 3  # one for each part
    assert "worst group is" in texts(at)


def test_trying_normalisations_goes_on_while_somebody_clicks_until_it_is_stopped(
    home, open_page, monkeypatch
):
    COMPUTED.clear()
    at = open_page("load", dataset=DEMO)
    monkeypatch.setattr(does, "predict", held := Held(does.predict))

    @contextmanager
    def stopping(*_, **__):
        yield lambda _: st.stop()

    monkeypatch.setattr("app.shared.wanted.shown_progress", stopping)
    at.button(key="ask_trying").click().run()
    at.run()

    assert not at.exception
    assert held.begun == 1
    at.button(key="stop_trying").click().run()
    assert held.ended.wait(10)
    assert not at.exception
    assert "Try other normalisations" in [b.label for b in at.button]
    assert "Normalisations" not in [header.value for header in at.subheader]


def test_classes_in_another_order_are_found_taken_and_given_back(home, open_page, tmp_path):
    tensors, _ = read_tensors(bundled_checkpoint(DEMO))
    head = [name for name, value in tensors.items() if value.shape[:1] == (2,)]
    swapped = {n: v.flip(0).contiguous() if n in head else v for n, v in tensors.items()}
    save_file(swapped, tmp_path / "swapped.safetensors", metadata={"arch": "small-cnn"})

    at = open_page("load", dataset=DEMO, model=str(tmp_path / "swapped.safetensors"))

    assert not at.exception
    assert "seems to have its classes in another order" in at.warning[0].value
    at = next(b for b in at.button if b.label == "Take this order of the classes").click().run()
    assert at.session_state["class_order"] == "1,0"
    assert address(at)["class_order"] == "1,0"
    config = settings({"dataset": DEMO, "model": "bundled"})
    mine = replace(config, model=str(tmp_path / "swapped.safetensors"), class_order="1,0")
    as_bundled, as_taken = (cached.answers(c, "biased").probabilities for c in (config, mine))
    assert np.allclose(as_bundled, as_taken, atol=1e-6)
    at = next(b for b in at.button if b.label.startswith("Take the classes as they")).click().run()
    assert at.session_state["class_order"] == ""


def test_an_order_of_the_classes_is_of_the_folder_that_it_was_chosen_for(home, open_page, tmp_path):
    for folder in ("mine", "theirs"):
        for label in ("blue", "red"):
            (tmp_path / folder / label).mkdir(parents=True)
            for number in range(6):
                picture = Image.new("RGB", (40, 40), (255 * (label == "red"), 0, number))
                picture.save(tmp_path / folder / label / f"{number}.png")
    torch.save(build("resnet20", 2).state_dict(), tmp_path / "model.pth")
    model = {"model": str(tmp_path / "model.pth"), "class_order": "1,0"}
    at = open_page("load", dataset="folder", root=str(tmp_path / "mine"), **model)
    assert "its first is red, then blue" in texts(at)

    at.text_input(key="own_root").set_value(str(tmp_path / "theirs")).run()
    at.text_input(key="weights_path_folder_1").set_value(model["model"]).run()

    assert not at.exception
    assert at.session_state["root"] == str(tmp_path / "theirs")
    assert at.session_state["model"] == str(tmp_path / "model.pth")
    assert at.session_state["class_order"] == ""


@pytest.fixture
def numbered(tmp_path):
    """Give pictures in folders 0 and 1, in two places, and the places in a CSV file."""
    rows = ["file,attribute"]
    for label in (0, 1):
        (tmp_path / "birds" / str(label)).mkdir(parents=True)
        for number in range(10):
            name = f"{label}/{label}-{number}.png"
            Image.new("RGB", (40, 40), (255 * label, 0, number)).save(tmp_path / "birds" / name)
            rows.append(f"{name},{'land' if number % 2 else 'water'}")
    (tmp_path / "places.csv").write_text("\n".join(rows))
    return tmp_path / "birds"


def test_names_and_attributes_give_own_pictures_groups_before_there_is_a_model(
    home, open_page, numbered
):
    root = str(numbered)
    at = open_page("load", dataset=DEMO)
    at.segmented_control[0].set_value("Folder").run()
    at.text_input(key="own_root").set_value(root).run()
    at.text_input(key=f"class_names_{root}").set_value("landbird, waterbird").run()

    at.text_input(key=f"attributes_folder_{root}").set_value(str(numbered.parent / "places.csv"))
    at.run()

    assert not at.exception
    assert all(word in shown(at) for word in ("landbird", "waterbird", "land", "water"))
    assert "Now choose a model" in at.info[0].value
    at.segmented_control(key="model_source_folder").set_value("Train here").run()
    assert address(at)["class_names"] == "landbird,waterbird"
    assert address(at)["attributes"].endswith("places.csv")


@pytest.mark.parametrize(
    ("dataset", "files"), [("waterbirds", True), ("cifar10", False), ("stamped-pets", False)]
)
def test_a_csv_of_attributes_is_asked_for_where_it_can_name_files_and_else_is_said_why_not(
    home, open_page, tmp_path, dataset, files
):
    at = open_page("load", dataset=DEMO)
    assert "No attributes from a CSV" not in texts(at)
    at.segmented_control[0].set_value("Catalogue").run()
    at.selectbox(key="load_dataset_catalogue").set_value(dataset).run()

    at.text_input(key=f"root_{dataset}").set_value(str(tmp_path)).run()

    assert not at.exception
    key = f"attributes_{dataset}_{tmp_path}"
    assert (key in [field.key for field in at.text_input]) is files
    assert ("No attributes from a CSV" in texts(at)) is not files


def test_pictures_to_be_downloaded_say_why_they_take_no_attributes(home, open_page, monkeypatch):
    monkeypatch.setattr(cached, "bundle", refused)
    at = open_page("load")
    at.segmented_control[0].set_value("Catalogue").run()
    at.selectbox(key="load_dataset_catalogue").set_value("cifar10").run()

    at.checkbox(key="download_cifar10").set_value(True).run()

    assert not at.exception
    assert "No attributes from a CSV" in texts(at)


def refused(*_, **__):
    raise DataError("Nothing is downloaded in a test.", "Go on.")


def test_a_folder_that_the_catalogue_knows_is_taken_as_what_it_is(home, open_page, tmp_path):
    root = str(waterbirds(tmp_path / "birds", each=6))
    at = open_page("load", dataset=DEMO)
    at.segmented_control[0].set_value("Folder").run()

    at.text_input(key="own_root").set_value(root).run()

    assert "This looks like Waterbirds" in at.info[0].value
    at.button(key="take_as_waterbirds").click().run()
    assert not at.exception
    assert (at.session_state["dataset"], at.session_state["root"]) == ("waterbirds", root)
    assert at.segmented_control[0].value == "Catalogue"


@pytest.mark.parametrize("inside", ["", "waterbirds_v1.0", "birds of mine"])
def test_a_zip_that_the_catalogue_knows_is_taken_as_what_it_is_also_uploaded(
    inside, home, open_page, tmp_path
):
    waterbirds(tmp_path / "birds" / inside, each=6)
    file = Path(shutil.make_archive(str(tmp_path / "packed"), "zip", tmp_path / "birds"))
    at = open_page("load", dataset=DEMO)
    at.segmented_control[0].set_value("Folder").run()
    at.text_input(key="own_root").set_value(str(file)).run()
    assert "This looks like Waterbirds" in at.info[0].value
    at.segmented_control[0].set_value("Upload").run()

    at.file_uploader(key="own_zip").set_value((file.name, file.read_bytes(), "application/zip"))
    at.run()

    assert "This looks like Waterbirds" in at.info[0].value
    at.button(key="take_as_waterbirds").click().run()
    assert not at.exception
    assert not at.error
    assert at.session_state["dataset"] == "waterbirds"
    assert Path(at.session_state["root"]).is_relative_to(home / "uploads")
    assert at.segmented_control[0].value == "Catalogue"


def test_a_file_that_only_says_that_it_is_a_zip_is_explained_once(home, open_page, tmp_path):
    file = tmp_path / "odd.zip"
    file.write_bytes(b"no zip at all")
    at = open_page("load", dataset=DEMO)
    at.segmented_control[0].set_value("Folder").run()

    at.text_input(key="own_root").set_value(str(file)).run()

    assert not at.exception
    assert not any("This looks like" in info.value for info in at.info)
    assert not [error for error in at.error if "no zip file" not in error.value]


def test_a_class_name_given_twice_is_explained_and_the_pictures_are_shown(
    home, open_page, numbered
):
    root = str(numbered)
    at = open_page("load", dataset="folder", root=root)

    at.text_input(key=f"class_names_{root}").set_value("bird,bird").run()

    assert not at.exception
    assert "The class names are" in at.error[0].value
    assert at.session_state["class_names"] == ""


def test_numbered_classes_are_called_by_a_click_as_a_folder_of_the_hub_calls_them(
    home, open_page, numbered, tmp_path
):
    (tmp_path / "hub").mkdir()
    save_file(build("resnet20", 2).state_dict(), tmp_path / "hub" / "model.safetensors")
    names = {"id2label": {"0": "landbird, bird of the woods", "1": "waterbird"}}
    (tmp_path / "hub" / "config.json").write_text(json.dumps(names))
    at = open_page("load", dataset="folder", root=str(numbered), model=str(tmp_path / "hub"))
    assert "Classes in the file: landbird, bird of the woods, waterbird" in shown(at)

    next(b for b in at.button if b.label.startswith("Call the classes as the file")).click().run()

    assert not at.exception
    assert at.session_state["class_names"] == "landbird,waterbird"
    assert at.text_input(key=f"class_names_{numbered}_1").value == "landbird,waterbird"
    assert address(at)["model"] == str(tmp_path / "hub" / "model.safetensors")


@pytest.mark.parametrize(
    ("names", "order"),
    [(["Dog", "cat", "ant"], (2, 1, 0)), (["ant", "cat", "dog"], ()), (["a", "cat", "dog"], ())],
)
def test_the_files_own_names_say_which_class_each_output_is(names, order):
    assert does.named_order(names, ["ant", "cat", "dog"]) == order


def test_a_changed_file_of_attributes_is_read_again(home, numbered):
    path = numbered.parent / "places.csv"
    given = {"dataset": "folder", "root": str(numbered), "attributes": str(path)}
    subject = settings({**given, "model": "x.pth"})
    before = cached.bundle(subject).train.attributes

    path.write_text(path.read_text().replace("0-1.png,land", "0-1.png,water"))

    assert torch.sum(cached.bundle(subject).train.attributes != before) <= 1
    everything = cached.bundle(subject)
    parts = (everything.train, everything.validation, *everything.tests.values())
    assert sum(int(part.attributes.sum()) for part in parts) == 11
