import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from masktune import compute
from masktune.checkpoints.settings import arguments as command_of
from masktune.checkpoints.settings import settings
from masktune.cli.main import main
from masktune.cli.terminal import shown
from masktune.models.build import build
from masktune.progress import Progress
from masktune.runs import jobs
from masktune.runs.folder import RunFolder

ROOT = Path(__file__).resolve().parents[3]
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


@pytest.mark.skipif(torch.backends.mps.is_available(), reason="this machine has the device")
def test_a_job_that_fails_before_its_run_begins_says_why(tmp_path, capsys):
    config = settings({"dataset": "biased-mnist-5k", "device": "mps"})
    path = RunFolder.claim(tmp_path / "job", config).path

    assert main([*command_of(config), "--out", str(path), "--queue", "--json"]) == 2

    job = jobs.look(path)
    assert job.state == "failed"
    assert job.problem == "This machine has no device 'mps' that PyTorch can use."
    assert job.remedy == "Choose --device auto, or install the PyTorch build for it."


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
        ([*DEMO, "--model", "bundled", "--freeze", "nowhere"], "no layer 'nowhere'"),
        ([*DEMO, "--epochs", "0"], "The number of epochs is 0"),
        ([*DEMO, "--lr", "-1"], "learning rate is -1"),
        (["run", "--dataset", "nope"], "no dataset 'nope'"),
        (["run", "--dataset", "biased-mnist", "--root", "nowhere"], "nowhere does not exist"),
        ([*DEMO, "--root", "."], "'biased-mnist-5k' is bundled and reads no folder"),
        (["run"], "required: --dataset"),
        ([*DEMO, "--frame", "huge"], "frame 'huge' cannot be read"),
        ([*DEMO, "--normalise", "magic"], "normalisation 'magic' cannot be read"),
        ([*DEMO, "--normalise", "checkpoint"], "no checkpoint file to take the normalisation"),
        ([*DEMO, "--arch", "auto"], "needs an architecture"),
        ([*DEMO, "--arch", "nowhere.at_all:make"], "nowhere"),
        (["report", "nowhere"], "nowhere is not a run folder"),
        (["masks", "nowhere", "--export", "out"], "nowhere is not a run folder"),
        (["weights", "nowhere", "--export", "out", "--layout", "magic"], "no layout 'magic'"),
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


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--queue"], "has no folder"),
        (["--queue", "--out", "nowhere"], "nowhere is not a run folder"),
    ],
)
def test_a_job_that_cannot_wait_is_refused_in_words(words, problem, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "masktune", *DEMO, *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )

    said_problem, said_remedy = done.stderr.splitlines()
    assert done.returncode == 2
    assert problem in said_problem
    assert "--queue" in said_remedy
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("out", [["--out", "run"], ["--out=run"]])
def test_a_job_waits_in_the_folder_it_was_given_however_it_is_spelled(out, tmp_path, monkeypatch):
    waited, ran = [], []
    monkeypatch.setattr("masktune.runs.queue.wait_for_turn", waited.append)
    monkeypatch.setattr("masktune.pipeline.run", lambda config, **_: ran.append(config) or exit(7))

    with pytest.raises(SystemExit, match="7"):
        main([*DEMO, "--queue", *out])

    assert waited == [Path("run")]
    assert ran[0].dataset == "biased-mnist-5k"


def one_class_root(folder):
    from tests.masktune.datasets.test_mnist import idx_root

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
    # A shell that put the tests in the background has told them, and what they start, to ignore it.
    ignored = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    signal.signal(signal.SIGINT, ignored)
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


def test_a_run_says_how_it_saw_its_pictures_and_what_was_left_out(own_run):
    document = json.loads((own_run / "run" / "result.json").read_text())

    assert document["config"]["arch"] == "auto"
    assert document["config"]["normalise"] == "0.5 0.5 0.5 / 0.25 0.25 0.25"
    assert document["config"]["frame"] == "resize 32"
    assert document["data"]["skipped"] == [{"path": "dark/broken.png", "reason": "it is empty"}]


def test_inspect_tells_what_a_file_is_as_one_json_document(own_run, capsys):
    assert main(["inspect", str(own_run / "w.pth"), "--json"]) == 0

    found = json.loads(capsys.readouterr().out)

    assert list(found) == [
        "verdict", "format", "arch", "classes", "channels", "lr", "epoch", "normalisation",
        "class_names", "matched", "missing", "unexpected", "choices", "problem", "remedy",
    ]  # fmt: skip
    assert (found["verdict"], found["arch"], found["classes"]) == ("ok", "resnet20", 2)
    assert (found["epoch"], found["problem"]) == (3, "")


def test_inspect_refuses_with_problem_and_remedy_and_exit_2(tmp_path, capsys):
    (tmp_path / "page.pth").write_text("<!DOCTYPE html><html></html>")

    assert main(["inspect", str(tmp_path / "page.pth"), "--json"]) == 2

    said = capsys.readouterr()
    found = json.loads(said.out)
    assert found["verdict"] == "refused"
    assert said.err.splitlines() == [found["problem"], found["remedy"]]


def test_inspect_for_people_shows_what_was_found_and_says_what_is_wrong_apart(tmp_path, capsys):
    state = build("resnet20", 2).state_dict()
    state["linear.extra"] = state.pop("linear.weight")
    torch.save(state, tmp_path / "odd.pth")

    assert main(["inspect", str(tmp_path / "odd.pth")]) == 2

    said = capsys.readouterr()
    assert "closest        resnet20" in said.out
    assert "linear.weight" in said.out
    assert "linear.extra" in said.out
    assert len(said.err.splitlines()) == 2


def test_the_tuned_weights_go_out_in_the_layout_they_came_in(own_run, tmp_path, capsys):
    path = tmp_path / "tuned.pth"

    assert main(["weights", str(own_run / "run"), "--export", str(path)]) == 0

    before, after = (torch.load(p, weights_only=True) for p in (own_run / "w.pth", path))
    assert after["epoch"] == 3
    assert after["state_dict"].keys() == before["state_dict"].keys()
    assert main(["weights", str(own_run / "run"), "--export", str(path)]) == 2
    assert "exists already" in capsys.readouterr().err


def test_masks_and_predictions_are_exported_with_the_names_of_the_files(own_run, tmp_path, capsys):
    assert main(["masks", str(own_run / "run"), "--export", str(tmp_path / "m"), "--json"]) == 0
    written = json.loads(capsys.readouterr().out)["pictures"]
    assert written == len(list((tmp_path / "m" / "keep").iterdir())) == 24 - 4 - 4

    assert main(["predictions", str(own_run / "run"), "--export", str(tmp_path / "p.csv")]) == 0
    rows = list(csv.DictReader((tmp_path / "p.csv").read_text().splitlines()))
    assert len(rows) == 8
    assert all(Path(row["file"]).is_file() for row in rows)
    assert {row["label"] for row in rows} == {"dark", "bright"}


def test_the_users_files_are_as_they_were(own_run):
    files = [path.name for path in (own_run / "pictures").rglob("*") if path.is_file()]

    assert sorted(files) == sorted([*(f"{n}.png" for n in range(12))] * 2 + ["broken.png"])


TENSORS = """
import resource, sys
import torch
from masktune.__main__ import keep_freed_memory
if "kept" in sys.argv:
    keep_freed_memory()
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(12):
    torch.ones(2**24)  # 64 MB; a few until they find a place that serves all
before = faults()
for _ in range(8):
    torch.ones(2**24)
print(faults() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only the GNU C library can be told to")
def test_a_large_tensor_lies_where_the_last_one_lay():
    # Every page of 4 KiB that the system has to give anew is a fault; 8 x 64 MB are 131,072 pages.
    plain = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}

    def faults(*words, **given):
        command = [sys.executable, "-c", TENSORS, *words]
        return int(subprocess.check_output(command, text=True, cwd=ROOT, env=plain | given))

    assert faults("kept") < 1000
    assert faults() > 5 * faults("kept")
    assert faults("kept", MALLOC_MMAP_THRESHOLD_="131072") > 1000  # settings of the user count


def test_a_training_offers_no_option_of_a_model_that_is_given(capsys):
    with pytest.raises(SystemExit):
        main(["train", "--help"])

    offered = capsys.readouterr().out
    assert "--weights" in offered
    assert "--class-order" not in offered


def test_a_command_that_is_through_ends_what_binds_its_processes(monkeypatch):
    ended = []
    made = SimpleNamespace(end_training=lambda: ended.append("cpu"))
    monkeypatch.setattr(compute, "_made", {"cpu": made})

    assert main(["datasets", "--json"]) == 0

    assert ended == ["cpu"]


ENDING = """
import atexit, sys
from masktune.__main__ import main
atexit.register(lambda: print("shut down"))
sys.exit(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize(("command", "code"), [(["datasets", "--json"], 0), (["run"], 2)])
def test_a_process_of_a_launcher_ends_without_shutting_python_down(command, code):
    # Which is when Gloo's threads abort it: how often depends on what else the machine does.
    def ended(**given):
        words = [sys.executable, "-c", ENDING, *command]
        several = {name: value for name, value in os.environ.items() if name != "WORLD_SIZE"}
        done = subprocess.run(words, cwd=ROOT, env=several | given, capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        return done.stdout, done.stderr

    said, problem = ended()
    assert ended(WORLD_SIZE="2") == (said.removesuffix("shut down\n"), problem)
    assert said.endswith("shut down\n")


def test_an_unknown_option_sends_to_the_help_of_its_command(capsys):
    assert main(["run", "--dataset", "biased-mnist-5k", "--cvar-alpha", "0.1"]) == 2

    assert capsys.readouterr().err.splitlines() == [
        "Unrecognized arguments: --cvar-alpha 0.1.",
        "See python -m masktune run --help for what is possible.",
    ]


@pytest.mark.parametrize(
    "words",
    [
        ["grid", "--dataset", "biased-mnist-5k", "--k", "1"],
        ["grid", "--dataset", "biased-mnist-5k", "--rate", "3"],
        ["reproduce", "biased-mnist-5k", "--seed", "3"],
        ["tournament", "--dataset", "biased-mnist-5k", "--methods", "masktune", "--k", "1"],
        ["advise", "--dataset", "biased-mnist-5k", "--k", "1"],
    ],
    ids=" ".join,
)
def test_one_k_or_seed_is_not_taken_for_the_list_that_a_study_has(capsys, tmp_path, words):
    out = [] if words[0] == "advise" else ["--out", str(tmp_path / "out")]

    assert main([*words, *out]) == 2

    assert "Unrecognized arguments: " in capsys.readouterr().err
