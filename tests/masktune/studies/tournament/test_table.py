"""The table of a tournament whose numbers are written here."""

import csv
import io
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from masktune.scores.result import RunResult
from masktune.show.tables import csv as csv_of
from masktune.show.tables import latex, markdown
from masktune.studies.tournament.over_seeds import against
from masktune.studies.tournament.page import page_html, worst_figure
from masktune.studies.tournament.plan import Outcome, Request, plan
from masktune.studies.tournament.table import (
    document,
    in_words,
    markdown_page,
    notes,
    table_of,
    training_of,
    verdicts,
)
from tests.old_runs import DEMO, RUNS


def score(*values, bounds=None, against=None):
    known = {
        "values": list(values),
        "mean": sum(values) / len(values),
        "std": 0.01 if len(values) > 1 else None,
        "n": len(values),
        "interval": bounds,
        "interval_over": "seeds",
    }
    return known if against is None else {**known, "against_masktune": against}


def row(method, title, settings, supervision, worst, average, seconds):
    return {
        "method": method,
        "title": title,
        "settings": settings,
        "supervision": supervision,
        "test": {"odd_ones": {"worst_group": worst, "average": average}},
        "cpu_seconds": seconds,
    }


NOISE = {"difference": -0.02, "interval": [-0.1, 0.06], "direction": "unclear"}
CLEAR = {"difference": 0.2, "interval": [0.1, 0.3], "direction": "up"}
TOLD = {
    "title": "Digits & co",
    "given": {"dataset": "biased-mnist-5k", "model": "/home/ada/erm.pt"},
    "recipe": "biased-mnist-5k",
    "arch": "as in the checkpoint",
    "training": {"epochs": 12, "lr": 0.01, "decay_at": []},
    "methods": ["masktune", "sd"],
    "ks": [1.0, 2.0],
    "rates": [1.0],
    "seeds": [0, 1],
    "rule": "Chosen on validation.",
    "worst_is": {"odd_ones": "group"},
    "rows": [
        row(
            "masktune", "MaskTune", "k = 2", ["validation groups"],
            score(0.5, 0.7, bounds=[0.4, 0.8]), score(0.9, 0.9, bounds=[0.9, 0.9]), 1234.5,
        ),
        row(
            "sd", "Spectral decoupling", "", [],
            score(0.58, 0.58, bounds=[0.55, 0.61], against=NOISE | {"within_noise": True}),
            score(0.95, 0.95, bounds=[0.9, 1.0], against=CLEAR | {"within_noise": False}), None,
        ),
    ],
    "runs": [
        {
            "method": "masktune", "title": "MaskTune", "seed": 0, "settings": "k = 2",
            "run": "seed-0/masktune-k-2", "state": "done", "chosen": True,
            "validation": {"worst_group": 0.5, "average": 0.75},
        },
        {
            "method": "sd", "title": "Spectral decoupling", "seed": 0, "settings": "",
            "run": "seed-0/sd", "state": "waiting",
        },
    ],
    "command": "python -m masktune tournament --dataset biased-mnist-5k --model /home/ada/erm.pt "
    "--methods masktune,sd --out '/home/ada/my runs'",
}  # fmt: skip


def test_markdown_has_a_line_a_method_and_marks_noise():
    assert markdown(table_of(TOLD)).splitlines() == [
        "| Method | Chosen | Supervision | odd_ones: worst group | odd_ones: average | CPU s |",
        "| --- | --- | --- | --- | --- | --- |",
        "| MaskTune | k = 2 | validation groups | 60.0% ± 1.0 (40.0 to 80.0%, n = 2) "
        "| 90.0% ± 1.0 (90.0 to 90.0%, n = 2) | 1,234 |",
        "| Spectral decoupling | – | none | 58.0% ± 1.0 ≈ (55.0 to 61.0%, n = 2) "
        "| 95.0% ± 1.0 (90.0 to 100.0%, n = 2) | – |",
    ]


def test_a_page_of_markdown_has_command_rule_and_table():
    page = markdown_page(TOLD)

    assert page.startswith("`python -m masktune tournament --dataset biased-mnist-5k ")
    assert "Chosen on validation." in page
    assert markdown(table_of(TOLD)) in page


def test_whose_answers_on_validation_flatter_them_is_said():
    page = markdown_page(TOLD | {"methods": ["masktune", "dfr", "sd", "afr"]})

    assert "DFR and AFR learnt from the validation pictures, with their labels: scores on" in page
    assert "learnt from the validation" not in markdown_page(TOLD)


def test_latex_is_booktabs_with_special_letters_escaped():
    assert latex(table_of(TOLD)).splitlines() == [
        r"\begin{tabular}{lllrrr}",
        r"\toprule",
        r" & \multicolumn{2}{c}{} & \multicolumn{2}{c}{odd\_ones} & \multicolumn{1}{c}{} \\",
        r"\cmidrule(lr){4-5}",
        r"Method & Chosen & Supervision & Worst group & Average & CPU s \\",
        r"\midrule",
        r"MaskTune & k = 2 & validation groups & 60.0\% $\pm$ 1.0 (40.0 to 80.0\%, n = 2) & "
        r"90.0\% $\pm$ 1.0 (90.0 to 90.0\%, n = 2) & 1,234 \\",
        r"Spectral decoupling & -- & none & 58.0\% $\pm$ 1.0 $\approx$ (55.0 to 61.0\%, n = 2) & "
        r"95.0\% $\pm$ 1.0 (90.0 to 100.0\%, n = 2) & -- \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_csv_has_full_numbers():
    ours, theirs = csv.DictReader(io.StringIO(csv_of(table_of(TOLD)).decode()))

    assert ours["odd_ones worst_group mean"] == "0.6"
    assert ours["odd_ones worst_group within noise"] == ""
    assert theirs["odd_ones worst_group difference from MaskTune"] == "-0.02"
    assert theirs["odd_ones worst_group within noise"] == "true"
    assert theirs["odd_ones average within noise"] == "false"
    assert theirs["chosen settings"] == ""
    assert ours["cpu seconds"] == "1234.5"


def test_the_page_has_table_chart_rule_settings_and_command():
    page = page_html(TOLD, made=datetime(2026, 1, 2, tzinfo=UTC))

    assert "<title>Digits &amp; co: methods side by side</title>" in page
    assert "Made 02 January 2026" in page
    for words in ("Chosen on validation.", "Spectral decoupling", "--methods masktune,sd", "≈"):
        assert words in page
    assert "1 of 2 runs are not done yet." in page
    assert "Plotly" in page


def test_the_chart_says_every_method_with_its_interval():
    drawn = worst_figure(TOLD, "odd_ones")

    assert list(drawn.data[0].x) == [0.6, 0.58]
    assert drawn.layout.meta == (
        "Worst group by method. MaskTune: 60.0%, 95% interval 40.0 to 80.0%, n = 2. "
        "Spectral decoupling: 58.0%, 95% interval 55.0 to 61.0%, n = 2."
    )


def test_a_terminal_gets_a_line_a_method_and_test_set():
    assert in_words(TOLD) == [
        "MaskTune, k = 2; odd_ones: worst group 60.0%, average 90.0%",
        "Spectral decoupling; odd_ones: worst group 58.0% (−2.0 points from MaskTune, within "
        "noise), average 95.0% (+20.0 points from MaskTune)",
        "So far: MaskTune answers the worst group of “odd_ones” best: 60.0%. Two seeds are too few "
        "to tell it from Spectral decoupling (58.0%).",
    ]


def _rows(before, **worst):
    return {
        **TOLD,
        "runs": [{"state": "done"}],
        "rows": [
            row("before", "ERM (the model before)", "", [], score(before), score(0.9), None),
            *(row(name, name.upper(), "", [], one, score(0.9), 1.0) for name, one in worst.items()),
        ],
    }


def test_the_best_worst_group_is_named_with_the_next_and_the_model_before():
    told = _rows(0.3, masktune=score(0.9), dfr=score(0.6), jtt=score(0.7))

    assert verdicts(told) == [
        "MASKTUNE answers the worst group of “odd_ones” best: 90.0%, from 30.0% before. Next: JTT, "
        "70.0%."
    ]


def test_who_is_within_noise_of_the_best_is_said():
    noisy = score(0.88, against=NOISE | {"within_noise": True})
    worse = _rows(0.3, masktune=score(0.9), dfr=noisy)
    better = _rows(0.3, masktune=score(0.8), dfr=noisy)

    assert verdicts(worse)[0].endswith("from 30.0% before. Within noise of it: DFR (88.0%).")
    assert verdicts(better)[0].endswith("from 30.0% before. Within noise of it: MASKTUNE (80.0%).")


def test_the_model_before_of_an_older_table_is_marked_from_its_values():
    # Waterbirds: 20, -4 and 12 points from MaskTune, mean 9.3, standard error 7.1.
    told = _rows(0.3, masktune=score(0.14, 0.28, 0.16))
    told["rows"][0]["test"]["odd_ones"]["worst_group"] = score(0.34, 0.24, 0.28)
    kept = deepcopy(told)

    before = table_of(told).rows[0]
    lines = [*markdown(table_of(told)).splitlines(), *latex(table_of(told)).splitlines()]
    file = next(csv.DictReader(io.StringIO(csv_of(table_of(told)).decode())))

    assert before[3].text == "28.7% ± 1.0 ≈"
    assert before[4].text == "90.0%"  # of one seed only the pictures would tell
    assert "28.7% ± 1.0 ≈" in next(line for line in lines if line.startswith("| ERM"))
    assert r"28.7\% $\pm$ 1.0 $\approx$" in next(line for line in lines if line.startswith("ERM"))
    assert file["odd_ones worst_group within noise"] == "true"
    assert "28.7% ± 1.0 ≈" in page_html({**told, "runs": TOLD["runs"]})
    assert "worst group 28.7% (+9.3 points from MaskTune, within noise)" in in_words(told)[0]
    assert any(words.startswith("≈") for words in notes({**told, "methods": ["masktune"]}))
    assert told == kept


def test_methods_that_are_no_masktune_are_told_apart_by_their_seeds():
    # JTT and DFR differ by 10, 12 and 8 points, JTT and LfF by 60, 0 and -10.
    jtt, dfr, lff = score(0.9, 0.92, 0.88), score(0.8, 0.8, 0.8), score(0.3, 0.92, 0.98)
    clear = _rows(0.3, jtt=jtt, dfr=dfr)
    noisy = _rows(0.3, jtt=jtt, dfr=dfr, lff=lff)
    one_seed = _rows(0.3, jtt=score(0.9), dfr=score(0.8))

    assert verdicts(clear)[0].endswith("from 30.0% before. Next, beyond noise: DFR, 80.0%.")
    assert verdicts(noisy)[0].endswith("from 30.0% before. Within noise of it: LFF (73.3%).")
    assert verdicts(one_seed)[0].endswith("from 30.0% before. Next: DFR, 80.0%.")  # unknown


def test_a_best_method_within_noise_of_the_model_before_is_said_to_be():
    told = _rows(0.3, jtt=score(0.3, 0.9, 0.6))
    told["rows"][0]["test"]["odd_ones"]["worst_group"] = score(0.5, 0.5, 0.5)
    worse = _rows(0.3, jtt=score(0.3, 0.9, 0.2))
    worse["rows"][0]["test"]["odd_ones"]["worst_group"] = score(0.5, 0.5, 0.5)

    assert verdicts(told)[0].endswith("from 50.0% before. Within noise of it: the model before.")
    assert verdicts(worse)[0].endswith("the next is JTT, 46.7%, within noise of it.")


def test_two_seeds_are_said_to_be_too_few_to_tell_methods_apart():
    far = score(0.0, 0.2, against=NOISE | {"within_noise": True})
    worse = _rows(0.3, masktune=score(0.85, 0.95), random=far, dfr=far)
    better = _rows(0.05, masktune=score(0.05, 0.05), dfr=far)

    assert verdicts(worse)[0].endswith(
        "best: 90.0%, from 30.0% before. Two seeds are too few to tell it from RANDOM (10.0%) and "
        "DFR (10.0%)."
    )
    assert verdicts(better)[0].endswith("Two seeds are too few to tell it from MASKTUNE (5.0%).")


def test_a_verdict_before_all_runs_are_done_is_one_so_far():
    told = {**_rows(0.6, masktune=score(0.5)), "runs": [{"state": "done"}, {"state": "waiting"}]}

    assert verdicts(told)[0].startswith("So far: No method here answers the worst group of")


def test_methods_that_do_not_help_are_not_called_the_best():
    told = _rows(0.6, masktune=score(0.5), dfr=score(0.4))

    assert verdicts(told) == [
        "No method here answers the worst group of “odd_ones” better than the model before, 60.0%; "
        "the next is MASKTUNE, 50.0%."
    ]


def test_before_a_method_is_finished_nothing_is_said_of_the_best():
    assert verdicts(_rows(0.6)) == []


def test_the_page_names_one_seed_as_one():
    page = page_html({**TOLD, "seeds": [3]}, made=datetime(2026, 11, 8, tzinfo=UTC))

    assert "side by side, seed 3." in page
    assert "MaskTune answers the worst group" in page


def test_beside_a_given_model_the_settings_are_those_that_rivals_train_with():
    given = {"dataset": "biased-mnist-5k", "model": "bundled", "epochs": 1}

    told = training_of(Request(given=given, methods=("masktune", "sd")))

    assert told["epochs"] == 1  # the recipe's are 12


def test_several_seeds_on_one_given_model_are_said_to_be_tested_on_what_it_may_know():
    def read(given, seeds):
        return markdown_page({**TOLD, "given": given, "seeds": seeds})

    warning = "the model may have been trained on some of them"
    assert warning in read({"model": "m.pth"}, [0, 1, 2])
    assert warning not in read({"model": "m.pth"}, [0])
    assert warning not in read({}, [0, 1, 2])  # each seed trains its own
    assert warning not in read({"model": "m.pth", "validation": "test"}, [0, 1, 2])


def test_a_difference_of_one_seed_is_as_clear_as_its_pictures_tell():
    one = against([0.2], of_one=lambda: ((0.1, 0.3), "up"))
    assert (one["difference"], one["interval"], one["within_noise"]) == (0.2, [0.1, 0.3], False)
    assert against([0.2], of_one=lambda: (None, "unclear"))["within_noise"]

    several = against([0.19, 0.2, 0.21], of_one=lambda: (None, "unclear"))
    assert several["direction"] == "up"
    assert against([], of_one=lambda: (None, "unclear")) is None


def test_the_run_that_trains_the_model_before_counts_there_and_nowhere_else():
    asked = Request(given={"dataset": "biased-mnist-5k"}, methods=("none", "masktune"))
    runs = [*plan(asked, out=Path("out"))]
    result = RunResult.read(RUNS / DEMO)
    seconds = {"none": 100.0, "masktune": 7.0}
    done = {one: replace(result, cpu_seconds=seconds[one.method]) for one in runs}
    known = {"request": asked, "out": Path("out"), "runs": runs, "done": done}

    told = document(Outcome(**known, by_groups=True, learning={}))

    assert {row["method"]: row["cpu_seconds"] for row in told["rows"]} == {
        "before": 100.0,
        "none": None,
        "masktune": 7.0,
    }
    assert told["cpu_seconds"] == 107.0
