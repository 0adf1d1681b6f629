"""Numbers of an experiment, and the page of results."""

import json
import re
from dataclasses import MISSING, asdict, fields, replace
from pathlib import Path

import pytest

from masktune.config import TrainConfig
from masktune.scores.result import RunResult
from masktune.studies.experiments import EXPERIMENTS, ONE_MORE
from masktune.studies.paper import Number
from masktune.studies.reproduce import Request, name_of, plan
from masktune.studies.results_page import markdown, page, results_page
from masktune.studies.tables import document, interval, reading
from tests import results

ROOT = Path(__file__).resolve().parents[3]

RUN = results.a_result(
    {"biased": results.both(0.4, 0.9)},
    rounds=[
        {"test": {"biased": {"average": 0.5, "worst_group": 0.1}}},
        {"test": {"biased": {"average": 0.9, "worst_group": 0.8}}},
    ],
    selective={
        "biased": [
            {"score": "joint", "target": 0.9, "coverage": 0.89, "error": 0.05, "gamma": 0.3},
            {"score": "before", "target": 0.9, "coverage": 0.91, "error": 0.07, "gamma": 0.6},
        ]
    },
)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ({"moment": "before", "measure": "average"}, 0.4),
        ({"moment": "after", "measure": "worst_group"}, 0.9),
        ({"moment": "after", "measure": "average", "rounds": 1}, 0.5),
        ({"moment": "after", "measure": "worst_group", "rounds": 2}, 0.8),
        ({"moment": "after", "measure": "average", "rounds": 3}, None),  # it stopped early
        ({"moment": "joint", "measure": "error", "target": 0.9}, 0.05),
        ({"moment": "before", "measure": "coverage", "target": 0.9}, 0.91),
        ({"moment": "joint", "measure": "error", "target": 0.5}, None),
    ],
)
def test_a_number_is_read_where_the_run_has_it(key, value):
    assert reading(RUN, Number(arm="MaskTune", test="biased", **key)) == value
    assert reading(RUN, Number(arm="MaskTune", test="another", **key)) is None


def a_result(rounds: int) -> RunResult:
    """A run on two squares whose accuracy grows by a tenth a round, from 0.4."""
    reached = [0.4 + 0.1 * number for number in range(rounds + 1)]
    tests = ("biased", "original")
    return results.a_result(
        {name: results.both(reached[0], reached[-1]) for name in tests},
        rounds=[
            {"test": {name: {"average": one, "worst_group": one} for name in tests}}
            for one in reached[1:]
        ],
    )


def test_a_first_seed_that_stopped_early_does_not_hide_the_later_rounds_of_the_others(tmp_path):
    request = Request(recipe="two-squares-mnist-5k", scale="short", seeds=2)
    done = [
        (planned, a_result(1 if planned.seed == 0 else planned.config.masking.rounds))
        for planned in plan(request, out=tmp_path)
    ]

    rows = document(request, done)["rows"]

    found = {
        row["rounds"]: row["values"]
        for row in rows
        if (row["arm"], row["test"], row["moment"]) == ("accumulative", "biased", "after")
    }
    assert found == {1: [0.5, 0.5], 2: pytest.approx([0.6]), 3: pytest.approx([0.7])}


def test_an_unfinished_experiment_has_the_rows_of_the_arms_that_are(tmp_path):
    request = Request(recipe="selective-table", scale="short", seeds=1)
    first, second = [(one, a_result(1)) for one in plan(request, out=tmp_path)][:2]

    def arms(*done):
        rows = document(request, done)["rows"]
        return {row["arm"] for row in rows if row["values"]}, {row["arm"] for row in rows}

    assert arms(first) == ({ONE_MORE}, {ONE_MORE})
    assert arms(first, second) == ({ONE_MORE, "MaskTune"}, {ONE_MORE, "MaskTune"})
    assert "| MaskTune |" in markdown(document(request, [first, second]))


def test_cpu_seconds_are_summed_where_every_run_has_recorded_them(tmp_path):
    request = Request(recipe="two-squares-mnist-5k", scale="short", seeds=1)
    runs = list(plan(request, out=tmp_path))
    timed = [(planned, replace(a_result(1), cpu_seconds=90.5)) for planned in runs]

    table = document(request, timed)

    assert table["cpu_seconds"] == 3 * 90.5  # ERM, accumulative and not
    assert "on cpu (272 CPU seconds)" in markdown(table)
    older = [(timed[0][0], a_result(1)), *timed[1:]]
    assert document(request, older)["cpu_seconds"] is None
    assert "CPU seconds" not in markdown(document(request, older))


def test_the_interval_is_students_and_needs_two_values():
    # Mean 0.92, standard error 0.02 / sqrt(3), t(0.975, 2) = 4.303: 0.92 +- 0.0497.
    assert interval([0.90, 0.92, 0.94]) == pytest.approx([0.8703, 0.9697], abs=1e-4)
    assert interval([0.9]) is None
    assert interval([0.5, 1.0])[1] == 1.0  # no accuracy is above 1


def a_table(**changes):
    row = {
        "arm": "MaskTune", "test": "biased", "moment": "after", "measure": "average",
        "target": None, "rounds": None, "title": "accuracy", "values": [0.98, 0.97], "n": 2,
        "mean": 0.975, "std": 0.00707, "interval": [0.9115, 1.0],
        "paper": {"value": 0.9826, "std": 0.0027, "source": "appendix", "tolerance": 0.02,
                  "within": True},
    }  # fmt: skip
    values = {
        "recipe": "mnist-square", "scale": "short", "dataset": "biased-mnist", "arch": "small-cnn",
        "epochs": 8, "frame": None, "model": None, "seeds": [0, 1], "rows": [row], "classes": [],
        "findings": [], "seconds": 600.0, "device": "cpu", "versions": {"torch": "2"},
        "command": "python -m masktune reproduce mnist-square --scale short",
    }  # fmt: skip
    return {**values, **changes}


def test_a_row_shows_ours_with_spread_and_interval_beside_the_papers():
    text = markdown(a_table())

    assert "| model | what | biased | biased, paper |" in text
    assert ("| MaskTune | accuracy | **97.5** ± 0.7 [91.1, 100.0] | 98.26 ± 0.27 = |") in text
    assert "seeds 0, 1 (n = 2); 10 min of work on cpu" in text
    assert "Paper: appendix (tolerance 2)." in text


def test_test_sets_stand_side_by_side_and_a_missing_number_says_so():
    (row,) = a_table()["rows"]
    other = {**row, "test": "original", "n": 1, "std": None, "interval": None, "paper": None}
    third = {**other, "arm": "RandMask", "n": 0, "mean": None}

    text = markdown(a_table(rows=[row, other, third]))

    assert "| model | what | biased | biased, paper | original |" in text
    assert "98.26 ± 0.27 = | **97.5** (n = 1) |" in text
    assert "| RandMask | accuracy |  |  | – |" in text


def test_a_table_with_rivals_has_a_column_of_what_each_was_told(tmp_path):
    request = Request(recipe="celeba-table", scale="short", seeds=1, root="data")
    done = [(one, a_result(1)) for one in plan(request, out=tmp_path)]

    text = markdown(document(request, done))
    plain = markdown(document(Request(recipe="celeba", scale="short", root="data"), done[:1]))

    lines = [line.removeprefix("| ").split(" | ") for line in text.splitlines()]
    told = {cells[0]: cells[2] for cells in lines if len(cells) > 3}
    assert told.items() >= {
        "model": "told beside labels", "ERM": "none", "MaskTune": "none", "one more epoch": "none",
        "Group DRO": "training groups, validation groups", "JTT": "none",
        "JTT, validation groups": "validation groups", "DivDis": "unlabelled pictures",
    }.items()  # fmt: skip
    assert "told beside labels" not in plain


def test_an_arm_with_an_erm_model_of_its_own_shows_it():
    (row,) = a_table()["rows"]
    rows = [
        {**row, "arm": arm, "moment": moment}
        for arm in ("MaskTune", "ERM of 2 epochs")
        for moment in ("before", "after")
    ]

    text = markdown(a_table(rows=rows))

    models = [line.split(" | ")[0] for line in text.splitlines() if " accuracy " in line]
    assert models == ["| ERM", "| MaskTune", "| ERM of 2 epochs: its ERM", "| ERM of 2 epochs"]


def test_a_number_off_the_papers_is_marked():
    table = a_table()
    table["rows"][0]["paper"]["within"] = False

    assert "98.26 ± 0.27 ≠" in markdown(table)


def test_what_was_not_run_is_listed_with_its_command():
    text = page([a_table()])

    assert "## mnist-square, short" in text
    assert (
        "- `python -m masktune reproduce celeba --scale paper --root DIR`: CelebA, hair colour, "
        "resnet50, 20 epochs; nothing of it was run\n"
    ) in text
    assert (
        "- `python -m masktune reproduce mnist-square --scale paper --root DIR`: Biased MNIST, all "
        "digits, small-cnn-bn, 100 epochs; a shorter run is above\n"
    ) in text


def test_a_table_says_what_was_read_without_saying_where_it_lay(tmp_path):
    request = Request(recipe="two-squares-mnist-5k", scale="short", seeds=1, root="/home/me/digits")
    found = {"findings": ["Read as: /home/me/digits/a.npz.", "No attribute is recorded."]}
    done = [(planned, a_result(1)) for planned in plan(request, out=tmp_path)]
    told = replace(done[0][1], data=replace(done[0][1].data, **found))

    table = document(request, [(done[0][0], told), *done[1:]])

    assert table["findings"] == ["Read as: digits/a.npz.", "No attribute is recorded."]
    assert "Read as: digits/a.npz. No attribute is recorded." in markdown(table)
    assert "/home/me" not in json.dumps(table)


TABLES = sorted((ROOT / "docs" / "results").glob("*.json"))


def test_the_page_of_results_is_what_the_tables_give():
    assert (ROOT / "docs" / "results.md").read_text("utf-8") == results_page(TABLES[0].parent)


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_a_table_was_made_by_its_recipe_as_it_is_now(path):
    table = json.loads(path.read_text("utf-8"))
    if table["recipe"] not in EXPERIMENTS:
        pytest.skip("a benchmark made it, by settings of its own")
    changes = table.get("changes", {})
    made = Request(recipe=table["recipe"], scale=table["scale"], **changes).asked()
    now = made.recipe

    assert path.stem == name_of(table["recipe"], table["scale"], changes)
    assert all(f"--{name} {said}" in table["command"] for name, said in changes.items())
    assert (table["dataset"], table["frame"]) == (now.dataset, now.frame)
    assert table.get("exceptions", "random") in (now.exceptions, None)
    # What a table does not tell could not be chosen yet when it was made, and was as is usual.
    usual = {each.name: each.default for each in fields(TrainConfig) if each.default is not MISSING}
    training = {**usual, "decay_at": [], **table["training"]}
    assert training == json.loads(json.dumps(asdict(now.training)))
    assert table["model"] is not None or table["arch"] == now.arch
    assert {row["arm"] for row in table["rows"]} == {ONE_MORE, *(arm.name for arm in made.arms)}


@pytest.mark.parametrize("path", [*TABLES, TABLES[0].parent / "notes.md"], ids=lambda p: p.stem)
def test_results_do_not_tell_whose_machine_they_came_from(path):
    # A path from the root: a slash that begins a word and another one after it.
    assert re.search(r"(?<![\w.:/])/\w+/\w", path.read_text("utf-8")) is None


def test_a_dataset_that_is_bundled_is_asked_for_without_a_folder():
    text = page([a_table()])

    assert "`python -m masktune reproduce cows-and-camels --scale paper`" in text
