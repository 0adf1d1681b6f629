"""The verdict at the head of the Compare page."""

from dataclasses import replace

from app.compare.metrics import verdict_html
from app.compare.outcome import outcomes
from masktune.runs.open import OpenRun
from masktune.scores.result import Pair


def test_the_verdict_tells_harm_as_plainly_as_help(outcome):
    # The model after and the model before change places: what was fixed is broken.
    run, name = outcome.view, outcome.test.name
    scores, pair = run.result.test[name], run.predictions.tests[name]
    turned = outcomes(
        OpenRun(
            run.path,
            result=replace(
                run.result,
                test={name: replace(scores, before=scores.after, after=scores.before)},
            ),
            predictions=replace(run.predictions, tests={name: Pair(pair.after, pair.before)}),
        )
    )[name]
    fixed, broken = outcome.count("fixed"), outcome.count("broken")

    assert 'class="verdict up"' in verdict_html(outcome)
    assert f"It fixed {fixed} answers and broke {broken}, of 1,000." in verdict_html(outcome)
    assert 'class="verdict down">Tuning harmed what is now the worst group' in verdict_html(turned)
    assert f"broke {fixed}, of 1,000." in verdict_html(turned)
