"""What the benchmarks of start-up and pages make of what they hear."""

import pytest

from benchmarks.pages import table
from benchmarks.start import imports, stages, text

FOUND = {
    "help": {"help": 0.2, "argparse and rich": 0.05, "ratio": 4.0},
    "stages": {"load": 2.0, "finetune, first step": 3.5, "end": 6.0},
    "imports": {"torch": 1.5, "masktune": 0.25, **{f"small{n}": 0.01 for n in range(10)}},
    "neighbour": {
        "waiting passively": {"idle": 5.0, "busy": 10.0, "ratio": 2.0},
        "as OpenMP has it": {"idle": 5.0, "busy": 50.0, "ratio": 10.0},
    },
}


def test_a_package_is_charged_with_all_its_modules_and_not_with_what_they_import():
    said = [
        "import time: self [us] | cumulative | imported package",
        "import time:       100 |        100 |     torch._C",
        "import time:     20000 |      20100 |   torch",
        "import time:      5000 |      25100 | masktune.compute",
        "heat 1/7, 2 s left",
    ]

    assert imports(said) == {"torch": pytest.approx(0.0201), "masktune": 0.005}


def test_a_stage_is_told_by_its_first_and_its_last_step():
    said = [
        (1.0, "load 1/1"),
        (2.0, "finetune 1/55, loss 0.7"),
        (4.0, "finetune 43/55"),
        (9, "end"),
    ]

    assert stages(said) == {"load": 1.0, "finetune, first step": 2.0, "finetune, last step": 4.0}


def test_start_says_which_goals_are_met():
    lines = [" ".join(line.split()) for line in text(FOUND).splitlines()]

    assert lines[1].endswith("4.0 times 'import argparse, rich' (0.050 s); goal <= 10: met")
    assert "3.50 finetune, first step" in lines
    assert "0.04 all others" in lines  # ten small ones, of which eight packages show six
    assert lines[-2].endswith("2.00 times; goal <= 2.2: met")
    assert lines[-1].endswith("10.00 times")


def test_pages_of_two_clones_stand_side_by_side_with_their_ratio():
    medians = {"here": {"mask, a rerun": 0.05}, "there": {"mask, a rerun": 0.2}}

    head, row = (line.split() for line in table(medians).splitlines())

    assert head[-3:] == ["here", "there", "ratio"]
    assert row == ["mask,", "a", "rerun", "50.0", "200.0", "0.25"]


def test_one_clone_alone_has_no_ratio():
    assert "ratio" not in table({"here": {"mask, a rerun": 0.05}})
