"""Several runs on the same pictures: paired differences."""

import shutil
from csv import DictReader

import numpy as np
import pytest

from masktune.runs.open import OpenRun
from masktune.show.methods import paired_table
from masktune.show.tables import csv
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
