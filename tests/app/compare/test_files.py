"""The downloads of the Compare page, read back."""

import csv
import io
import json
from itertools import product

import pytest

from app.compare.confusion import confusion, pairs_table
from app.compare.numbers import rounds_csv
from app.shared.run_rows import runs_table
from masktune.runs import export
from masktune.show.results import averages_table, classes_table, groups_table
from masktune.show.tables import csv as csv_of
from tests.app.shared.test_run_rows import job, row


def lines(content: bytes):
    return list(csv.DictReader(io.StringIO(content.decode())))


def test_the_numbers_file_says_what_the_result_file_says(every, finished_run):
    document = json.loads((finished_run / "result.json").read_text())

    rows = lines(csv_of(*(groups_table(test) for test in every.values())))

    for name in ("biased", "original"):
        stored = zip(
            document["test"][name]["before"]["groups"],
            document["test"][name]["after"]["groups"],
            [r for r in rows if r["test set"] == name],
            strict=True,
        )
        for was, now, written in stored:
            assert written["label"] == was["label"]
            assert int(written["n"]) == was["count"]
            for key, value in (("before", was["accuracy"]), ("after", now["accuracy"])):
                assert written[key] == ("" if value is None else str(value))
            if was["count"]:
                net = (int(written["fixed"]) - int(written["broken"])) / was["count"]
                assert float(written["change"]) == pytest.approx(net)


def test_the_averages_file_names_all_three_and_the_worst_group(every):
    rows = lines(csv_of(averages_table(*every.values())))
    lowest = next(r for r in rows if (r["test set"], r["what"]) == ("original", "worst group"))
    assert int(lowest["n"]) == every["original"].after.worst.count < 1000

    names = ["worst group", "test average", "train-weighted average", "group mean"]
    assert [r["what"] for r in rows] == 2 * names
    weighted = next(r for r in rows if r["what"] == "train-weighted average")
    want = every["biased"].after.train_weighted
    assert float(weighted["after"]) == want


def test_the_answers_file_holds_every_picture_with_its_probabilities(original):
    rows = lines(export.predictions_csv(original.run, tests=[original.name]))

    assert [int(r["position"]) for r in rows] == list(range(1000))
    assert sum(r["state"] == "fixed" for r in rows) == original.evidence.overall.fixed
    assert float(rows[7]["after: 5–9"]) == original.pair.after.probabilities[7, 1]
    assert all((r["after"] == r["label"]) == (r["state"] in ("fixed", "still right")) for r in rows)


def test_with_very_many_classes_only_the_probability_of_each_answer_is_written(
    original, monkeypatch
):
    monkeypatch.setattr(export, "MOST_CLASSES", 1)

    rows = lines(export.predictions_csv(original.run, tests=[original.name]))

    assert list(rows[0])[-2:] == ["before sure", "after sure"]
    assert float(rows[7]["after sure"]) == original.pair.after.probabilities[7].max()


def test_the_confusion_file_adds_up_to_all_pictures(original):
    pair, classes = original.pair, original.classes
    both = confusion(pair.before), confusion(pair.after)
    rows = lines(csv_of(pairs_table(*both, classes, product(range(2), repeat=2))))

    assert [(r["is"], r["answered"]) for r in rows] == [
        ("0–4", "0–4"), ("0–4", "5–9"), ("5–9", "0–4"), ("5–9", "5–9"),
    ]  # fmt: skip
    for moment, said in (("before", original.pair.before), ("after", original.pair.after)):
        assert sum(int(r[moment]) for r in rows) == 1000
        right = sum(int(r[moment]) for r in rows if r["is"] == r["answered"])
        assert right == said.correct().sum()


def test_the_file_of_changes_by_class_ends_with_all_pictures(original):
    rows = lines(csv_of(classes_table(original)))

    assert [r["class"] for r in rows] == ["0–4", "5–9", "all"]
    assert int(rows[2]["n"]) == 1000
    assert float(rows[2]["low"]) <= float(rows[2]["change"]) <= float(rows[2]["high"])


def test_the_files_of_runs_and_rounds_have_a_line_for_each(tmp_path):
    rows = lines(
        csv_of(runs_table(None, [row(job("a", tmp_path)), row(job("b", tmp_path, k=1.0))]))
    )
    rounds = lines(rounds_csv({"worst group": [0.3, 0.5, 0.9]}, [0.04, 0.07]))

    assert [(r["run"], r["k"], r["worst after"]) for r in rows] == [
        ("a", "2.0", "0.9"), ("b", "1.0", "0.9"),
    ]  # fmt: skip
    assert [(r["round"], r["hidden"], r["worst group"]) for r in rounds] == [
        ("0", "0.0", "0.3"), ("1", "0.04", "0.5"), ("2", "0.07", "0.9"),
    ]  # fmt: skip
