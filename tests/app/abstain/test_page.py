"""The Abstain page with a finished run: its numbers, its choices and its pictures."""

import math
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from plotly.graph_objects import Figure

from app.abstain import pictures, words
from app.abstain.numbers import area_intervals, read_off
from masktune.scores.predictions import Predictions
from masktune.scores.result import Pair, RunPredictions
from masktune.show.abstained import rank
from masktune.show.wording import percent
from tests.app.conftest import DEMO, address


def body(at) -> str:
    """Give all that a page says in HTML and Markdown."""
    return "\n".join([h.value for h in at.get("html")] + [m.value for m in at.markdown])


def control(at, label):
    return next(group for group in at.segmented_control if group.label == label)


@pytest.fixture
def page(home_with_run, finished_run, open_page):
    """Open the page with the finished run."""
    return open_page("abstain", dataset=DEMO, run=finished_run.name)


@pytest.fixture
def predictions(finished_run) -> RunPredictions:
    return RunPredictions.read(finished_run / "predictions.npz")


@pytest.fixture
def saturated(home, finished_run, predictions) -> str:
    """Give the id of a run whose models are entirely sure of everything."""

    def sure(said: Predictions) -> Predictions:
        return replace(said, probabilities=np.eye(2)[said.answers()])

    def both(pair: Pair) -> Pair:
        return Pair(sure(pair.before), sure(pair.after))

    folder = home / "runs" / "20261116-110000-saturated"
    shutil.copytree(finished_run, folder)
    changed = RunPredictions(
        validation=both(predictions.validation),
        tests={name: both(pair) for name, pair in predictions.tests.items()},
    )
    (folder / "predictions.npz").write_bytes(changed.to_bytes())
    return folder.name


@pytest.fixture
def abstaining(home, finished_run, predictions) -> str:
    """Give the id of a run whose method has learnt a score of its own: the first are surest."""

    def scored(pair: Pair) -> Pair:
        return replace(pair, own=-np.linspace(0.1, 0.9, len(pair.before.labels)))

    folder = home / "runs" / "20261116-120000-abstaining"
    shutil.copytree(finished_run, folder)
    changed = RunPredictions(
        validation=scored(predictions.validation),
        tests={name: scored(pair) for name, pair in predictions.tests.items()},
    )
    (folder / "predictions.npz").write_bytes(changed.to_bytes())
    return folder.name


def test_a_score_of_its_own_stands_beside_the_others_where_a_run_has_one(abstaining, open_page):
    at = open_page("abstain", dataset=DEMO, run=abstaining)
    scores = control(at, "Score")

    assert scores.options == ["Joint", "After", "Before", "Its own score"]
    assert "what the method learnt to abstain by" in scores.help
    assert scores.value == "own"  # unless somebody chooses
    assert "abstain_score" not in address(at)

    assert not at.exception
    shown = body(at)
    assert '<th scope="row"><b>its own score</b></th>' in shown
    assert "against after at this coverage" in shown
    assert "gamma = −0.8" in shown  # nine tenths of the way from -0.1 to -0.9
    assert shown.count("Its own score") == 1  # in the head of the paper's table


def test_a_run_without_a_score_of_its_own_does_not_name_one(
    home_with_run, finished_run, abstaining, open_page
):
    at = open_page("abstain", dataset=DEMO, run=finished_run.name, abstain_score="own")

    assert not at.exception
    scores = control(at, "Score")
    assert scores.options == ["Joint", "After", "Before"]
    assert scores.value == "joint"
    assert "learnt" not in scores.help
    assert "own score" not in body(at).lower()


def test_a_link_that_names_only_the_run_brings_its_pictures(home_with_run, finished_run, open_page):
    at = open_page("abstain", run=finished_run.name)

    assert not at.exception
    assert at.session_state["dataset"] == DEMO
    assert at.slider


def test_the_numbers_shown_are_those_of_the_stored_predictions(page, predictions):
    test = predictions.tests["biased"]
    reading = read_off(rank(predictions.validation, test), "joint", target=0.9)

    assert not page.exception
    shown = body(page)
    assert f'<p class="value">{percent(reading.point.coverage)}</p>' in shown
    assert f'<p class="value">{percent(reading.point.risk)}</p>' in shown
    assert f"gamma = {words.gamma_words(reading.point.gamma)}" in shown
    assert f"{len(predictions.validation.before.labels)}</a> validation pictures" in shown
    (how_to_read,) = [c.value for c in page.caption if "lower is safer" in c.value]
    assert "of the coverage higher is better" in how_to_read
    assert words.verdict_html(rank(predictions.validation, test).safety) in shown


def test_no_model_is_asked(home_with_run, finished_run, open_page, monkeypatch):
    def asked(*_):
        raise AssertionError("a model was asked")

    monkeypatch.setattr(torch.nn.Module, "__call__", asked)

    at = open_page("abstain", dataset=DEMO, run=finished_run.name)
    at.slider[0].set_value(70).run()

    assert not at.exception
    assert at.slider[0].value == 70


def test_the_target_moves_the_numbers_and_the_stepper_and_survives_leaving(page, predictions):
    reading = read_off(
        rank(predictions.validation, predictions.tests["biased"]), "joint", target=0.6
    )

    page.slider[0].set_value(60).run()

    assert f'<p class="value">{percent(reading.point.coverage)}</p>' in body(page)
    assert any("aims at 60%" in link.proto.label for link in page.get("page_link"))
    page.switch_page("start/page.py").run()
    page.switch_page("abstain/page.py").run()
    assert not page.exception
    assert page.slider[0].value == 60


def test_another_score_is_marked_and_set_against_another(page, predictions):
    reading = read_off(
        rank(predictions.validation, predictions.tests["biased"]), "after", target=0.9
    )

    control(page, "Score").set_value("after").run()

    assert not page.exception
    assert f'<p class="value">{percent(reading.point.coverage)}</p>' in body(page)
    assert "against joint at this coverage" in body(page)
    assert '<th scope="row"><b>after</b></th>' in body(page)


def test_the_chart_marks_the_threshold_on_the_chosen_curve(page, monkeypatch):
    drawn = {}
    figures = "app.abstain.cards.risk_coverage_curves"

    def watched(curves, **marked):
        drawn.update(marked, names=set(curves))
        return Figure(layout={"meta": "curves"})

    monkeypatch.setattr(figures, watched)
    control(page, "Score").set_value("before").run()

    assert not page.exception
    assert drawn["names"] == {"before", "after", "joint"}
    assert (drawn["score"], drawn["target"]) == ("before", 0.9)
    assert math.isfinite(drawn["point"].gamma)


def test_another_test_set_has_other_numbers_and_is_kept_for_other_pages(page, predictions):
    reading = read_off(
        rank(predictions.validation, predictions.tests["original"]), "joint", target=0.9
    )

    control(page, "Evaluate on").set_value("original").run()

    assert not page.exception
    assert f'<p class="value">{percent(reading.point.coverage)}</p>' in body(page)
    assert page.session_state["test"] == "original"


def test_pictures_are_paged_and_filtered(page, predictions):
    answers = rank(predictions.validation, predictions.tests["biased"])
    gamma = read_off(answers, "joint", target=0.9).point.gamma
    held = pictures.choose(answers.test["joint"], gamma, kind="Abstained")
    labels = predictions.tests["biased"].before.labels
    assert len(held) > pictures.SHOWN  # or nothing would be paged

    first = body(page)
    page.pagination[0].set_value(2).run()
    second = body(page)
    page.pagination[0].set_value(1).run()
    next(box for box in page.selectbox if box.label == "Group").select(0).run()

    assert not page.exception
    assert first.count('class="tile"') == pictures.SHOWN
    fifteenth = f"score {answers.test['joint'].confidence[held[pictures.SHOWN]]:.3f}"
    assert fifteenth in second.split('class="tile"')[1]
    assert any(
        f"{int((labels[held] == 0).sum())} pictures, least sure first" in c.value
        for c in page.caption
    )
    assert "is 5–9" not in body(page)


def test_every_picture_leads_to_its_page_and_group_and_page_are_in_the_address(page, open_page):
    page.pagination[0].set_value(2).run()

    where = address(page)
    second = body(page)
    links = re.findall(r'href="picture\?picture=biased%2F(\d+)"><i class="tile"', second)
    assert len(links) == len(set(links)) == second.count('class="tile"') > 0
    assert where["abstain_page"] == "2"
    assert re.findall(r'href="picture[^"]*"', body(open_page("abstain", **where))) == re.findall(
        r'href="picture[^"]*"', second
    )
    next(box for box in page.selectbox if box.label == "Group").select(0).run()
    assert address(page)["abstain_group"] == "0"
    assert "abstain_page" not in address(page)


def test_a_group_of_one_run_does_not_linger_on_another(page, saturated):
    next(box for box in page.selectbox if box.label == "Group").select(3).run()

    page.selectbox(key="run_of_Run").select(saturated).run()

    assert not page.exception
    assert next(box for box in page.selectbox if box.label == "Group").value == -1


def test_mistakes_are_shown_with_their_sign(page):
    control(page, "Which pictures").set_value("Answered and wrong").run()

    assert not page.exception
    assert 'class="chip broken"' in body(page)
    assert 'class="chip held"' not in body(page)


def test_at_full_coverage_nothing_is_abstained_from(page):
    page.slider[0].set_value(100).run()

    assert not page.exception
    assert any("No picture here: abstained" in caption.value for caption in page.caption)
    assert "no gamma" in body(page)


def test_a_last_page_that_is_no_longer_there_is_not_asked_for(page):
    last = page.pagination[0].proto.num_pages
    page.pagination[0].set_value(last).run()
    page.slider[0].set_value(99).run()

    assert not page.exception
    assert page.pagination[0].proto.num_pages < last
    assert 'class="tile"' in body(page)


def test_intervals_are_drawn_only_when_asked_for(page, predictions):
    before = body(page)
    page.toggle[0].set_value(True).run()

    low, high = area_intervals(predictions.tests["biased"].ranked(), seed=0)["joint"]
    shown = f"<small>{words.area(low)} to {words.area(high)}</small>"
    assert not page.exception
    assert shown not in before
    assert shown in body(page)


def test_saturated_scores_say_that_they_tie(saturated, predictions, open_page):
    # The joint score is 1 where both models agree and 0 elsewhere; nothing lies above 1.
    validation = predictions.validation
    agreed = float((validation.before.answers() == validation.after.answers()).mean())
    assert agreed > 0.9  # or the ninth tenth would not be cut out of a tie
    nearest = min((1.0, agreed), key=lambda coverage: abs(coverage - 0.9))

    at = open_page("abstain", dataset=DEMO, run=saturated)

    assert not at.exception
    assert "Scores tie" in body(at)
    assert f"The nearest coverage that a threshold can reach there is {percent(nearest)}" in body(
        at
    )
    assert "no picture is answered" in body(at)


def test_everything_can_be_saved(page):
    labels = {button.label for button in page.download_button}

    assert labels == {
        "Curves (CSV)",
        "Operating point (JSON)",
        "Groups (CSV)",
        "This sheet (PNG)",
        "Predictions (CSV)",
        "Table (CSV)",
        "CSV",  # the deciles
        "Both models and gamma (ZIP)",
    }
