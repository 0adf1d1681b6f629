"""Runs of older versions can be read and exported; what no version wrote is said in words."""

import json

import pytest

from masktune.cli.main import main
from tests import old_runs
from tests.old_runs import FOREIGN, spoil


@pytest.fixture
def runs(tmp_path, monkeypatch):
    return old_runs.put_home(tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("run", [old_runs.DEMO, old_runs.OWN])
def test_an_old_run_can_be_reported_and_exported(runs, run, tmp_path, capsys):
    path = str(runs / run)

    assert main(["report", path]) == 0
    assert main(["masks", path, "--export", "masks"]) == 0
    assert main(["predictions", path, "--export", "answers.csv"]) == 0
    assert main(["weights", path, "--export", "tuned.safetensors"]) == 0

    assert "Settings and origin" in (runs / run / "report.html").read_text("utf-8")
    pictures = {old_runs.DEMO: 3500, old_runs.OWN: 16}[run]
    assert len(list((tmp_path / "masks" / "keep").iterdir())) == pictures
    answers = (tmp_path / "answers.csv").read_text("utf-8").splitlines()
    assert len(answers) == 1 + {old_runs.DEMO: 2 * 1000 + 500, old_runs.OWN: 2 * 10}[run]


def test_a_finished_old_run_gives_its_result_at_once(runs, capsys):
    stored = json.loads((runs / old_runs.OWN / "result.json").read_text("utf-8"))
    words = ["--dataset", "folder", "--root", "pictures", "--model", "model.safetensors"]
    words += ["--frame", "resize 28", "--rounds", "2", "--k", "1.5"]

    assert main(["run", *words, "--out", str(runs / old_runs.OWN), "--json"]) == 0

    said = json.loads(capsys.readouterr().out)
    assert {name: said[name] for name in stored if name != "run"} == {
        name: value for name, value in stored.items() if name != "run"
    }


@pytest.mark.parametrize("command", ["report", "masks", "predictions"])
@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN)
def test_a_foreign_result_is_one_problem_on_the_command_line(
    runs, command, content, tmp_path, capsys
):
    spoil(runs / old_runs.OWN, content)
    export = [] if command == "report" else ["--export", str(tmp_path / "out")]

    assert main([command, str(runs / old_runs.OWN), *export]) == 2

    said = capsys.readouterr()
    assert said.out == ""
    problem, remedy = said.err.splitlines()
    assert "result.json" in problem
    assert "another" in remedy
    assert not (tmp_path / "out").exists()


def test_what_a_newer_version_wrote_is_not_called_damaged(runs, capsys):
    spoil(runs / old_runs.OWN, FOREIGN["a newer version"])

    assert main(["report", str(runs / old_runs.OWN)]) == 2

    problem, remedy = capsys.readouterr().err.splitlines()
    assert "newer version: it has format 99" in problem
    assert remedy.startswith("Update MaskTune Studio")


def test_going_on_with_a_run_whose_result_is_foreign_is_refused_in_words(runs, capsys):
    spoil(runs / old_runs.DEMO, FOREIGN["another tool"])
    words = ["--dataset", "biased-mnist-5k", "--model", "bundled", "--strategy", "random"]

    assert main(["run", *words, "--out", str(runs / old_runs.DEMO)]) == 2

    assert "result.json is missing or damaged" in capsys.readouterr().err
