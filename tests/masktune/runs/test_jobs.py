import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from masktune.checkpoints.settings import arguments, run_config
from masktune.cli.main import parsed
from masktune.config import MaskingConfig
from masktune.progress import Progress
from masktune.runs import jobs, trash
from masktune.runs.folder import RunFolder
from masktune.runs.queue import alive
from masktune.scores.result import RunResult
from tests.app.conftest import demo_config

PATIENCE = 300
"""Seconds that something may take on a busy machine before it counts as stuck."""

LONG = replace(demo_config(), model=None)
"""Trains for twelve epochs: time enough to be stopped in the middle."""


def wait_until(fulfilled):
    end = time.monotonic() + PATIENCE
    while not (value := fulfilled()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)
    return value


@pytest.fixture
def started(home):
    """Start real jobs; whatever still works when the test ends is killed."""
    paths = []

    def start(config, **about):
        paths.append(jobs.start(config, **about))
        return paths[-1]

    yield start
    for path in paths:
        if path.is_dir():
            jobs.cancel(path, grace=0.0)


ALONE = replace(LONG, only_before=True)


def test_trainings_are_listed_apart_from_runs(home):
    for name, config in (("a-run", LONG), ("a-training", ALONE)):
        RunFolder.claim(home / "runs" / name, config)

    assert [job.id for job in jobs.history()] == ["a-run"]
    assert [job.id for job in jobs.alone() if job.config.only_before] == ["a-training"]
    assert jobs.find("a-training").config.only_before


def test_what_a_training_made_is_taken_up_as_a_model_to_go_on_from(home, finished_run):
    path = RunFolder.claim(home / "runs" / "a-training", ALONE).path
    (path / "before.safetensors").write_bytes((finished_run / "before.safetensors").read_bytes())

    taken = jobs.opened(jobs.look(path))

    assert (taken.model, taken.arch) == (str(path / "before.safetensors"), "auto")
    assert taken.only_before is False


@pytest.mark.slow
def test_a_training_is_a_job_like_a_run(started):
    path = started(replace(ALONE, training=replace(ALONE.training, epochs=1)), name="Mine")

    job = wait_until(lambda: (now := jobs.look(path)).state == "done" and now)

    assert job.name == "Mine"
    assert [e["step"] for e in jobs.events(path)] == [*range(1, 56)]
    assert not (path / "after.safetensors").exists()


# Real processes


@pytest.mark.slow
def test_a_job_runs_in_a_process_of_its_own_and_ends_with_a_result(started):
    path = started(demo_config(), name="First", note="k as published")

    seen = jobs.look(path)
    process = psutil.Process(RunFolder(path).status()["pid"])
    assert (seen.state, seen.ahead, seen.name, seen.note) == (
        "queued", 0, "First", "k as published",
    )  # fmt: skip
    assert os.getpgid(process.pid) == process.pid != os.getpgid(0)

    wait_until(lambda: not jobs.look(path).active)

    assert jobs.look(path).state == "done"
    assert RunResult.read(path).test["biased"].after.worst.accuracy > 0.5
    steps = [event["step"] for event in jobs.events(path) if event["stage"] == "finetune"]
    assert steps == list(range(1, 56))  # 3,500 pictures in batches of 64
    wait_until(lambda: not psutil.pid_exists(process.pid))  # waited for: no zombie stays


def test_the_second_job_waits_and_a_cancelled_one_makes_room_and_can_go_on(started):
    first, second = started(LONG), started(LONG)
    assert (jobs.look(second).state, jobs.look(second).ahead) == ("queued", 1)
    wait_until(lambda: jobs.look(first).state == "running")
    assert (jobs.look(second).state, jobs.look(second).ahead) == ("queued", 1)
    status = RunFolder(first).status()

    jobs.cancel(first)

    assert (jobs.look(first).state, alive(status)) == ("cancelled", False)
    wait_until(lambda: jobs.look(second).state == "running")

    jobs.resume(first)

    assert (jobs.look(first).state, jobs.look(first).ahead) == ("queued", 1)
    again = RunFolder(first).status()
    jobs.resume(first)  # pressed twice: no second process
    assert RunFolder(first).status()["pid"] == again["pid"]

    jobs.cancel(first)  # while it waits
    assert (jobs.look(first).state, alive(again)) == ("cancelled", False)

    working = RunFolder(second).status()
    trash.throw(second)  # it is stopped first
    assert (second.exists(), alive(working)) == (False, False)


@pytest.mark.slow
def test_a_killed_worker_shows_as_failed_with_a_remedy_and_goes_on_from_there(started):
    path = started(LONG)
    # After the first epoch there is something to go on from.
    wait_until(lambda: (path / "training.pt").is_file() or not jobs.look(path).active)
    assert jobs.look(path).state == "running"

    psutil.Process(RunFolder(path).status()["pid"]).kill()
    wait_until(lambda: not jobs.look(path).active)

    dead = jobs.look(path)
    assert dead.state == "failed"
    assert "killed or ran out of memory" in dead.problem
    assert "Start it again" in dead.remedy
    assert "train" in jobs.last_lines(path)
    kept = jobs.events(path)

    jobs.resume(path)

    assert jobs.look(path).state == "queued"
    wait_until(lambda: jobs.events(path)[-1]["time"] > kept[-1]["time"])
    first_again = min(e["step"] for e in jobs.events(path) if e["time"] > kept[-1]["time"])
    assert first_again % 55 == 1 < first_again  # whole epochs of 55 steps are not repeated

    jobs.cancel(path, grace=PATIENCE)  # in the middle of its work it says so itself

    assert jobs.look(path).state == "cancelled"
    assert "Cancelled" in jobs.last_lines(path)


# Processes of other kinds


@pytest.fixture
def stand_in(home):
    """Make a run folder whose process is a small program of the test."""
    processes = []

    def make(code, *, own_group, state="running"):
        path = home / "runs" / f"stand-in-{len(processes)}"
        RunFolder.claim(path, demo_config())
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=own_group,
        )
        processes.append(process)
        process.stdout.readline()  # it is up
        told = {"pid": process.pid, "started": psutil.Process(process.pid).create_time()}
        RunFolder(path).write_json("status.json", {"state": state, **told})
        return path, process

    yield make
    for process in processes:
        process.kill()
        process.communicate()


PATIENT = "print('', flush=True); input()"
DEAF = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {PATIENT}"
PARENT = (
    "import subprocess, sys; "
    f"child = subprocess.Popen([sys.executable, '-c', {DEAF!r}], stdin=subprocess.PIPE); "
    "input()"
)


def test_a_job_that_does_not_listen_is_killed(stand_in):
    path, process = stand_in(DEAF, own_group=True)

    jobs.cancel(path, grace=0.2)

    assert process.wait() == -signal.SIGKILL
    assert jobs.look(path).state == "cancelled"


def test_the_processes_of_a_job_go_with_it(stand_in):
    path, process = stand_in(PARENT, own_group=True)
    (child,) = psutil.Process(process.pid).children()
    threading.Thread(target=process.wait).start()  # as for real jobs: nothing of it stays

    jobs.cancel(path, grace=0.2)

    assert process.wait() == -signal.SIGTERM
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


def test_a_run_started_by_hand_is_stopped_without_its_neighbours(stand_in):
    path, process = stand_in(PATIENT, own_group=False)
    assert os.getpgid(process.pid) == os.getpgid(0)  # the group of this test

    jobs.cancel(path, grace=5.0)

    assert process.wait() == -signal.SIGTERM
    assert jobs.look(path).state == "cancelled"


def test_a_number_that_another_process_took_over_is_never_signalled(stand_in):
    path, process = stand_in(PATIENT, own_group=True)
    folder = RunFolder(path)
    folder.write_json("status.json", {**folder.status(), "started": 1000.0})

    jobs.cancel(path)

    assert process.poll() is None
    assert jobs.look(path).state == "failed"


def test_a_finished_run_is_neither_cancelled_nor_started_again(home_with_run, finished_run):
    path = home_with_run / "runs" / finished_run.name
    files = {p.name: p.stat().st_mtime_ns for p in path.iterdir()}

    jobs.cancel(path)
    jobs.resume(path)

    assert jobs.look(path).state == "done"
    assert {p.name: p.stat().st_mtime_ns for p in path.iterdir()} == files


# Folders


def made(home, name, *, config=None, **status):
    path = home / "runs" / name
    RunFolder.claim(path, config or demo_config())
    if status:
        RunFolder(path).write_json("status.json", status)
    return path


def test_a_folder_is_queued_until_its_process_must_have_come_up(home):
    path = made(home, "new")
    folder = RunFolder(path)

    folder.write_json("about.json", {"created": time.time()})
    assert jobs.look(path).state == "queued"

    folder.write_json("about.json", {"created": time.time() - 2 * jobs.STARTING})
    assert jobs.look(path).state == "failed"


@pytest.mark.parametrize(
    "rude",
    [
        "",
        ".",
        "..",
        "../runs/real",
        "/",
        "nothing",
        "a/b",
        "real/../real",
        "x" * 5000,
        "\0",
        "ä\ud800",
    ],
)
def test_an_address_that_names_no_run_finds_none(rude, home):
    made(home, "real")

    assert jobs.find(rude) is None
    assert jobs.find("real").id == "real"


def test_folders_that_cannot_be_read_are_left_out_of_the_history(home):
    made(home, "good")
    for name, text in (("old", '{"dataset": "x"}'), ("torn", '{"data'), ("list", "[1]")):
        (home / "runs" / name).mkdir()
        (home / "runs" / name / "config.json").write_text(text)
    (home / "runs" / "empty").mkdir()
    (home / "runs" / ".turns.lock").write_text("")

    assert [job.id for job in jobs.history()] == ["good"]
    assert jobs.find("old") is None


def test_files_of_a_run_that_did_not_change_are_read_once(home, monkeypatch):
    path = home / "runs" / "a-run"
    folder = RunFolder.claim(path, demo_config())
    folder.write_json("data.json", {"fingerprint": "one"})
    folder.write_json("result.json", {})
    read = []
    plain = RunFolder.read_json
    monkeypatch.setattr(
        RunFolder, "read_json", lambda me, name: read.append(name) or plain(me, name)
    )

    first = [(job.fingerprint, job.config.seed) for job in jobs.history()]
    again = [(job.fingerprint, job.config.seed) for job in jobs.history()]

    assert first == again == [("one", 0)]
    assert sorted(read) == ["config.json", "data.json"]


def test_what_a_run_wrote_a_moment_later_is_seen(home):
    path = home / "runs" / "a-run"
    folder = RunFolder.claim(path, demo_config())
    seen = []
    for step in range(1, 10):  # of one length, and within one tick of the disk's clock
        folder.say("running", progress=Progress(stage="finetune", done=step, total=55))
        seen.append(jobs.look(path).step)

    assert seen == [*range(1, 10)]
    jobs.describe(path, name="renamed", note="")
    assert jobs.look(path).name == "renamed"
    folder.write_json("result.json", {})
    assert jobs.look(path).state == "done"


def test_the_newest_run_comes_first_and_a_name_does_not_change_that(home):
    for age, name in enumerate(("new", "old")):
        path = made(home, name)
        moment = time.time() - 1000 * age
        os.utime(path / "config.json", (moment, moment))

    jobs.describe(home / "runs" / "old", name="My run", note="Keep")

    assert [job.id for job in jobs.history()] == ["new", "old"]
    assert [(j.name, j.note) for j in jobs.history()] == [("", ""), ("My run", "Keep")]


def test_without_a_home_there_is_no_history(home):
    assert jobs.history() == []


def test_what_went_wrong_is_told_as_the_run_told_it(home):
    path = made(home, "run", state="failed", problem="The loss became nan.", remedy="Go slower.")

    failed = jobs.look(path)

    assert (failed.state, failed.problem, failed.remedy) == (
        "failed", "The loss became nan.", "Go slower.",
    )  # fmt: skip


def event(step, *, stage="train", moment=None, **more):
    record = {"time": moment or float(step), "stage": stage, "step": step, "total": 9}
    return json.dumps({**record, "loss": 0.5, "accuracy": 0.5, **more})


def write_events(path, text):
    (path / "events.jsonl").write_text(text)


def test_a_line_being_written_or_torn_by_a_kill_is_left_out(home):
    path = made(home, "run")
    torn = event(2)[:20] + event(9)  # started again, it wrote on in the same line
    write_events(path, f"{event(1)}\n{torn}\n[1]\n{event(3)}\n{event(4)[:20]}")

    assert [e["step"] for e in jobs.events(path)] == [1, 3]


def test_a_run_that_was_started_again_is_told_without_what_it_did_over(home):
    path = made(home, "run")
    first_try = [event(1), event(2), event(3), event(4)]
    second_try = [event(3, loss=0.25), event(1, stage="finetune"), event(2, stage="finetune")]
    third_try = [event(1, stage="finetune", loss=0.125)]

    def told(lines):
        write_events(path, "".join(f"{line}\n" for line in lines))
        return [(e["stage"], e["step"], e["loss"]) for e in jobs.events(path)]

    kept = [("train", 1, 0.5), ("train", 2, 0.5), ("train", 3, 0.25)]
    assert told([*first_try, second_try[0]]) == kept
    assert told([*first_try, *second_try, *third_try]) == [*kept, ("finetune", 1, 0.125)]


def test_of_a_long_training_only_the_newest_steps_are_read(home):
    path = made(home, "run")
    write_events(path, "".join(f"{event(step)}\n" for step in range(1, 2001)))

    newest = jobs.events(path, most=10)

    assert [e["step"] for e in newest] == list(range(1991, 2001))
    assert [e["step"] for e in jobs.events(path)] == list(range(1, 2001))


def test_a_run_without_steps_or_log_has_none(home):
    path = made(home, "run")

    assert jobs.events(path) == []
    assert jobs.last_lines(path) == ""


def test_the_last_lines_of_a_log_are_its_end(home):
    path = made(home, "run")
    (path / "log.txt").write_bytes(
        b"\xff broken letter\n" + b"".join(b"%d\n" % n for n in range(9))
    )

    assert jobs.last_lines(path, count=2) == "7\n8\n"
    assert "broken letter" in jobs.last_lines(path)


def test_what_a_run_started_from_can_be_looked_at_again(home):
    bundled = jobs.look(made(home, "bundled"))
    trains = made(home, "trains", config=LONG)

    assert jobs.opened(bundled) == bundled.config
    older = replace(bundled, config=replace(bundled.config, recipe="of another version"))
    assert jobs.opened(older) == bundled.config
    (bundled.path / "before.safetensors").write_bytes(b"")
    assert jobs.opened(bundled) == bundled.config  # the bundled model is always there
    assert jobs.opened(jobs.look(trains)).model is None  # there is no model yet
    (trains / "before.safetensors").write_bytes(b"")
    assert jobs.opened(jobs.look(trains)).model == str(trains / "before.safetensors")


def test_a_run_opens_with_its_own_copy_where_the_file_it_started_from_is_gone(home, tmp_path):
    given = tmp_path / "given.safetensors"
    given.write_bytes(b"")
    swapped = demo_config(model=str(given), arch="auto", class_order="1,0")
    run = made(home, "given", config=swapped)
    (run / "before.safetensors").write_bytes(b"")

    assert jobs.opened(jobs.look(run)) == swapped
    given.unlink()
    own = jobs.opened(jobs.look(run))
    assert own.model == str(run / "before.safetensors")
    assert own.class_order is None  # its own copy says the order itself


@pytest.mark.parametrize(
    "config",
    [
        demo_config(),
        LONG,
        demo_config(masking=MaskingConfig(k=0.07, statistics="all", rounds=3, accumulate=False)),
        demo_config(masking=MaskingConfig(strategy="topk", top_fraction=0.123, layer="features")),
        demo_config(finetune_lr=1e-05, seed=4, root=str(Path("some") / "folder"), device="cpu"),
    ],
)
def test_the_process_of_a_job_gets_exactly_its_settings(config):
    assert run_config(parsed(arguments(config))) == config
