import pytest

from masktune.heat.strategies import Hidden
from masktune.show.curves import (
    accuracy_by_round,
    empty_against_k,
    hidden_against_k,
    steps_together,
)
from masktune.show.theme import HIDDEN


def hidden(*shares):
    return [Hidden(hidden_fraction=share, empty_fraction=0.0) for share in shares]


def test_the_hidden_area_falls_with_k_and_the_k_in_use_is_marked():
    figure = hidden_against_k([0.0, 1.0, 2.0], {"all": hidden(0.4, 0.1, 0.05)}, k=2.0)

    (line,) = figure.data
    assert (list(line.x), list(line.y)) == ([0.0, 1.0, 2.0], [0.4, 0.1, 0.05])
    assert line.line.color == HIDDEN
    assert figure.layout.shapes[0].x0 == 2.0
    assert figure.layout.yaxis.range[0] == 0
    assert figure.layout.showlegend is False


def test_groups_differ_in_dash_and_have_a_key():
    figure = hidden_against_k([0.0, 1.0], {"a": hidden(0.4, 0.1), "b": hidden(0.2, 0.1)})

    assert len({t.line.dash for t in figure.data}) == 2
    assert len({t.line.color for t in figure.data}) == 2
    assert figure.layout.showlegend is True
    assert len(figure.layout.shapes) == 0


def test_rounds_start_hollow_with_the_model_before():
    figure = accuracy_by_round({"average": [0.3, 0.5, 0.9], "worst": [0.1, None, 0.8]})

    average, worst = figure.data
    assert list(average.y) == [0.3, 0.5, 0.9]
    assert list(worst.y) == [0.1, None, 0.8]
    assert list(average.marker.symbol) == ["circle-open", "circle", "circle"]
    assert list(figure.layout.xaxis.ticktext) == ["before", "round 1", "round 2"]
    assert "average: 30.0%, 50.0%, 90.0%" in figure.layout.meta


def test_ten_groups_are_ten_different_lines():
    nothing = Hidden(hidden_fraction=0.1, empty_fraction=0.0)

    figure = hidden_against_k([0.0, 1.0], {str(n): [nothing, nothing] for n in range(10)})

    assert len({(line.line.color, line.line.dash) for line in figure.data}) == 10


@pytest.mark.parametrize(
    "figure",
    [
        hidden_against_k([0.0, 1.0], {"<b>x</b>": hidden(0.4, 0.1), "y": hidden(0.1, 0.1)}),
        accuracy_by_round({"<b>x</b>": [0.1, 0.2], "y": [0.1, 0.2]}),
    ],
)
def test_names_of_lines_are_no_markup(figure):
    assert figure.data[0].name == "&lt;b&gt;x&lt;/b&gt;"
    assert "<b>x" not in figure.data[0].hovertemplate


def test_the_steps_of_several_runs_are_running_means_with_their_ends():
    steps = [{"step": n, "loss": 4.0 - n, "accuracy": n / 4} for n in (1, 2, 3)]
    one = [{"step": 1, "loss": 0.5, "accuracy": 0.5}]

    figure = steps_together({"long": steps, "<short>": one}, "loss")

    assert [list(line.y) for line in figure.data] == [[3.0, 2.5, 2.0], [0.5]]
    assert [line.name for line in figure.data] == ["long (2.000)", "&lt;short&gt; (0.500)"]
    assert [line.mode for line in figure.data] == ["lines", "markers"]
    assert "long: 2.000 after 3 steps" in figure.layout.meta
    assert steps_together({"long": steps}, "accuracy").data[0].name == "long (50.0%)"


def test_points_against_k_carry_their_k_only_where_a_page_takes_it():
    curves = {"all": hidden(0.4, 0.1)}

    for draw in (hidden_against_k, empty_against_k):
        (taken,), (shown,) = (
            draw([0.0, 1.0], curves, takes=True).data,
            draw([0.0, 1.0], curves).data,
        )
        assert list(taken.customdata) == [0.0, 1.0]
        assert "click to take it" in taken.hovertemplate
        assert shown.customdata is None
        assert "click" not in shown.hovertemplate
