"""What is loaded is loaded anew when the pictures changed, and only then."""

import pytest

from app.loaded import bundle
from masktune.checkpoints.settings import settings
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
