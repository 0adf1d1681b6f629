"""``python -m masktune report``."""

import argparse

from masktune.cli.export import add_run_argument as add_arguments
from masktune.cli.terminal import answer
from masktune.report.page import report_html
from masktune.runs.folder import RunFolder
from masktune.runs.open import OpenRun

__all__ = ["add_arguments", "carry_out"]


def carry_out(chosen: argparse.Namespace) -> None:
    """Write the report of a finished run anew."""
    html = report_html(OpenRun(chosen.run, arch=chosen.arch))
    RunFolder(chosen.run).write("report.html", html.encode())
    path = str(chosen.run / "report.html")
    answer(chosen, {"report": path}, path)
