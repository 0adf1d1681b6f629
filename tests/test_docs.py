"""What docs/ shows is what the code is."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def test_the_picture_of_the_packages_is_drawn_from_the_imports_there_are():
    drawn = runpy.run_path(str(ROOT / "docs" / "packages.py"))["svg"]()

    assert (ROOT / "docs" / "packages.svg").read_text("utf-8") == drawn


@pytest.mark.slow
def test_the_verdicts_of_the_results_can_be_made_again():
    asked = [sys.executable, "-m", "docs.verdicts", "--help"]
    said = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True)

    assert said.returncode == 0, said.stderr
    assert "waterbirds-pretrained" in said.stdout
