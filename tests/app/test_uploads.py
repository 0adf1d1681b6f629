import hashlib
import io
import json
import os
import time

import pytest

from app.uploads import keep_upload, plain_name, uploads_home
from masktune.data import kept
from masktune.data.check import usable
from tests import layouts

HOUR = 3600


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("MASKTUNE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def uploaded(name, *, hours):
    """Keep an upload that was used last so many hours ago."""
    path = keep_upload(f"{name}.zip", io.BytesIO(name.encode()))
    used = time.time() - hours * HOUR
    os.utime(path.parent, (used, used))
    return path


def test_the_name_that_is_left_of_a_long_one_hides_no_file():
    assert plain_name(f"aaa.{'b' * 79}") == "b" * 79


def test_an_upload_that_nobody_used_for_a_month_is_removed(home):
    old, young = uploaded("old", hours=24 * 31), uploaded("young", hours=24 * 29)

    keep_upload("new.zip", io.BytesIO(b"new"))

    assert not old.parent.exists()
    assert young.exists()


def test_of_too_many_uploads_those_used_longest_ago_go(home, monkeypatch):
    monkeypatch.setattr(kept, "MOST", 3)
    paths = [uploaded(name, hours=hours) for name, hours in (("a", 40), ("b", 30), ("c", 20))]

    keep_upload("new.zip", io.BytesIO(b"new"))

    assert [path.exists() for path in paths] == [False, True, True]


def test_an_upload_that_was_just_used_or_that_a_run_needs_stays(home, monkeypatch):
    monkeypatch.setattr(kept, "MOST", 1)
    needed = uploaded("a", hours=24 * 40)
    (home / "runs" / "one").mkdir(parents=True)
    (home / "runs" / "one" / "config.json").write_text(json.dumps({"root": str(needed)}))
    just = uploaded("b", hours=1)

    keep_upload("new.zip", io.BytesIO(b"new"))

    assert needed.exists()
    assert just.exists()


@pytest.mark.parametrize(
    "file",
    [
        "runs/a-training/config.json",
        "studies/a-grid/study.json",
        "studies/a-grid/seed-0/heat-k-1/config.json",
        "trash/1795000000000000000/runs/one/config.json",
        "trash/1795000000000000000/studies/a-grid/seed-0/heat-k-1/config.json",
        "trash/1795000000000000000/studies/a-grid/study.json",
        "reproductions/mnist-square/study.json",
        "reproductions/mnist-square/seed-0/heat/config.json",
    ],
)
@pytest.mark.parametrize("escaped", [True, False])
def test_an_upload_that_a_study_or_a_run_in_the_trash_needs_stays(
    file, escaped, tmp_path, monkeypatch
):
    home = tmp_path / "Möwe"
    monkeypatch.setenv("MASKTUNE_HOME", str(home))
    needed = uploaded("a", hours=24 * 40)
    (home / file).parent.mkdir(parents=True)
    told = json.dumps({"about": {"model": str(needed)}}, ensure_ascii=escaped)
    (home / file).write_text(told, "utf-8")
    other = uploaded("b", hours=24 * 40)

    keep_upload("new.zip", io.BytesIO(b"new"))

    assert needed.exists()
    assert not other.exists()


def test_an_upload_that_comes_again_counts_as_used(home, monkeypatch):
    monkeypatch.setattr(kept, "MOST", 2)
    first, second = uploaded("a", hours=40), uploaded("b", hours=30)

    keep_upload("a.zip", io.BytesIO(b"a"))
    keep_upload("new.zip", io.BytesIO(b"new"))

    assert first.exists()
    assert not second.exists()
    assert len(list(uploads_home().iterdir())) == 2


def test_verdicts_on_files_are_bounded_too(home, tmp_path, monkeypatch):
    monkeypatch.setattr(kept, "MOST", 2)
    for n in range(4):
        root = tmp_path / str(n)
        usable([layouts.picture(root / "a.png", label=0)], root=root)
        for file in (home / "checks").iterdir():
            os.utime(file, (time.time() - 40 * HOUR, time.time() - 40 * HOUR))

    root = tmp_path / "last"
    usable([layouts.picture(root / "a.png", label=0)], root=root)

    assert len(list((home / "checks").iterdir())) == 2


def test_an_upload_is_hashed_once_however_often_its_page_runs(monkeypatch):
    hashed = []
    really = hashlib.file_digest
    monkeypatch.setattr(hashlib, "file_digest", lambda *given: hashed.append(1) or really(*given))

    first, again = (
        keep_upload("a.zip", io.BytesIO(b"pictures"), upload="one upload") for _ in range(2)
    )
    other = keep_upload("a.zip", io.BytesIO(b"others"), upload="another upload")

    assert first == again != other
    assert len(hashed) == 2
