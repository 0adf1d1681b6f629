"""Loss, accuracy and speed of the steps so far."""

import csv
import io

import pytest

from app.finetune.charts import newest_stage, running_mean, speed, steps_chart, steps_csv


def event(step, *, stage="finetune", loss=0.5, accuracy=0.5, total=55):
    return {
        "time": 10.0 + step / 4, "stage": stage, "step": step, "total": total,
        "loss": loss, "accuracy": accuracy,
    }  # fmt: skip


def test_the_running_mean_looks_back_only():
    assert running_mean([1.0, 3.0, 5.0, 7.0], 2).tolist() == [1.0, 2.0, 4.0, 6.0]


def test_charts_reach_to_the_last_step_and_say_where_they_end():
    steps = [event(step, loss=1.0, accuracy=0.75) for step in range(1, 29)]

    loss, accuracy = steps_chart(steps, "loss"), steps_chart(steps, "accuracy")

    assert tuple(loss.layout.xaxis.range) == (0, 55)
    assert loss.layout.yaxis.range[0] == 0
    assert loss.layout.annotations[0].text == "1.00"
    assert accuracy.layout.annotations[0].text == "75%"
    assert tuple(accuracy.layout.yaxis.range) == pytest.approx((0.7, 1.015))
    assert "28 of 55 steps of finetune" in loss.layout.meta
    assert len(loss.data[1].x) == 28


def test_a_short_run_is_marked_at_whole_steps():
    assert steps_chart([event(1, total=2)], "loss").layout.xaxis.dtick == 1
    assert steps_chart([event(1)], "loss").layout.xaxis.dtick is None


def test_one_step_is_already_drawn():
    assert steps_chart([event(1)], "loss").data[1].mode == "markers"


def test_a_loss_beyond_all_bounds_is_written_short():
    chart = steps_chart([event(1, loss=2280111572118300203612635136.0)], "loss")

    assert chart.layout.annotations[0].text == "2.3e27"


def test_a_loss_of_zero_still_has_an_axis():
    assert steps_chart([event(1, loss=0.0)], "loss").layout.yaxis.range[1] > 0


def test_the_newest_stage_is_drawn_alone():
    both = [event(1, stage="train"), event(2, stage="train"), event(1), event(2)]

    assert newest_stage(both) == both[2:]
    assert newest_stage([]) == []


def test_the_speed_is_steps_a_second_of_late():
    slow = {**event(0), "time": 0.0}

    assert speed([event(step) for step in range(1, 10)]) == pytest.approx(4.0)
    assert speed([slow, *(event(step) for step in range(1, 10))], over=5) == pytest.approx(4.0)
    assert speed([event(1)]) is None
    assert speed([event(1), event(1)]) is None


def test_steps_are_saved_as_csv():
    rows = list(csv.DictReader(io.StringIO(steps_csv([event(1, loss=0.25)]).decode())))

    assert rows == [{"stage": "finetune", "step": "1", "loss": "0.25", "accuracy": "0.5"}]
