"""Jobs as people meet them: real browser, real server, real processes."""

import json
import re
import time

import psutil
import pytest
from playwright.sync_api import expect

from masktune.runs import jobs, trash
from tests.e2e.conftest import free_port, serving, wait_for_script, watching

PATIENCE = 240_000
"""Milliseconds that a page may take to show something on a busy machine."""

TRAIN = "finetune?dataset=biased-mnist-5k&model=train"
"""Twelve epochs of training: time enough to look twice."""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def server(home):
    with serving("app/main.py", environment={"MASKTUNE_HOME": str(home)}) as server:
        yield server


@pytest.fixture(autouse=True)
def end_all_jobs(home, monkeypatch):
    """Leave no process behind, and the queue empty for the next test."""
    monkeypatch.setenv("MASKTUNE_HOME", str(home))
    yield
    for job in jobs.history():
        trash.throw(job.path)


def open_page(page, server, address=TRAIN):
    page.set_default_timeout(PATIENCE)
    page.goto(f"{server.url}/{address}")
    wait_for_script(page)


def start(page):
    """Press the button; give the id of the run, which the address then carries."""
    page.get_by_role("button", name="Train, then finetune").click()
    page.wait_for_url(re.compile(r"run=\d"))
    return re.search(r"run=([\w-]+)", page.url)[1]


def appears(locator):
    expect(locator).to_be_visible(timeout=PATIENCE)


def see(page, text):
    """Wait until the job card is headed so."""
    appears(page.locator(".st-key-card_job").get_by_role("heading", name=re.compile(text)))


def step(page):
    """Wait until the job card tells a step of the training; give it."""
    line = page.get_by_text(re.compile(r"Train, step \d+ of"))
    appears(line)
    return int(re.search(r"step (\d+) of", line.inner_text())[1])


def worker(home, run):
    return psutil.Process(json.loads((home / "runs" / run / "status.json").read_text())["pid"])


def cancel(page):
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Stop the run").click()


def gone(process):
    end = time.monotonic() + PATIENCE / 1000
    while time.monotonic() < end:
        if not process.is_running() or process.status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.1)
    return False


def test_reload_and_second_tab_show_the_running_job_and_cancel_stops_it_for_both(
    browser, server, home
):
    with watching(browser) as first, watching(browser) as second:
        open_page(first.page, server)
        run = start(first.page)
        see(first.page, "Running: MaskTune")
        before = step(first.page)

        first.page.reload()
        see(first.page, "Running: MaskTune")
        assert step(first.page) >= before
        first.page.wait_for_url(re.compile(run))  # written after the page
        expect(first.page.get_by_role("button", name="Train, then finetune")).to_be_disabled()
        expect(first.page.locator(".st-key-card_job .js-plotly-plot")).to_have_count(
            2, timeout=PATIENCE
        )

        open_page(second.page, server, f"finetune?run={run}")  # as in a link that somebody sent
        see(second.page, "Running: MaskTune")
        process = worker(home, run)

        cancel(second.page)

        see(second.page, "Cancelled: MaskTune")
        see(first.page, "Cancelled: MaskTune")  # nobody touched this tab
        assert gone(process)
        appears(first.page.get_by_role("button", name="Go on with this run"))


def test_of_two_people_the_second_waits_and_is_told_so_and_starts_by_itself(browser, server, home):
    with watching(browser) as first, watching(browser) as second:
        open_page(second.page, server)
        open_page(first.page, server)
        earlier = start(first.page)
        see(first.page, "Running: MaskTune")

        later = start(second.page)

        assert later != earlier
        see(second.page, "Waiting: MaskTune")
        appears(second.page.get_by_text("1 run is ahead. One run at a time"))
        # The other's run is not mixed up with one's own.
        first.page.wait_for_url(re.compile(earlier))

        cancel(first.page)

        see(first.page, "Cancelled: MaskTune")
        see(second.page, "Running: MaskTune")


def test_a_killed_worker_shows_as_failed_and_can_be_started_again(browser, server, home):
    with watching(browser) as watched:
        open_page(watched.page, server)
        run = start(watched.page)
        see(watched.page, "Running: MaskTune")

        worker(home, run).kill()

        see(watched.page, "Failed: MaskTune")
        appears(watched.page.get_by_text("killed or ran out of memory").first)
        appears(watched.page.get_by_text("Start it again").first)

        watched.page.get_by_role("button", name="Start again").click()

        see(watched.page, "Running: MaskTune")


def test_a_killed_and_restarted_server_keeps_the_job_and_the_open_page_finds_it(browser, home):
    port, environment = free_port(), {"MASKTUNE_HOME": str(home)}
    with watching(browser) as watched:
        with serving("app/main.py", port=port, environment=environment) as server:
            open_page(watched.page, server)
            run = start(watched.page)
            see(watched.page, "Running: MaskTune")
            process = worker(home, run)

            server.process.kill()
            server.process.wait()

            assert process.is_running()
        with serving("app/main.py", port=port, environment=environment):
            # It goes on, and the page that stayed open shows it.
            appears(watched.page.get_by_text(re.compile(r", step \d+ of")))

            assert process.is_running()
            assert worker(home, run) == process
            cancel(watched.page)  # the new server is its master too
            see(watched.page, "Cancelled: MaskTune")
            assert gone(process)
