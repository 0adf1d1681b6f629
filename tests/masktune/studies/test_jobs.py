"""Tournaments as jobs: started, found, followed, cancelled, gone on with and deleted."""

import json
import os
import subprocess
import sys
import time

import psutil
import pytest

from masktune.errors import RunFolderError
from masktune.runs import jobs as runs
from masktune.runs import trash
from masktune.runs.folder import RunFolder
from masktune.runs.queue import STUDY, wait_for_turn, waiting_for
from masktune.studies import jobs
from masktune.studies.grid import Grid
from masktune.studies.study import _check
from masktune.studies.tournament.plan import Request, heeded

GIVEN = {"dataset": "biased-mnist-5k", "model": "bundled", "device": "cpu"}


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("MASKTUNE_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def ended():
    """Collect processes that are killed at the end."""
    found = []
    yield found
    for process in found:
        process.kill()
        process.communicate()


@pytest.fixture
def stand_in(monkeypatch, ended):
    """Let a process that does nothing stand in for every tournament; collect their commands."""
    commands, real = [], subprocess.Popen

    def popen(command, **how):
        commands.append(command)
        ended.append(real([sys.executable, "-c", "input()"], stdin=subprocess.PIPE))
        return ended[-1]

    monkeypatch.setattr(runs.subprocess, "Popen", popen)
    return commands


def request(*methods, **changes):
    return Request(given=GIVEN, methods=methods or ("masktune", "none"), **changes)


def told(path):
    return json.loads((path / STUDY).read_text())


def test_a_tournament_waits_in_a_folder_of_its_own_with_its_plan(home, stand_in):
    asked = request(ks=(1.0, 2.0))

    path = jobs.start(asked)

    assert path.parent == home / "studies"
    [command] = stand_in
    assert command[1:] == ["-m", "masktune", *asked.arguments(path), "--queue", "--json"]
    study = jobs.find(path.name)
    assert (study.state, study.done, study.ahead, study.table) == ("queued", 0, 0, {})
    assert [one["run"] for one in study.plan] == [
        "seed-0/masktune-k-1", "seed-0/masktune-k-2", "seed-0/none",
    ]  # fmt: skip
    assert [one.id for one in jobs.history()] == [path.name]
    assert told(path)["about"] == GIVEN


def test_a_tournament_and_runs_wait_in_one_line_and_its_plan_outlives_the_waiting(home, stand_in):
    first = jobs.start(request())
    config = request().configs["none"]
    run = runs.start(config)
    last = jobs.start(request("none"))

    assert len(told(first)["plan"]) == 2
    assert [waiting_for(path) for path in (first, run, last)] == [0, 2, 3]
    assert jobs.find(last.name).ahead == 3
    assert len(told(last)["plan"]) == 1

    ready = {**told(first), "pid": os.getpid(), "started": psutil.Process().create_time()}
    (first / STUDY).write_text(json.dumps(ready))
    wait_for_turn(first)  # nobody is ahead of it

    assert told(first)["state"] == "running"
    assert told(first)["plan"] == ready["plan"]

    (first / STUDY).write_text(json.dumps({**told(first), "step": 1}))
    assert [waiting_for(path) for path in (run, last)] == [1, 2]  # one of its two runs is done
    assert told(first)["about"] == GIVEN


def test_a_grid_is_a_study_like_a_tournament(stand_in, ended):
    other = jobs.start(request("none"))
    asked = Grid(given=GIVEN, ks=(1.0, 2.0))

    path = jobs.start(asked)

    words = ["-m", "masktune", *asked.arguments(path), "--queue", "--json"]
    assert stand_in[1][1:] == words
    study = jobs.find(path.name)
    assert (study.kind, study.state, study.ahead) == ("grid", "queued", 1)
    assert [one["run"] for one in study.plan] == ["seed-0/heat-k-1", "seed-0/heat-k-2"]
    assert {one.id for one in jobs.history()} == {path.name, other.name}
    assert [one.id for one in jobs.history("grid")] == [path.name]

    jobs.pause(path)
    ended[1].wait()
    assert jobs.look(path).state == "interrupted"
    assert len(told(path)["plan"]) == 2

    jobs.resume(path)
    assert stand_in[2][1:] == words
    assert jobs.look(path).state == "queued"


def test_a_study_on_another_device_is_not_waited_for(stand_in):
    jobs.start(Request(given={**GIVEN, "device": "cuda"}, methods=("none",)))

    assert jobs.look(jobs.start(request())).ahead == 0


def test_a_cancelled_tournament_goes_on_with_the_same_command(stand_in, ended):
    path = jobs.start(request("none", rates=(1.0, 3.0)))

    jobs.cancel(path)

    ended[0].wait()
    assert jobs.look(path).state == "cancelled"
    jobs.cancel(path)  # which does no harm

    jobs.resume(path)
    jobs.resume(path)  # it waits already

    assert len(stand_in) == 2
    assert stand_in[0] == stand_in[1]
    assert jobs.look(path).state == "queued"


def test_one_that_was_killed_shows_as_failed(stand_in, ended):
    path = jobs.start(request("none"))

    ended[0].kill()
    ended[0].wait()

    study = jobs.look(path)
    assert study.state == "failed"
    assert "killed or ran out of memory" in study.problem


def test_one_of_the_command_line_is_listed_and_goes_on_there(home):
    path = home / "studies" / "mine"
    folder = RunFolder(path)
    kind = {"kind": "tournament", "about": GIVEN, "plan": [], "table": {}}
    folder.write_json(STUDY, {**kind, "state": "interrupted", "began": 5.0})

    assert [(study.id, study.created) for study in jobs.history()] == [("mine", 5.0)]
    with pytest.raises(RunFolderError, match="by the command that began it"):
        jobs.resume(path)


def test_what_is_left_of_the_time_goes_down_while_a_run_works(home):
    folder = RunFolder(home / "studies" / "mine")
    me = {"pid": os.getpid(), "started": psutil.Process().create_time(), "state": "running"}
    kind = {"kind": "tournament", "about": GIVEN, "table": {}, "stage": "RandMask, seed 0"}
    plan = [{"run": "seed-0/masktune"}, {"run": "seed-0/random"}]
    folder.write_json(
        STUDY, {**kind, **me, "plan": plan, "step": 1, "eta": 500.0, "updated": time.time() - 100}
    )

    study = jobs.find("mine")

    assert 390 < study.seconds_left <= 400
    assert study.under_way == folder.path / "seed-0" / "random"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../studies/real", "nothing", "x" * 5000])
def test_a_name_of_no_study_finds_none(name, home, stand_in):
    jobs.start(request())

    assert jobs.find(name) is None


@pytest.mark.parametrize(
    "told",
    [
        *('{"kind', "[]", '{"about": []}', "[" * 100_000),
        '{"kind": "x", "about": {"dataset": "y"}}',
        '{"kind": "grid", "about": {"dataset": "biased-mnist-5k"}, "began": "x"}',
    ],
)
def test_studies_that_cannot_be_read_are_left_out(home, told):
    (home / "studies" / "odd").mkdir(parents=True)
    (home / "studies" / "odd" / STUDY).write_text(told)

    assert jobs.history() == []


def test_a_study_that_ends_while_it_is_paused_stays_as_it_ended(stand_in, ended, monkeypatch):
    path = jobs.start(Grid(given=GIVEN, ks=(1.0, 2.0)))

    def ends_by_itself(folder, name):
        folder.write_json(name, {**told(path), "state": "done", "step": 2})

    monkeypatch.setattr(jobs, "stop", ends_by_itself)
    jobs.pause(path)

    assert told(path)["state"] == "done"


def test_a_deleted_tournament_is_stopped_and_runs_from_its_model_keep_a_copy(home, stand_in, ended):
    path = jobs.start(request("none"))
    model = path / "seed-0" / "none" / "before.safetensors"
    model.parent.mkdir(parents=True)
    model.write_bytes(b"weights")
    config = request().configs["none"]
    other = RunFolder.claim(home / "runs" / "other", config)
    stored = other.read_json("config.json")
    other.write_json("config.json", {**stored, "model": str(model)})

    gone = trash.throw(path)

    ended[0].wait()
    assert not path.exists()
    assert (other.path / "before.safetensors").read_bytes() == b"weights"
    assert trash.thrown() == [gone]

    trash.bring_back(gone)

    assert jobs.look(path).state == "cancelled"


def test_runs_of_a_tournament_are_found_by_the_way_to_them(home, stand_in):
    path = jobs.start(request("none"))
    run = path / "seed-0" / "none"
    RunFolder.claim(run, request().configs["none"])
    way = f"studies/{path.name}/seed-0/none"

    assert runs.find(way).path == run
    assert runs.find(way).id == way
    for rude in (f"studies/{path.name}", f"studies/../{path.name}/none", f"{way}/x", way[7:]):
        assert runs.find(rude) is None
    assert jobs.finished_runs(jobs.look(path)) == {}

    (run / "result.json").write_text("{}")

    assert {way: job.id for way, job in jobs.finished_runs(jobs.look(path)).items()} == {
        "seed-0/none": way
    }


def test_a_waiting_tournament_is_not_taken_by_another_process(stand_in):
    path = jobs.start(request())

    with pytest.raises(RunFolderError, match="being written by a running process"):
        _check(RunFolder(path), "tournament", GIVEN)


def test_only_options_that_change_something_are_heeded():
    given = {
        "dataset": "biased-mnist-5k",
        "model": "bundled",
        "lr": 0.5,
        "title": "Mine",
        "root": "",
    }

    assert heeded(given, ["none"]) == {k: given[k] for k in ("dataset", "model", "title")}
    assert "arch" not in heeded({**given, "arch": "small-cnn", "weights": "none"}, ["none"])
    assert heeded(given, ["none", "sd"])["lr"] == 0.5  # which trains by the recipe
    assert heeded({**given, "model": ""}, ["dfr"])["lr"] == 0.5  # the model before is trained
