"""A Streamlit server of a clone and a Chromium to drive it, for the benchmarks."""

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
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
def door(server: Server, sent: Callable[[bytes], None]) -> Iterator[Server]:
    """Give another address of a server, whose messages are seen when they leave it.

    A browser on a busy machine tells of a message tens of milliseconds after it came, and the
    server has gone on working by then.

    Args:
        server: what is behind the door.
        sent: called with every WebSocket message of the server, in a thread of its own.
    """
    port = int(server.url.rpartition(":")[2])
    loop = asyncio.new_event_loop()

    async def enter(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
        messages = Messages(sent)
        await asyncio.gather(
            _pass_on(reader, inner_writer, lambda _: None),
            _pass_on(inner_reader, writer, messages.take),
        )

    listening = loop.run_until_complete(asyncio.start_server(enter, "127.0.0.1", 0))
    thread = threading.Thread(target=loop.run_forever, name="door", daemon=True)
    thread.start()
    try:
        outside = listening.sockets[0].getsockname()[1]
        yield Server(f"http://127.0.0.1:{outside}", server.process)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


async def _pass_on(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, see: Callable[[bytes], None]
) -> None:
    try:
        while content := await reader.read(1 << 16):
            see(content)
            writer.write(content)
            await writer.drain()
    except ConnectionError:
        pass  # a page was closed
    finally:
        writer.close()


class Messages:
    """WebSocket messages out of what a server writes into one connection, uncompressed."""

    def __init__(self, sent: Callable[[bytes], None]) -> None:
        """Call ``sent`` with each whole message."""
        self._sent = sent
        self._rest = b""
        self._upgraded: bool | None = None  # None before the answer's first line

    def take(self, content: bytes) -> None:
        """Take the next bytes, however they are cut."""
        if self._upgraded is False:
            return
        self._rest += content
        if self._upgraded is None:
            head, end, rest = self._rest.partition(b"\r\n\r\n")
            if not end:
                return
            self._upgraded = head.startswith(b"HTTP/1.1 101")
            self._rest = rest if self._upgraded else b""
        while (frame := self._frame()) is not None:
            self._sent(frame)

    def _frame(self) -> bytes | None:
        """Cut off the next frame (RFC 6455, 5.2; a server masks none); return what it carries."""
        if len(self._rest) < 2:
            return None
        short = self._rest[1] & 0x7F
        start = {126: 4, 127: 10}.get(short, 2)
        if len(self._rest) < start:
            return None
        end = start + (int.from_bytes(self._rest[2:start]) if start > 2 else short)
        if len(self._rest) < end:
            return None
        carried, self._rest = self._rest[start:end], self._rest[end:]
        return carried


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
