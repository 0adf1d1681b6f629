"""The verdict at the head of the Compare page."""

from dataclasses import replace

from app.compare.metrics import verdict_html
from masktune.runs.open import OpenRun
from masktune.scores.result import Pair


def test_the_verdict_tells_harm_as_plainly_as_help(original):
    # The model after and the model before change places: what was fixed is broken.
    run, name = original.run, original.name
    scores, pair = run.result.test[name], original.pair
    turned = OpenRun(
        run.path,
        result=replace(
            run.result,
            test={name: replace(scores, before=scores.after, after=scores.before)},
        ),
        predictions=replace(run.predictions, tests={name: Pair(pair.after, pair.before)}),
    ).tests[name]
    fixed, broken = original.evidence.overall.fixed, original.evidence.overall.broken

    assert 'class="verdict up"' in verdict_html(original)
    assert f"It fixed {fixed} answers and broke {broken}, of 1,000." in verdict_html(original)
    assert 'class="verdict down">Tuning harmed what is now the worst group' in verdict_html(turned)
    assert f"broke {fixed}, of 1,000." in verdict_html(turned)
