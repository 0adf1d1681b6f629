"""Methods of a tournament that may abstain, with numbers that are written here."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from masktune.scores.evidence import compare_areas, compare_risks
from masktune.scores.groups import GroupScore, Summary, wilson
from masktune.scores.predictions import Predictions
from masktune.scores.result import (
    Areas,
    MaskingResult,
    Pair,
    RunPredictions,
    RunResult,
    SelectiveScore,
    SplitResult,
)
from masktune.scores.selective import TARGETS, aurc_interval
from masktune.show.tables import csv as csv_of
from masktune.show.tables import markdown
from masktune.studies.tournament.abstaining import (
    NOTES,
    abstaining,
    abstaining_lines,
    scores_of,
    tables_of,
)
from masktune.studies.tournament.page import page_html
from masktune.studies.tournament.plan import METHODS
from masktune.studies.tournament.table import in_words, markdown_page
from masktune.training.methods import RIVALS
from tests.masktune.studies.tournament.test_table import TOLD


def result(folder=Path("run"), *, size=10, gamma=0.5, **by_score):
    """Make a run whose scores give (error, AURC): the error at every coverage, all but a tenth."""
    summary = Summary(
        average=0.5,
        train_weighted=None,
        group_mean=0.5,
        scores=(GroupScore("0", "", size, 0.5, None),),
    )
    return RunResult(
        folder=folder,
        dataset="digits",
        seed=0,
        config={},
        device="cpu",
        test={
            "odd": SplitResult(
                name="odd",
                before=summary,
                after=summary,
                selective=tuple(
                    SelectiveScore(score=score, target=t, coverage=0.9, error=error, gamma=gamma)
                    for score, (error, _) in by_score.items()
                    for t in TARGETS
                ),
                areas={
                    score: Areas(aurc=aurc, augrc=0.0, e_aurc=0.0)
                    for score, (_, aurc) in by_score.items()
                },
            )
        },
        validation=SplitResult(name="validation", before=summary, after=summary),
        masking=MaskingResult(rounds=(), layer=None),
        seconds={},
    )


def test_every_method_is_ranked_by_what_it_declares_and_by_softmax_response():
    assert scores_of("before") == ("before",)
    for method in METHODS:
        first, *_ = declared = scores_of(method)
        rival = RIVALS.get(method)
        own = rival is not None and rival.has_own_score
        assert first == ("joint" if method == "masktune" else "own" if own else "after")
        assert "after" in declared


def test_errors_and_areas_are_summed_up_over_seeds_and_compared_with_masktune_s_product():
    ours = {
        0: result(joint=(0.10, 0.02), after=(0.1, 0.1)),
        1: result(joint=(0.20, 0.04), after=(0.1, 0.1)),
    }
    theirs = {
        0: result(own=(0.20, 0.01), after=(0.10, 0.05)),
        1: result(own=(0.30, 0.07), after=(0.40, 0.07)),
    }

    own, plain = abstaining("osp", theirs, ours)

    assert [own["score"], plain["score"]] == ["own", "after"]
    error = own["test"]["odd"]["error"][2]
    assert error["target"] == 0.9
    assert error["coverage"] == pytest.approx(0.9)
    assert error["values"] == [0.20, 0.30]
    assert error["mean"] == pytest.approx(0.25)
    assert error["std"] == pytest.approx(0.05 * 2**0.5)
    assert error["n"] == 2
    # 0.10 more in both seeds: no spread, so that the interval is the difference itself.
    assert error["against_masktune"]["difference"] == pytest.approx(0.10)
    assert error["against_masktune"]["direction"] == "up"
    assert not error["against_masktune"]["within_noise"]
    # Areas: -0.01 and +0.03, whose interval holds 0.
    aurc = own["test"]["odd"]["aurc"]
    assert aurc["mean"] == pytest.approx(0.04)
    assert aurc["against_masktune"]["difference"] == pytest.approx(0.01)
    assert aurc["against_masktune"]["within_noise"]
    # By softmax response 0.00 and 0.20 more.
    assert plain["test"]["odd"]["error"][2]["against_masktune"]["within_noise"]


def test_masktune_s_product_is_what_others_are_compared_with():
    ours = {seed: result(joint=(0.1, 0.02), after=(0.3, 0.02)) for seed in (0, 1)}

    product, plain = abstaining("masktune", ours, ours)

    assert "against_masktune" not in product["test"]["odd"]["aurc"]
    assert plain["test"]["odd"]["error"][0]["against_masktune"]["difference"] == pytest.approx(0.2)


def test_without_masktune_nothing_is_compared():
    (erm,) = abstaining(
        "before", {0: result(before=(0.1, 0.02)), 1: result(before=(0.1, 0.02))}, {}
    )

    assert "against_masktune" not in erm["test"]["odd"]["aurc"]


def test_a_seed_that_answers_nothing_has_no_error_and_is_in_no_difference():
    ours = {seed: result(joint=(0.1, 0.02)) for seed in range(3)}
    theirs = {seed: result(after=(error, 0.05)) for seed, error in enumerate((0.2, None, 0.4))}

    (entry,) = abstaining("jtt", theirs, ours)

    error = entry["test"]["odd"]["error"][0]
    assert error["values"] == [0.2, 0.4]
    assert error["n"] == 2
    assert error["against_masktune"]["difference"] == pytest.approx(0.2)
    assert entry["test"]["odd"]["aurc"]["n"] == 3


def stored(folder, seed, gamma):
    """Write what two models say about 40 pictures, and return it with its run."""
    generator = np.random.default_rng(seed)
    labels = np.arange(40) % 2

    def said():
        sure = generator.uniform(0.5, 1.0, 40)
        right = generator.uniform(size=40) < sure
        answers = np.where(right, labels, 1 - labels)
        rows = np.stack([1 - sure, sure], axis=1)
        rows = np.where(answers[:, None] == 1, rows, rows[:, ::-1])
        return Predictions(rows.astype(np.float32), labels, np.zeros(40, np.int64))

    pair = Pair(said(), said())
    folder.mkdir()
    said_of = RunPredictions(validation=pair, tests={"odd": pair})
    (folder / "predictions.npz").write_bytes(said_of.to_bytes())
    scores = dict.fromkeys(("joint", "before", "after"), (0.25, 0.1))
    found = result(folder, size=40, gamma=gamma, **scores)
    (folder / "config.json").write_text("{}")
    (folder / "result.json").write_text(json.dumps(found.to_json()))
    return pair.ranked(), found


@pytest.mark.parametrize(("gamma", "above"), [(0.5, 0.5), (None, -np.inf)])
def test_the_pictures_of_a_single_seed_give_intervals_and_what_is_noise(tmp_path, gamma, above):
    ours, run = stored(tmp_path / "ours", 0, gamma)
    theirs, other = stored(tmp_path / "theirs", 1, gamma)

    (entry,) = abstaining("jtt", {0: other}, {0: run})

    error, aurc = entry["test"]["odd"]["error"][2], entry["test"]["odd"]["aurc"]
    assert error["interval"] == pytest.approx(wilson(9, 36))  # 0.25 of 90 % of 40 pictures
    assert error["interval_over"] == "pictures"
    risks = compare_risks(ours["joint"], theirs["after"], gammas=(above, above))
    assert error["against_masktune"]["interval"] == pytest.approx(risks.interval)
    areas = compare_areas(ours["joint"], theirs["after"])
    assert aurc["against_masktune"]["interval"] == pytest.approx(areas.interval)
    assert aurc["against_masktune"]["direction"] == areas.direction
    bounds = aurc_interval(theirs["after"], generator=np.random.default_rng(40))
    assert aurc["interval"] == pytest.approx(bounds)


def told():
    """Give a tournament of two methods and two seeds."""
    ours = {
        seed: result(joint=(error, 0.02), after=(error, 0.04))
        for seed, error in ((0, 0.1), (1, 0.2))
    }
    theirs = {seed: result(after=(0.3, 0.5)) for seed in (0, 1)}
    rows = [
        {
            **row,
            "test": {"odd": row["test"]["odd_ones"]},
            "abstaining": abstaining(row["method"], runs, ours),
        }
        for row, runs in zip(TOLD["rows"], (ours, theirs), strict=True)
    ]
    return {**TOLD, "worst_is": {"odd": "class"}, "rows": rows}


def test_there_is_a_line_for_each_method_and_score():
    (table,) = tables_of(told())

    head, _, product, *others = markdown(table).splitlines()
    assert head.startswith("| Method | Score | Error at coverage: 100% | Error at coverage: 95% | ")
    assert head.endswith("| Error at coverage: 80% | AURC |")
    assert product.startswith(
        "| MaskTune | both models' product | 15.0% ± 7.1 (0.0 to 78.5%, n = 2, 90.0% answered) | "
    )
    assert product.endswith("| 0.0200 ± 0.0000 (0.0200 to 0.0200, n = 2) |")
    assert [line.split(" | ")[:2] for line in others] == [
        ["| MaskTune", "softmax response"],
        ["| Spectral decoupling", "softmax response"],
    ]
    # Errors are 0.2 and 0.1 higher: with two seeds that is noise; areas are 0.48 higher in both.
    assert "| 30.0% ± 0.0 ≈ (30.0 to 30.0%, n = 2, 90.0% answered) |" in others[1]
    assert others[1].endswith("| 0.5000 ± 0.0000 (0.5000 to 0.5000, n = 2) |")


def test_a_file_has_full_numbers_with_test_set_score_and_coverage():
    *_, theirs = csv.DictReader(io.StringIO(csv_of(*tables_of(told())).decode()))

    assert theirs["method"] == "Spectral decoupling"
    assert theirs["test set"] == "odd"
    assert theirs["score"] == "after"
    assert float(theirs["error at 90% mean"]) == pytest.approx(0.3)
    assert float(theirs["error at 90% difference from MaskTune"]) == pytest.approx(0.15)
    assert theirs["error at 90% within noise"] == "true"
    assert float(theirs["error at 90% coverage"]) == pytest.approx(0.9)
    assert float(theirs["AURC difference from MaskTune"]) == pytest.approx(0.48)
    assert theirs["AURC within noise"] == "false"


def test_page_and_markdown_have_the_tables_with_words():
    page, text = page_html(told()), markdown_page(told())

    for words in ("When it may abstain, test set “odd”", *NOTES):
        assert words in text
    assert "When it may abstain, test set “odd”" in page
    assert NOTES[0] in page


def test_where_there_are_no_groups_the_worst_class_is_named_so():
    page, text = page_html(told()), markdown_page(told())

    assert "odd: worst class" in text
    assert "stands in for the worst group" in text
    assert "within the class that decides" in text
    assert "Worst class" in page
    assert "Worst group" not in page


def test_a_terminal_gets_a_line_a_score():
    *_, last, _ = in_words(told())

    assert last == (
        "Spectral decoupling by softmax response; odd: error 30.0% at 100%, 30.0% at 95%, 30.0% at "
        "90%, 30.0% at 85%, 30.0% at 80% coverage, AURC 0.5000 (+0.4800 from MaskTune "
        "by both models' product)"
    )


@pytest.mark.parametrize("name", ["biased-mnist-5k", "cows-and-camels-stamp"])
def test_tournaments_of_older_versions_have_no_such_table_and_open_as_before(name):
    root = Path(__file__).parents[4]
    old = json.loads((root / "docs" / "results" / "tournaments" / f"{name}.json").read_text())
    old["rows"] = [{k: v for k, v in row.items() if k != "abstaining"} for row in old["rows"]]

    assert tables_of(old) == []
    assert abstaining_lines(old) == []
    assert "abstain" not in markdown_page(old)
    assert "When it may abstain" not in page_html(old)
