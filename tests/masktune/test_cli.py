import io
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from masktune.cli import main
from masktune.progress import Progress
from masktune.terminal import shown

ROOT = Path(__file__).resolve().parents[2]
DEMO = ["run", "--dataset", "biased-mnist-5k"]


def test_datasets_lists_the_bundled_ones_first_as_clean_json(capsys):
    assert main(["datasets", "--json"]) == 0

    cards = json.loads(capsys.readouterr().out)["datasets"]

    assert [c["key"] for c in cards[:3]] == [
        "biased-mnist-5k", "two-squares-mnist-5k", "cows-and-camels",
    ]  # fmt: skip
    assert all(c["layout"] for c in cards if not c["bundled"])


def test_datasets_for_people_names_the_folder_a_dataset_needs(capsys):
    assert main(["datasets"]) == 0

    assert "MNIST/raw" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([*DEMO, "--k", "nan"], "k is nan"),
        ([*DEMO, "--k", "two"], "invalid float value: 'two'"),
        ([*DEMO, "--rounds", "0"], "at least one round, not 0"),
        ([*DEMO, "--strategy", "magic"], "no strategy 'magic'"),
        ([*DEMO, "--method", "magic"], "no method 'magic'"),
        ([*DEMO, "--device", "tpu"], "no device 'tpu'"),
        ([*DEMO, "--arch", "magicnet"], "no architecture 'magicnet'"),
        ([*DEMO, "--recipe", "magic"], "no recipe 'magic'"),
        ([*DEMO, "--model", "nowhere.pt"], "no checkpoint nowhere.pt"),
        ([*DEMO, "--model", "bundled", "--layer", "nowhere"], "no layer 'nowhere'"),
        ([*DEMO, "--epochs", "0"], "epochs is 0"),
        ([*DEMO, "--lr", "-1"], "learning rate is -1"),
        (["run", "--dataset", "nope"], "no dataset 'nope'"),
        (["run", "--dataset", "biased-mnist", "--root", "nowhere"], "nowhere does not exist"),
        (["run"], "required: --dataset"),
        (["report", "nowhere"], "nowhere is not a run folder"),
        (["magic"], "magic"),
        ([], "required"),
    ],
)
def test_a_mistake_is_one_problem_and_one_remedy_and_exit_2(
    arguments, problem, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    if arguments[:1] == ["run"]:
        arguments = [*arguments, "--out", "out"]

    code = main(arguments)

    said = capsys.readouterr()
    *progress, said_problem, said_remedy = said.err.strip().splitlines()
    assert code == 2
    assert said.out == ""
    assert problem in said_problem
    assert said_remedy
    assert all(line.startswith("load ") for line in progress)


def one_class_root(folder):
    from tests.masktune.data.test_mnist import idx_root

    return idx_root(folder, [0, 1, 2, 3, 4] * 20, [0, 1, 2, 3, 4])


def test_data_of_one_class_only_is_refused(tmp_path, capsys):
    root = one_class_root(tmp_path / "data")

    where = ["--root", str(root), "--out", str(tmp_path / "r")]
    code = main(["run", "--dataset", "biased-mnist", *where])

    assert code == 2
    assert "has no picture of '5–9'" in capsys.readouterr().err


def test_an_out_folder_that_cannot_be_written_is_refused(tmp_path, capsys):
    (tmp_path / "file").write_text("")

    code = main([*DEMO, "--out", str(tmp_path / "file" / "run")])

    assert code == 2
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.slow
def test_a_run_from_the_bundled_model_prints_its_result_and_nothing_else(tmp_path, capsys):
    code = main([*DEMO, "--model", "bundled", "--out", str(tmp_path / "r"), "--json"])

    said = capsys.readouterr()
    document = json.loads(said.out)
    assert code == 0
    assert document["run"] == str(tmp_path / "r")
    assert document == json.loads((tmp_path / "r" / "result.json").read_text())
    assert "finetune" in said.err  # progress in plain lines, on the other stream

    assert main(["report", str(tmp_path / "r")]) == 0
    assert (tmp_path / "r" / "report.html").stat().st_size > 10_000


@pytest.mark.slow
def test_ctrl_c_exits_130_marks_the_run_and_the_same_command_goes_on(tmp_path):
    settings = [*DEMO, "--epochs", "40", "--out", str(tmp_path / "r")]
    command = [sys.executable, "-m", "masktune", *settings]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    events = tmp_path / "r" / "events.jsonl"
    for _ in range(1200):  # until it trains
        if events.exists() or process.poll() is not None:
            break
        time.sleep(0.1)

    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=120)[1]

    assert process.returncode == 130
    assert "Traceback" not in said
    assert "The same command goes on" in said
    assert json.loads((tmp_path / "r" / "status.json").read_text())["state"] == "interrupted"


def test_a_terminal_gets_a_bar_with_the_time_left():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream = Terminal()

    with shown(stream) as watch:
        for done in (1, 2, 3):
            watch(Progress(stage="train", done=done, total=4, loss=0.25))

    text = stream.getvalue()
    assert "train" in text
    assert "3/4" in text
    assert "loss 0.250" in text


def test_a_log_file_gets_a_few_plain_lines():
    stream = io.StringIO()

    with shown(stream) as watch:
        for done in range(1, 101):
            watch(Progress(stage="heat", done=done, total=100))

    lines = stream.getvalue().splitlines()
    assert lines[0] == "heat 1/100"
    assert lines[-1].startswith("heat 100/100") or lines[-1].startswith("heat 76/100")
    assert len(lines) <= 6
