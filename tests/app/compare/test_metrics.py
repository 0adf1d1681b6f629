"""The verdict at the head of the Compare page."""

from dataclasses import replace

import numpy as np

from app.compare.metrics import verdict_html
from masktune.scores.result import Pair


def test_the_verdict_tells_harm_as_plainly_as_help(outcome):
    # The model after and the model before change places: what was fixed is broken.
    test = outcome.test
    turned = replace(
        outcome,
        test=replace(
            test,
            before=test.after,
            after=test.before,
            pair=Pair(test.pair.after, test.pair.before),
        ),
        states=np.select(
            [outcome.states == "fixed", outcome.states == "broken"],
            ["broken", "fixed"],
            outcome.states,
        ),
    )
    fixed, broken = outcome.count("fixed"), outcome.count("broken")

    assert 'class="verdict up"' in verdict_html(outcome)
    assert f"It fixed {fixed} answers and broke {broken}, of 1,000." in verdict_html(outcome)
    assert 'class="verdict down">Tuning harmed what is now the worst group' in verdict_html(turned)
    assert f"broke {fixed}, of 1,000." in verdict_html(turned)
