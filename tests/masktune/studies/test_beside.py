from dataclasses import replace

import pytest

from masktune.config import AUTO, MaskingConfig, RunConfig
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


def test_a_run_by_the_recipe_departs_in_nothing():
    assert differences(RUN) == []


def test_every_departure_is_said():
    short = replace(RUN, training=replace(SQUARE.training, epochs=8), arch=AUTO, model="erm.pth")

    assert differences(short) == ["epochs 8 instead of 100", "a given ERM model"]
    turned = replace(RUN, training=replace(SQUARE.training, augment="flip"), exceptions="authors")
    assert differences(turned) == [
        "augmentation flip instead of none",
        "exceptions authors instead of random",
    ]
    faster = replace(RUN, finetune_lr=0.01)  # the recipe halves its rate three times
    assert differences(faster) == ["finetuning rate 0.01 instead of 0.00125"]
