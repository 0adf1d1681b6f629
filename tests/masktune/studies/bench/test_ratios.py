"""The benchmark: its arithmetic by hand, its clockwork with a clock of our own, one quick run."""

import gc
import json
import subprocess
import sys
import time

import pytest
import torch

from masktune.studies.bench import ratios
from masktune.studies.bench.race import PATIENCE, compare, race
from masktune.studies.bench.ratios import (
    GOALS,
    document,
    measure,
    met,
    peaks,
    race_augmented,
    race_batch,
    store_bytes_per_image,
    text,
)

FIGURES = [
    "heat_over_forward",
    "gradcam_over_heat",
    "mask_seconds_over_forward",
    "store_bytes_per_image",
    "finetune_over_plain_epoch",
    "augmented_over_plain_epoch",
    "peak_bytes_per_image",
]


class Hand:
    """A clock that only moves when a side takes time."""

    def __init__(self):
        self.now = 0.0
        self.log = []

    def side(self, name, *seconds):
        """Give a side whose turns take these seconds, the last one for ever."""
        turns = list(seconds)

        def turn():
            self.log.append(name)
            self.now += turns.pop(0) if len(turns) > 1 else turns[0]

        return turn

    def __call__(self):
        return self.now


KNOWN = {
    ("heat_over_forward", "resnet18@224"): 1.02,
    ("heat_over_forward", "small-cnn@28"): 1.4,
    ("gradcam_over_heat", "resnet18@224"): 3.5,
    ("gradcam_over_heat", "small-cnn@28"): 2.5,
    ("mask_seconds_over_forward", "resnet18@224"): 0.02,
    ("mask_seconds_over_forward", "small-cnn@28"): 0.1,
    ("store_bytes_per_image", ""): 196.16,
    ("finetune_over_plain_epoch", ""): 1.04,
    ("augmented_over_plain_epoch", "resnet20@32"): 1.15,
    ("peak_bytes_per_image", "1000"): 9.0,
    ("peak_bytes_per_image", "10000"): 3.0,
    ("peak_bytes_per_image", "ratio"): 1 / 3,
    ("peak_bytes_per_image", "each_further"): 500.0,
}


def test_the_best_lap_of_each_side_counts_and_the_first_lap_does_not():
    hand = Hand()
    sides = {"a": hand.side("a", 0.5, 6.0, 3.0, 4.0), "b": hand.side("b", 0.5, 2.0, 2.0, 1.0)}

    run = race(sides, laps=3, stage="test", clock=hand)

    assert run == {"a": [6.0, 3.0, 4.0], "b": [2.0, 2.0, 1.0]}
    assert compare(run, "a", "b") == (3.0, 3.0)  # the median of 3, 1.5 and 4


def test_each_lap_runs_the_sides_in_the_reverse_order_of_the_one_before():
    hand = Hand()

    race({name: hand.side(name, 1.0) for name in "abc"}, laps=3, stage="test", clock=hand)

    assert "".join(hand.log) == "abc" + "abc" + "cba" + "abc"


def test_a_race_ends_when_nobody_has_improved_for_some_laps():
    hand = Hand()
    sides = {"a": hand.side("a", 1.0, 9.0, 9.0, 5.0), "b": hand.side("b", 1.0)}

    run = race(sides, laps=100, stage="test", clock=hand)

    assert len(run["a"]) == len(run["b"]) == 3 + PATIENCE


def test_the_watcher_hears_every_lap_and_may_stop_the_race():
    hand, heard = Hand(), []

    def watcher(progress):
        heard.append((progress.stage, progress.done, progress.total))
        if progress.done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        race({"a": hand.side("a", 1.0)}, laps=5, stage="test", watcher=watcher, clock=hand)

    assert heard == [("test", 1, 5), ("test", 2, 5)]
    assert gc.isenabled()


def test_sides_run_on_one_thread_without_collections_and_both_come_back_afterwards():
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    seen = []

    try:
        race(
            {"a": lambda: seen.append((torch.get_num_threads(), gc.isenabled()))},
            laps=2,
            stage="test",
        )
        after = torch.get_num_threads()
    finally:
        torch.set_num_threads(threads)

    assert set(seen) == {(1, False)}
    assert after == 2
    assert gc.isenabled()


def test_a_race_counts_work_and_not_waiting():
    def work():
        total = 0
        for number in range(200_000):
            total += number
        return total

    run = race({"work": work, "wait": lambda: time.sleep(0.3)}, laps=2, stage="test")

    assert compare(run, "wait", "work")[0] < 1


def test_a_batch_gives_three_figures_each_with_its_median():
    found = race_batch(arch="small-cnn", side=28, batch=2, laps=1, peer_laps=1)

    assert [*found] == [(figure, "small-cnn@28") for figure in FIGURES[:3]]
    assert all(best == median > 0 for best, median in found.values())  # of one lap


def test_an_epoch_is_timed_with_the_authors_augmentation_and_without(monkeypatch):
    learnt = []
    monkeypatch.setattr(
        ratios, "finetune", lambda *_, config, **__: learnt.append((config.augment, config.lr))
    )

    found = race_augmented(count=4, laps=1)

    assert set(learnt) == {("none", 0.1), ("flip,rotate15,shift10", 0.1)}
    assert [*found] == [("augmented_over_plain_epoch", "resnet20@32")]


@pytest.mark.parametrize(("side", "bytes_each"), [(7, 196), (8, 256)])
def test_a_picture_costs_four_bytes_a_cell_and_the_header_is_shared(side, bytes_each):
    small = 1_000 * store_bytes_per_image(1_000, coarse=(side, side))
    large = 2_000 * store_bytes_per_image(2_000, coarse=(side, side))

    header = small - 1_000 * bytes_each
    assert 100 < header < 300
    assert large - small == pytest.approx(1_000 * bytes_each, abs=8)  # headers are padded to 8


def test_peak_memory_is_given_per_picture_and_for_each_picture_more(monkeypatch):
    monkeypatch.setattr(ratios, "peak_growth", {1_000: 5_000_000, 10_000: 9_500_000}.__getitem__)
    heard = []

    found = peaks((1_000, 10_000), watcher=heard.append)

    assert {figure for figure, _ in found} == {"peak_bytes_per_image"}
    assert [part for _, part in found] == ["1000", "10000", "ratio", "each_further"]
    assert [*found.values()] == [5_000.0, 950.0, 0.19, 500.0]
    assert [progress.stage for progress in heard] == ["memory"]


def test_a_process_does_not_start_at_the_peak_of_the_one_that_started_it():
    here = torch.ones(50_000_000)  # 200 MB
    script = "from masktune.studies.bench.memory import peak; print(peak())"

    told = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert 1_000_000 < int(told.stdout) < here.nbytes


@pytest.mark.parametrize(
    ("relation", "value", "good"),
    [
        ("<=", 1.04, True),
        ("<=", 1.05, True),
        ("<=", 1.06, False),
        (">=", 1.04, False),
        (">=", 1.05, True),
        (">=", 1.06, True),
    ],
)
def test_a_goal_is_met_on_its_side_of_the_limit_and_at_the_limit(relation, value, good):
    assert met(value, (relation, 1.05)) is good


def test_the_document_holds_plain_numbers_and_says_which_goals_are_met():
    found = document(KNOWN, {"clock": "by hand"})

    goals = found["detail"]["goals"]
    assert list(found) == [*FIGURES, "detail"]
    assert found["heat_over_forward"] == {"resnet18@224": 1.02, "small-cnn@28": 1.4}
    assert found["store_bytes_per_image"] == 196.16
    assert found["peak_bytes_per_image"]["ratio"] == 0.3333
    assert goals["heat_over_forward"]["resnet18@224"] == {
        "value": 1.02,
        "goal": "<= 1.05",
        "met": True,
    }
    assert goals["heat_over_forward"]["small-cnn@28"]["met"] is False
    assert goals["store_bytes_per_image"]["met"] is True
    assert "small-cnn@28" not in goals["gradcam_over_heat"]
    assert found["detail"]["clock"] == "by hand"


def test_a_goal_is_judged_by_the_number_as_measured_not_as_rounded():
    figures = {**KNOWN, ("finetune_over_plain_epoch", ""): 1.10001}

    verdict = document(figures, {})["detail"]["goals"]["finetune_over_plain_epoch"]

    assert verdict == {"value": 1.1, "goal": "<= 1.1", "met": False}


def test_the_table_has_a_line_for_every_number():
    lines = text(KNOWN).splitlines()

    assert len(lines) == 2 + 2 + 2 + 1 + 1 + 1 + 4
    words = [" ".join(line.split()) for line in lines]
    assert words[1] == "heat_over_forward small-cnn@28 1.400 goal <= 1.3: missed"
    assert words[3] == "gradcam_over_heat small-cnn@28 2.500"
    assert words[6] == "store_bytes_per_image 196.160 goal <= 256: met"


@pytest.mark.slow
def test_a_quick_run_measures_every_figure_and_every_goal():
    heard = []

    figures, notes = measure(quick=True, watcher=heard.append)

    found = json.loads(json.dumps(document(figures, notes), allow_nan=False))
    few, many = (str(count) for count in ratios.QUICK["counts"])
    assert list(found) == [*FIGURES, "detail"]
    for figure in FIGURES[:3]:
        assert set(found[figure]) == {"resnet18@224", "small-cnn@28"}
    assert set(found["peak_bytes_per_image"]) == {few, many, "ratio", "each_further"}
    assert all(value > 0 for key, value in figures.items() if key[1] != "each_further")
    assert set(GOALS) <= set(figures)
    # Every batch needs at least the 16 x 26 x 26 floats that the first layer gives for a picture.
    assert all(found["peak_bytes_per_image"][n] * int(n) > 16 * 26 * 26 * 4 for n in (few, many))
    # Heat holds a forward pass, the peer a backward pass too, and a keep is less than either.
    assert all(value < 1 for value in found["mask_seconds_over_forward"].values())
    assert all(value > 1 for value in found["gradcam_over_heat"].values())
    assert [p.stage for p in heard if p.done == p.total] == [
        "resnet18@224",
        "resnet18@224 grad-cam",
        "small-cnn@28",
        "small-cnn@28 grad-cam",
        "epoch",
        "augmented epoch",
        "memory",
    ]
