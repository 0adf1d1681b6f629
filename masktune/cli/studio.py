"""``masktune studio``: the app, from a clone or from the installed package."""

import argparse
import os
import subprocess
import sys

from masktune.files import STUDIO


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add every option."""
    command.add_argument("--port", type=int, default=8501, help="where the app listens")


def carry_out(chosen: argparse.Namespace) -> None:
    """Serve the app until it is stopped."""
    command = [sys.executable, "-m", "streamlit", "run", str(STUDIO / "app" / "main.py")]
    # Streamlit reads the theme from the folder it is started in; python must not read code there.
    environment = {**os.environ, "PYTHONSAFEPATH": "1"}
    served = subprocess.run(
        [*command, "--server.port", str(chosen.port)], cwd=STUDIO, env=environment, check=False
    )
    if served.returncode > 0:
        sys.exit(served.returncode)
