"""What stands in a widget is not set again: it would undo what is clicked meanwhile."""

import pytest

from tests.app.conftest import DEMO

PAGES = {
    "load": {},
    "mask": {"columns": '["explainer:gradcam"]', "mask_pictures": "6"},
    "finetune": {"strategy": "top-fraction"},
    "compare": {"shown": "group:original:1", "together": "True"},
    "abstain": {},
    "picture": {"picture": "original/3"},
    "runs": {"ticked": "a-run"},
}
"""What else stands in the address of each page."""


def set_again(at) -> list[str]:
    """Name the widgets that can be used and that a run of the page has set in the browser."""
    protos = [getattr(element, "proto", None) for element in at._tree]
    return [p.label for p in protos if getattr(p, "set_value", False) and not p.disabled]


@pytest.mark.parametrize("name", PAGES)
def test_a_second_run_of_a_page_sets_no_widget(name, home_with_run, finished_run, a_run, open_page):
    a_run("a-run", state="done")
    told = {"dataset": DEMO, "run": finished_run.name} | PAGES[name]
    at = open_page(name, **told)
    assert not at.exception

    at.run()

    assert set_again(at) == []
