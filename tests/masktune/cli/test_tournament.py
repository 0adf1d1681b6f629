"""``python -m masktune tournament``: the toy takes the place of every dataset."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from masktune.cli.main import main
from masktune.datasets.catalogue import load
from masktune.runs import load as loading
from tests import layouts

ROOT = Path(__file__).resolve().parents[3]

pytestmark = pytest.mark.usefixtures("no_report")


@pytest.fixture(autouse=True)
def toy_in_the_catalogue(toy, monkeypatch):
    monkeypatch.setattr(loading, "load", lambda _, **__: toy)


def tournament(out, *more):
    given = ["--dataset", "biased-mnist-5k", "--epochs", "1", "--device", "cpu"]
    return main(["tournament", *given, "--out", str(out), *more])


@pytest.mark.slow
def test_json_is_one_document_and_the_same_command_gives_it_again(tmp_path, capsys):
    said = []
    for _ in range(2):
        assert tournament(tmp_path, "--methods", "masktune,none", "--ks", "1,2", "--json") == 0
        said.append(json.loads(capsys.readouterr().out))

    assert said[0] == said[1]
    assert [row["method"] for row in said[0]["rows"]] == ["before", "masktune", "none"]
    assert said[0]["finished"]
    assert said[0]["rows"][1]["test"]["turned"]["worst_group"]["n"] == 1
    before, ours, none = (row["test"]["turned"] for row in said[0]["rows"])
    for score in (before["average"], none["average"]):
        assert set(score["against_masktune"]) == {
            "difference", "interval", "direction", "within_noise",
        }  # fmt: skip
    change = before["average"]["mean"] - ours["average"]["mean"]
    assert before["average"]["against_masktune"]["difference"] == pytest.approx(change)
    low, high = before["average"]["against_masktune"]["interval"]  # of one seed, over its pictures
    assert low <= change <= high


def test_people_get_a_line_a_method_the_rule_and_the_page(tmp_path, capsys):
    assert tournament(tmp_path, "--methods", "none") == 0

    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert lines[0].startswith("ERM (the model before); turned: worst group ")
    assert lines[1].startswith("One more epoch, finetuned at 0.01; turned: worst group ")
    assert lines[2].startswith("ERM (the model before) by softmax response; turned: error ")
    assert lines[3].startswith("One more epoch by softmax response; turned: error ")
    assert lines[4].startswith("One more epoch by both models' product; turned: error ")
    assert lines[5].startswith("No method here answers the worst group of “turned” better than")
    assert "Test sets are looked at for what was chosen only." in lines[6]
    assert lines[7] == f"Report: {tmp_path / 'report.html'}"
    assert "1/1 One more epoch, seed 0: train" in said.err
    rates, *_ = said.err.splitlines()
    assert rates.startswith("Learning rates: 0.01 in the finetune of One more epoch")


@pytest.mark.slow
def test_settings_to_try_are_given_one_by_one_or_together(tmp_path, capsys):
    words = ["--methods", "sd", "--try", "penalty=0,1", "--try", "start=erm", "--json"]
    assert tournament(tmp_path, *words) == 0
    apart = json.loads(capsys.readouterr().out)

    words = ["--methods", "sd", "--try", "penalty=0,1 start=erm", "--json"]
    assert tournament(tmp_path, *words) == 0  # of the same runs

    assert json.loads(capsys.readouterr().out) == apart
    assert [one["run"] for one in apart["runs"]] == [
        *("seed-0/none", "seed-0/sd-penalty-0-start-erm", "seed-0/sd-penalty-1-start-erm")
    ]


def of_its_own(out, root):
    """Begin a tournament of three methods in a process of its own."""
    words = ["tournament", "--dataset", "cifar10", "--root", str(root), "--arch", "small-cnn"]
    words += ["--epochs", "4", "--batch-size", "16", "--methods", "masktune,sd,random"]
    return subprocess.Popen(
        [sys.executable, "-m", "masktune", *words, "--device", "cpu", "--out", str(out), "--json"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def without_times(told):
    """Return what a tournament came to, wherever it lies and however long it took."""
    rows = [{**row, "cpu_seconds": None} for row in told["rows"]]
    return {**told, "rows": rows, "cpu_seconds": None, "command": None}


@pytest.mark.slow
def test_a_tournament_that_is_killed_by_force_goes_on_to_the_table_of_one_that_was_not(tmp_path):
    root = layouts.cifar10(tmp_path / "cifar", each=4, form="npz")
    killed = tmp_path / "killed"
    under_way = killed / "seed-0" / "sd" / "status.json"

    with of_its_own(killed, root) as process:
        while process.poll() is None and not under_way.is_file():
            time.sleep(0.005)
        process.kill()  # SIGKILL
    assert process.returncode == -signal.SIGKILL
    left = json.loads((killed / "study.json").read_text())
    assert left["state"] == "running"
    assert [one["state"] for one in left["table"]["runs"]] == ["done", "done", "waiting", "waiting"]
    finished = [killed / one["run"] / "result.json" for one in left["plan"][:2]]
    written = [path.read_bytes() for path in finished]
    assert not (killed / "seed-0" / "sd" / "result.json").exists()

    tables = []
    for out in (killed, tmp_path / "whole"):
        with of_its_own(out, root) as process:
            tables.append(json.loads(process.stdout.read()))
        assert process.returncode == 0

    gone_on, whole = map(without_times, tables)
    assert gone_on["finished"]
    assert gone_on == whole
    assert [path.read_bytes() for path in finished] == written  # they were not done again


@pytest.mark.slow
def test_methods_that_learn_to_abstain_stand_beside_masktune_where_there_are_no_groups(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(loading, "load", load)  # not the toy
    root = layouts.cifar10(tmp_path / "cifar", each=4, form="npz")
    words = ["--dataset", "cifar10", "--root", str(root), "--arch", "resnet20", "--epochs", "1"]
    methods = "masktune,none,selectivenet,deep-gamblers,osp"

    words += ["--methods", methods, "--device", "cpu", "--out", str(tmp_path / "out"), "--json"]
    assert main(["tournament", *words]) == 0

    told = json.loads(capsys.readouterr().out)
    assert told["worst_is"] == {"test": "class"}
    assert told["chosen_by"] == "average"
    scores = {row["method"]: [one["score"] for one in row["abstaining"]] for row in told["rows"]}
    assert scores == {
        "before": ["before"],
        "masktune": ["joint", "after"],
        "none": ["after", "joint"],
        **{name: ["own", "after"] for name in ("selectivenet", "deep-gamblers", "osp")},
    }
    assert "softmax response" in (tmp_path / "out" / "table.tex").read_text()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--methods", "masktune,nosuch"], "There is no method 'nosuch'."),
        (["--methods", "sd", "--ks", "1"], "add masktune to --methods"),
        (["--methods", "sd", "--ks", "one"], "numbers with commas"),
        (["--methods", "sd", "--try", "heads=2,3"], "add a method that does: divdis"),
        (["--methods", "sd", "--try", "penalty"], "names no setting with values"),
        (["--methods", "masktune", "--k", "1"], "Unrecognized arguments: --k 1"),
        ([], "--methods"),
    ],
)
def test_mistakes_are_told_in_words_before_anything_is_made(tmp_path, capsys, more, said):
    assert tournament(tmp_path / "out", *more) == 2

    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
