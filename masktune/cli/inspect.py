"""``python -m masktune inspect``: the checkpoint doctor."""

import argparse
from pathlib import Path

from masktune.checkpoints.inspect import diagnose
from masktune.cli.terminal import answer
from masktune.errors import ModelError


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add every option."""
    command.add_argument("file", type=Path, help="a .pt, .pth, .th, .ckpt or .safetensors file")
    command.add_argument("--arch", help="try this architecture only")


def carry_out(chosen: argparse.Namespace) -> None:
    """Say what a file holds; refuse what cannot be used."""
    found = diagnose(chosen.file, arch=chosen.arch)
    answer(chosen, found.to_json(), found.text())
    if not found.ok:
        raise ModelError(found.problem, found.remedy)
