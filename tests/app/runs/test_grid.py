"""The card that queues a grid: what cannot be queued, and how far one is."""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from app.runs.grid import ordered
from masktune.checkpoints.settings import settings
from masktune.runs import jobs
from masktune.runs.queue import STUDY
from masktune.runs.trash import thrown
from masktune.studies.jobs import StudyJob
from tests.app.conftest import DEMO
from tests.app.runs.test_page import said


@pytest.mark.parametrize(
    ("field", "text", "problem"),
    [
        ("seeds", "nan", "The seed is nan."),
        ("seeds", "inf", "The seed is inf."),
        ("seeds", "1.5", "The seed is 1.5."),
        ("seeds", "-1", "The seed is -1."),
        ("seeds", "one", "The seeds are given as 'one'."),
        ("ks", "1,1", "The k 1.0 is named twice."),
        ("ks", "nan", "k is nan."),
        ("ks", "2,99", "k is 99."),
        ("rates", "0", "The rates are 0.0."),
    ],
)
def test_what_cannot_be_queued_is_refused_in_words(field, text, problem, home, open_page):
    at = open_page("runs", dataset=DEMO, model="train")

    at.text_input(key=f"grid_{field}").set_value(text).run()

    assert not at.exception
    assert problem in at.error[0].value
    assert at.button(key="grid_start").disabled


def test_the_form_says_what_all_runs_take_from_load_and_finetune(home, open_page):
    at = open_page("runs", dataset=DEMO, model="train", epochs=1, rounds=2, k=1.5, seed=3)

    # k and seed are its own fields.
    assert "All of them as chosen on Load and Finetune: epochs 1, rounds 2." in said(at)
    assert "as chosen on Load and Finetune" not in said(open_page("runs", dataset=DEMO))


@pytest.fixture
def stopped(home, finished_run):
    """Give a grid of two runs that was stopped as it went on, before it had passed the first."""
    path = home / "studies" / "a-grid"
    shutil.copytree(finished_run, path / "seed-0" / "heat-k-1")
    plan = [
        {"title": f"heat k {k}", "seed": 0, "run": f"seed-0/heat-k-{k}", "strategy": "heat"}
        for k in (1, 2)
    ]
    told = {"kind": "grid", "about": {"dataset": DEMO}, "plan": plan, "table": {}, "step": 0}
    told |= {"state": "interrupted", "updated": time.time()}
    (path / STUDY).write_text(json.dumps(told))
    return path


def test_a_grid_that_went_on_counts_what_it_had_finished_before(stopped, open_page):
    at = open_page("runs")

    assert not at.exception
    assert "Paused: 1 of 2 runs, 2 settings × 1 seed" in said(at)


def test_a_deleted_grid_takes_its_ticks_along_and_brings_them_back(stopped, open_page):
    at = open_page("runs")
    at.button(key="tick_grid_a-grid").click().run()
    assert at.session_state["ticked"] == "studies/a-grid/seed-0/heat-k-1"

    at.button(key="delete_a-grid").click().run()

    assert not at.exception
    assert at.session_state["ticked"] == ""
    assert jobs.every() == []

    next(button for button in at.button if button.label == "Bring back").click().run()

    assert not at.exception
    assert at.session_state["ticked"] == "studies/a-grid/seed-0/heat-k-1"


def test_a_deleted_grid_is_brought_back_by_undo_or_from_the_trash(stopped, open_page):
    at = open_page("runs")
    at.button(key="delete_a-grid").click().run()
    assert "1 study with its runs was deleted." in said(at)
    assert [one.way for one in thrown()] == ["studies/a-grid"]

    next(button for button in at.button if button.label == "Undo").click().run()

    assert not at.exception
    assert "Paused: 1 of 2 runs" in said(at)
    assert [job.id for job in jobs.every()] == ["studies/a-grid/seed-0/heat-k-1"]

    at.button(key="delete_a-grid").click().run()
    next(button for button in at.button if button.label == "Bring back").click().run()

    assert not at.exception
    assert "Paused: 1 of 2 runs" in said(at)
    assert thrown() == []


def test_a_grid_at_work_is_cancelled_as_a_whole_and_can_go_on(stopped, open_page):
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        me = {"pid": process.pid, "started": psutil.Process(process.pid).create_time()}
        told = json.loads((stopped / STUDY).read_text())
        (stopped / STUDY).write_text(json.dumps({**told, **me, "state": "running"}))
        at = open_page("runs")
        assert "Running: 1 of 2 runs" in said(at)

        at.button(key="stop_a-grid").click().run()

        assert process.wait(timeout=10) != 0
    assert not at.exception
    assert "Cancelled: 1 of 2 runs" in said(at)
    assert "This grid was cancelled. What it has finished is kept." in said(at)
    assert "Go on with this grid" in [button.label for button in at.button]


def test_grids_that_can_still_be_told_something_come_first_and_all_are_reached(stopped, open_page):
    told = json.loads((stopped / STUDY).read_text())
    for number in range(4):
        path = stopped.with_name(f"newer-{number}")
        path.mkdir()
        done = told | {"state": "done", "began": time.time() + number}
        (path / STUDY).write_text(json.dumps(done))
    at = open_page("runs")

    assert not at.exception
    assert [one.label for one in at.button].count("Go on with this grid") == 1
    shown = [one.key for one in at.button if one.key.startswith("delete_")]
    assert shown == ["delete_a-grid", "delete_newer-3", "delete_newer-2"]

    at.pagination[0].set_value(2).run()

    shown = [one.key for one in at.button if one.key.startswith("delete_")]
    assert shown == ["delete_newer-1", "delete_newer-0"]


def test_a_grid_at_work_comes_before_those_that_wait_and_these_in_their_turn():
    def job(name, state, ahead=0):
        config = settings({"dataset": DEMO})
        return StudyJob(path=Path(name), state=state, config=config, plan=(), table={}, ahead=ahead)

    newest_first = [
        job("done", "done"),
        job("third", "queued", 2),
        job("second", "queued", 1),
        job("paused", "interrupted"),
        job("failed", "failed"),
        job("first", "running"),
    ]

    names = [one.id for one in ordered(newest_first)]

    assert names == ["first", "second", "third", "paused", "done", "failed"]
