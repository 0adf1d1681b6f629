"""Train here: what a training starts from, the job that it is, and the model that comes of it."""

import json
import shutil
from dataclasses import replace

import pytest
import torch
from safetensors.torch import save_file

from app.load import train
from masktune.checkpoints.settings import settings
from masktune.models.build import build
from masktune.runs import jobs
from masktune.runs.folder import RunFolder
from tests.app.conftest import DEMO, TRAINS, address, demo_config
from tests.app.load.test_page import folder, texts, with_checkpoint

__all__ = ["folder"]  # a fixture

ALONE = replace(TRAINS, training=replace(TRAINS.training, epochs=2), only_before=True)


@pytest.fixture
def started(monkeypatch, home):
    """Note what would be started."""
    seen = []

    def start(config, *, name=""):
        seen.append((config, name))
        return home / "runs" / "started"

    monkeypatch.setattr(train.jobs, "start", start)
    return seen


def pressed(at, label):
    return next(button for button in at.button if button.label == label).click().run()


def test_weights_for_other_classes_are_given_a_new_last_layer_and_trained(
    home, open_page, folder, tmp_path, started
):
    seven = tmp_path / "seven.pth"
    torch.save(build("resnet20", 7).state_dict(), seven)
    at = open_page("load", dataset="folder", root=folder, model="train")
    at = with_checkpoint(at, str(seven), "folder")

    pressed(at, "Give it a new last layer")

    assert not at.exception
    assert not at.error
    assert "resnet20 for 7 classes; these pictures have 2, so its last layer is new" in texts(at)
    at.number_input(key="train_epochs_folder").set_value(3).run()
    at.text_input(key="train_name_folder").set_value("Red or blue").run()
    pressed(at, "Start the training")
    ((config, name),) = started
    assert (config.arch, config.weights, config.head) == ("resnet20", str(seven), "new")
    assert (config.training.epochs, config.only_before, config.root) == (3, True, folder)
    assert name == "Red or blue"
    assert address(at)["training"] == "started"


def test_a_click_that_comes_with_the_last_number_typed_starts_the_training(
    home, open_page, started
):
    at = open_page("load", dataset=DEMO, model="train")

    at.number_input(key=f"train_epochs_{DEMO}").set_value(3)
    pressed(at, "Start the training")

    assert not at.exception
    assert [config.training.epochs for config, _ in started] == [3]
    at.run()
    assert len(started) == 1


def test_weights_for_as_many_classes_may_keep_their_last_layer(home, open_page, tmp_path):
    two = tmp_path / "two.pth"
    torch.save(build("resnet20", 2).state_dict(), two)
    at = open_page("load", dataset=DEMO, model="train")
    at.segmented_control(key=f"train_start_{DEMO}").set_value("From a file").run()
    at.text_input(key=f"train_path_{DEMO}").set_value(str(two)).run()
    assert "head" not in address(at)

    at.selectbox(key=f"train_head_{DEMO}_{two}").set_value("kept").run()

    assert not at.exception
    assert address(at)["head"] == "kept"
    assert at.session_state["weights"] == str(two)


def test_weights_in_a_folder_of_the_hub_are_told_apart_and_their_settings_come_with_a_link(
    home, open_page, tmp_path
):
    hub = tmp_path / "hub"
    hub.mkdir()
    (hub / "config.json").write_text("{}")
    save_file(build("resnet20", 7).state_dict(), hub / "model.safetensors")
    at = open_page("load", dataset=DEMO, model="train")
    at.segmented_control(key=f"train_start_{DEMO}").set_value("From a file").run()
    at.text_input(key=f"train_path_{DEMO}").set_value(str(hub)).run()
    assert "resnet20 for 7 classes" in texts(at)

    save_file(build("resnet20", 2).state_dict(), hub / "model.safetensors")
    at.run()

    assert "resnet20 for 2 classes, as these pictures have" in texts(at)
    weights = str(hub / "model.safetensors")
    at.selectbox(key=f"train_head_{DEMO}_{weights}").set_value("kept").run()
    at.selectbox(key=f"train_freeze_{DEMO}_resnet20_{weights}").set_value("body").run()
    again = open_page("load", **address(at))
    assert (again.session_state["head"], again.session_state["freeze"]) == ("kept", "body")
    again.text_input(key=f"train_path_{DEMO}").set_value(str(hub)).run()
    assert (again.session_state["head"], again.session_state["freeze"]) == ("kept", "body")


def test_a_body_without_its_last_layer_is_enough(home, open_page, tmp_path):
    state = build("resnet18", 5).state_dict()
    body = tmp_path / "body.pth"
    torch.save({n: value for n, value in state.items() if not n.startswith("fc.")}, body)
    at = open_page("load", dataset=DEMO, model="train")

    at.segmented_control(key=f"train_start_{DEMO}").set_value("From a file").run()
    at.text_input(key=f"train_path_{DEMO}").set_value(str(body)).run()

    assert not at.error
    assert "resnet18 without its last layer: it gets a new one." in texts(at).replace("\\", "")
    assert at.session_state["arch"] == "resnet18"


def test_the_architecture_that_was_chosen_for_weights_is_kept_where_another_fits_too(
    home, open_page, tmp_path
):
    torch.save(build("small-cnn-stride2", 2).state_dict(), tmp_path / "two.pth")
    link = {"weights": str(tmp_path / "two.pth"), "arch": "small-cnn-stride2"}

    at = open_page("load", dataset=DEMO, model="train", **link)

    assert not at.exception
    assert at.session_state["arch"] == "small-cnn-stride2"


def test_weights_by_name_bring_their_network(home, open_page):
    at = open_page("load", dataset=DEMO, model="train")

    at.segmented_control(key=f"train_start_{DEMO}").set_value("By name").run()
    box = at.selectbox(key=f"train_weights_{DEMO}")
    box.set_value("ResNet18_Weights.IMAGENET1K_V1").run()

    assert not at.exception
    assert at.session_state["arch"] == "resnet18"
    assert at.session_state["weights"] == "ResNet18_Weights.IMAGENET1K_V1"
    frozen = next(box for box in at.selectbox if box.label == "Frozen layers")
    assert frozen.options[-1] == "Up to layer4.1"  # all that come before the last layer


RESNET, LITE = "ResNet18_Weights.IMAGENET1K_V1", "timm/tf_efficientnet_lite0.in1k"


@pytest.mark.parametrize(
    ("weights", "given", "said"),
    [
        (RESNET, {"dataset": DEMO}, "ImageNet's normalisation"),
        (RESNET, {"dataset": DEMO, "normalise": "imagenet"}, ""),
        (RESNET, {"dataset": "waterbirds"}, ""),  # whose usual one it is
        (LITE, {"dataset": "waterbirds"}, "timm's page"),
        (LITE, {"dataset": "stamped-pets"}, ""),  # the recipe's weights, and what they are used to
        (LITE, {"dataset": "stamped-pets", "normalise": "imagenet"}, "timm's page"),
        (RESNET, {"dataset": "stamped-pets"}, "ImageNet's normalisation"),
    ],
)
def test_what_named_weights_are_used_to_is_said_where_they_are_shown_something_else(
    weights, given, said
):
    words = train.normalisation_words(weights, settings(given))

    assert said in words if said else words == ""


def test_a_training_is_followed_on_load_and_mask_and_not_done_twice(a_run, open_page):
    path = a_run(config=ALONE, state="running", stage="train", step=11, total=110, eta=90.0)
    (path / "before.safetensors").write_bytes(b"")  # which is there before all is said about it
    link = {"dataset": DEMO, "model": "train", "epochs": "2", "training": "a-run"}

    at = open_page("load", **link)

    assert not at.exception
    assert "Training, step 11 of 110, 90.0 s left" in str(at.get("progress")[0].proto)
    assert "Start the training" not in [b.label for b in at.button]
    assert "Stop the training" in [b.label for b in at.button]
    assert at.session_state["model"] == ""
    mask = open_page("mask", **link)
    assert "Training, step 11 of 110" in str(mask.get("progress")[0].proto)
    finetune = open_page("finetune", **link)
    assert finetune.button(key="finetune_start").disabled
    assert "Until then a run would train the model a second time." in texts(finetune)


def finished(path, finished_run):
    """Let a training in some folder have ended, as its process would have left it."""
    shutil.copy(finished_run / "before.safetensors", path)
    RunFolder(path).write_json("status.json", {"state": "done", "stage": "predict"})
    document = json.loads((finished_run / "result.json").read_text())
    for part in (document["validation"], *document["test"].values()):
        del part["after"]
    (path / "result.json").write_text(json.dumps({**document, "format": 3}))


def test_the_trained_model_is_the_model_as_soon_as_it_is_there(a_run, open_page, finished_run):
    path = a_run(config=ALONE, state="running", stage="train", step=11, total=110)
    at = open_page("load", dataset=DEMO, model="train", epochs="2", training="a-run")
    finished(path, finished_run)

    at.run()

    assert not at.exception
    assert not at.error
    assert at.session_state["model"] == str(path / "before.safetensors")
    assert at.segmented_control(key=f"model_source_{DEMO}").value == "Made here"
    assert any(b.label == "Look at the heat" for b in at.button)
    assert "training" not in address(at)
    at.segmented_control(key=f"model_source_{DEMO}").set_value("Train here").run()
    assert at.session_state["model"] == ""  # another training may follow


def test_a_model_made_here_is_looked_at_in_the_frame_of_its_training_until_one_is_chosen(
    a_run, open_page, finished_run
):
    small = replace(ALONE, frame="resize 20x20")
    for name, config in (("small", small), ("usual", ALONE)):
        finished(a_run(name, config=config, state="running"), finished_run)
    paths = {name: str(jobs.path_of(name) / "before.safetensors") for name in ("small", "usual")}
    at = open_page("load", dataset=DEMO)
    assert at.session_state["frame"] == ""

    at.segmented_control(key=f"model_source_{DEMO}").set_value("Made here").run()
    at.selectbox(key=f"load_run_{DEMO}").set_value(paths["small"]).run()

    assert not at.exception
    box = at.selectbox(key=f"frame_{DEMO}_{paths['small']}")
    assert (box.value, at.session_state["frame"]) == ("stored", "resize 20x20")
    assert "As in its training: resize 20x20" in box.options
    # The command line takes it along with the folder of the model.
    by_command = settings({"dataset": DEMO, "model": str(jobs.path_of("small"))})
    assert (by_command.model, by_command.frame) == (paths["small"], "resize 20x20")

    at.selectbox(key=f"frame_{DEMO}_{paths['small']}").set_value("resize 32x32").run()
    assert at.session_state["frame"] == "resize 32x32"
    at.selectbox(key=f"load_run_{DEMO}").set_value(paths["usual"]).run()
    assert at.session_state["frame"] == ""
    at.selectbox(key=f"load_run_{DEMO}").set_value(paths["small"]).run()
    assert at.session_state["frame"] == "resize 20x20"
    at.segmented_control(key=f"model_source_{DEMO}").set_value("Bundled").run()
    assert (at.session_state["model"], at.session_state["frame"]) == ("bundled", "")


def test_in_the_place_of_a_deleted_model_comes_how_it_was_trained_and_no_other_one(
    a_run, open_page, finished_run
):
    for name in ("one", "two"):
        finished(a_run(name, config=ALONE, state="running"), finished_run)
    one = str(jobs.path_of("one") / "before.safetensors")
    at = open_page("load", dataset=DEMO, model=one)
    assert at.session_state["model"] == one

    at.button(key="delete_one").click().run()

    assert not at.exception
    assert at.segmented_control(key=f"model_source_{DEMO}").value == "Train here"
    assert at.session_state["model"] == ""
    assert address(at)["epochs"] == "2"


def test_the_model_of_a_grid_is_offered_once_and_none_of_the_archive_but_the_loaded(
    a_run, open_page, finished_run
):
    runs = ("alone", "put-away", "../studies/grid/seed-0/heat-k-1", "../studies/grid/seed-0/none")
    for name in runs:
        config = demo_config() if name.endswith("none") else ALONE
        finished(a_run(name, config=config, state="running"), finished_run)
    jobs.describe(jobs.path_of("put-away"), archived=True)
    offered = ["alone", "studies/grid/seed-0/heat-k-1"]

    def made(run):
        at = open_page("load", dataset=DEMO, model=str(jobs.path_of(run) / "before.safetensors"))
        assert not at.exception
        return at.selectbox(key=f"load_run_{DEMO}")

    assert len(made(offered[0]).options) == 2
    assert made(offered[1]).value == str(jobs.path_of(offered[1]) / "before.safetensors")
    assert made("put-away").value == str(jobs.path_of("put-away") / "before.safetensors")


def test_a_training_that_was_stopped_can_go_on(a_run, open_page, monkeypatch):
    path = a_run(config=ALONE, state="cancelled", stage="train", step=11, total=110)
    gone_on = []
    monkeypatch.setattr("masktune.runs.jobs.resume", gone_on.append)

    at = open_page("load", dataset=DEMO, model="train", epochs="2", training="a-run")

    assert "The training was cancelled" in texts(at)
    pressed(at, "Go on with the training")
    assert gone_on == [path]


def test_pages_say_what_a_trained_model_lacks(a_run, open_page, finished_run):
    finished(a_run(config=ALONE, state="running"), finished_run)

    for page in ("compare", "abstain", "finetune"):
        at = open_page(page, run="a-run")

        assert not at.exception
        (problem,) = at.error
        assert "holds a trained model and no finetune" in problem.value.replace("\\", "")
        assert "choose it as the model on the Load page" in problem.value


def test_the_settings_of_a_training_come_with_its_folder(a_run, open_page, finished_run):
    finished(path := a_run(config=ALONE, state="running"), finished_run)

    at = open_page("start", run="a-run")

    assert not at.exception
    assert at.session_state["model"] == str(path / "before.safetensors")
    assert settings({"dataset": DEMO, "model": str(path)}).model == at.session_state["model"]
