import json
import os

import pytest
from PIL import Image

from masktune.data import check as checking
from masktune.data.card import Skipped
from masktune.data.check import usable


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("MASKTUNE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def glances(monkeypatch):
    """The files that are decoded, in order of their names."""
    seen = []
    real = checking.glance

    def counted(path):
        seen.append(path.name)
        return real(path)

    monkeypatch.setattr(checking, "glance", counted)
    return seen


def three(tmp_path):
    root = tmp_path / "pictures"
    root.mkdir()
    Image.new("RGB", (6, 4)).save(root / "a.png")
    (root / "b.png").write_text("no picture")
    Image.new("RGB", (8, 8)).save(root / "c.png")
    return root, [root / name for name in ("a.png", "b.png", "c.png", "gone.png")]


def test_usable_files_are_kept_by_position_and_the_others_named(tmp_path, home):
    root, paths = three(tmp_path)

    checked = usable(paths, root=root)

    assert checked.kept == (0, 2)
    assert checked.skipped == (
        Skipped("b.png", "it is not a picture of a kind known here"),
        Skipped("gone.png", "it does not exist"),
    )
    assert checked.sizes == {(4, 6), (8, 8)}  # height first


def test_a_second_check_decodes_only_what_has_changed(tmp_path, home, glances):
    root, paths = three(tmp_path)
    first = usable(paths, root=root)
    glances.clear()

    assert usable(paths, root=root) == first
    assert glances == ["gone.png"]  # it may come back at any time

    Image.new("RGB", (8, 8)).save(root / "b.png")
    status = (root / "c.png").stat()
    os.utime(root / "c.png", ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    glances.clear()

    assert usable(paths, root=root).kept == (0, 1, 2)
    assert sorted(glances) == ["b.png", "c.png", "gone.png"]


def test_a_check_of_some_files_does_not_forget_the_others(tmp_path, home, glances):
    root, paths = three(tmp_path)
    usable(paths, root=root)
    Image.new("RGB", (8, 8)).save(root / "d.png")
    usable([root / "d.png"], root=root)
    glances.clear()

    usable(paths[:3], root=root)

    assert glances == []


@pytest.mark.parametrize(
    "content",
    ["", "not json", "[]", '{"version": 1}', '{"version": 1, "files": {"a.png": [1]}}',
     '{"version": 0, "files": {}}', '{"version": 1, "files": {"a.png": [1, 2, 3, "x", 5]}}',
     "\udcff"],
)  # fmt: skip
def test_a_broken_memory_is_passed_over_and_written_anew(content, tmp_path, home, glances):
    root, paths = three(tmp_path)
    first = usable(paths, root=root)
    (memory,) = (home / "checks").iterdir()
    memory.write_bytes(content.encode(errors="surrogateescape"))
    glances.clear()

    assert usable(paths, root=root) == first
    assert len(glances) == 4
    assert set(json.loads(memory.read_text())["files"]) == {"a.png", "b.png", "c.png"}


def test_verdicts_of_another_version_are_not_believed(tmp_path, home):
    root, paths = three(tmp_path)
    usable(paths, root=root)
    (memory,) = (home / "checks").iterdir()
    content = json.loads(memory.read_text())
    content["files"]["a.png"][2] = "it is out of fashion"
    memory.write_text(json.dumps(content))
    assert usable(paths, root=root).kept == (2,)

    memory.write_text(json.dumps({**content, "version": 0}))

    assert usable(paths, root=root).kept == (0, 2)


def test_a_failure_that_may_pass_is_not_remembered(tmp_path, home, monkeypatch):
    root, paths = three(tmp_path)

    def fails(path):
        raise checking.PictureError(path, "input/output error", lasting=False)

    with monkeypatch.context() as broken:
        broken.setattr(checking, "glance", fails)
        assert usable(paths, root=root).kept == ()

    assert usable(paths, root=root).kept == (0, 2)


def test_the_watcher_hears_each_step_and_the_end(tmp_path, home, monkeypatch):
    monkeypatch.setattr(checking, "STEP", 3)
    root, paths = three(tmp_path)
    steps = []

    usable(paths, root=root, watcher=steps.append)
    usable(paths[:3], root=root, watcher=steps.append)

    assert [(s.stage, s.done, s.total) for s in steps] == [
        ("check", 3, 4),
        ("check", 4, 4),
        ("check", 3, 3),
    ]


def test_a_check_that_is_stopped_keeps_what_it_learnt(tmp_path, home, monkeypatch, glances):
    monkeypatch.setattr(checking, "STEP", 2)
    root, paths = three(tmp_path)

    def stop(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        usable(paths, root=root, watcher=stop)
    glances.clear()
    usable(paths[:3], root=root)

    assert glances == ["c.png"]


def test_a_home_that_cannot_be_written_costs_nothing_but_time(tmp_path, home, full_disk):
    root, paths = three(tmp_path)
    with full_disk(room=10):
        assert usable(paths, root=root).kept == (0, 2)
    assert list((home / "checks").iterdir()) == []

    (home / "checks").rmdir()
    (home / "checks").write_text("in the way")
    assert usable(paths, root=root).kept == (0, 2)


def test_nothing_is_written_beside_the_pictures(tmp_path, home):
    root, paths = three(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in root.iterdir()}

    usable(paths, root=root)

    assert {path: path.stat().st_mtime_ns for path in root.iterdir()} == before


def test_a_file_outside_the_root_is_named_in_full(tmp_path, home):
    root, _ = three(tmp_path)

    (skipped,) = usable([tmp_path / "elsewhere.png"], root=root).skipped

    assert skipped.path == (tmp_path / "elsewhere.png").as_posix()


def test_no_files_are_no_work(tmp_path, home):
    def never(progress):
        raise AssertionError

    checked = usable([], root=tmp_path, watcher=never)

    assert checked.kept == ()
    assert checked.skipped == ()
