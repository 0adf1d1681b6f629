import json
from itertools import pairwise

import numpy as np
import plotly.graph_objects as go
import pytest

from masktune.scores.flips import Change
from masktune.scores.groups import GroupScore
from masktune.scores.selective import GroupCoverage, Ranked, at_threshold, risk_coverage
from masktune.show.figures import (
    RIM,
    change_by_class,
    coverage_by_group,
    dumbbell,
    risk_coverage_curves,
    several_risk_coverage_curves,
)
from masktune.show.theme import AFTER, BEFORE, HIDDEN, JOINT, SERIES, empty, thinned

BEFORE_SCORES = (
    GroupScore("cow", "grass", 10, 0.9, (0.6, 0.98)),
    GroupScore("cow", "sand", 4, 0.25, (0.05, 0.7)),
    GroupScore("camel", "grass", 0, None, None),
)
AFTER_SCORES = (
    GroupScore("cow", "grass", 10, 0.5, (0.24, 0.76)),
    GroupScore("cow", "sand", 4, 0.75, (0.3, 0.95)),
    GroupScore("camel", "grass", 0, None, None),
)
HOSTILE = '<img src=x onerror="alert(1)">'


def trace(figure, name):
    (found,) = [one for one in figure.data if one.name == name]
    return found


def ranked(confidence, correct):
    return Ranked(np.array(confidence), np.array(correct, dtype=bool))


def curves():
    return {
        "joint": risk_coverage(ranked([0.9, 0.8, 0.7, 0.6], [1, 1, 1, 0])),
        "before": risk_coverage(ranked([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1])),
        "after": risk_coverage(ranked([0.9, 0.8, 0.7, 0.6], [1, 1, 1, 1])),
    }


def texts(figure):
    return [annotation.text for annotation in figure.layout.annotations]


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("colour", [AFTER, BEFORE, JOINT, HIDDEN, *SERIES])
@pytest.mark.parametrize("ground", ["#FFFFFF", "#F6F8F7", "#161E1B", "#0F1513"])
def test_every_mark_stands_three_to_one_off_light_and_dark(colour, ground):
    low, high = sorted((luminance(colour), luminance(ground)))

    assert (high + 0.05) / (low + 0.05) >= 3


def test_before_is_hollow_and_after_is_solid():
    figure = dumbbell(BEFORE_SCORES, AFTER_SCORES)

    before, after = trace(figure, "before"), trace(figure, "after")
    assert before.marker.symbol == "circle-open"
    assert after.marker.symbol == "circle"
    assert (before.marker.color, after.marker.color) == (BEFORE, AFTER)
    assert list(before.x) == [0.9, 0.25, None]
    assert list(after.x) == [0.5, 0.75, None]
    assert list(before.y) == list(after.y) == [0, 1, 2]


def test_intervals_reach_their_bounds_and_stop_at_the_dots_rim():
    figure = dumbbell(BEFORE_SCORES, AFTER_SCORES)

    whiskers = trace(figure, "95% interval, before")

    assert list(whiskers.x[:6]) == [0.6, 0.9 - RIM, None, 0.9 + RIM, 0.98, None]
    assert list(whiskers.x[6:]) == [0.05, 0.25 - RIM, None, 0.25 + RIM, 0.7, None]
    assert list(whiskers.y) == [0, 0, None, 0, 0, None, 1, 1, None, 1, 1, None]
    assert trace(figure, "95% interval, after").x[0] == 0.24


def test_an_interval_inside_the_dot_is_not_drawn():
    sure = [GroupScore("cow", "any", 10**6, 1.0, (0.99999, 1.0))]

    assert list(trace(dumbbell(sure, sure), "95% interval, after").x) == []


def test_a_line_joins_the_hollow_dots_rim_with_the_solid_dot():
    way = trace(dumbbell(BEFORE_SCORES, AFTER_SCORES), "change")

    assert list(way.x) == [0.9 - RIM, 0.5, None, 0.25 + RIM, 0.75, None]


def test_groups_are_labelled_with_n_and_the_worst_in_words():
    labels = texts(dumbbell(BEFORE_SCORES, AFTER_SCORES))[:3]

    assert labels == [
        "<b>cow</b>, grass  n = 10, worst after",
        "<b>cow</b>, sand  n = 4, worst before",
        "<b>camel</b>, grass  n = 0",
    ]


def test_a_group_worst_before_and_after_is_marked_once():
    labels = texts(dumbbell(BEFORE_SCORES, BEFORE_SCORES))

    assert labels[1].endswith("n = 4, worst before and after")


def test_the_change_stands_in_points_at_the_right():
    assert texts(dumbbell(BEFORE_SCORES, AFTER_SCORES))[3:] == ["points", "−40.0", "+50.0", "–"]


def test_hovering_gives_one_sentence_with_n_and_interval():
    hover = trace(dumbbell(BEFORE_SCORES, AFTER_SCORES), "after").text

    assert hover[1] == "cow, sand after: 75.0%, 95% interval 30.0 to 95.0%, n = 4."


def test_curves_are_told_apart_by_dash_and_width():
    figure = risk_coverage_curves(curves())

    before, after, joint = (trace(figure, name).line for name in ("before", "after", "joint"))
    assert (before.dash, after.dash, joint.dash) == ("dash", "solid", "solid")
    assert (before.color, after.color, joint.color) == (BEFORE, AFTER, JOINT)
    assert joint.width > after.width == before.width


def test_a_curve_shows_risk_over_coverage_and_its_area_at_the_end():
    figure = risk_coverage_curves(curves())

    joint = trace(figure, "joint")
    assert list(joint.x) == [1.0, 0.75, 0.5, 0.25, 0.0]
    assert list(joint.y) == [0.25, 0.0, 0.0, 0.0, 0.0]
    # One step from 0 to 0.25 over a quarter of the coverage: 0.25 * 0.25 / 2.
    assert "<b>joint</b> AURC 0.0312" in texts(figure)


def test_points_of_a_curve_lead_to_as_many_pictures_as_they_answer():
    chosen = at_threshold(ranked([0.9, 0.8, 0.7, 0.6], [1, 1, 1, 0]), 0.65)

    figure = risk_coverage_curves(curves(), point=chosen, split=("my test", 4))

    ways = [f"answered:my%20test:joint:{accepted}" for accepted in (4, 3, 2, 1)]
    assert list(trace(figure, "joint").customdata) == [*ways, None]  # no picture is answered at 0
    assert list(trace(figure, "threshold").customdata) == [ways[1]]


def test_risk_starts_at_zero_and_shows_its_highest_value():
    figure = risk_coverage_curves(curves())

    low, high = figure.layout.yaxis.range
    assert low == 0
    assert high >= 1


def test_the_chosen_threshold_is_a_diamond_with_target_and_achieved_coverage():
    chosen = ranked([0.9, 0.8, 0.7, 0.6], [1, 1, 1, 0])
    point = at_threshold(chosen, 0.65)

    figure = risk_coverage_curves(curves(), score="joint", point=point, target=0.8)

    diamond = trace(figure, "threshold")
    assert (list(diamond.x), list(diamond.y)) == ([0.75], [0.0])
    assert diamond.marker.symbol == "diamond"
    assert diamond.marker.color == JOINT
    assert "target 80%, achieved 75%" in texts(figure)
    assert "0.0% wrong of the 3 answered" in diamond.hovertemplate


@pytest.mark.parametrize(("gamma", "side"), [(0.65, "right"), (0.75, "left"), (0.85, "left")])
def test_the_note_of_the_threshold_stays_inside_the_plot(gamma, side):
    point = at_threshold(ranked([0.9, 0.8, 0.7, 0.6], [1, 1, 1, 0]), gamma)

    figure = risk_coverage_curves(curves(), point=point)

    assert figure.layout.annotations[-1].xanchor == side


def test_labels_at_line_ends_do_not_overlap_and_stay_inside():
    same = risk_coverage(ranked([0.9, 0.8], [1, 0]))

    figure = risk_coverage_curves({"joint": same, "before": same, "after": same})

    heights = sorted(annotation.y for annotation in figure.layout.annotations)
    top = figure.layout.yaxis.range[1]
    gap = 24 / figure.layout.height * top
    assert len(heights) == 3
    assert all(b - a >= gap * 0.999 for a, b in pairwise(heights))
    assert heights[-1] <= top


def test_abstained_is_hatched_and_answered_is_solid():
    groups = [
        GroupCoverage("cow", "grass", 10, 9, 0.9, 0.0),
        GroupCoverage("cow", "sand", 0, 0, None, None),
    ]

    figure = coverage_by_group(groups)

    answered, held = trace(figure, "answered"), trace(figure, "abstained")
    assert list(answered.x) == [0.9, None]
    assert list(held.x) == [pytest.approx(0.1), None]
    assert held.marker.pattern.shape == "/"
    assert answered.marker.pattern.shape is None
    assert texts(figure)[0] == "<b>cow</b>, grass  n = 10"
    assert texts(figure)[2:] == ["answered", "90.0%", "–"]


def test_class_changes_carry_their_intervals_as_error_bars():
    changes = [
        Change("cow", count=20, right_before=10, fixed=5, broken=1),
        Change("camel", count=0, right_before=0, fixed=0, broken=0),
        Change("goat", count=10, right_before=10, fixed=0, broken=1),
    ]
    cow, goat = changes[0].interval, changes[2].interval

    figure = change_by_class(changes, marks=["class:t:0", "class:t:1", "class:t:2"])

    marks = trace(figure, "change")
    assert list(marks.customdata) == ["class:t:0", "class:t:2"]
    assert list(marks.x) == [0.2, -0.1]
    assert list(marks.y) == [0, 2]
    assert list(marks.error_x.array) == pytest.approx([cow[1] - 0.2, goat[1] + 0.1])
    assert list(marks.error_x.arrayminus) == pytest.approx([0.2 - cow[0], -0.1 - goat[0]])
    assert texts(figure)[3:] == ["points", "+20.0", "–", "−10.0"]
    low, high = figure.layout.xaxis.range
    assert -low == high > max(cow[1], -goat[0])
    assert "0" in figure.layout.xaxis.ticktext
    assert "−25" in figure.layout.xaxis.ticktext


def all_figures():
    change = Change(HOSTILE, count=10, right_before=10, fixed=0, broken=1)
    score = GroupScore(HOSTILE, "any", 3, 1.0, (0.4, 1.0))
    coverage = GroupCoverage(HOSTILE, "any", 3, 3, 1.0, 0.0)
    return [
        dumbbell([score], [score]),
        risk_coverage_curves(curves()),
        coverage_by_group([coverage]),
        change_by_class([change]),
    ]


@pytest.mark.parametrize("figure", all_figures())
def test_a_figure_leaves_colours_of_text_and_ground_to_the_page(figure):
    layout = figure.layout

    assert layout.paper_bgcolor == layout.plot_bgcolor == "rgba(0,0,0,0)"
    assert layout.title.text is None
    assert layout.font.color is None
    assert layout.xaxis.gridcolor is None
    assert layout.xaxis.fixedrange
    assert layout.yaxis.fixedrange
    assert layout.dragmode is False


@pytest.mark.parametrize("figure", all_figures())
def test_a_figure_says_in_words_what_it_shows(figure):
    assert figure.layout.meta.count(".") >= 1
    assert len(figure.layout.meta) > 30


@pytest.mark.parametrize("figure", all_figures())
def test_names_are_no_markup_in_labels(figure):
    # Alone ``meta`` is plain text; whoever shows it escapes it.
    figure.update_layout(meta="")

    assert "<img" not in json.dumps(figure.to_plotly_json(), default=str)


def test_long_curves_are_thinned_but_keep_their_ends():
    kept = thinned(50_000)

    assert len(kept) == 1000
    assert (kept[0], kept[-1]) == (0, 49_999)
    assert thinned(3).tolist() == [0, 1, 2]


def test_an_empty_figure_in_one_layout_is_what_plotlys_updates_make():
    clear = "rgba(0,0,0,0)"
    slowly = go.Figure()
    slowly.update_layout(height=250, paper_bgcolor=clear, plot_bgcolor=clear, dragmode=False)
    slowly.update_layout(margin={"l": 8, "r": 16, "t": 16, "b": 8}, hovermode="closest")
    slowly.update_layout(font={"size": 13})
    for update in (slowly.update_xaxes, slowly.update_yaxes):
        update(fixedrange=True, zeroline=False, automargin=True, ticks="outside", ticklen=6)
        update(title={"font": {"size": 13}, "standoff": 8}, tickcolor=clear)
    slowly.update_yaxes(title_standoff=20)

    assert json.loads(empty(height=250).to_json()) == json.loads(slowly.to_json())


def test_a_very_long_name_is_cut_on_the_axis_and_whole_in_words():
    long = "a" * 150
    scores = [GroupScore(long, "sand", 10, 0.9, (0.6, 0.98))]

    figure = dumbbell(scores, scores)

    label = texts(figure)[0]
    assert label.startswith(f"<b>{'a' * 31}…</b>, sand  n = 10")
    assert long in figure.layout.meta


def test_a_long_name_in_a_key_has_lines():
    name = "Control: one more epoch, nothing hidden, 18 Nov 12:06, joint"
    curve = risk_coverage(ranked([0.9, 0.8, 0.7, 0.6], [1, 1, 1, 0]))

    (line,) = several_risk_coverage_curves(None, {name: {"after": curve}}).data

    assert line.name == (
        "Control: one more epoch, nothing<br>hidden, 18 Nov 12:06, joint<br>(AURC\xa00.0312)"
    )


def test_curves_of_one_method_look_alike_and_have_another_width():
    curve = risk_coverage(ranked([0.9, 0.8, 0.7, 0.6], [1, 1, 1, 0]))
    both = {"MaskTune": {"after": curve, "joint": curve}, "DFR": {"after": curve}}

    before, after, joint, other = several_risk_coverage_curves(curve, both).data

    assert [line.name.split(" (")[0] for line in (before, after, joint, other)] == [
        "before",
        "MaskTune",
        "MaskTune, joint",
        "DFR",
    ]
    assert before.line.color == BEFORE
    assert (after.line.color, after.line.dash) == (joint.line.color, joint.line.dash)
    assert after.line.width > joint.line.width
    assert (other.line.color, other.line.dash) != (after.line.color, after.line.dash)


def test_points_of_several_runs_lead_to_the_pictures_that_their_run_answers():
    curve = risk_coverage(ranked([0.9, 0.8, 0.7, 0.6], [1, 1, 1, 0]))
    both = {"MaskTune": {"after": curve, "joint": curve}, "DFR": {"own": curve}}
    asked = {"MaskTune": ("my test", 4, ""), "DFR": ("my test", 4, "studies/a/seed-0/b")}

    lines = several_risk_coverage_curves(curve, both, asked=asked).data
    unasked = several_risk_coverage_curves(curve, both).data

    assert [line.customdata[-2] for line in lines] == [
        "answered:my%20test:before:1",
        "answered:my%20test:after:1",
        "answered:my%20test:joint:1",
        "answered:my%20test:own:1:-1:studies%2Fa%2Fseed-0%2Fb",
    ]
    assert all(line.customdata is None for line in unasked)


@pytest.mark.parametrize("methods", [2, 12])
def test_a_key_of_many_methods_takes_nothing_from_the_curves(methods):
    curve = risk_coverage(ranked([0.9, 0.8, 0.7, 0.6], [1, 1, 1, 0]))
    many = {f"Method {number}, 18 Nov 12:06": {"after": curve} for number in range(methods)}

    layout = several_risk_coverage_curves(None, many).layout

    below = -layout.legend.y * (layout.height - layout.margin.b - 24)
    assert layout.height - layout.margin.b == 322
    assert layout.legend.maxheight >= 16 * methods
    assert layout.margin.b == pytest.approx(layout.legend.maxheight + below)
