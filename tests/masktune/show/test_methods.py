"""Several runs on the same pictures: paired differences."""

import re
import shutil
from csv import DictReader
from urllib.parse import unquote

import numpy as np
import pytest

from masktune.runs.open import OpenRun
from masktune.scores.marks import Examples, read_mark
from masktune.show import methods
from masktune.show.contact_sheets import TILE
from masktune.show.marks import of_two
from masktune.show.methods import (
    between_table,
    heat_rows,
    only_right,
    paired_table,
    risk_csv,
    risk_line,
)
from masktune.show.painting import enlarged, heat_over, picture_of
from masktune.show.tables import csv, html
from masktune.show.wording import percent
from tests.old_runs import DEMO, put


@pytest.fixture
def tests(tmp_path):
    """Give a test set of a run, and of one whose model after answers as the model before."""
    path = put(DEMO, tmp_path)
    other = shutil.copytree(path, tmp_path / "other")
    with np.load(path / "predictions.npz") as file:
        arrays = {name: file[name] for name in file.files}
    for name in arrays:
        if name.endswith("/after"):
            arrays[name] = arrays[name.removesuffix("after") + "before"]
    np.savez(other / "predictions.npz", **arrays)
    return {"one": OpenRun(path).tests["original"], "two": OpenRun(other).tests["original"]}


def rows_of(table):
    return {row["run"]: row for row in DictReader(csv(table).decode().splitlines())}


def test_a_run_differs_from_another_by_its_answers_to_the_same_pictures(tests):
    found = rows_of(paired_table(tests, against="one"))

    one = tests["one"]
    change = one.before.average - one.after.average
    assert float(found["two"]["average difference"]) == pytest.approx(change)
    low, high = (float(found["two"][f"average difference {end}"]) for end in ("low", "high"))
    assert low < change < high
    assert found["one"]["average difference"] == ""
    worst = found["two"]["group"]
    assert worst == found["one"]["worst name"]
    assert float(found["one"]["worst after"]) == one.after.worst.accuracy


def test_runs_on_other_pictures_have_no_pair(tests):
    table = paired_table(tests, against="one", apart={"two"})

    assert rows_of(table)["two"]["average difference"] == ""
    assert table.rows[1][-1].text == "other pictures"


def test_counts_between_two_runs_lead_to_as_many_pictures_and_no_file_changes(tests):
    one, other = tests["one"], tests["two"]
    names = ("one", "two")

    table = between_table(one, other, names, against="two")

    of = Examples.of_pair(one.pair, one)
    both = of_two(of, other.pair.after)
    for row in table.rows:
        for cell in (row[1], row[5], row[6]):
            (number,) = cell.values
            if not number:
                assert cell.text == "0"
                continue
            (text,) = re.findall(r'href="\?shown=([^"]*)"', cell.text)
            mark = read_mark(unquote(text))
            assert len(mark.rows(both if mark.kind == "only" else of)) == number
    assert len(read_mark("only:original:this:two").rows(both)) == len(only_right(one, other)[0]) > 0
    assert csv(table) == csv(between_table(one, other, names))
    assert 'class="mark"' not in html(between_table(one, other, names))


def test_heat_of_several_models_is_painted_on_one_scale(tests, monkeypatch):
    """Scaled by its own largest value, each of these would look alike."""
    heat = iter([0.25, 0.5, 1.0])
    monkeypatch.setattr(
        methods, "heat_of", lambda _run, _model, _images: np.full((2, 28, 28), next(heat))
    )

    rows = heat_rows(tests, [3, 5])

    assert [*rows] == ["Picture", "Before", "one", "two"]
    images = tests["one"].split.images.batch([3, 5])
    for name, value in (("Before", 0.25), ("one", 0.5), ("two", 1.0)):
        for tile, image in zip(rows[name], images, strict=True):
            painted = heat_over(picture_of(image), np.full((28, 28), value))
            assert np.array_equal(tile, enlarged(painted, TILE))
    assert not np.array_equal(rows["one"][0], rows["two"][0])


def test_risk_as_csv_has_every_curve_of_every_run_to_full_coverage(tests):
    rows = [*DictReader(risk_csv(tests).decode().splitlines())]

    curves = {}
    for row in rows:
        point = float(row["coverage"]), float(row["risk"])
        curves.setdefault(row["run, score"], []).append(point)
    assert [*curves] == ["before", "one", "one, joint", "two", "two, joint"]
    one = tests["one"]
    for name, summary in (("before", one.before), ("one", one.after), ("two", one.before)):
        coverage, risk = max(curves[name])
        assert coverage == 1.0
        assert risk == pytest.approx(1 - summary.average)
    assert curves["two"] == curves["before"]  # it answers as the model before does


def test_links_lead_to_what_each_method_answers_nearest_to_a_coverage(tests):
    line = risk_line(tests, runs={"one": "", "two": "other"}, coverage=0.9)

    found = re.findall(r'href="\?shown=(.*?)">(\w+), (.*?) answered</a>', line)
    assert [name for _, name, _ in found] == ["one", "two"]
    assert unquote(found[1][0]).endswith(":other")
    for shown, name, share in found:
        test, mark = tests[name], read_mark(unquote(shown))
        rows = mark.rows(Examples.of_pair(test.pair, test))
        assert percent(len(rows) / len(test)) == share
        assert len(rows) / len(test) == pytest.approx(0.9, abs=0.05)
