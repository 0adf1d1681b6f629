"""``python -m masktune``, and the entry point of ``masktune``."""

import atexit
import ctypes
import gc
import os
import sys
from typing import NoReturn

from masktune.cli import main as cli


def main() -> int:
    """Run a command in a process of its own; return its exit code."""
    # PyTorch's modules are hundreds of thousands of objects and no garbage. Looking through them
    # again and again while they are imported, and once more at the end, is a tenth of a demo run.
    gc.set_threshold(50_000, 20, 50)
    atexit.register(gc.freeze)
    keep_freed_memory()
    code = cli.main()
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        leave(code)
    return code


def leave(code: int) -> NoReturn:
    """End this process of a launcher at once, without shutting Python down.

    A thread of Gloo's that asks for Python's lock meanwhile is ended by Python, which aborts the
    process now and then: the launcher calls a finished run a failure.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def keep_freed_memory() -> None:
    """Let the C library use freed memory again instead of giving it back to the system.

    Else every large tensor of every batch is fetched anew, and the system fills its pages with
    zeros first: a quarter of the CPU time of an epoch on photographs. What was needed at most stays
    with the process, which is why the app's server does without. Settings of the environment count.
    """
    given = any(name.startswith(("MALLOC_", "GLIBC_TUNABLES")) for name in os.environ)
    if given or sys.platform != "linux" or not hasattr(library := ctypes.CDLL(None), "mallopt"):
        return
    trim_threshold, top_pad, mmap_threshold = -1, -2, -3  # the names of malloc.h
    library.mallopt(mmap_threshold, 2**31 - 1)
    library.mallopt(trim_threshold, 2**31 - 1)
    library.mallopt(top_pad, 64 * 2**20)


if __name__ == "__main__":
    sys.exit(main())
