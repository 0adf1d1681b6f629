"""What tuning did on one test set, picture by picture."""

import shutil
from dataclasses import replace

import pytest

from app.compare.outcome import outcomes
from masktune.errors import RunFolderError
from masktune.runs.open import OpenRun
from masktune.scores.groups import group_name
from masktune.show.answers import answers_at
from masktune.show.results import groups_figure

pytestmark = pytest.mark.usefixtures("pictures_read_once")


def test_pictures_are_found_by_state_and_group_in_the_order_of_the_test_set(outcome):
    before, after = outcome.test.pair.before, outcome.test.pair.after
    want = [
        i
        for i in range(len(outcome.test))
        if before.labels[i] == 1 and before.correct()[i] and not after.correct()[i]
    ]

    assert outcome.group_names() == {0: "0–4, no square", 2: "5–9, no square"}
    assert outcome.positions(state="broken", group=2) == want
    assert outcome.positions() == list(range(1000))
    assert want != outcome.positions(state="broken", group=0)


def test_states_share_out_all_pictures(outcome):
    counts = [outcome.count(state) for state in ("fixed", "broken", "still wrong", "still right")]

    assert sum(counts) == len(outcome.test)
    assert min(counts) > 0


def test_an_answer_names_both_answers_and_how_sure_they_are(outcome):
    position = outcome.positions(state="fixed", group=0)[0]
    was = outcome.test.pair.before.probabilities[position]

    (answer,) = answers_at(outcome.test, [position])

    assert (answer.truth, answer.before, answer.after) == ("0–4", "5–9", "0–4")
    assert answer.before_sure == was[1] > 0.5
    assert "<b>5–9 → 0–4</b>" in answer.html()
    assert "fixed" in answer.html()
    assert "fixed" not in answer.html(with_state=False)
    assert answer.words().startswith(f"position {position}, 0–4, no square, fixed: 5–9 before (")


def test_groups_without_pictures_are_not_drawn_and_of_many_the_worst_stay_in_order(outcome):
    both, alone = (groups_figure(outcome.test, most=most).layout.meta for most in (12, 1))

    names = [group_name(score) for score in outcome.test.before.scores]
    assert [name for name in names if f"{name} before" in both] == [*outcome.group_names().values()]
    assert both.index("0–4") < both.index("5–9")
    worst = group_name(outcome.test.before.worst)
    assert [name for name in names if f"{name} before" in alone] == [worst]


def test_pictures_that_were_exchanged_are_refused(finished_run, tmp_path):
    (tmp_path / "run").mkdir()
    for name in ("config.json", "result.json", "predictions.npz"):  # a run that kept no fingerprint
        shutil.copy(finished_run / name, tmp_path / "run")
    bundle = OpenRun(finished_run).bundle
    split = bundle.tests["biased"]
    other = replace(split, labels=1 - split.labels)

    for tests in ({**bundle.tests, "biased": other}, {}):
        run = OpenRun(tmp_path / "run", load=lambda _, t=tests: replace(bundle, tests=t))
        assert len(outcomes(run)) == 2  # the numbers need no picture
        with pytest.raises(RunFolderError, match="'biased' are not those"):
            run.bundle  # noqa: B018
