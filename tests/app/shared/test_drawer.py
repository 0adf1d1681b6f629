"""One drawer for all pages: what is clicked opens its pictures, as many as the mark says."""

import numpy as np
import pytest

from app.abstain.numbers import read_off
from app.abstain.words import group_marks as abstain_marks
from app.compare.confusion import confusion
from app.shared.drawer import of_run
from masktune.errors import ConfigError
from masktune.scores.flips import answer_changes
from masktune.scores.marks import (
    MARKS,
    CellMark,
    DecileMark,
    FlipMark,
    WrongMark,
    read_mark,
    written,
)
from masktune.scores.metrics import METRICS
from masktune.scores.selective import decile_risks
from masktune.show.abstained import least_answered, rank
from masktune.show.clues import clue_captions, leaning
from masktune.show.figures import coverage_by_group, risk_by_decile, risk_coverage_curves
from masktune.show.marks import of_split, pictures_csv
from masktune.show.results import (
    changes_by_class,
    classes_figure,
    groups_figure,
    metric_mark,
)
from masktune.show.wording import pictures
from tests.app.conftest import DEMO, address

pytestmark = pytest.mark.usefixtures("pictures_read_once")


def said_by_marks(test) -> dict[str, int]:
    """Give what every mark of the run's charts and tables says, by how an address names it."""
    rankings = rank(test.run.predictions.validation, test.pair)
    said = {}
    for figure, numbers in (
        (groups_figure(test, most=12), [s.count for s in test.before.scores if s.count]),
        (classes_figure(test, most=12), [change.count for change in changes_by_class(test)]),
    ):
        for trace in figure.data:
            if trace.customdata is not None:
                said |= dict(zip(trace.customdata, numbers, strict=True))
    for model, predictions in (("before", test.pair.before), ("after", test.pair.after)):
        for (label, answer), number in np.ndenumerate(confusion(predictions)):
            said[written(CellMark(test.name, model, label, answer))] = int(number)
    for metric in METRICS:
        for each in (test.before, test.after):
            said[written(metric_mark(metric, test, each))] = metric.count(each)
    changes = answer_changes(test.pair.before, test.pair.after)
    said |= {
        written(FlipMark(test.name, state)): changes.count(state) for state in ("fixed", "broken")
    }
    for score, ranked in rankings.test.items():
        reading = read_off(rankings, score, target=0.8)
        groups = least_answered(ranked, test.pair.before, gamma=reading.point.gamma, names=test)
        marks = abstain_marks(test, reading, groups)
        for group, (answered, abstained) in zip(groups, marks, strict=True):
            said[written(answered)] = group.accepted
            said[written(abstained)] = group.count - group.accepted
            wrong = WrongMark(*(answered.split, score, answered.accepted, answered.group))
            said[written(wrong)] = round((group.risk or 0.0) * group.accepted)
        said[written(WrongMark(test.name, score, reading.point.accepted))] = reading.wrong
        found = decile_risks(ranked)
        named = [written(DecileMark(test.name, score, decile.number)) for decile in found]
        bars = risk_by_decile(found, marks=named).data[0]
        said |= dict(zip(bars.customdata, [decile.count for decile in found], strict=True))
    curves = risk_coverage_curves(
        rankings.curves, point=reading.point, score=score, split=(test.name, len(test))
    )
    for trace in curves.data:
        both = zip(trace.customdata, trace.x, strict=True)
        said |= {mark: round(x * len(test)) for mark, x in both if mark is not None}
    return said


def test_the_drawer_holds_as_many_pictures_as_each_mark_of_the_demo_run_says(original):
    said = said_by_marks(original)

    of = of_run(original)("original").examples()
    held = {text: len(read_mark(text).rows(of)) for text in said}

    assert held == said
    assert {text.split(":")[0] for text in said} == {*MARKS} - {"clue", "only"}
    assert len(said) > 1000  # the curves have about a thousand points


def test_a_clue_of_the_demo_run_leads_to_as_many_training_pictures_as_it_says(original):
    run = original.run
    found = leaning(run.bundle, run.store)
    of = of_split(
        run.bundle.train, run.bundle.card, said={}, clues=[clue.members for clue in found.clues]
    )

    for number, caption in enumerate(clue_captions(found), start=1):
        rows = read_mark(f"clue:train:{number}").rows(of)
        assert f"clue%3Atrain%3A{number}" in caption
        assert f">{pictures(len(rows))}</a>" in caption


def test_bars_of_what_is_answered_and_abstained_lead_to_different_pictures(original):
    rankings = rank(original.run.predictions.validation, original.pair)
    reading = read_off(rankings, "joint", target=0.8)
    ranked, gamma = rankings.test["joint"], reading.point.gamma
    groups = least_answered(ranked, original.pair.before, gamma=gamma, names=original)
    marks = abstain_marks(original, reading, groups)
    of = of_run(original)("original").examples()

    figure = coverage_by_group(groups, marks=[(written(a), written(b)) for a, b in marks])

    answered, abstained = (
        [read_mark(text).rows(of) for text in trace.customdata] for trace in figure.data
    )
    assert all((ranked.confidence[rows] > gamma).all() for rows in answered)
    assert all((ranked.confidence[rows] <= gamma).all() for rows in abstained)


def test_the_file_names_every_picture_in_the_order_shown(original):
    of = of_run(original)("original").examples()

    lines = pictures_csv(of, [5, 2], split="original").decode().splitlines()

    assert lines[0] == "split,position,file,label,group,before,before sure,after,after sure"
    assert [line.split(",")[:3] for line in lines[1:]] == [
        ["original", "5", ""],
        ["original", "2", ""],
    ]


def test_a_set_that_the_run_was_not_tested_on_is_named(original):
    with pytest.raises(ConfigError, match=r"not tested on “summer”.*biased, original, validation"):
        of_run(original)("summer")


def titles(at) -> list[str]:
    return [block.proto.dialog.title for block in at.get("dialog")]


def test_a_link_opens_the_pictures_behind_a_mark_with_filter_and_order(
    home_with_run, finished_run, open_page, original
):
    fixed = answer_changes(original.pair.before, original.pair.after).count("fixed")
    shown = {"shown": "flip:original:fixed", "shown_order": "sure", "shown_page": "2"}

    at = open_page("compare", dataset=DEMO, run=finished_run.name, test="original", **shown)

    assert not at.exception
    assert titles(at) == [f"Fixed: {pictures(fixed)}"]
    assert address(at).items() >= shown.items()
    assert any('href="picture?picture=original%2F' in html.value for html in at.get("html"))

    at.selectbox(key="shown_order").set_value("unsure").run()

    assert address(at)["shown_order"] == "unsure"
    assert "shown_page" not in address(at)  # another order begins anew
    (pages,) = [one for one in at.get("pagination") if "unsure" in one.key]
    pages.set_value(2).run()
    assert address(at)["shown_page"] == "2"


def test_the_same_pictures_by_another_score_say_what_that_score_makes_of_them(
    home_with_run, finished_run, open_page
):
    judged = {}
    for score in ("after", "joint"):  # all 1,000 pictures are answered, by either
        shown = f"answered:original:{score}:1000"
        at = open_page("abstain", dataset=DEMO, run=finished_run.name, shown=shown)
        assert not at.exception
        judged[score] = any("right by the joint score" in html.value for html in at.get("html"))

    assert judged == {"after": False, "joint": True}


def test_a_link_to_what_this_run_does_not_have_says_so(home_with_run, finished_run, open_page):
    at = open_page("abstain", dataset=DEMO, run=finished_run.name, shown="group:original:9")

    assert not at.exception
    assert titles(at) == ["No such pictures"]
    assert any("There is no group 9 in these pictures" in error.value for error in at.error)


def test_the_drawer_is_closed_on_another_page(home_with_run, finished_run, open_page):
    at = open_page("compare", dataset=DEMO, run=finished_run.name, shown="class:original:1")
    at.query_params.clear()

    at.switch_page("abstain/page.py").run()

    assert not at.exception
    assert titles(at) == []
    assert "shown" not in address(at)
