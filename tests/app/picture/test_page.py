"""The page of one picture: what both models say, before alone, and addresses that name nothing."""

import json
from collections import Counter

import numpy as np
import pytest
import torch
from torchvision.models import VisionTransformer

from app import loaded as cached
from app.picture import models
from app.picture.easel import changed
from masktune.checkpoints.checkpoint import Checkpoint
from masktune.heat import explain
from tests.app.conftest import DEMO, address
from tests.app.load.test_train import ALONE


def drawn(at) -> str:
    return " ".join(element.proto.body for element in at.get("html"))


def told(at, component: str) -> list[str]:
    found = at.get("bidi_component")
    return [e.proto.json for e in found if e.proto.component_name == component]


def test_both_models_answer_about_the_picture_in_the_address(
    home_with_run, finished_run, open_page
):
    at = open_page("picture", dataset=DEMO, run=finished_run.name, picture="original/7")

    assert not at.exception
    assert not at.error
    assert any("Before: " in text and "After: " in text for text in told(at, "masktune_easel_tell"))
    assert address(at)["picture"] == "original/7"


def test_without_a_run_the_model_before_answers_alone_and_the_page_says_so(home, open_page):
    at = open_page("picture", dataset=DEMO)

    assert not at.exception
    assert not any("After: " in text for text in told(at, "masktune_easel_tell"))
    assert "only the model before answers" in drawn(at)


def test_the_model_of_a_run_on_other_pictures_is_not_asked(home_with_run, finished_run, open_page):
    at = open_page("picture", dataset="cows-and-camels", run=finished_run.name)

    assert not at.exception
    assert not any("After: " in text for text in told(at, "masktune_easel_tell"))
    assert "only the model before answers" in drawn(at)


def test_a_picture_that_is_not_there_is_a_problem_and_the_first_one_is_shown(home, open_page):
    at = open_page("picture", dataset=DEMO, picture="original/999999")

    assert not at.exception
    assert "There is no picture" in at.error[0].value
    assert "original/0 to original/" in at.error[0].value
    assert "Before: " in " ".join(told(at, "masktune_easel_tell"))


def test_without_pictures_the_page_leads_to_the_demo(home, open_page):
    at = open_page("picture")

    assert not at.exception
    assert at.button[0].label == "Open the demo"


def test_before_there_is_a_model_the_page_follows_its_training(a_run, open_page):
    at = open_page("picture", dataset=DEMO, model="train", epochs="2")
    assert "Go to Load" in [button.label for button in at.button]
    a_run(config=ALONE, state="running", stage="train", step=11, total=110)

    at = open_page("picture", dataset=DEMO, model="train", epochs="2", training="a-run")

    assert not at.exception
    assert "Training, step 11 of 110" in str(at.get("progress")[0].proto)


@pytest.fixture
def passes(monkeypatch):
    """Count the passes of each model for answers and for heat."""
    found = Counter()

    def count(where, name, what):
        original = getattr(where, name)

        def counted(*args, **named):
            found[what] += 1
            return original(*args, **named)

        monkeypatch.setattr(where, name, counted)

    models._ANSWERS.clear()
    count(explain, "over_split", "heat")
    count(models, "answer_picture", "pictures")
    network = "masktune.models.networks.SmallCNN.forward"
    original = _resolved(network)
    monkeypatch.setattr(
        network, lambda self, images: found.update(forward=1) or original(self, images)
    )
    return found


def _resolved(path):
    from importlib import import_module

    module, owner, name = path.rsplit(".", 2)
    return getattr(getattr(import_module(module), owner), name)


def test_a_stroke_takes_two_passes_a_model_and_undoing_it_none(
    passes, home_with_run, finished_run, open_page
):
    at = open_page("picture", dataset=DEMO, run=finished_run.name, picture="original/7")
    opened = at.session_state["picture_painted"]
    black = np.zeros_like(opened.picture)
    passes.clear()

    at.session_state["picture_painted"] = changed(opened, black)
    at.run()

    assert not at.exception
    assert passes == {"pictures": 2, "heat": 2, "forward": 4}  # of two models

    passes.clear()
    at.session_state["picture_painted"] = changed(opened, opened.picture)
    at.run()

    assert passes == {}


def test_once_something_is_painted_the_page_says_that_it_is_not_kept(home, open_page):
    at = open_page("picture", dataset=DEMO, picture="validation/0")
    opened = at.session_state["picture_painted"]
    assert "What you painted is in no link" not in drawn(at)

    at.session_state["picture_painted"] = changed(opened, np.zeros_like(opened.picture))
    assert "What you painted is in no link" in drawn(at.run())


def test_hiding_and_flipping_change_what_stands_on_the_easel(home, open_page):
    at = open_page("picture", dataset=DEMO, picture="validation/0")
    opened = at.session_state["picture_painted"]

    next(b for b in at.button if b.label == "What would flip it").click().run()
    assert "Before: Without the hottest " in drawn(at)
    next(b for b in at.button if b.label.startswith("Hide these")).click().run()

    assert not at.exception
    flipped = at.session_state["picture_painted"]
    assert (flipped.turn, flipped.over) == (1, 0)
    assert (flipped.picture != opened.picture).any()
    assert "That answer now has" in drawn(at)


def test_choosing_a_split_and_a_number_opens_that_picture(home, open_page):
    at = open_page("picture", dataset=DEMO)

    at.selectbox(key="picture_split").set_value("original").run()
    at.number_input(key="picture_number").set_value(3).run()

    assert not at.exception
    assert address(at)["picture"] == "original/3"


def test_a_link_says_that_it_leaves_out_what_was_painted(home, open_page):
    (said,) = told(open_page("picture", dataset=DEMO), "copy_link")
    (elsewhere,) = told(open_page("finetune", dataset=DEMO), "copy_link")

    assert json.loads(said) == {"without": "what you painted"}
    assert json.loads(elsewhere) == {"without": ""}


def test_a_link_brings_the_other_picture_and_what_flips_the_answer(home, open_page):
    at = open_page("picture", dataset=DEMO, picture="validation/0", picture_other="train/3")
    next(b for b in at.button if b.label == "What would flip it").click().run()

    again = open_page("picture", **address(at))

    assert not again.exception
    assert again.session_state["picture_other"] == "train/3"
    assert "Before: Without the hottest " in drawn(again)
    again.session_state["picture"] = "validation/1"
    assert "Before: Without the hottest " not in drawn(again.run())


def test_another_picture_to_cut_from_that_is_not_there_is_said_once_and_not_carried(
    home, open_page
):
    at = open_page("picture", dataset=DEMO, picture_other="train/999999")

    assert not at.exception
    assert "There is no picture" in at.error[0].value
    assert "picture_other" not in address(at)
    assert not at.run().error


def small_vit():
    """Give a ViT for the digits: those with a name have a hundred million weights."""
    torch.manual_seed(0)
    sizes = {"image_size": 28, "patch_size": 7, "num_layers": 2, "num_heads": 2}
    model = VisionTransformer(**sizes, hidden_dim=16, mlp_dim=32, num_classes=2)
    torch.nn.init.normal_(model.heads.head.weight)  # it begins with zeros, and so without heat
    return model.eval()


def test_a_vit_answers_about_what_is_painted_and_hidden_and_shows_where_it_looks(
    home, open_page, monkeypatch, tmp_path
):
    model = Checkpoint(model=small_vit(), arch="a-vit", classes=2, lr=None)
    monkeypatch.setattr(cached, "load_checkpoint", lambda *_, **__: model)
    file = tmp_path / "vit.pth"
    file.write_bytes(b"its weights")

    at = open_page("picture", dataset=DEMO, model=str(file), picture="validation/0")

    assert not at.exception
    assert not at.error
    assert "Where the model looks for" in drawn(at)
    opened = at.session_state["picture_painted"]
    at.session_state["picture_painted"] = changed(opened, np.zeros_like(opened.picture))
    at.run()
    assert not at.exception
    assert "As opened: " in drawn(at)

    at.session_state["picture_painted"] = opened
    at.run()
    at.button(key="hide_before").click().run()

    assert not at.exception
    hidden = (at.session_state["picture_painted"].picture != opened.picture).any(axis=2).mean()
    assert 0 < hidden < 0.5
