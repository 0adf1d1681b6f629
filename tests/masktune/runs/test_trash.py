"""Deleted runs can be brought back."""

import json
import os
import shutil
import subprocess
import sys

import psutil
import pytest
import torch

from masktune.checkpoints.checkpoint import load_checkpoint
from masktune.errors import RunFolderError
from masktune.runs import jobs, trash
from tests.masktune.runs.test_index import put, put_training
from tests.old_runs import MODEL


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("MASKTUNE_HOME", str(tmp_path))
    return tmp_path


WAYS = ("runs/one", "studies/grid/seed-0/heat-k-1", "reproductions/erm/digits/seed-0")


@pytest.mark.parametrize("way", WAYS)
def test_a_deleted_run_is_brought_back_as_it_was(home, way):
    path = put(home, way)
    was = {each.name: each.read_bytes() for each in path.iterdir()}

    gone = trash.throw(path)
    assert not path.exists()
    assert jobs.every() == []
    assert trash.thrown() == [gone]

    assert trash.bring_back(gone) == path
    assert {each.name: each.read_bytes() for each in path.iterdir()} == was
    assert [job.id for job in jobs.every()] == [gone.id]
    assert trash.thrown() == []
    assert [*(home / "trash").iterdir()] == []


@pytest.fixture
def study(home):
    """Put a study of two runs into the home, of which the second starts from the first's model."""
    first, second = (put(home, f"studies/grid/seed-0/{name}") for name in ("a", "b"))
    (first / "before.safetensors").write_bytes(b"weights")
    config = json.loads((second / "config.json").read_text())
    config["model"] = str(first / "before.safetensors")
    (second / "config.json").write_text(json.dumps(config))
    (first.parents[1] / "study.json").write_text("{}")
    return first.parents[1]


def test_a_deleted_study_is_one_thing_in_the_trash_and_comes_back_as_it_was(home, study):
    was = {each: each.read_bytes() for each in study.rglob("*") if each.is_file()}

    gone = trash.throw(study)

    assert gone.is_study
    assert not study.exists()
    assert trash.thrown() == [gone]
    assert trash.bring_back(gone) == study
    # Its runs have kept their own model: none was given a copy of it.
    assert {each: each.read_bytes() for each in study.rglob("*") if each.is_file()} == was
    assert trash.thrown() == []


def test_a_run_of_a_deleted_study_comes_back_after_its_study(home, study):
    run = trash.throw(study / "seed-0" / "b")
    whole = trash.throw(study)
    assert trash.thrown() == [whole, run]

    with pytest.raises(RunFolderError, match="Bring the study back first"):
        trash.bring_back(run)
    trash.bring_back(whole)
    trash.bring_back(run)

    assert {job.path.name for job in jobs.every()} == {"a", "b"}


def test_a_model_that_an_experiment_is_training_stays(home):
    path = put(home, "reproductions/erm/digits/seed-0")
    working = {"state": "running", "pid": os.getpid(), "started": psutil.Process().create_time()}
    (path / "status.json").write_text(json.dumps(working))

    with pytest.raises(RunFolderError, match="An experiment is at work"):
        trash.throw(path)

    assert path.is_dir()


def test_a_run_that_took_the_place_is_not_overwritten(home):
    gone = trash.throw(put(home, "runs/one"))
    put(home, "runs/one")

    with pytest.raises(RunFolderError, match="There is a run one again"):
        trash.bring_back(gone)

    assert trash.thrown() == [gone]


def test_what_is_deleted_for_good_is_gone_and_others_stay(home):
    first, second = (trash.throw(put(home, f"runs/{name}")) for name in ("one", "two"))

    trash.delete_for_good(second)

    assert trash.thrown() == [first]
    assert not second.path.exists()


def test_what_somebody_else_put_into_the_trash_is_not_listed(home):
    gone = trash.throw(put(home, "runs/one"))
    (home / "trash" / "of mine" / "runs" / "two").mkdir(parents=True)
    (home / "trash" / "notes.txt").write_text("")

    assert trash.thrown() == [gone]


def test_the_model_of_a_deleted_run_goes_to_those_that_start_from_it(home):
    path, other = put(home, "runs/one"), put(home, "runs/two")
    (path / "before.safetensors").write_bytes(b"weights")
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(
        json.dumps({**config, "model": str(path / "before.safetensors")})
    )

    kept = shutil.copytree(other, home / "runs" / "three")
    (kept / "before.safetensors").write_bytes(b"its own")

    trash.throw(path)

    assert (other / "before.safetensors").read_bytes() == b"weights"
    assert (kept / "before.safetensors").read_bytes() == b"its own"


def test_a_model_goes_to_those_that_start_from_it_in_the_order_they_take_its_classes_in(home):
    path, other = put(home, "runs/one"), put(home, "runs/two")
    model = path / "before.safetensors"
    shutil.copy(MODEL, model)
    (other / "result.json").unlink()
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(
        json.dumps({**config, "model": str(model), "class_order": "1,0"})
    )
    images = torch.rand(2, 3, 28, 28)
    asked = load_checkpoint(model).model(images)

    trash.throw(path)

    copy = load_checkpoint(other / "before.safetensors")
    torch.testing.assert_close(copy.model(images), asked[:, [1, 0]])
    assert jobs.opened(jobs.look(other)).class_order is None


def under_way(path, told, **status):
    """Let the process of this test be at work on a run or a study."""
    started = psutil.Process().create_time()
    working = {"state": "queued", "pid": os.getpid(), "started": started, **status}
    (path / told).write_text(json.dumps(working))


def test_the_weights_that_a_run_under_way_trains_on_from_stay(home):
    path, other = put_training(home, "runs/one"), put_training(home, "runs/two")
    for name in ("result.json", "before.safetensors"):
        (other / name).unlink()
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(
        json.dumps({**config, "weights": str(path / "before.safetensors")})
    )
    under_way(other, "status.json")

    with pytest.raises(RunFolderError, match="The run two is under way") as refused:
        trash.throw(path)
    assert "cancel it first" in refused.value.remedy
    assert (path / "before.safetensors").is_file()

    (other / "before.safetensors").write_bytes(b"trained")  # it needs them no more
    assert trash.bring_back(trash.throw(path)) == path
    (other / "before.safetensors").unlink()
    under_way(other, "status.json", state="failed")
    assert trash.throw(path).way == "runs/one"


@pytest.mark.parametrize("name", ["model", "weights"])
def test_a_model_that_the_next_runs_of_a_study_begin_with_stays(name, home):
    path, study = put_training(home, "runs/one"), home / "studies" / "grid"
    study.mkdir(parents=True)
    about = {name: str(path / "before.safetensors")}
    under_way(study, "study.json", about=about)

    with pytest.raises(RunFolderError, match="The study grid is under way"):
        trash.throw(path)
    assert (path / "before.safetensors").is_file()

    under_way(study, "study.json", about=about, state="done")
    assert trash.throw(path).way == "runs/one"


@pytest.mark.parametrize("way", ["elsewhere/one", "runs", "runs/one/inside", "studies/a/b"])
def test_what_is_no_run_of_the_home_is_not_touched(home, way):
    (home / way).mkdir(parents=True)

    with pytest.raises(RunFolderError, match="is not one of the app's runs"):
        trash.throw(home / way)

    assert (home / way).is_dir()


def test_a_run_of_a_study_at_work_stays(home):
    path = put(home, "studies/grid/seed-0/heat-k-1")
    working = {"state": "running", "pid": os.getpid(), "started": psutil.Process().create_time()}
    (home / "studies" / "grid" / "study.json").write_text(json.dumps(working))

    with pytest.raises(RunFolderError, match="belongs to a study that is at work"):
        trash.throw(path)

    assert path.is_dir()


def test_the_home_itself_is_no_run_by_a_way_round(home):
    put(home, "runs/one")

    with pytest.raises(RunFolderError, match="is not one of the app's runs"):
        trash.throw(home / "runs" / "..")

    assert (home / "runs" / "one").is_dir()


@pytest.mark.parametrize(
    ("way", "told"), [("runs/one", "status.json"), ("studies/grid", "study.json")]
)
def test_what_cannot_be_read_can_be_deleted(home, way, told):
    path = put(home, way)
    (path / "result.json").unlink()
    (path / told).write_text("{")

    assert trash.throw(path).way == way

    assert not path.exists()


def test_a_run_at_work_is_cancelled_before_it_is_deleted(home):
    path = put(home, "runs/one")
    (path / "result.json").unlink()
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        started = psutil.Process(process.pid).create_time()
        working = {"state": "running", "pid": process.pid, "started": started}
        (path / "status.json").write_text(json.dumps(working))

        trash.throw(path)

        assert process.wait(timeout=10) != 0
