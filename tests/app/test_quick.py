"""What has not changed is not made again: figures, sprites, files, layers, answers."""

import csv
from collections import Counter

import cv2
import plotly.graph_objects as go
import pytest
from torch import nn

from app import loaded
from app.kept import once
from masktune.heat import layers
from masktune.show.theme import empty

DEMO = "biased-mnist-5k"
PAGES = ("start", "load", "mask", "finetune", "compare", "abstain")


@pytest.fixture
def made(monkeypatch):
    """Count figures, encoded pictures, CSV files, searches for layers and answers of models."""
    found = Counter()

    def count(where, name, what):
        original = getattr(where, name)

        def counted(*args, **named):
            found[what] += 1
            return original(*args, **named)

        monkeypatch.setattr(where, name, counted)

    count(go.Figure, "__init__", "figures")
    count(cv2, "imencode", "sprites")
    count(csv, "writer", "files")
    count(layers, "_spatial_calls", "searches")
    count(nn.Module, "__call__", "answers")
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
