"""``python -m masktune``, and the entry point of ``masktune``."""

import atexit
import gc
import sys

from masktune.cli import main as cli


def main() -> int:
    """Run a command in a process of its own; return its exit code."""
    # PyTorch's modules are hundreds of thousands of objects and no garbage. Looking through them
    # again and again while they are imported, and once more at the end, is a tenth of a demo run.
    gc.set_threshold(50_000, 20, 50)
    atexit.register(gc.freeze)
    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
