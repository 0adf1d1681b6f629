import json
import os
import subprocess
import sys
from dataclasses import replace

import psutil
import pytest

from masktune.config import RunConfig, TrainConfig
from masktune.errors import Cancelled, RunFolderError
from masktune.progress import Progress
from masktune.runs.folder import RunFolder, new_run_path


def config(**changes):
    values = {
        "dataset": "biased-mnist-5k",
        "recipe": "biased-mnist-5k",
        "arch": "small-cnn",
        "training": TrainConfig(epochs=1, batch_size=64, lr=0.01),
    }
    return RunConfig(**{**values, **changes})


@pytest.fixture
def folder(tmp_path):
    return RunFolder.claim(tmp_path / "run", config())


def test_a_new_folder_says_what_it_will_hold(folder):
    assert RunConfig.from_json(folder.read_json("config.json")) == config()


def test_new_runs_get_folders_of_their_own(monkeypatch, tmp_path):
    monkeypatch.setenv("MASKTUNE_HOME", str(tmp_path))

    first, second = new_run_path(config()), new_run_path(config())

    assert first != second
    assert first.parent == tmp_path / "runs"
    assert "-biased-mnist-5k-" in first.name


def test_an_unfinished_run_of_the_same_settings_is_taken_up(folder):
    folder.write("before.safetensors", b"weights")

    again = RunFolder.claim(folder.path, config())

    assert again.has("before.safetensors")
    assert not again.finished()


def test_a_run_that_an_earlier_version_left_unfinished_is_taken_up(folder):
    stored = folder.read_json("config.json")
    del stored["validation"]  # a setting that came later; its usual value does what was done
    folder.write_json("config.json", stored)

    assert RunFolder.claim(folder.path, config()).path == folder.path
    with pytest.raises(RunFolderError, match=r"other settings \(validation\)"):
        RunFolder.claim(folder.path, config(validation="test"))


def test_a_run_from_before_its_recipe_augmented_pictures_says_how_to_go_on(folder):
    stored = folder.read_json("config.json")
    del stored["training"]["augment"], stored["exceptions"]
    folder.write_json("config.json", stored)
    augmented = replace(config().training, augment="flip")

    with pytest.raises(RunFolderError, match=r"other settings \(training\)") as caught:
        RunFolder.claim(folder.path, config(training=augmented))

    assert "add --augment none" in caught.value.remedy
    assert RunFolder.claim(folder.path, config()).path == folder.path
    with pytest.raises(RunFolderError) as caught:
        RunFolder.claim(folder.path, config(training=augmented, seed=1))
    assert "--augment" not in caught.value.remedy


def test_a_run_whose_pictures_are_called_otherwise_by_now_is_taken_up_by_the_new_name(folder):
    stored = folder.read_json("config.json")
    del stored["title"]  # as earlier versions left it
    folder.write_json("config.json", stored)
    folder.write("before.safetensors", b"weights")

    again = RunFolder.claim(folder.path, config(title="Birds of mine"))

    assert again.has("before.safetensors")
    assert again.read_json("config.json")["title"] == "Birds of mine"


def test_a_folder_with_other_settings_is_left_as_it_is(folder):
    folder.write_json("result.json", {"kept": True})

    with pytest.raises(RunFolderError, match=r"other settings \(seed\)"):
        RunFolder.claim(folder.path, config(seed=1))

    assert folder.read_json("result.json") == {"kept": True}


def fail(folder):
    with pytest.raises(RunFolderError), folder.recording():
        raise RunFolderError("A mistake.", "Put it right.")


def test_a_folder_whose_run_failed_at_once_is_free_for_the_corrected_command(folder):
    fail(folder)

    again = RunFolder.claim(folder.path, config(seed=1))

    assert again.read_json("config.json")["seed"] == 1
    assert [path.name for path in folder.path.iterdir()] == ["config.json"]


def test_a_failed_run_that_made_a_model_is_left_as_it_is(folder):
    folder.write("before.safetensors", b"weights")
    fail(folder)

    with pytest.raises(RunFolderError, match=r"other settings \(seed\)"):
        RunFolder.claim(folder.path, config(seed=1))

    assert folder.read_json("config.json")["seed"] == 0


def test_an_interrupted_run_is_not_given_to_other_settings(folder):
    with pytest.raises(KeyboardInterrupt), folder.recording():
        raise KeyboardInterrupt

    with pytest.raises(RunFolderError, match=r"other settings \(seed\)"):
        RunFolder.claim(folder.path, config(seed=1))


def test_a_folder_of_somebody_elses_files_is_not_touched(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")

    with pytest.raises(RunFolderError, match="not a run folder"):
        RunFolder.claim(tmp_path, config())

    assert [p.name for p in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_folder_below_a_file_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(RunFolderError, match="cannot be written") as caught:
        RunFolder.claim(tmp_path / "file" / "run", config())

    assert "--out" in caught.value.remedy


def test_on_a_full_disk_the_file_keeps_what_it_held_before(folder, full_disk):
    folder.write_json("result.json", {"old": 1})

    with full_disk(), pytest.raises(RunFolderError, match="cannot be written") as caught:
        folder.write("result.json", b"x" * 100_000)

    assert "Free some space" in caught.value.remedy
    assert folder.read_json("result.json") == {"old": 1}
    assert not [p for p in folder.path.iterdir() if p.name.endswith(".tmp")]


def test_a_folder_that_another_process_is_writing_is_refused(folder):
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        started = psutil.Process(other.pid).create_time()
        status = {"state": "running", "pid": other.pid, "started": started}
        folder.write_json("status.json", status)

        with pytest.raises(RunFolderError, match=f"running process \\({other.pid}\\)"):
            RunFolder.claim(folder.path, config())

        # The same number, but of a process that was started at another time.
        folder.write_json("status.json", {**status, "started": started - 100})
        assert RunFolder.claim(folder.path, config()).has("config.json")
    finally:
        other.communicate(b"\n")


def step(done, **changes):
    usual = {"stage": "train", "done": done, "total": 4, "loss": 0.5, "accuracy": 0.75}
    return Progress(**{**usual, **changes})


def test_every_training_step_is_an_event(folder):
    for done in (1, 2):
        folder.watch(step(done))
    folder.watch(step(1, stage="predict", loss=None, accuracy=None))

    lines = (folder.path / "events.jsonl").read_text().splitlines()

    assert [json.loads(line)["step"] for line in lines] == [1, 2]
    assert json.loads(lines[0])["loss"] == 0.5


def test_the_status_says_where_the_run_stands_and_who_writes_it(folder):
    folder.watch(step(4))

    status = folder.status()

    told = [status[name] for name in ("state", "stage", "step", "total")]
    assert told == ["running", "train", 4, 4]
    assert (status["pid"], status["started"]) == (os.getpid(), psutil.Process().create_time())


@pytest.mark.parametrize(
    ("ends_with", "state"),
    [
        (None, "done"),
        (KeyboardInterrupt(), "interrupted"),
        (Cancelled(), "cancelled"),
        (RunFolderError("No.", "Yes."), "failed"),
        (ZeroDivisionError("bug"), "failed"),
    ],
)
def test_however_a_run_ends_its_status_says_so(folder, ends_with, state):
    def work():
        with folder.recording():
            if ends_with is not None:
                raise ends_with

    if ends_with is None:
        work()
    else:
        with pytest.raises(type(ends_with)):
            work()

    assert folder.status()["state"] == state


def test_a_failure_keeps_its_problem_its_remedy_and_a_bug_its_traceback(folder):
    with pytest.raises(RunFolderError), folder.recording():
        raise RunFolderError("No.", "Yes.")
    assert (folder.status()["problem"], folder.status()["remedy"]) == ("No.", "Yes.")

    with pytest.raises(ZeroDivisionError), folder.recording():
        _ = 1 / 0
    assert "ZeroDivisionError" in (folder.path / "log.txt").read_text()


def test_all_but_one_process_of_a_distributed_run_write_nothing(tmp_path):
    folder = RunFolder(tmp_path / "run", writes=False)

    folder.write("a", b"b")
    folder.log("c")
    folder.watch(step(1))

    assert not folder.path.exists()
