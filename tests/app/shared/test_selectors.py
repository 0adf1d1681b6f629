"""Whatever is chosen on a page stays chosen: eight choices in a row, on every selector there is."""

import pytest
from streamlit.runtime.state.common import TESTING_KEY

DEMO = "biased-mnist-5k"
ELSEWHERE = {"Dataset", "Where from", "Which model", "Run"}
"""Selectors that lead to other pictures, another model or run: they have tests of their own."""


def selectors(at):
    """Give every selector that has at least two choices."""
    boxes = [*at.selectbox, *at.segmented_control]
    return [b for b in boxes if len(b.options) > 1 and b.label not in ELSEWHERE and not b.disabled]


def selector(at, label):
    return next(box for box in selectors(at) if box.label == label)


def choose(box, words):
    """Choose by the words on the page, as a browser does."""
    box.root.session_state[TESTING_KEY][box.id] = str
    box.set_value(words).run()


def chosen(box):
    return box.format_func(box.value)


@pytest.mark.slow
@pytest.mark.parametrize("page", ["load", "mask", "finetune", "compare", "abstain"])
def test_eight_choices_in_a_row_are_kept(page, home_with_run, finished_run, open_page, slow_looks):
    at = open_page(page, dataset=DEMO, run=finished_run.name)

    for label in [box.label for box in selectors(at)]:
        words = selector(at, label).options
        for wanted in [words[1], words[2 % len(words)]] * 4:
            choose(selector(at, label), wanted)

            assert not at.exception
            assert chosen(selector(at, label)) == wanted, f"{label}: '{wanted}' was lost"
        if label == "Method":  # what belongs to MaskTune comes back with it
            choose(selector(at, label), "MaskTune")
