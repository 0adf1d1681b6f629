"""A Streamlit server and a real Chromium for the tests of this folder."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from weakref import WeakKeyDictionary

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, WebSocket, expect, sync_playwright
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

ROOT = Path(__file__).resolve().parents[2]

CHROMIUM_ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--no-first-run",
)

PATIENCE = 60.0
"""Seconds to wait for a server or a page: a busy machine is slow, and waiting costs nothing."""

expect.set_options(timeout=PATIENCE * 1000)


def pytest_collection_modifyitems(items):
    """Count every test with a browser as slow: the fast suite leaves them out."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slow)


@dataclass(frozen=True, slots=True)
class Server:
    """A running Streamlit server.

    Attributes:
        url: its address.
        process: its process, for tests that kill it.
    """

    url: str
    process: subprocess.Popen[bytes]


@contextmanager
def serving(
    script: str, *, port: int | None = None, environment: Mapping[str, str] | None = None
) -> Iterator[Server]:
    """Run ``streamlit run script`` from the repository, as the README says, on a free port.

    Args:
        script: path of the script, relative to the repository.
        port: a fixed port, to start a killed server anew.
        environment: variables beside those of this process.
    """
    port = port or free_port()
    command = [sys.executable, "-m", "streamlit", "run", script, "--server.port", str(port)]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        server = Server(f"http://127.0.0.1:{port}", process)
        wait_until_healthy(server)
        yield server
    finally:
        process.kill()
        process.wait()


def free_port() -> int:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return int(door.getsockname()[1])


def wait_until_healthy(server: Server) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if server.process.poll() is not None:
            raise RuntimeError(f"The server ended with {server.process.returncode}.")
        try:
            with urllib.request.urlopen(f"{server.url}/_stcore/health", timeout=1) as answer:
                if answer.read() == b"ok":
                    return
        except (urllib.error.URLError, TimeoutError):
            time.sleep(0.1)
    raise TimeoutError(f"The server did not answer within {PATIENCE} s.")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = shutil.which("chromium")
    if program is None:
        reason = "There is no chromium on the path; install Debian's chromium."
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(CHROMIUM_ARGUMENTS))
        yield browser
        browser.close()


@dataclass
class Traffic:
    """What a page said to its server and heard from it over the websocket.

    Attributes:
        sent: bytes of each message to the server.
        received: bytes of each message from it.
        asked: which fragment the server was asked to run, "" for the whole script; None once it
            has run.
        begun: whether that has begun.
    """

    sent: list[int] = field(default_factory=list)
    received: list[int] = field(default_factory=list)
    asked: str | None = None
    begun: bool = False

    def forget(self) -> None:
        self.sent.clear()
        self.received.clear()

    def listen(self, socket: WebSocket) -> None:
        self.asked = None
        socket.on("framesent", self._say)
        socket.on("framereceived", self._hear)

    def _say(self, payload: bytes) -> None:
        self.sent.append(len(payload))
        said = BackMsg.FromString(payload)
        # What a page asks for by the clock is never at an end.
        if said.WhichOneof("type") == "rerun_script" and not said.rerun_script.is_auto_rerun:
            self.asked, self.begun = said.rerun_script.fragment_id, False

    def _hear(self, payload: bytes) -> None:
        self.received.append(len(payload))
        heard = ForwardMsg.FromString(payload)
        if heard.WhichOneof("type") == "new_session":
            fragments = heard.metadata.run.fragment_ids
            self.begun |= not fragments or self.asked in fragments
        elif heard.WhichOneof("type") == "script_finished":
            early = heard.script_finished == ForwardMsg.FINISHED_EARLY_FOR_RERUN
            if self.begun and not early:
                self.asked = None


TRAFFIC: WeakKeyDictionary[Page, Traffic] = WeakKeyDictionary()
"""The traffic of each page that is watched."""


@dataclass(frozen=True, slots=True)
class Watched:
    """A page, its websocket traffic, and what went wrong on it."""

    page: Page
    traffic: Traffic
    problems: list[str]


def open_context(browser: Browser, **options: object) -> BrowserContext:
    """Open a context of the usual size; ``options`` as Playwright has them."""
    usual = {"viewport": {"width": 1440, "height": 1000}, "reduced_motion": "reduce"}
    context = browser.new_context(**{**usual, **options})
    context.set_default_timeout(PATIENCE * 1000)
    return context


@contextmanager
def watching(context: BrowserContext) -> Iterator[Watched]:
    """Open a page that may neither load from another host nor throw."""
    page = context.new_page()
    watched = Watched(page, Traffic(), [])
    TRAFFIC[page] = watched.traffic

    def check(request):
        if not request.url.startswith(("http://127.0.0.1:", "data:", "blob:")):
            watched.problems.append(f"loads {request.url}")

    page.on("websocket", watched.traffic.listen)
    page.on("request", check)
    page.on("pageerror", lambda error: watched.problems.append(str(error)))
    try:
        yield watched
        assert watched.problems == []
    finally:
        page.close()


@pytest.fixture(scope="session")
def context(browser: Browser) -> Iterator[BrowserContext]:
    """One context for all pages: Streamlit's own scripts are loaded and compiled once."""
    context = open_context(browser)
    yield context
    context.close()


@pytest.fixture
def watched(context: BrowserContext) -> Iterator[Watched]:
    with watching(context) as watched:
        yield watched


@pytest.fixture(scope="session")
def scrub_server(browser: Browser) -> Iterator[Server]:
    """The page with nothing but a scrubber; without a browser it is not even started."""
    with serving("tests/e2e/scrubber_app.py") as server:
        yield server


IDLE = "[data-testid=stApp][data-test-script-state=notRunning]"

FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


def draw(page: Page) -> None:
    """Wait until the browser has drawn what it knows by now."""
    page.evaluate(FRAMES)


def wait_for_script(page: Page) -> None:
    """Wait until the server has nothing more to say about the page, nor about what was just done.

    A page says that its script runs once the server has begun, and so not yet after a click.
    """
    page.wait_for_selector(IDLE)
    end = time.monotonic() + 4 * PATIENCE
    while TRAFFIC[page].asked is not None:
        if time.monotonic() > end:
            raise TimeoutError(f"The script was still at work after {4 * PATIENCE} s.")
        page.wait_for_timeout(20)
    draw(page)
    page.wait_for_selector(IDLE)
