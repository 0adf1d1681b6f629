"""What is loaded is loaded anew when the pictures changed, and only then."""

import pytest
import torch

from app.loaded import answers, bundle, has_answers, some_heat
from masktune.checkpoints.settings import settings
from masktune.models.build import build
from tests import layouts


@pytest.fixture
def own(tmp_path, monkeypatch):
    monkeypatch.setenv("MASKTUNE_HOME", str(tmp_path / "home"))
    for name in ("cat", "dog"):
        for n in range(5):
            layouts.picture(tmp_path / "mine" / name / f"{n}.png", label=n)
    return tmp_path / "mine"


def test_a_picture_added_inside_a_class_folder_is_seen(own):
    subject = settings({"dataset": "folder", "root": str(own)})
    before = bundle(subject)
    layouts.picture(own / "cat" / "new.png", label=0)

    after = bundle(subject)

    def count(data):
        return len(data.train) + len(data.validation) + len(data.tests["test"])

    assert (count(before), count(after)) == (10, 11)


def test_pictures_that_did_not_change_are_not_read_again(own):
    subject = settings({"dataset": "folder", "root": str(own)})

    assert bundle(subject) is bundle(subject)


def test_pictures_that_changed_are_asked_about_and_looked_at_anew(own, tmp_path):
    torch.save(build("small-cnn", 2).state_dict(), tmp_path / "model.pt")
    model = {"model": str(tmp_path / "model.pt"), "arch": "small-cnn", "frame": "resize 28"}
    subject = settings({"dataset": "folder", "root": str(own), **model})

    def asked():
        heat, _ = some_heat(subject, (0,), method="xgradcam", layer="features")
        return answers(subject, "train"), heat

    said, heat = asked()
    assert all(one is other for one, other in zip(asked(), (said, heat), strict=True))
    for number in range(10):
        layouts.picture(own / "cat" / f"new{number}.png", label=0)

    assert not has_answers(subject, "train")
    said_now, heat_now = asked()

    assert len(said_now.labels) > len(said.labels)
    assert heat_now is not heat
