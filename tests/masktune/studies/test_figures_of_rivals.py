"""At scale paper a rival trains as its own code does, at the smaller ones by the recipe."""

import json
from dataclasses import asdict

import pytest

from masktune.cli.main import main
from masktune.config import BY_RECIPE, RivalConfig
from masktune.recipes import TABLES, recipe
from masktune.studies.beside import beside, differences
from masktune.studies.experiments import ONE_MORE, experiment
from masktune.studies.figures_of_rivals import FIGURES
from masktune.studies.reproduce import Request, plan
from masktune.studies.results_page import markdown
from masktune.studies.tables import document
from tests import results

SELECTIVE = ("selective-table", "selective-table-svhn", "selective-table-cats-vs-dogs")


def runs(table, scale, tmp_path):
    request = Request(recipe=table, scale=scale, seeds=1)
    return {planned.method: planned.config for planned in plan(request, out=tmp_path)}


@pytest.mark.parametrize(
    ("table", "arm", "optimizer", "lr", "weight_decay", "epochs", "batch"),
    [
        ("celeba-table", "Group DRO", "sgd", 1e-4, 1e-4, 50, 128),
        ("celeba-table", "LfF, validation groups", "adam", 1e-4, 1e-4, 20, 256),
        ("celeba-table", "LfF", "adam", 1e-4, 1e-4, 20, 256),
        ("celeba-table", "Spectral decoupling, validation groups", "adam", 1e-5, 0.0, 20, 128),
        ("celeba-table", "JTT, validation groups", "sgd", 1e-5, 0.1, 50, 64),
        ("celeba-table", "JTT", "sgd", 1e-5, 0.1, 50, 64),
        ("celeba-table", "DivDis", "sgd", 1e-4, 1e-4, 10, 32),
        # Of these nobody has published any: the recipe's.
        ("celeba-table", "CVaR DRO", "sgd", 1e-4, 1e-4, 20, 512),
        ("celeba-table", "CIM, validation groups", "sgd", 1e-4, 1e-4, 20, 512),
        ("celeba-table", ONE_MORE, "sgd", 1e-4, 1e-4, 20, 512),
        ("waterbirds-table", "Group DRO", "sgd", 1e-3, 1e-4, 300, 128),
        ("waterbirds-table", ONE_MORE, "sgd", 1e-3, 1e-4, 100, 128),
        ("selective-table", "SelectiveNet for 90%", "sgd", 0.1, 5e-4, 300, 128),
        ("selective-table-svhn", "SelectiveNet for 100%", "sgd", 0.1, 5e-4, 300, 128),
        ("selective-table-svhn", ONE_MORE, "sgd", 0.1, 5e-4, 300, 1024),
        ("selective-table-cats-vs-dogs", "SelectiveNet for 95%", "sgd", 0.1, 5e-4, 300, 128),
        ("selective-table-cats-vs-dogs", ONE_MORE, "adam", 0.001, 1e-4, 200, 128),
        ("selective-table", "Deep Gamblers", "sgd", 0.1, 1e-4, 300, 128),
    ],
)
def test_a_rival_trains_by_the_figures_of_its_own_code(
    table, arm, optimizer, lr, weight_decay, epochs, batch, tmp_path
):
    training = runs(table, "paper", tmp_path)[arm].training

    assert (training.optimizer, training.lr, training.weight_decay) == (optimizer, lr, weight_decay)
    assert (training.epochs, training.batch_size) == (epochs, batch)
    assert training.augment == recipe(table).training.augment


@pytest.mark.parametrize("table", SELECTIVE)
def test_selectivenet_halves_its_rate_every_25_epochs(table, tmp_path):
    training = runs(table, "paper", tmp_path)["SelectiveNet for 90%"].training

    assert training.decay_at == (25, 50, 75, 100, 125, 150, 175, 200, 225, 250, 275)
    assert (training.rate(24), training.rate(25), training.rate(50)) == (0.1, 0.05, 0.025)


def test_jtt_collects_the_errors_of_one_epoch_of_celeba_and_shows_them_fifty_times(tmp_path):
    config = runs("celeba-table", "paper", tmp_path)["JTT"]

    assert config.rival_settings == RivalConfig(error_epochs=1, error_weight=50)
    assert (config.error_epochs, config.training.best) == (1, "average")


@pytest.mark.parametrize("scale", ["tiny", "short"])
@pytest.mark.parametrize("table", TABLES)
def test_at_the_smaller_scales_every_rival_trains_by_the_recipe(table, scale, tmp_path):
    found = runs(table, scale, tmp_path)
    usual = recipe(table).at(scale).training

    for config in found.values():
        assert asdict(config.training) | {"best": "last"} == asdict(usual)
        assert config.rival_settings.error_epochs is None


@pytest.mark.parametrize("scale", ["tiny", "short", "paper"])
@pytest.mark.parametrize("table", FIGURES)
def test_no_figures_of_its_own_give_a_rival_an_erm_model_of_its_own(table, scale, tmp_path):
    found = runs(table, scale, tmp_path)

    assert [*found] == [ONE_MORE, *(arm.name for arm in experiment(table).arms)]
    assert len({config.model for config in found.values()}) == 2  # the ERM itself has none


def test_figures_are_those_of_rows_that_there_are():
    for table, rivals in FIGURES.items():
        assert rivals.keys() <= {arm.rival for arm in experiment(table).arms} & BY_RECIPE


def test_the_table_says_by_which_figures_a_row_was_trained(tmp_path):
    request = Request(recipe="waterbirds-table", scale="paper", seeds=1)
    tests = {"test": results.both(0.5, 0.5)}
    done = [
        (planned, results.a_result(tests, rounds=[])) for planned in plan(request, out=tmp_path)
    ]
    said = "--epochs 300 --batch-size 128 --lr 0.001 --weight-decay 0.0001"

    table = document(request, done)

    assert table["own_figures"] == {"Group DRO": said}
    assert f"by the figures of their own code: Group DRO `{said}`." in markdown(table)
    short = Request(recipe="waterbirds-table", scale="short", seeds=1)
    done = [(planned, results.a_result(tests, rounds=[])) for planned in plan(short, out=tmp_path)]
    assert document(short, done)["own_figures"] == {}
    assert "own code" not in markdown(document(short, done))
    older = {name: value for name, value in table.items() if name != "own_figures"}
    assert "own code" not in markdown(older)


def test_the_list_says_who_trains_by_figures_of_its_own(tmp_path, capsys):
    assert main(["reproduce", "--list", "--root", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert main(["reproduce", "--list", "--root", str(tmp_path), "--json"]) == 0
    known = {row["recipe"]: row for row in json.loads(capsys.readouterr().out)["recipes"]}

    assert "at scale paper Group DRO, LfF, Spectral decoupling, JTT, DivDis by the figures" in said
    assert known["waterbirds-table"]["own_figures"] == ["Group DRO"]
    assert known["imagenet9-table"]["own_figures"] == []


def test_a_run_by_the_papers_own_row_departs_in_nothing_and_stands_beside_its_figures(tmp_path):
    config = runs("celeba-table", "paper", tmp_path)["JTT"]
    result = results.a_result({"test": results.both(0.4, 0.8)}, rounds=[])

    assert differences(config, result) == ["a given ERM model"]
    worst = [row.printed.value for row in beside(config, result)]
    assert worst == pytest.approx([0.406, 0.88])
    shorter = runs("celeba-table", "short", tmp_path)["JTT"]
    assert "epochs 6 instead of 50" not in differences(config, result)
    assert any("epochs 6 instead of" in words for words in differences(shorter, result))
