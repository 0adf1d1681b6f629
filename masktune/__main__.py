"""``python -m masktune``."""

import sys
from pathlib import Path


def _start() -> int:
    arguments = sys.argv[1:]
    try:
        if "--queue" in arguments:  # a job of the page: PyTorch is not imported while it waits
            from masktune.runs.queue import wait_for_turn

            arguments.remove("--queue")
            wait_for_turn(Path(arguments[arguments.index("--out") + 1]))
        from masktune.cli.main import main

        return main(arguments)
    except KeyboardInterrupt:  # while PyTorch is still being imported
        return 130


if __name__ == "__main__":
    sys.exit(_start())
