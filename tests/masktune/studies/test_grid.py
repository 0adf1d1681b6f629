"""A grid: which runs it is made of, what they share, and its means over seeds."""

import json
import statistics
from csv import DictReader
from dataclasses import replace

import pytest

from masktune.checkpoints.settings import settings
from masktune.cli.main import main
from masktune.errors import ConfigError, RunFolderError
from masktune.pipeline import run
from masktune.runs import load as loading
from masktune.scores.result import RunResult
from masktune.show.tables import csv
from masktune.studies import carry_out
from masktune.studies.grid import (
    Grid,
    document,
    grid,
    heeded,
    in_words,
    plan,
    table_of,
)
from tests.old_runs import DEMO, RUNS

GIVEN = {"dataset": "biased-mnist-5k", "epochs": 1, "batch_size": 32, "device": "cpu"}


def test_every_combination_is_planned_and_the_first_of_a_seed_trains(tmp_path):
    wanted = Grid(given=GIVEN, strategies=("heat", "none"), ks=(1, 2), rates=(0.1,), seeds=(0, 3))

    runs = [*plan(wanted, out=tmp_path)]

    assert [one.path.relative_to(tmp_path).as_posix() for one in runs] == [
        f"seed-{seed}/{name}"
        for seed in (0, 3)
        for name in ("heat-k-1-rate-0.1", "heat-k-2-rate-0.1", "none-rate-0.1")
    ]
    assert [one.config.masking.k for one in runs[:2]] == [1, 2]
    assert {one.config.finetune_lr for one in runs} == {0.1}
    assert [one.config.seed for one in runs] == [0, 0, 0, 3, 3, 3]
    models = [one.config.model for one in runs]
    assert models[0] is models[3] is None
    assert models[1] == models[2] == str(runs[0].path / "before.safetensors")
    assert models[4] == models[5] == str(runs[3].path / "before.safetensors")


def test_the_command_repeats_the_very_numbers():
    given = {"dataset": "biased-mnist-5k"}
    wanted = Grid(given=given, ks=(1.2345678,), rates=(0.1,), seeds=(1234567, 2))

    words = wanted.arguments("DIR")

    assert words[words.index("--ks") + 1] == "1.2345678"
    assert words[words.index("--seeds") + 1] == "1234567,2"


def test_half_a_seed_is_refused_by_the_command_line(capsys):
    said = ["grid", "--dataset", "biased-mnist-5k", "--seeds", "1.5", "--out", "DIR"]

    assert main(said) != 0
    assert "'1.5' are not whole numbers" in capsys.readouterr().err


def test_a_given_model_is_trained_by_nobody(tmp_path):
    wanted = Grid(given={"dataset": "biased-mnist-5k", "model": "bundled"}, ks=(1, 2))

    assert [one.config.model for one in plan(wanted, out=tmp_path)] == ["bundled"] * 2


def test_every_run_has_a_folder_of_its_own(tmp_path):
    wanted = Grid(given=GIVEN, ks=(1.0000001, 1.0000002), rates=(1e16, 1e-16, 1e-8, 0.01))

    runs = [*plan(wanted, out=tmp_path)]

    assert len({one.path for one in runs}) == len(runs) == 8


def test_the_seed_of_a_model_in_its_folder_is_the_usual_one(tmp_path, monkeypatch):
    trained = replace(settings({**GIVEN, "seed": 3}), only_before=True)
    (tmp_path / "config.json").write_text(json.dumps(trained.to_json()))
    (tmp_path / "before.safetensors").write_bytes(b"weights")
    asked = []
    monkeypatch.setattr("masktune.studies.grid.grid", lambda wanted, **_: asked.append(wanted))
    monkeypatch.setattr("masktune.studies.grid.in_words", lambda _: [])
    words = ["grid", "--dataset", "biased-mnist-5k", "--out", "DIR"]

    for more in ([], ["--model", str(tmp_path)], ["--model", str(tmp_path), "--seeds", "0,1"]):
        assert main([*words, *more]) == 0

    assert [wanted.seeds for wanted in asked] == [(0,), (3,), (0, 1)]


def test_far_too_many_runs_are_refused_before_they_are_planned():
    many = tuple(range(1, 100_000))

    with pytest.raises(ConfigError, match="makes 999,970,000,299,999 runs"):
        Grid(given=GIVEN, strategies=("heat", "none"), ks=many[:-1], rates=many, seeds=many)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"strategies": ()}, "No strategy is named"),
        ({"strategies": ("warm",)}, "no strategy 'warm'"),
        ({"ks": (1, 1)}, "k 1 is named twice"),
        ({"seeds": ()}, "No seed is named"),
        ({"seeds": (0, 0)}, "seed 0 is named twice"),
        ({"strategies": ("none",), "ks": (1,)}, "no strategy among these has one"),
        ({"rates": (0.0,)}, "rates are 0.0"),
        ({"ks": (-1,)}, "k is -1"),
        ({"ks": (2, 99)}, "k is 99"),
        ({"ks": tuple(n / 100 for n in range(300)), "seeds": (0, 1)}, "makes 600 runs"),
    ],
)
def test_what_cannot_be_tried_is_refused(changes, problem):
    with pytest.raises(ConfigError, match=problem):
        Grid(given=GIVEN, **changes)


def test_the_bundled_model_is_tested_on_the_split_of_its_seed_only():
    with pytest.raises(ConfigError, match="split of seed 0"):
        Grid(given={"dataset": "biased-mnist-5k", "model": "bundled"}, seeds=(0, 1))


def test_options_that_change_nothing_are_left_out_of_the_command():
    given = {**GIVEN, "lr": None, "rounds": 1, "layer": "", "title": "Mine", "momentum": 0.9}

    assert heeded(given, ["heat"]) == {
        "dataset": "biased-mnist-5k",
        "epochs": 1,
        "batch_size": 32,
        "device": "cpu",
        "title": "Mine",
    }


def test_the_words_of_the_command_name_every_axis():
    wanted = Grid(given={"dataset": "biased-mnist-5k"}, ks=(1, 2.5), rates=(0.01,), seeds=(0, 1))

    assert wanted.command("DIR") == (
        "python -m masktune grid --dataset biased-mnist-5k --strategies heat --ks 1,2.5 "
        "--rates 0.01 --seeds 0,1 --out DIR"
    )


@pytest.fixture
def toy_in_the_catalogue(toy, monkeypatch):
    monkeypatch.setattr(loading, "load", lambda _, **__: toy)


@pytest.mark.slow
def test_a_grid_is_a_study_of_runs_with_means_over_seeds(
    tmp_path, toy_in_the_catalogue, monkeypatch
):
    done = []

    def counting(config, *, out, **more):
        if not (out / "result.json").is_file():
            done.append(out.relative_to(tmp_path).as_posix())
        return run(config, out=out, **more)

    monkeypatch.setattr(carry_out, "run", counting)

    told = grid(Grid(given=GIVEN, ks=(1,), seeds=(0, 1)), out=tmp_path)

    assert done == ["seed-0/heat-k-1", "seed-1/heat-k-1"]
    stored = json.loads((tmp_path / "study.json").read_text())
    assert (stored["kind"], stored["state"], stored["step"]) == ("grid", "done", 2)
    assert stored["table"] == told
    (test, *_) = told["tests"]
    ((one,),) = [told["means"][test]]
    results = [RunResult.read(tmp_path / way) for way in done]
    worst = [result.test[test].after.worst.accuracy for result in results]
    assert one["worst_group"]["mean"] == pytest.approx(statistics.fmean(worst))
    assert one["worst_group"]["values"] == worst
    assert one["seeds"] == [0, 1]
    low, high = one["average"]["interval"]
    assert low <= one["average"]["mean"] <= high
    rows = [*DictReader((tmp_path / "table.csv").read_text().splitlines())]
    assert [row["test set"] for row in rows] == told["tests"]
    assert float(rows[0]["worst_group mean"]) == one["worst_group"]["mean"]
    assert f"{test}, MaskTune, k = 1: worst group" in in_words(told)[0]
    classes = {**told, "worst_is": {**told["worst_is"], test: "class"}}  # without attributes
    assert f"{test}, MaskTune, k = 1: worst class" in in_words(classes)[0]
    assert "Worst class" in [column.title for column in table_of(classes, test).columns]

    done.clear()
    more = grid(Grid(given=GIVEN, ks=(1, 2), seeds=(0, 1)), out=tmp_path)  # goes on in its place
    assert done == ["seed-0/heat-k-2", "seed-1/heat-k-2"]
    assert [each["title"] for each in more["means"][test]] == ["MaskTune, k = 1", "MaskTune, k = 2"]

    with pytest.raises(RunFolderError, match="holds another grid"):
        grid(Grid(given={**GIVEN, "epochs": 2}, ks=(1,)), out=tmp_path)


def test_an_interval_says_whether_n_are_seeds_or_the_pictures_of_one_seed():
    score = {"mean": 0.7, "std": None, "n": 1, "interval": [0.655, 0.735]}
    score |= {"interval_over": "pictures", "pictures": 511}
    several = {"mean": 0.7, "std": 0.02, "n": 3, "interval": [0.65, 0.75], "interval_over": "seeds"}
    before = {name: value for name, value in score.items() if name != "pictures"}
    unknown = {"mean": None, "std": None, "n": 0, "interval": None, "interval_over": "pictures"}
    about = {"title": "one", "strategy": "heat", "k": 1.0, "rate": None, "seeds": [0]}

    def small(score):
        one = {**about, "worst_group": score, "average": score, "group_mean": score}
        return table_of({"means": {"original": [one]}}, "original").rows[0][3].small

    assert small(score) == "65.5 to 73.5%, 1 seed, n = 511"
    assert small(several) == "65.0 to 75.0%, n = 3 seeds"
    assert small(before) == "65.5 to 73.5%, 1 seed"  # of a study of before
    assert small(unknown) == "n = 0 seeds"


def test_every_test_set_has_means_of_its_own(tmp_path):
    result = RunResult.read(RUNS / DEMO)
    wanted = Grid(given={"dataset": "biased-mnist-5k", "model": "bundled"}, ks=(1,))
    (one,) = plan(wanted, out=tmp_path)

    told = document(wanted, {one: result}, out=tmp_path)

    averages = {name: test.after.average for name, test in result.test.items()}
    assert len({*averages.values()}) == len(averages) == 2
    found = {name: means[0]["average"]["mean"] for name, means in told["means"].items()}
    assert found == averages
    assert [column.title for column in table_of(told, "original").columns] == [
        *("Setting", "Test set", "Seeds", "Worst group", "Test average", "Group mean")
    ]


def test_one_seed_has_the_interval_of_its_pictures(tmp_path, toy, toy_in_the_catalogue):
    told = grid(Grid(given=GIVEN, strategies=("none",)), out=tmp_path)

    (test, *_) = told["tests"]
    found = told["means"][test][0]["average"]
    assert (found["n"], found["std"], found["interval_over"]) == (1, None, "pictures")
    (row,) = DictReader(csv(table_of(told, test)).decode().splitlines())
    assert (row["average std"], row["average n"]) == ("", "1")
    assert row["average interval over"] == "pictures"
    assert found["pictures"] == len(toy.tests[test])
    of_table = table_of(told, test).rows[0][4].small
    assert of_table.endswith(f"%, 1 seed, n = {len(toy.tests[test])}")
    assert float(row["average low"]) <= float(row["average mean"]) <= float(row["average high"])


def test_a_grid_of_a_rival_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="'dfr' hides nothing"):
        grid(Grid(given={"dataset": "biased-mnist-5k", "rival": "dfr"}), out=tmp_path)
