from dataclasses import replace

import pytest

from masktune.checkpoints.settings import NOTHING_HIDDEN
from masktune.config import AUTO, MaskingConfig, RivalConfig, RunConfig
from masktune.recipes import recipe
from masktune.studies.beside import beside, differences
from tests import results

SQUARE = recipe("mnist-square-random")
RUN = RunConfig(
    dataset="biased-mnist", recipe=SQUARE.name, arch="small-cnn", training=SQUARE.training
)
RESULT = results.a_result(
    {"biased": results.both(0.4, 0.98), "original": results.both(0.4, 0.985)}, rounds=[{}]
)


def test_the_papers_figures_stand_beside_the_runs():
    rows = beside(RUN, RESULT)

    assert [(row.printed.test, row.ours) for row in rows] == [("biased", 0.98), ("original", 0.985)]
    assert [row.printed.value for row in rows] == pytest.approx([0.9826, 0.9846])
    assert rows[0].difference == pytest.approx(-0.0026)


@pytest.mark.parametrize(
    "changes",
    [
        {"recipe": "biased-mnist-5k"},  # the paper has no such experiment
        {"masking": MaskingConfig(k=1.0)},  # nor this threshold
        {"masking": MaskingConfig(strategy="random")},  # that is the recipe mnist-randmask
        {"recipe": "of an older version"},
    ],
)
def test_a_run_that_the_paper_did_not_do_has_nothing_beside_it(changes):
    assert beside(replace(RUN, **changes), RESULT) == []


@pytest.mark.parametrize(
    ("best", "worst", "settings"),
    [
        ("worst-group", [81.1], RivalConfig()),
        ("average", [40.6], RivalConfig()),
        ("last", [], RivalConfig()),
        ("average", [], RivalConfig(error_weight=7)),
    ],
)
def test_a_rival_stands_beside_its_own_figures_by_how_its_epoch_was_chosen(best, worst, settings):
    table = recipe("celeba-table")
    run = RunConfig(
        dataset="celeba",
        recipe=table.name,
        arch="resnet50",
        training=replace(table.training, best=best),
        masking=NOTHING_HIDDEN,
        rival="jtt",
        rival_settings=settings,
    )

    rows = beside(run, results.a_result({"test": results.both(0.4, 0.8)}, rounds=[]))

    found = [100 * row.printed.value for row in rows if row.printed.measure == "worst_group"]
    assert found == pytest.approx(worst)


def test_a_run_by_the_recipe_departs_in_nothing():
    assert differences(RUN, RESULT) == []


@pytest.mark.parametrize(
    ("training", "others", "told"),
    [
        # Short of its first decay a schedule ends at the rate it began with.
        (
            {"epochs": 8},
            {"arch": AUTO, "model": "erm.pth"},
            [
                "epochs 8 instead of 100",
                "finetuning rate 0.01 instead of 0.00125",
                "a given ERM model",
            ],
        ),
        (
            {"augment": "flip", "weight_decay": 0.0},
            {"exceptions": "authors"},
            [
                "augmentation flip instead of none",
                "weight decay 0.0 instead of 0.0001",
                "exceptions authors instead of random",
            ],
        ),
        (
            {"decay_at": (25, 50), "decay_factor": 0.25},
            {},
            [
                "decay after epochs 25, 50 instead of 25, 50, 75",
                "decay factor 0.25 instead of 0.5",
                "finetuning rate 0.000625 instead of 0.00125",
            ],
        ),
        ({}, {"finetune_lr": 0.01}, ["finetuning rate 0.01 instead of 0.00125"]),
    ],
)
def test_every_departure_is_said(training, others, told):
    config = replace(RUN, training=replace(SQUARE.training, **training), **others)

    assert differences(config, RESULT) == told


def test_the_rate_of_a_model_that_brought_its_own_is_said():
    result = results.a_result({"biased": results.both(0.4, 0.98)}, rounds=[{"lr": 0.005}])

    assert differences(RUN, result) == ["finetuning rate 0.005 instead of 0.00125"]
