"""A Streamlit server of a clone and a Chromium to drive it, for the benchmarks."""

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
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from masktune.errors import ConfigError

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 120.0
"""Seconds to wait for a server or a page, at most."""


@dataclass(frozen=True, slots=True)
class Server:
    """A running Streamlit server: its address and its process."""

    url: str
    process: subprocess.Popen[bytes]

    def cpu(self) -> float:
        """Return the CPU seconds of its process so far, threads that have ended too."""
        # Linux's clock of another process (clock_getcpuclockid): to the microsecond, where
        # psutil's times come in hundredths of a second.
        return time.clock_gettime((~self.process.pid << 3) | 2)


@contextmanager
def serving(script: Path, *, root: Path = ROOT, environment: Mapping[str, str]) -> Iterator[Server]:
    """Run ``streamlit run`` in a clone, on a free port.

    Args:
        script: what is served.
        root: the clone.
        environment: variables beside those of this process.
    """
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        port = int(door.getsockname()[1])
    command = [sys.executable, "-m", "streamlit", "run", str(script), "--server.port", str(port)]
    process = subprocess.Popen(
        [*command, "--server.headless", "true"],
        cwd=root,
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        server = Server(f"http://127.0.0.1:{port}", process)
        _wait_for(f"{server.url}/_stcore/health")
        yield server
    finally:
        process.kill()
        process.wait()


def _wait_for(url: str) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(url, timeout=1):
                return
        except (urllib.error.URLError, TimeoutError):
            time.sleep(0.1)
    raise ConfigError(f"The server did not answer within {PATIENCE:.0f} s.", "Try again.")


@contextmanager
def chromium() -> Iterator["Browser"]:
    """Open a browser; only benchmarks of pages need what requirements-dev.txt lists for it."""
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium")
    if program is None:
        raise ConfigError("There is no chromium on the path.", "Install Debian's chromium.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()
