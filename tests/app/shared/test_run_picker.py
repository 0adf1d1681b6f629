"""What a page shows while there is no finished run: the ways to one, and how far it is."""

import json
import os
import shutil
from dataclasses import replace

import psutil
import pytest

from app.opened import result_of
from app.shared.run_picker import standing
from app.shared.run_rows import demo_takes
from masktune.runs import jobs
from masktune.show.wording import duration
from tests.app.abstain.test_page import body
from tests.app.conftest import DEMO
from tests.app.shared.test_run_rows import job


def test_a_run_that_waits_says_how_many_go_first(tmp_path):
    queued = job("a", tmp_path, state="queued")

    assert standing(queued) == "This run is about to start"
    assert standing(replace(queued, ahead=1)) == "This run waits: 1 run is ahead"
    assert standing(replace(queued, ahead=3)) == "This run waits: 3 runs are ahead"


def unfinished(home, finished_run, **status) -> str:
    folder = home / "runs" / "20261116-120000-unfinished"
    folder.mkdir(parents=True)
    shutil.copy(finished_run / "config.json", folder)
    (folder / "status.json").write_text(json.dumps(status))
    return folder.name


def test_without_a_run_the_page_says_what_is_missing_and_leads_there(home, open_page):
    at = open_page("abstain", dataset=DEMO)

    assert not at.exception
    assert at.title[0].value == "Abstain"
    assert "No finished run yet" in body(at)
    assert [button.label for button in at.button] == ["Finetune for one epoch"]


def test_without_pictures_the_way_leads_to_load(home, open_page):
    at = open_page("abstain")

    assert [button.label for button in at.button] == ["Choose pictures and model"]


def test_a_finished_run_can_be_opened_from_the_empty_page(home_with_run, finished_run, open_page):
    at = open_page("abstain", dataset=DEMO)
    at.selectbox[0].select(finished_run.name).run()

    assert not at.exception
    assert at.session_state["run"] == finished_run.name
    assert "Operating point" in [header.value for header in at.header]


def test_a_run_that_is_gone_is_explained(home, open_page):
    at = open_page("abstain", dataset=DEMO, run="no-such-run")

    assert not at.exception
    assert "no run" in at.error[0].value
    assert "No finished run yet" in body(at)


def test_a_run_at_work_shows_how_far_it_is(home, finished_run, open_page):
    run = unfinished(
        home,
        finished_run,
        state="running",
        pid=os.getpid(),
        started=psutil.Process().create_time(),
        stage="finetune",
        step=3,
        total=4,
        eta=4.2,
    )

    at = open_page("abstain", dataset=DEMO, run=run)

    assert not at.exception
    assert "still at work: finetune, 4.2 s left" in body(at)
    assert at.get("progress")[0].value == 75
    assert not at.slider


def test_a_run_that_failed_says_why(home, finished_run, open_page):
    run = unfinished(
        home, finished_run, state="failed", problem="The disk is full.", remedy="Make room."
    )

    at = open_page("abstain", dataset=DEMO, run=run)

    assert not at.exception
    assert "The disk is full" in at.error[0].value
    assert "Make room" in at.error[0].value


@pytest.mark.parametrize("content", [None, b"not a zip file"])
def test_a_run_with_damaged_files_is_explained(home, finished_run, open_page, content):
    folder = home / "runs" / f"20261116-130000-damaged-{content is None}"
    shutil.copytree(finished_run, folder)
    (folder / "predictions.npz").unlink()
    if content is not None:
        (folder / "predictions.npz").write_bytes(content)

    at = open_page("abstain", dataset=DEMO, run=folder.name)

    assert not at.exception
    assert "predictions\\.npz of run" in at.error[0].value or "predictions.npz" in at.error[0].value
    assert "No run is open" in body(at)


def test_the_demos_time_is_said_once_and_as_the_last_run_took(home, finished_run, open_page):
    assert demo_takes() == "A finetune of the demo takes less than a minute."
    shutil.copytree(finished_run, home / "runs" / finished_run.name)
    took = result_of(jobs.find(finished_run.name)).took
    rival = home / "runs" / "rival"  # it retrains the last layer only, in another time
    shutil.copytree(finished_run, rival)
    config, result = (
        json.loads((rival / f"{part}.json").read_text()) for part in ("config", "result")
    )
    (rival / "config.json").write_text(json.dumps(config | {"rival": "dfr"}))
    result["seconds"]["finetune"] += 1000
    (rival / "result.json").write_text(json.dumps(result))
    assert jobs.find("rival").config.rival == "dfr"

    assert demo_takes() == f"The last finetune of the demo took {duration(took)} here."
    for name in ("compare", "finetune"):
        at = open_page(name)
        assert demo_takes() in " ".join(e.value for e in at.get("html"))
