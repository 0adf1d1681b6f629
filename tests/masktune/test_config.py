import json
import math
from dataclasses import replace

import pytest

from masktune.config import MaskingConfig, RivalConfig, RunConfig, TrainConfig
from masktune.errors import ConfigError

TRAINING = TrainConfig(epochs=12, batch_size=64, lr=0.01)


def trained(**changes):
    return replace(TRAINING, **changes)


def test_the_last_rate_is_that_of_the_last_epoch_not_of_the_step_after_it():
    # 100 epochs, halved after 25, 50 and 75: 0.01 / 8. A decay after epoch 100 is never used.
    config = TrainConfig(epochs=100, batch_size=128, lr=0.01, decay_at=(25, 50, 75, 100))

    assert config.last_lr == 0.00125


@pytest.mark.parametrize(
    ("changes", "last"),
    [
        ({"schedule": "cosine"}, 0.001),  # a hundredth: at 0 a finetune would do nothing
        ({"schedule": "constant", "decay_at": (2,)}, 0.1),
        ({"decay_at": (2, 3), "decay_factor": 0.1}, 0.1 * 0.1**2),
        ({"decay_at": (4,)}, 0.1),  # after the last epoch
        ({"warmup": 3.5}, 0.1),
    ],
)
def test_the_last_rate_is_that_with_which_each_schedule_ends(changes, last):
    config = TrainConfig(epochs=4, batch_size=1, lr=0.1, **changes)

    assert config.last_lr == last
    assert config.rate(4 - 1e-9) == pytest.approx(last)


def test_the_rate_falls_one_step_after_the_other_as_it_always_did():
    config = TrainConfig(epochs=4, batch_size=1, lr=0.01, decay_at=(1, 2), decay_factor=0.1)

    rates = [config.rate(epoch) for epoch in range(4)]

    assert rates == [0.01, 0.01 * 0.1, 0.01 * 0.1 * 0.1, 0.01 * 0.1 * 0.1]
    assert rates[-1] != 0.01 * 0.1**2  # in the last bit


def test_settings_survive_the_way_through_json():
    config = RunConfig(
        dataset="biased-mnist-5k",
        recipe="biased-mnist-5k",
        arch="small-cnn",
        training=TrainConfig(epochs=3, batch_size=8, lr=0.1, decay_at=(1, 2), patience=4),
        masking=MaskingConfig(k=1.5, rounds=3, accumulate=False),
    )

    assert RunConfig.from_json(json.loads(json.dumps(config.to_json()))) == config


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: MaskingConfig(k=math.nan), "k is nan"),
        (lambda: MaskingConfig(k=-0.1), "k is -0.1"),
        (lambda: MaskingConfig(rounds=0), "at least one round, not 0"),
        (lambda: MaskingConfig(strategy="magic"), "no strategy 'magic'"),
        (lambda: MaskingConfig(statistics="median"), "no statistics 'median'"),
        (lambda: MaskingConfig(method="magic"), "magic"),
        (lambda: MaskingConfig(top_fraction=1.5), "1.5"),
        (lambda: TrainConfig(epochs=0, batch_size=1, lr=1), "epochs is 0"),
        (lambda: TrainConfig(epochs=1, batch_size=0, lr=1), "batch size is 0"),
        (lambda: TrainConfig(epochs=1, batch_size=1, lr=math.inf), "learning rate is inf"),
        (lambda: trained(optimizer="magic"), "optimizer 'magic'"),
        (lambda: trained(schedule="magic"), "schedule 'magic'"),
        (lambda: trained(best="magic"), "best epoch 'magic'"),
        (lambda: trained(erm_batch_norm="magic"), "no batch norm 'magic'"),
        (lambda: RivalConfig(unlabelled="magic"), "no unlabelled 'magic'"),
        (lambda: RivalConfig(worst_share=0.0), "--worst-share is 0.0"),
        (lambda: RivalConfig(penalty=-1.0), "--penalty is -1.0"),
        (lambda: trained(momentum=1.0), "momentum is 1.0"),
        (lambda: trained(label_smoothing=-0.1), "label smoothing is -0.1"),
        (lambda: trained(weight_decay=math.nan), "weight decay is nan"),
        (lambda: trained(decay_factor=0.0), "multiplied by 0.0"),
        (lambda: trained(decay_at=(5, 3)), "the epochs 5, 3"),
        (lambda: trained(decay_at=(3, 3)), "the epochs 3, 3"),
        (lambda: trained(decay_at=(0,)), "the epochs 0"),
        (lambda: trained(warmup=12), "takes 12 epochs and the training 12"),
        (lambda: trained(warmup=-0.5), "takes -0.5 epochs"),
        (lambda: trained(patience=0), "patience is 0"),
        (lambda: trained(freeze=" "), "what is frozen"),
        (
            lambda: RunConfig(dataset="d", recipe="r", arch="a", training=TRAINING, batch_norm="x"),
            "no batch norm 'x'",
        ),
        (
            lambda: RunConfig(dataset="d", recipe="r", arch="a", training=TRAINING, seed=-1),
            "seed is -1",
        ),
        (
            lambda: RunConfig(dataset="d", recipe="r", arch="a", training=TRAINING, finetune_lr=0),
            "finetuning rate is 0",
        ),
        (
            lambda: RunConfig(dataset="d", recipe="r", arch="a", training=TRAINING, validation="x"),
            "no validation 'x'",
        ),
        (
            lambda: RunConfig(dataset="d", recipe="r", arch="a", training=TRAINING, exceptions="x"),
            "no kind of exceptions 'x'",
        ),
        (
            lambda: TrainConfig(epochs=1, batch_size=1, lr=1, augment="flip,x"),
            "no augmentation 'x'",
        ),
    ],
)
def test_a_setting_that_cannot_be_used_is_one_problem_with_one_remedy(make, problem):
    with pytest.raises(ConfigError) as caught:
        make()

    assert problem in caught.value.problem
    assert caught.value.remedy


def test_a_run_from_before_exceptions_could_be_chosen_keeps_its_recipe_by_its_name_now():
    now = RunConfig(
        dataset="biased-mnist", recipe="mnist-square", arch="small-cnn-bn", training=TRAINING
    )
    stored = now.to_json()
    assert RunConfig.from_json(stored).recipe == "mnist-square"

    del stored["exceptions"]
    older = RunConfig.from_json(stored)

    assert (older.recipe, older.exceptions) == ("mnist-square-random", "random")


def test_a_configuration_of_another_version_is_explained():
    with pytest.raises(ConfigError, match="cannot be read"):
        RunConfig.from_json({"dataset": "x"})


@pytest.mark.parametrize("changes", [{"frame": 7}, {"class_names": 2}, {"dataset": ["x"]}])
def test_a_configuration_with_values_of_other_kinds_is_explained(changes):
    training = TrainConfig(epochs=1, batch_size=8, lr=0.1)
    config = RunConfig(dataset="x", recipe="r", arch="small-cnn", training=training)
    stored = {**config.to_json(), **changes}

    with pytest.raises(ConfigError, match="cannot be read"):
        RunConfig.from_json(stored)
