"""At which rates methods learn, as it is said before they do."""

from dataclasses import replace

import pytest
from torch import nn

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.studies.tournament.plan import Request
from masktune.studies.tournament.rates import learning
from masktune.training.rates import ENOUGH, suggest_rate

BEFORE = Checkpoint(model=nn.Identity(), arch="resnet32", classes=10, lr=None)
PICTURES = 45_000  # 352 steps of 128
GIVEN = {"dataset": "cifar10", "root": "data", "model": "m.th"}
SHORT = {"lr": 0.01, "epochs": 3}
LAST = 0.1 / 2**11  # where the recipe of 300 epochs ends


def asked(*methods, given=None, rates=(1.0,)):
    return Request(given={**GIVEN, **(given or {})}, methods=methods, rates=rates)


def test_every_kind_of_method_has_its_rate_and_where_it_comes_from():
    found = learning(
        asked("masktune", "none", "jtt", "sd", "afr", given=SHORT), BEFORE, pictures=PICTURES
    )

    assert found["words"][0] == (
        "Learning rates: 4.88281e-05 in the finetune of MaskTune, One more epoch (the recipe's "
        "last one, as the file of the model stores none); 0.01 at the start of 3 epochs of JTT, "
        "Spectral decoupling; the method's own in the last layer of AFR."
    )
    assert found["finetune"] == {"methods": ["masktune", "none"], "lr": [LAST], "steps": 352}
    assert found["recipe"] == {"methods": ["jtt", "sd"], "lr": [0.01], "epochs": 3}


def test_a_rate_that_cannot_move_the_model_is_warned_of_by_the_rule_of_advice():
    found = learning(asked("masktune", "sd"), BEFORE, pictures=PICTURES)

    lr, _ = suggest_rate(LAST, 352)
    assert lr == 0.00025
    assert found["words"][1:] == [
        "The finetune's rate, 4.88281e-05, times 352 steps is 0.017: under 0.5 models hardly "
        "moved. Try a rate of 0.00025. Rates are factors on the usual one: give 5.2 for it."
    ]


@pytest.mark.parametrize(
    ("lr", "rates", "warned"),
    [
        (ENOUGH / 352, (1.0,), False),  # exactly enough
        (0.99 * ENOUGH / 352, (1.0,), True),
        (0.99 * ENOUGH / 352, (1.0, 3.0), False),  # the larger of both is enough
        (ENOUGH / 352, (0.5,), True),
    ],
)
def test_of_several_rates_the_largest_must_be_enough(lr, rates, warned):
    stored = replace(BEFORE, lr=lr)

    words = learning(asked("masktune", rates=rates), stored, pictures=PICTURES)["words"]

    assert "the last one that the model before was trained with" in words[0]
    assert bool(words[1:]) == warned


def test_adam_s_rate_is_said_and_not_judged():
    adam = asked("masktune", given={"optimizer": "adam"})

    found = learning(adam, BEFORE, pictures=PICTURES)

    assert found["words"][0].startswith("Learning rates: 4.88281e-05 in the finetune of MaskTune")
    assert len(found["words"]) == 1
    assert found["finetune"]["steps"] is None


def test_a_model_that_is_trained_here_is_finetuned_at_its_last_rate_and_a_given_one_counts():
    trained = {"model": None, "lr": 0.08, "epochs": 4, "decay_at": "2", "decay_factor": 0.5}
    more = {"finetune_lr": 0.02}

    own, given = (
        learning(asked("masktune", given=given), None, pictures=PICTURES)["words"][0]
        for given in (trained, trained | more)
    )

    assert own == "Learning rates: 0.04 in the finetune of MaskTune (the last one of the ERM)."
    assert given == "Learning rates: 0.02 in the finetune of MaskTune (as given)."


def test_without_a_method_that_finetunes_there_is_nothing_to_warn_of():
    found = learning(asked("jtt", rates=(1.0, 3.0), given=SHORT), BEFORE, pictures=10)

    assert found["words"] == ["Learning rates: 0.01, 0.03 at the start of 3 epochs of JTT."]
    assert found["finetune"] is None
