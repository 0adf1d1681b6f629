import csv
import io
import json
import math
import os
import shutil
from dataclasses import replace

import numpy as np
import psutil
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from plotly.graph_objects import Figure

from app.components import abstain_files as files
from app.components import abstain_pictures as pictures
from app.components import abstain_words as words
from app.components.abstain_numbers import (
    MOST_GROUPS,
    SCORES,
    Rankings,
    area_intervals,
    rank,
    read_groups,
    read_off,
    risk_near,
    widest_gap,
)
from app.state import KEY
from masktune.data.base import DatasetCard, Split, TensorImages
from masktune.errors import DataError
from masktune.groups import wilson
from masktune.predictions import Predictions
from masktune.results import Pair, RunPredictions
from masktune.selective import Ranked, risk_coverage
from masktune.wording import percent

DEMO = "biased-mnist-5k"
TENTHS = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]


def ranked(confidence, correct=None) -> Ranked:
    right = np.ones(len(confidence), dtype=bool) if correct is None else correct
    return Ranked(np.array(confidence), np.array(right))


def rankings(validation: Ranked, test: Ranked) -> Rankings:
    """Let every score be the same."""
    return Rankings(
        validation=dict.fromkeys(SCORES, validation),
        test=dict.fromkeys(SCORES, test),
        curves=dict.fromkeys(SCORES, risk_coverage(test)),
        safe=dict.fromkeys(SCORES, 0.5),
    )


def says(probabilities, labels, attributes=None) -> Predictions:
    return Predictions(
        np.array(probabilities, dtype=np.float64),
        np.array(labels),
        np.full(len(labels), -1) if attributes is None else np.array(attributes),
    )


def card(**changes) -> DatasetCard:
    values = {
        "key": "toy",
        "title": "Toy",
        "summary": "",
        "classes": ("cat", "dog"),
        "attributes": (),
        "size": (8, 8),
        "tests": ("test",),
        "recipe": DEMO,
        "bundled": True,
        "layout": "",
        "source": "",
        "licence": "",
    }
    return DatasetCard(**{**values, **changes})


def pair_of_three() -> Pair:
    """Both models are sure of the first; they disagree on the second; the third they get wrong."""
    labels = [0, 1, 0]
    before = says([[0.9, 0.1], [0.8, 0.2], [0.2, 0.8]], labels)
    after = says([[0.9, 0.1], [0.1, 0.9], [0.4, 0.6]], labels)
    return Pair(before, after)


def rows(content: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(content.decode())))


# Numbers


def test_gamma_comes_from_validation_and_is_applied_to_the_test_set():
    # Of ten scores 0.1 .. 1.0 the largest eight lie above 0.2.
    both = rankings(ranked(TENTHS), ranked([0.2, 0.25, 0.5, 0.9], [False, False, True, True]))

    reading = read_off(both, "joint", target=0.8)

    assert reading.point.gamma == 0.2
    assert (reading.point.accepted, reading.total, reading.wrong) == (3, 4, 1)
    assert (reading.point.coverage, reading.point.risk) == (0.75, 1 / 3)
    assert reading.interval == wilson(1, 3)
    assert reading.on_validation == 0.8
    assert reading.off_target == pytest.approx(-0.05)
    assert reading.nearest is None


def test_ties_are_counted_and_the_nearest_coverage_is_given():
    # Five of ten are asked for, but six share the highest score, so none lies above it.
    both = rankings(ranked([1.0] * 6 + [0.5] * 4), ranked([1.0, 0.5]))

    reading = read_off(both, "after", target=0.5)

    assert (reading.point.gamma, reading.tied) == (1.0, 6)
    assert (reading.on_validation, reading.nearest) == (0.0, 0.6)
    assert reading.point.risk is None
    assert reading.interval is None


@given(
    st.lists(st.integers(0, 10**6), min_size=1, max_size=60, unique=True),
    st.integers(50, 100),
)
def test_scores_without_ties_are_never_called_tied(scores, target):
    both = rankings(ranked([s / 10**6 for s in scores]), ranked([0.5]))

    assert read_off(both, "joint", target=target / 100).nearest is None


def test_risk_near_a_coverage_is_read_at_the_next_one_a_threshold_can_reach():
    # Risk 0, 1/2, 1/3, 1/2 at coverage 1/4, 1/2, 3/4, 1.
    curve = risk_coverage(ranked([0.9, 0.8, 0.7, 0.6], [True, False, True, False]))

    assert risk_near(curve, 0.25) == 0
    assert risk_near(curve, 0.5) == 0.5
    assert risk_near(curve, 0.6) == 1 / 3
    assert risk_near(curve, 1.0) == 0.5
    assert risk_near(curve, 0.0) == 0


def test_groups_without_pictures_are_left_out():
    given_ = says([[0.9, 0.1]] * 4, [0, 0, 1, 1], [0, 0, 1, 1])
    named = card(attributes=("indoors", "outdoors"))

    groups = read_groups(
        ranked([0.9, 0.8, 0.7, 0.1], [True, False, True, False]), given_, gamma=0.5, card=named
    )

    assert [g.name for g in groups] == ["cat, indoors", "dog, outdoors"]
    assert [g.coverage.coverage for g in groups] == [1.0, 0.5]
    assert [g.wrong for g in groups] == [1, 0]
    assert groups[0].interval == wilson(1, 2)


def test_of_very_many_groups_those_answered_least_are_shown_in_group_order():
    # Class 0 .. 29, one picture each; only the last ten are answered.
    count = 30
    many = says(np.eye(count), list(range(count)))
    scores = ranked([0.9 if place >= 20 else 0.1 for place in range(count)])

    groups = read_groups(
        scores, many, gamma=0.5, card=card(classes=tuple(f"class {i}" for i in range(count)))
    )

    assert [g.name for g in groups] == [f"class {i}" for i in range(MOST_GROUPS)]


@pytest.mark.parametrize(("held", "chance"), [(12, True), (60, False)])
def test_a_gap_between_groups_counts_only_beyond_chance(held, chance):
    # 10 of 100 cats are held back, and 12 or 60 of 100 dogs.
    labels = [0] * 100 + [1] * 100
    scores = [0.1] * 10 + [0.9] * 90 + [0.1] * held + [0.9] * (100 - held)
    groups = read_groups(ranked(scores), says([[0.5, 0.5]] * 200, labels), gamma=0.5, card=card())

    gap = widest_gap(groups)

    assert (gap.least.name, gap.most.name) == ("dog", "cat")
    assert gap.size == pytest.approx((held - 10) / 100)
    assert gap.within_chance is chance
    assert ("within chance" in words.gap_sentence(groups)) is chance
    assert ("not shared fairly" in words.gap_sentence(groups)) is not chance


def test_intervals_of_areas_are_the_same_each_time_and_hold_the_area():
    answers = ranked(np.linspace(0, 1, 50), np.arange(50) % 3 > 0)

    first, again = (area_intervals({"joint": answers}, seed=0) for _ in range(2))

    assert first == again
    assert first["joint"][0] < risk_coverage(answers).aurc < first["joint"][1]


# Words


def test_a_coverage_near_its_target_needs_no_excuse():
    reading = read_off(rankings(ranked(TENTHS), ranked(TENTHS)), "joint", target=0.8)

    assert words.miss_sentence(reading, test="test") == ""


def test_a_test_set_that_scores_lower_is_named_as_the_reason():
    reading = read_off(rankings(ranked(TENTHS), ranked([0.1] * 9 + [0.9])), "joint", target=0.8)

    said = words.miss_sentence(reading, test="<b>")

    assert "answers 80.0% of the validation pictures" in said
    assert "“&lt;b&gt;” are lower, so fewer" in said


def test_a_test_set_that_scores_higher_is_named_as_the_reason():
    reading = read_off(rankings(ranked(TENTHS), ranked([0.9] * 10)), "joint", target=0.8)

    assert "are higher, so more" in words.miss_sentence(reading, test="test")


def test_ties_are_named_as_the_reason_before_the_test_set_is():
    both = rankings(ranked([1.0] * 6 + [0.5] * 4), ranked([0.4, 0.3]))

    said = words.miss_sentence(read_off(both, "joint", target=0.5), test="test")

    assert "Scores tie" in said
    assert "6 validation pictures" in said
    assert "60.0%" in said


def test_fewer_mistakes_than_another_score_show_as_good_and_more_as_bad():
    both = rankings(ranked(TENTHS), ranked(TENTHS, [False, *[True] * 9]))
    reading = read_off(both, "joint", target=1.0)  # one of ten wrong

    fewer = words.wrong_metric(reading, "after", 0.3)
    more = words.wrong_metric(reading, "after", 0.05)

    assert 'class="delta up">↓ −20.0 points' in fewer
    assert 'class="delta down">↑ +5.0 points' in more
    assert f"1 of 10 answers<br>95% interval {words.interval(wilson(1, 10))}" in more


def test_names_of_groups_are_escaped_in_the_table():
    groups = read_groups(
        ranked([0.9]), says([[0.9, 0.1]], [0]), gamma=0.5, card=card(classes=("<i>", "dog"))
    )

    assert "&lt;i&gt;</th><td>1 of 1</td><td>0.0%" in words.groups_table(groups)


def test_no_gamma_is_needed_when_all_are_answered():
    reading = read_off(rankings(ranked(TENTHS), ranked(TENTHS)), "joint", target=1.0)

    assert "no gamma" in words.gamma_sentence(reading, 10)


def test_the_verdict_takes_the_colour_of_harm_only_when_before_is_the_safest():
    good, bad = ranked([0.9, 0.1], [True, False]), ranked([0.9, 0.1], [False, True])
    both = rankings(good, good)
    harmed = replace(both, curves={**both.curves, "joint": risk_coverage(bad)})
    harmed.curves["after"] = risk_coverage(bad)

    assert 'class="verdict down"' in words.verdict_html(harmed)
    assert "before alone is safer than the joint score" in words.verdict_html(harmed)
    assert 'class="verdict"' in words.verdict_html(both)


# Files


def test_the_table_has_the_papers_columns_and_targets():
    ours = rank(pair_of_three(), pair_of_three())

    table = rows(files.table_csv(ours))

    assert table[0] == [
        "target", "SR before Cov.", "SR before Err.", "SR after Cov.", "SR after Err.",
        "Joint Cov.", "Joint Err.",
    ]  # fmt: skip
    assert [row[0] for row in table[1:]] == ["1.0", "0.95", "0.9", "0.85", "0.8"]
    # All answered: before errs on the second and third, after on the third, and so does joint
    # (0.8 * 0.1 < 0.2 * 0.9).
    assert [float(v) for v in table[1][1:]] == pytest.approx([1, 2 / 3, 1, 1 / 3, 1, 1 / 3])


def test_curves_name_their_score_at_every_point():
    ours = rank(pair_of_three(), pair_of_three())

    saved = rows(files.curves_csv(ours))

    assert saved[0] == ["score", "coverage", "risk", "generalized risk"]
    assert [row[0] for row in saved[1:]] == ["joint"] * 4 + ["after"] * 3 + ["before"] * 3
    assert [float(v) for v in saved[1][1:]] == pytest.approx([1, 1 / 3, 1 / 3])


def test_every_picture_is_listed_with_both_answers_and_what_becomes_of_it():
    ours = rank(pair_of_three(), pair_of_three())
    reading = read_off(ours, "joint", target=0.6)  # two of three: scores 0.81 and 0.48

    saved = rows(files.pictures_csv(pair_of_three(), ours, reading, card=card()))

    assert [row[:5] for row in saved[1:]] == [
        ["0", "cat", "", "cat", "cat"],
        ["1", "dog", "", "cat", "dog"],
        ["2", "cat", "", "dog", "dog"],
    ]
    assert [float(row[5]) for row in saved[1:]] == pytest.approx([0.81, 0.18, 0.48])
    assert [row[6:] for row in saved[1:]] == [
        ["answered", "right"],
        ["held back", "right"],
        ["answered", "wrong"],
    ]


def test_the_operating_point_says_all_that_is_needed_to_use_it():
    ours = rank(pair_of_three(), pair_of_three())

    at_60 = json.loads(
        files.point_json(ours, read_off(ours, "joint", target=0.6), run="r", test="t")
    )
    at_all = json.loads(
        files.point_json(ours, read_off(ours, "joint", target=1.0), run="r", test="t")
    )

    assert at_60["gamma"] == pytest.approx(0.18)
    assert at_60["validation"] == {"count": 3, "coverage": pytest.approx(2 / 3)}
    assert (at_60["answered"], at_60["wrong"], at_60["error"]) == (2, 1, 0.5)
    assert at_all["gamma"] is None


# Pictures


def test_the_least_sure_are_held_back_first_and_the_surest_mistakes_lead():
    answers = ranked([0.1, 0.9, 0.4, 0.8, 0.4, 0.7], [True, False, True, False, False, True])

    assert pictures.choose(answers, 0.4, kind="Held back").tolist() == [0, 2, 4]
    assert pictures.choose(answers, 0.4, kind="Answered and wrong").tolist() == [1, 3]
    assert pictures.choose(answers, 0.4, kind="Answered and right").tolist() == [5]


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1), st.integers(-1, 6))
def test_every_picture_is_of_exactly_one_kind(answers, gamma):
    all_of_them = ranked([float(a) for a, _ in answers], [c for _, c in answers])

    found = [pictures.choose(all_of_them, gamma, kind=kind) for kind in pictures.KINDS]

    assert sorted(np.concatenate(found).tolist()) == list(range(len(answers)))


def test_captions_give_both_answers_the_truth_and_the_score_and_escape_names():
    pair = pair_of_three()
    named = card(classes=("<cat>", "dog"))

    facts = pictures.facts(pair, rank(pair, pair).test["joint"], [1], card=named)

    assert facts == [pictures.Fact("<cat>", "dog", "dog", pytest.approx(0.18))]
    assert "<b>&lt;cat&gt; / dog</b>" in facts[0].caption("Held back")
    assert "is dog<br>score 0.180" in facts[0].caption("Held back")
    assert facts[0].words("Held back") == "Held back: dog, before <cat>, after dog, score 0.180"


def test_pictures_that_were_exchanged_since_the_run_are_not_shown():
    pair = pair_of_three()
    labels = torch.tensor([0, 1, 1])
    images = TensorImages(torch.zeros(3, 3, 8, 8, dtype=torch.uint8))
    other = Split(name="test", images=images, labels=labels, attributes=torch.full((3,), -1))

    with pytest.raises(DataError, match="not those that this run was tested on"):
        pictures.check_same_pictures(other, pair, test="test")
    with pytest.raises(DataError):
        pictures.check_same_pictures(None, pair, test="test")
    same = Split(
        name="test", images=images, labels=torch.tensor([0, 1, 0]), attributes=other.attributes
    )
    assert pictures.check_same_pictures(same, pair, test="test") is same


# The page


def body(at) -> str:
    """Give all that a page says in HTML and Markdown."""
    return "\n".join([h.value for h in at.get("html")] + [m.value for m in at.markdown])


def by_key(elements, key):
    return next(element for element in elements if element.key == key)


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


def unfinished(home, finished_run, **status) -> str:
    folder = home / "runs" / "20261116-120000-unfinished"
    folder.mkdir(parents=True)
    shutil.copy(finished_run / "config.json", folder)
    (folder / "status.json").write_text(json.dumps(status))
    return folder.name


def test_without_a_run_the_page_says_what_is_missing_and_leads_there(home, open_page):
    at = open_page("abstain", dataset=DEMO)

    assert not at.exception
    assert at.title[0].value == "Abstain"
    assert "No finished run yet" in body(at)
    assert [button.label for button in at.button] == ["Finetune for one epoch"]


def test_without_pictures_the_way_leads_to_load(home, open_page):
    at = open_page("abstain")

    assert [button.label for button in at.button] == ["Choose pictures and model"]


def test_a_finished_run_can_be_opened_from_the_empty_page(home_with_run, finished_run, open_page):
    at = open_page("abstain", dataset=DEMO)
    at.selectbox[0].select(finished_run.name).run()

    assert not at.exception
    assert at.session_state[KEY].run == finished_run.name
    assert "Operating point" in [header.value for header in at.header]


def test_a_link_that_names_only_the_run_brings_its_pictures(home_with_run, finished_run, open_page):
    at = open_page("abstain", run=finished_run.name)

    assert not at.exception
    assert at.session_state[KEY].subject.dataset == DEMO
    assert at.slider


def test_a_run_that_is_gone_is_explained(home, open_page):
    at = open_page("abstain", dataset=DEMO, run="no-such-run")

    assert not at.exception
    assert "no run" in at.error[0].value
    assert "No finished run yet" in body(at)


def test_a_run_at_work_shows_how_far_it_is(home, finished_run, open_page):
    run = unfinished(
        home,
        finished_run,
        state="running",
        pid=os.getpid(),
        started=psutil.Process().create_time(),
        stage="finetune",
        step=3,
        total=4,
        eta=4.2,
    )

    at = open_page("abstain", dataset=DEMO, run=run)

    assert not at.exception
    assert "still at work: finetune, 4.2 s left" in body(at)
    assert at.get("progress")[0].value == 75
    assert not at.slider


def test_a_run_that_failed_says_why(home, finished_run, open_page):
    run = unfinished(
        home, finished_run, state="failed", problem="The disk is full.", remedy="Make room."
    )

    at = open_page("abstain", dataset=DEMO, run=run)

    assert not at.exception
    assert "The disk is full" in at.error[0].value
    assert "Make room" in at.error[0].value


@pytest.mark.parametrize("content", [None, b"not a zip file"])
def test_a_run_with_damaged_files_is_explained(home, finished_run, open_page, content):
    folder = home / "runs" / f"20261116-130000-damaged-{content is None}"
    shutil.copytree(finished_run, folder)
    (folder / "predictions.npz").unlink()
    if content is not None:
        (folder / "predictions.npz").write_bytes(content)

    at = open_page("abstain", dataset=DEMO, run=folder.name)

    assert not at.exception
    assert "cannot be read" in at.error[0].value
    assert "No run is open" in body(at)


def test_the_numbers_shown_are_those_of_the_stored_predictions(page, predictions):
    test = predictions.tests["biased"]
    reading = read_off(rank(predictions.validation, test), "joint", target=0.9)

    assert not page.exception
    shown = body(page)
    assert f'<p class="value">{percent(reading.point.coverage)}</p>' in shown
    assert f'<p class="value">{percent(reading.point.risk)}</p>' in shown
    assert f"gamma = {words.gamma_words(reading.point.gamma)}" in shown
    assert f"{len(predictions.validation.before.labels)} validation pictures" in shown
    assert words.verdict_html(rank(predictions.validation, test)) in shown


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
    assert any("60% coverage" in link.proto.label for link in page.get("page_link"))
    page.switch_page("app_pages/start.py").run()
    page.switch_page("app_pages/abstain.py").run()
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
    figures = "app.components.abstain_cards.risk_coverage_curves"

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

    control(page, "Test set").set_value("original").run()

    assert not page.exception
    assert f'<p class="value">{percent(reading.point.coverage)}</p>' in body(page)
    assert page.session_state[KEY].test == "original"


def test_pictures_are_paged_and_filtered(page, predictions):
    answers = rank(predictions.validation, predictions.tests["biased"])
    gamma = read_off(answers, "joint", target=0.9).point.gamma
    held = pictures.choose(answers.test["joint"], gamma, kind="Held back")
    labels = predictions.tests["biased"].before.labels
    assert len(held) > pictures.SHOWN  # or nothing would be paged

    first = body(page)
    page.pagination[0].set_value(2).run()
    second = body(page)
    page.pagination[0].set_value(1).run()
    by_key(page.selectbox, "abstain_group_biased").select(0).run()

    assert not page.exception
    assert first.count('class="tile"') == pictures.SHOWN
    fifteenth = f"score {answers.test['joint'].confidence[held[pictures.SHOWN]]:.3f}"
    assert fifteenth in second.split('class="tile"')[1]
    assert any(
        f"{int((labels[held] == 0).sum())} pictures, least sure first" in c.value
        for c in page.caption
    )
    assert "is 5–9" not in body(page)


def test_mistakes_are_shown_with_their_sign(page):
    control(page, "Which pictures").set_value("Answered and wrong").run()

    assert not page.exception
    assert 'class="chip broken"' in body(page)
    assert 'class="chip held"' not in body(page)


def test_at_full_coverage_nothing_is_held_back(page):
    page.slider[0].set_value(100).run()

    assert not page.exception
    assert any("No picture is held back" in caption.value for caption in page.caption)
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
        "All pictures (CSV)",
        "Table (CSV)",
    }
