"""The figure of accuracy against k."""

import pytest

from app.compare.charts import accuracy_against_k, sweep_marks
from masktune.scores.marks import written
from tests.app.shared.test_run_rows import job, of_classes, row


def test_accuracy_against_k_says_every_number_and_draws_the_interval(tmp_path):
    rows = [
        row(job("a", tmp_path, k=1.0), worst=(0.3, 0.5), interval=(0.4, 0.65)),
        row(job("b", tmp_path, k=2.0), worst=(0.3, 0.9), interval=(0.85, 0.94)),
    ]

    figure = accuracy_against_k(rows, k=2.0)

    after = next(trace for trace in figure.data if trace.name == "worst group after")
    assert list(after.x) == [1.0, 2.0]
    assert list(after.y) == [0.5, 0.9]
    assert after.error_y.array == pytest.approx([0.15, 0.04])
    assert after.error_y.arrayminus == pytest.approx([0.1, 0.05])
    before = next(trace for trace in figure.data if trace.name == "worst group before")
    assert list(before.y) == [0.3, 0.3]
    assert "k = 1: worst group 50.0%, 95% interval 40.0 to 65.0%, n = 256." in figure.layout.meta
    assert "k = 2: test average 95.0%, n = 1,000." in figure.layout.meta


def test_every_point_of_accuracy_against_k_leads_to_the_pictures_behind_it(tmp_path):
    # Of 1,000 pictures the worst group is the first; k = 2 is that of the run on the page.
    rows = [row(job(name, tmp_path, k=k)) for name, k in (("a", 1.0), ("b", 2.0))]

    lines = {trace.name: trace.customdata for trace in accuracy_against_k(rows, k=2.0).data}

    every = "answered:test:after:1000"
    assert lines == {
        "worst group before": (f"{every}:0",) * 2,
        "test average before": (every,) * 2,
        "worst group after": (f"{every}:0:a", f"{every}:0"),
        "test average after": (f"{every}:-1:a", every),
    }
    assert {name: written(mark) for name, mark in sweep_marks(rows, k=2.0).items()} == {
        "k = 1, worst group": f"{every}:0:a",
        "k = 1, all": f"{every}:-1:a",
        "k = 2, worst group": f"{every}:0",
        "k = 2, all": every,
    }


def test_accuracy_against_k_speaks_of_classes_where_there_are_no_groups(tmp_path):
    rows = [of_classes(row(job(str(k), tmp_path, k=k))) for k in (1.0, 2.0)]

    figure = accuracy_against_k(rows, k=2.0)

    assert "worst group" not in figure.layout.meta
    assert "k = 1: worst class 90.0%, 95% interval 85.0 to 94.0%, n = 256." in figure.layout.meta
    after = next(trace for trace in figure.data if trace.name == "worst class after")
    assert after.error_y.array == pytest.approx([0.04, 0.04])
