"""The frame of every page: what the tab tells it."""

import re
import tomllib

import pytest

from app.shared import pages
from tests.app.conftest import ROOT
from tests.masktune.show.test_figures import luminance


class State(dict):
    """A session's state without a session."""

    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__


@pytest.mark.parametrize(("clicked", "k"), [(1.5, 1.5), (2, 2.0), (4.0, 3.0), (0.3333, 0.33)])
def test_a_k_that_was_clicked_in_a_chart_is_one_that_the_slider_has(clicked, k, monkeypatch):
    drawn = []
    state = State(tab={"k": clicked})
    monkeypatch.setattr(pages.st, "session_state", state)
    monkeypatch.setattr(pages, "address", lambda: "")
    monkeypatch.setattr(pages, "_tab", lambda **given: drawn.append(given))

    pages.write_address()
    drawn[0]["on_k_change"]()

    assert state["k"] == k


def test_empty_boxes_and_fields_stand_out_on_a_dark_card():
    theme = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())["theme"]["dark"]
    card = re.search(r"--card: light-dark\(#\w+, (#\w+)\)", pages.LOOK.read_text()).group(1)

    border, ground = (luminance(colour) for colour in (theme["borderColor"], card))

    assert (border + 0.05) / (ground + 0.05) >= 3  # WCAG 1.4.11
