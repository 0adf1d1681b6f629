"""A run's pictures may change after it; its numbers must not be shown beside others."""

import shutil

import pytest

from masktune.cli.main import main
from masktune.training import masktune as rounds
from tests import layouts

GIVEN = ["--arch", "small-cnn", "--frame", "resize 28", "--device", "cpu"]
OPTIONS = [*GIVEN, "--epochs", "1"]


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """Make a finished run on folders of two ants and two bees a part."""
    home = tmp_path_factory.mktemp("first")
    for part in ("train", "val", "test"):
        for label, name in enumerate(("ant", "bee")):
            for number in range(2):
                path = home / "data" / part / name / f"{number}.png"
                layouts.picture(path, label=8 * label, size=(20, 20))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MASKTUNE_HOME", str(home / "home"))
        patch.chdir(home)
        assert main(["run", "--dataset", "folder", "--root", "data", *OPTIONS, "--out", "run"]) == 0
    return home


@pytest.fixture
def place(first, tmp_path, monkeypatch):
    """Give a copy of the run and its pictures, as the folder one is in."""
    place = shutil.copytree(first, tmp_path / "place")
    monkeypatch.setenv("MASKTUNE_HOME", str(place / "home"))
    monkeypatch.chdir(place)
    return place


def refused(capsys, *arguments: str) -> str:
    """Give the one problem that a command ends with."""
    capsys.readouterr()
    assert main(list(arguments)) == 2
    said = capsys.readouterr()
    assert said.out == ""
    problem, remedy = said.err.splitlines()[-2:]
    assert remedy.startswith("Put them back as they were")
    return problem


def test_a_run_whose_pictures_are_as_they_were_can_be_read(place):
    assert main(["report", "run"]) == 0
    assert main(["masks", "run", "--export", "masks"]) == 0
    assert main(["predictions", "run", "--export", "answers.csv"]) == 0


@pytest.mark.parametrize("command", ["report", "masks", "predictions"])
@pytest.mark.parametrize("gone", ["train/ant/0.png", "val/bee/1.png", "test", "train/bee", ""])
def test_a_run_whose_pictures_were_taken_away_says_so(place, capsys, command, gone):
    path = place / "data" / gone
    path.unlink() if path.is_file() else shutil.rmtree(path)
    export = [] if command == "report" else ["--export", "out"]

    problem = refused(capsys, command, "run", *export)

    assert "no longer those of this run" in problem or "cannot be read again" in problem
    assert not (place / "out").exists()


def test_a_run_to_whose_pictures_one_was_added_says_so(place, capsys):
    layouts.picture(place / "data" / "train" / "ant" / "2.png", label=0, size=(20, 20))

    assert "no longer those of this run" in refused(capsys, "report", "run")


def test_weights_are_given_without_any_picture(place):
    shutil.rmtree(place / "data")

    assert main(["weights", "run", "--export", "tuned.safetensors"]) == 0
    assert (place / "tuned.safetensors").stat().st_size > 0


def test_heat_that_was_damaged_is_named(place, capsys):
    (place / "run" / "heat.safetensors").write_bytes(b"nonsense" * 9)

    assert main(["masks", "run", "--export", "masks"]) == 2
    assert "heat.safetensors of run 'run' is missing or damaged." in capsys.readouterr().err


def interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_an_interrupted_run_does_not_go_on_with_other_pictures(place, capsys, monkeypatch):
    command = ["run", "--dataset", "folder", "--root", "data", *OPTIONS, "--out", "other"]
    with monkeypatch.context() as patch:
        patch.setattr(rounds, "finetune", interrupt)
        assert main(command) == 130
    one = place / "data" / "train" / "ant" / "0.png"
    content = one.read_bytes()
    one.unlink()

    assert "no longer those this run began with" in refused(capsys, *command)

    one.write_bytes(content)
    assert main(command) == 0


def test_a_run_that_a_lost_picture_stopped_goes_on_without_it(place, monkeypatch):
    # A given model follows from no picture here, so nothing is lost by taking others.
    command = ["run", "--dataset", "folder", "--root", "data", *GIVEN, "--out", "other"]
    command += ["--model", "run/before.safetensors"]
    with monkeypatch.context() as patch:
        patch.setattr(rounds, "explain", interrupt)
        assert main(command) == 130
    (place / "data" / "train" / "ant" / "0.png").unlink()

    assert main(command) == 0
