"""Columns beside the first on Mask: each differs from it in one thing."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from app.mask.columns import column, first_title, offered
from masktune.checkpoints.settings import settings
from masktune.config import AUTO
from masktune.errors import ConfigError
from masktune.models.build import build
from masktune.runs import jobs
from masktune.runs.index import Digest
from tests.app.conftest import DEMO, TRAINS
from tests.app.mask.test_page import choice


def test_models_of_runs_other_explainers_and_layers_are_offered(home_with_run, finished_run):
    first = choice(layer="features.3")

    found = offered(first, jobs.history(), layers=["features.6", "features.3"])

    run = finished_run.name
    assert list(found)[:2] == [f"model:{run}/after", f"model:{run}/before"]
    assert found["explainer:scorecam"] == "scorecam (slow)"
    assert "explainer:xgradcam" not in found
    assert found["layer:features.6"] == "layer features.6"
    assert "layer:features.3" not in found


def test_a_column_differs_from_the_first_in_one_thing(home_with_run, finished_run):
    run, first = finished_run.name, choice(layer="features.3")
    first = replace(first, subject=replace(first.subject, class_order="1,0"))

    title, explained = column("explainer:gradcam", first, run=None)
    assert (title, explained.method, explained.layer) == ("gradcam", "gradcam", "features.3")
    assert explained.subject == first.subject
    title, tuned = column(f"model:{run}/after", first, run=run)
    assert (title, tuned.method, tuned.layer) == ("after", "xgradcam", "features.3")
    assert tuned.subject.model == str(home_with_run / "runs" / run / "after.safetensors")
    assert (tuned.subject.arch, tuned.subject.class_order) == (AUTO, None)
    assert column(f"model:{run}/after", first, run=None)[0].startswith("after, ")


def test_the_path_of_a_checkpoint_is_a_column_too(home_with_run, finished_run, tmp_path):
    file = shutil.copy(finished_run / "after.safetensors", tmp_path / "tuned.safetensors")

    title, found = column(str(file), choice(layer="nowhere"), run=None)

    # The layer of the first column is none of this model: its own is taken, and said.
    assert title.startswith("tuned, layer ")
    assert found.subject.model == str(file)
    assert found.layer != "nowhere"


def test_a_checkpoint_that_fits_several_architectures_is_led_to_where_one_is_chosen(tmp_path):
    torch.save(build("small-cnn-stride2", 2).state_dict(), tmp_path / "two.pth")

    with pytest.raises(ConfigError, match="small-cnn-stride2") as caught:
        column(str(tmp_path / "two.pth"), choice(), run=None)

    assert caught.value.remedy == "Choose it as the model on Load, which says what it needs."


@pytest.fixture
def training(home, finished_run, a_run) -> Path:
    """Give the folder of a training: a model before and no more."""
    config = replace(TRAINS, only_before=True, normalise="imagenet")
    path = a_run("a-training", config=config, state="done")
    shutil.copy(finished_run / "before.safetensors", path)
    return path


def test_the_model_of_a_training_is_offered_beside_another_model(
    training, a_digest, open_page, slow_looks
):
    at = open_page("mask", dataset=DEMO, mask_pictures="6", columns='["model:a-training/before"]')

    assert not at.exception
    assert not at.error
    assert "before of Training: small-cnn, 12 epochs" in at.multiselect(key="columns").options[0]
    assert at.multiselect(key="columns").value == ["model:a-training/before"]


@pytest.fixture
def a_digest(monkeypatch):
    """Let every run have a result: what is in it is not looked at."""
    every = jobs.every
    monkeypatch.setattr(
        jobs, "every", lambda: [replace(job, digest=Digest(tests={}, took=1.0)) for job in every()]
    )


def test_the_folder_of_a_training_is_a_column_as_it_is_a_model_on_load(training, tmp_path):
    elsewhere = shutil.copytree(training, tmp_path / "my.training")

    title, found = column(str(elsewhere), choice(layer="features"), run=None)

    assert title == "my.training"
    assert found.subject.model == str(elsewhere / "before.safetensors")
    assert found.subject.normalise == "imagenet"  # as it was trained


def test_a_folder_of_the_hub_is_a_column_too_and_any_other_folder_is_refused(home, tmp_path):
    hub = tmp_path / "resnet20.cats"
    hub.mkdir()
    save_file(build("resnet20", 2).state_dict(), hub / "model.safetensors")

    with pytest.raises(ConfigError, match="is a folder"):
        column(str(hub), choice(), run=None)
    (hub / "config.json").write_text("{}")
    title, found = column(str(hub), choice(), run=None)

    assert title.startswith("resnet20.cats, layer ")
    assert found.subject.model == str(hub / "model.safetensors")


def test_the_bundled_model_is_offered_beside_another_one_where_there_is_one(
    home_with_run, finished_run, open_page, slow_looks
):
    model = str(home_with_run / "runs" / finished_run.name / "after.safetensors")
    first = choice(layer="features", subject=settings({"dataset": DEMO, "model": model}))
    own = replace(first, subject=replace(first.subject, dataset="folder", root="pictures"))

    assert offered(first, [], layers=[])["model:bundled"] == "the bundled model"
    assert "model:bundled" not in offered(choice(), [], layers=[])
    assert "model:bundled" not in offered(own, [], layers=[])
    at = open_page(
        "mask", dataset=DEMO, model=model, mask_pictures="6", columns='["model:bundled"]'
    )
    assert not at.exception
    assert not at.error
    title, found = column("model:bundled", first, run=None)
    assert (title, found.subject.model) == ("the bundled model", "bundled")


def test_a_column_of_a_run_on_other_pictures_is_none_and_the_page_says_so(
    home_with_run, finished_run, open_page, slow_looks
):
    name = f"model:{finished_run.name}/after"

    at = open_page("mask", dataset="two-squares-mnist-5k", mask_pictures="6", columns=f'["{name}"]')

    assert not at.exception
    assert not at.error
    assert at.multiselect(key="columns").value == []
    (said,) = [c.value for c in at.caption if c.value.startswith("No column beside the first")]
    assert "of other pictures, or not here" in said
    at.run()
    assert not any("No column beside the first" in caption.value for caption in at.caption)


def in_frame(path, frame):
    """Let a run have been made with its pictures in some frame."""
    said = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**said, "frame": frame}))


def test_a_model_that_was_trained_in_another_frame_is_no_column_of_this_sheet(
    home_with_run, finished_run, open_page
):
    run, first = home_with_run / "runs" / finished_run.name, choice(layer="features")
    in_frame(run, "resize 56x56")

    for name in (f"model:{run.name}/after", str(run / "after.safetensors")):
        with pytest.raises(ConfigError, match=r"frame “resize 56x56”.* “resize 28x28”") as caught:
            column(name, first, run=None)
        assert "Choose it as the model on Load" in caught.value.remedy

    at = open_page("mask", dataset=DEMO, mask_pictures="6", columns=f'["model:{run.name}/after"]')
    assert not at.exception
    assert "was trained with pictures in the frame" in at.error[0].value
    assert any("At k = 2 " in text.value for text in at.markdown)  # the first column is there


def test_a_frame_that_changes_nothing_is_no_other_frame(home_with_run, finished_run):
    run, first = home_with_run / "runs" / finished_run.name, choice(layer="features.3")
    in_frame(run, "resize 28")  # as the digits are

    assert column(f"model:{run.name}/after", first, run=None)[1].subject.frame is None
    in_frame(run, None)
    wide = replace(first, subject=replace(first.subject, frame="resize 56x56"))
    with pytest.raises(ConfigError, match=r"frame “resize 28x28”.* in “resize 56x56”"):
        column(f"model:{run.name}/after", wide, run=None)


@pytest.mark.parametrize(
    "name", ["model:no-such-run/after", "/no/such/file.pt", "a" * 300, "explainer:x"]
)
def test_a_column_that_is_not_there_is_refused_with_what_to_do(name, home):
    with pytest.raises(ConfigError, match="There is no model") as caught:
        column(name, choice(), run=None)

    assert "type the path" in caught.value.remedy


def test_the_first_column_is_called_by_what_the_others_differ_in():
    first = choice(layer="features.3")

    assert first_title(first, ["explainer:gradcam"]) == "xgradcam"
    assert first_title(first, ["model:r/after", "layer:conv"]) == "this model, layer features.3"


def test_the_page_sets_columns_side_by_side_and_shows_fewer_pictures_of_a_large_sheet(
    home_with_run, finished_run, open_page
):
    names = f'["explainer:gradcam", "model:{finished_run.name}/after", "/no/such.pt"]'

    at = open_page("mask", dataset=DEMO, mask_pictures="48", columns=names)

    assert not at.exception
    assert any("24 pictures: with 4 columns" in caption.value for caption in at.caption)
    (problem,) = at.error
    assert "There is no model /no/such.pt." in problem.value.replace("\\", "")
    assert any("in the first column" in text.value for text in at.markdown)
