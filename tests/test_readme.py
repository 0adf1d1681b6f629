"""Every command in the README is run by a test: the two installing ones by .ci/run and the app's
own tests, the others here, word for word."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from PIL import Image

from masktune.models.build import build
from tests import layouts

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
COMMANDS = [line for block in BLOCKS for line in block.strip().splitlines()]
INSTALL = "python -m venv .venv && .venv/bin/pip install -r "
LOCAL = [command for command in COMMANDS if not command.startswith(INSTALL)]


def test_the_readme_has_exactly_two_installing_commands():
    assert [c for c in COMMANDS if c.startswith(INSTALL)] == [
        f"{INSTALL}requirements.txt && .venv/bin/streamlit run app/main.py",
        f"{INSTALL}requirements-dev.txt && .venv/bin/pytest",
    ]


def test_ci_runs_the_test_command_as_it_is_written():
    assert f"{INSTALL}requirements-dev.txt && .venv/bin/pytest\n" in (ROOT / ".ci/run").read_text()


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A folder that looks like the repository, with a user's pictures and weights beside it.

    Later commands use the runs of earlier ones: --dist loadfile keeps a file's tests in order.
    """
    folder = tmp_path_factory.mktemp("clone")
    for name in ("masktune", "assets", "benchmarks"):
        (folder / name).symlink_to(ROOT / name)
    layouts.waterbirds(folder / "data" / "waterbirds")
    for number in range(20):
        place = folder / "my-pictures" / ("cat", "dog")[number % 2]
        place.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (90, 70), (12 * number, 60, 90)).save(place / f"{number}.jpg")
    torch.save({"state_dict": build("resnet18", 2).state_dict()}, folder / "model.pth")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("command", LOCAL)
def test_a_command_of_the_readme_does_what_it_says(command, clone):
    words = shlex.split(command)
    assert words[:3] == ["python", "-m", "masktune"]

    # What earlier versions repeated in this person's own home must not count.
    home = {**os.environ, "MASKTUNE_HOME": str(clone / "home")}
    done = subprocess.run(
        [sys.executable, *words[1:]], cwd=clone, env=home, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout
    if "--export" in words:
        assert (clone / words[words.index("--export") + 1]).exists()
    if "--out" in words:
        written = "study.json" if {"tournament", "grid"} & {*words} else "result.json"
        assert (clone / words[words.index("--out") + 1] / written).is_file()


def test_the_python_example_of_the_readme_runs():
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    names: dict[str, object] = {}

    exec(example, names)

    assert names["hidden"].shape == (8, 3, 28, 28)
    assert names["keep"].shape == (8, 28, 28)
