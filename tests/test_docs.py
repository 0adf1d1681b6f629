"""What docs/ shows is what the code is."""

import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_the_picture_of_the_packages_is_drawn_from_the_imports_there_are():
    drawn = runpy.run_path(str(ROOT / "docs" / "packages.py"))["svg"]()

    assert (ROOT / "docs" / "packages.svg").read_text("utf-8") == drawn
