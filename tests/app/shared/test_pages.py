"""The frame of every page: what the tab tells it."""

import pytest

from app.shared import pages


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
