"""What has not changed is not made again: figures, sprites, files, layers, answers."""

import csv
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import cv2
import plotly.graph_objects as go
import pytest
from torch import nn

from app import loaded
from app.finetune import tournament
from app.kept import once
from masktune.heat import layers
from masktune.show.theme import empty

ROOT = Path(__file__).resolve().parents[2]
DEMO = "biased-mnist-5k"
PAGES = ("start", "load", "mask", "finetune", "compare", "abstain", "picture")


@pytest.fixture
def made(monkeypatch):
    """Count figures and their copies, encoded pictures, files, searches, answers, settings."""
    found = Counter()

    def count(where, name, what):
        original = getattr(where, name)

        def counted(*args, **named):
            found[what] += 1
            return original(*args, **named)

        monkeypatch.setattr(where, name, counted)

    count(go.Figure, "__init__", "figures")
    count(go.Figure, "to_dict", "copies")
    count(cv2, "imencode", "sprites")
    count(csv, "writer", "files")
    count(layers, "_spatial_calls", "searches")
    count(nn.Module, "__call__", "answers")
    count(tournament, "heeded", "settings")
    return found


@pytest.mark.parametrize("name", PAGES)
def test_a_page_that_runs_again_makes_nothing_again(
    name, made, home_with_run, finished_run, open_page
):
    page = open_page(name, run=finished_run.name)
    made.clear()

    page.run()

    assert not page.exception
    assert made == {}


def test_the_layers_of_a_model_are_searched_once_for_all_pages(made, home, open_page):
    loaded._LAYERS.clear()

    for name in ("load", "mask", "finetune", "mask"):
        open_page(name, dataset=DEMO).run()

    assert made["searches"] == 1


def test_a_figure_is_made_again_when_what_it_shows_has_changed(made):
    first, again, other = (once(empty, height=height) for height in (101, 101, 102))

    assert first is again
    assert other.layout.height == 102
    assert made["figures"] == 2


FIRST_SCREEN = """
import gc
import sys
from streamlit.testing.v1 import AppTest
from app import warm

asked = []
warm.import_module = asked.append
page = AppTest.from_file(sys.argv[1], default_timeout=120).run()
page.run()
assert not page.exception
warm.warm().join()
print("torch" in sys.modules, warm.warm().daemon, asked.count("torch"), asked[0])
print(gc.get_freeze_count() > len(gc.get_objects()))  # what was imported is never looked through
"""


def test_the_first_screen_imports_no_torch_and_a_thread_imports_it_once_after(home_with_run):
    done = subprocess.run(
        [sys.executable, "-c", FIRST_SCREEN, str(ROOT / "app" / "main.py")],
        env={**os.environ, "PYTHONPATH": str(ROOT), "MASKTUNE_HOME": str(home_with_run)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.split() == ["False", "True", "1", "torch", "True"]
