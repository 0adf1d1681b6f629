import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from filelock import FileLock, Timeout

from masktune.runs import queue as turns
from masktune.runs.queue import alive, line_up, wait_for_turn, waiting_for

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def living():
    """Give processes that live until the test ends them or itself ends."""
    started = []

    def live():
        process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        started.append(process)
        return process

    yield live
    for process in started:
        process.kill()
        process.communicate()


def job(home, name, *, device="auto", **status):
    """Make a run folder; with a status if there is anything to say."""
    folder = home / name
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"device": device}))
    if status:
        (folder / "status.json").write_text(json.dumps(status))
    return folder


def told_by(process):
    return {"pid": process.pid, "started": psutil.Process(process.pid).create_time()}


def status(folder):
    return json.loads((folder / "status.json").read_text())


@pytest.fixture
def at_first_look(monkeypatch):
    """Call something when a job has looked once and must wait; a second wait is a failure."""
    calls = []

    def arrange(action):
        def sleep(_):
            assert not calls, "it waits although nobody is ahead any more"
            calls.append(1)
            action()

        monkeypatch.setattr(turns.time, "sleep", sleep)
        return calls

    return arrange


def test_a_job_with_nobody_ahead_runs_at_once(tmp_path, at_first_look):
    mine = job(tmp_path, "mine")
    waits = at_first_look(lambda: None)

    wait_for_turn(mine)

    assert waits == []
    assert status(mine)["state"] == "running"
    assert (status(mine)["pid"], alive(status(mine))) == (os.getpid(), True)


def test_a_job_waits_for_the_running_one_and_says_so(tmp_path, living, at_first_look):
    other = living()
    job(tmp_path, "other", state="running", **told_by(other))
    mine = job(tmp_path, "mine")
    seen = []

    def look_and_end_the_other():
        seen.append((status(mine)["state"], waiting_for(mine)))
        other.kill()
        other.wait()

    at_first_look(look_and_end_the_other)

    wait_for_turn(mine)

    assert seen == [("queued", 1)]
    assert (status(mine)["state"], waiting_for(mine)) == ("running", 0)


def test_jobs_take_their_turns_in_the_order_they_came(tmp_path, living):
    running, first, second, third = (living() for _ in range(4))
    job(tmp_path, "a", state="running", **told_by(running))  # the command line gives no ticket
    folders = [
        job(tmp_path, name, state="queued", ticket=ticket, **told_by(process))
        for name, ticket, process in (("d", 10, first), ("c", 20, second), ("b", 20, third))
    ]

    # Two of the same moment go by name, so that never both nor neither of them is first.
    assert [waiting_for(folder) for folder in folders] == [1, 3, 2]


def test_later_jobs_are_not_waited_for(tmp_path, living, at_first_look):
    mine = job(tmp_path, "mine")
    line_up(mine, os.getpid)
    later = status(mine)["ticket"] + 1
    job(tmp_path, "later", state="queued", ticket=later, **told_by(living()))
    waits = at_first_look(lambda: None)

    wait_for_turn(mine)

    assert waits == []


def test_a_process_keeps_the_place_it_was_given_when_it_was_started(tmp_path, living):
    mine = job(tmp_path, "mine")
    line_up(mine, os.getpid)
    place = status(mine)["ticket"]
    other = job(tmp_path, "other")
    line_up(other, lambda: living().pid)
    assert waiting_for(other) == 1

    wait_for_turn(mine)  # it came up last, and is first all the same

    assert status(mine)["ticket"] == place
    assert status(mine)["state"] == "running"


def test_a_job_that_is_started_again_goes_to_the_end(tmp_path, living):
    mine = job(tmp_path, "mine", state="failed", ticket=1, pid=os.getpid() + 1, started=0.0)
    waiting = job(tmp_path, "waiting")
    line_up(waiting, lambda: living().pid)

    line_up(mine, lambda: living().pid)

    assert (waiting_for(waiting), waiting_for(mine)) == (0, 1)


def test_the_place_is_written_before_the_process_can_ask_for_its_turn(tmp_path):
    mine = job(tmp_path, "mine")

    def launch():
        with pytest.raises(Timeout):
            FileLock(tmp_path / ".turns.lock").acquire(timeout=0)
        return os.getpid()

    line_up(mine, launch)

    assert status(mine)["state"] == "queued"
    assert alive(status(mine))


@pytest.mark.parametrize(
    ("mine", "other", "waits"),
    [
        ("cpu", "cpu", True),
        ("cpu", "cuda", False),
        ("auto", "auto", True),
        ("auto", "cuda", True),  # which device "auto" is, only PyTorch could tell
        ("cpu", "auto", True),
    ],
)
def test_each_device_has_a_queue_of_its_own(mine, other, waits, tmp_path, living):
    job(tmp_path, "other", device=other, state="running", **told_by(living()))
    folder = job(tmp_path, "mine", device=mine, state="queued", ticket=5, **told_by(living()))

    assert waiting_for(folder) == waits


@pytest.mark.parametrize("state", ["done", "failed", "cancelled", "interrupted"])
def test_jobs_that_have_ended_are_passed_over_even_if_their_process_lives_on(
    state, tmp_path, living
):
    job(tmp_path, "other", state=state, ticket=1, **told_by(living()))
    folder = job(tmp_path, "mine", state="queued", ticket=5, **told_by(living()))

    assert waiting_for(folder) == 0


def test_jobs_that_were_killed_are_passed_over(tmp_path, living):
    killed, unwaited = living(), living()
    folder = job(tmp_path, "mine", state="queued", ticket=5, **told_by(living()))
    job(tmp_path, "killed", state="running", **told_by(killed))
    job(tmp_path, "unwaited", state="queued", ticket=1, **told_by(unwaited))
    assert waiting_for(folder) == 2

    killed.kill()
    killed.wait()
    assert waiting_for(folder) == 1

    unwaited.kill()  # nobody waits for it: it stays in the table of processes
    os.waitid(os.P_PID, unwaited.pid, os.WEXITED | os.WNOWAIT)
    assert psutil.Process(unwaited.pid).status() == psutil.STATUS_ZOMBIE
    assert waiting_for(folder) == 0


def test_a_number_that_now_belongs_to_another_process_is_not_alive():
    mine = {"pid": os.getpid(), "started": psutil.Process().create_time()}

    assert alive(mine)
    assert not alive({**mine, "started": mine["started"] - 100})
    # When the clock is set, start times move a little: that is not another process.
    assert alive({**mine, "started": mine["started"] - 1})


@pytest.mark.parametrize("broken", [{}, {"pid": None, "started": 0}, {"pid": -1, "started": 0}])
def test_a_status_without_a_process_is_not_alive(broken):
    assert not alive(broken)


@pytest.mark.parametrize("text", ["", "{", "[]"])
def test_folders_that_cannot_be_read_do_not_stop_the_queue(text, tmp_path, living):
    folder = job(tmp_path, "mine", state="queued", ticket=5, **told_by(living()))
    (tmp_path / "empty").mkdir()
    (job(tmp_path, "broken") / "status.json").write_text(text)
    (tmp_path / "notes.txt").write_text("")

    assert waiting_for(folder) == 0


def test_jobs_wait_before_pytorch_is_imported():
    code = "import sys, masktune.runs.queue; sys.exit('torch' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0
