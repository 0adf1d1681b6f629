"""``python -m masktune``."""

import sys
from pathlib import Path


def main() -> int:
    """Run the command that was typed: the entry point of ``masktune``, too."""
    arguments = sys.argv[1:]
    try:
        if "--queue" in arguments:  # a job of the page: PyTorch is not imported while it waits
            from masktune.runs.queue import wait_for_turn

            arguments.remove("--queue")
            wait_for_turn(Path(arguments[arguments.index("--out") + 1]))
        from masktune.cli.main import main as command

        return command(arguments)
    except KeyboardInterrupt:  # while PyTorch is still being imported
        return 130


if __name__ == "__main__":
    sys.exit(main())
