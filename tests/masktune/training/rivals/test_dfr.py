import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from masktune.checkpoints.checkpoint import Checkpoint, checkpoint_bytes, load_checkpoint
from masktune.data.card import UNKNOWN
from masktune.data.types import in_memory
from masktune.errors import ConfigError, DataError, ModelError
from masktune.models.build import build
from masktune.models.logits import class_probabilities
from masktune.progress import Progress
from masktune.seeds import stream
from masktune.training.methods import RIVALS
from masktune.training.rivals.dfr import (
    PENALTIES,
    balanced,
    folded,
    halves,
    regression,
    standard,
    tune,
    worst_share,
)

ROOT = Path(__file__).resolve().parents[4]


def test_a_draw_has_as_many_of_every_group_as_the_smallest():
    groups = torch.tensor([0, 0, 0, 0, 0, 3, 3, 3, 1, 1, 1, 1])

    first, second = (balanced(groups, generator=stream(seed, "draw")) for seed in (0, 1))

    assert Counter(groups[first].tolist()) == {0: 3, 1: 3, 3: 3}
    assert len(set(first.tolist())) == 9  # nobody twice
    assert set(first.tolist()) != set(second.tolist())


def test_each_group_is_halved_and_the_odd_one_learns():
    groups = torch.tensor([0] * 5 + [1] * 4 + [2])

    learns, judges = halves(groups, generator=stream(0, "halves"))

    assert Counter(groups[learns].tolist()) == {0: 3, 1: 2, 2: 1}
    assert Counter(groups[judges].tolist()) == {0: 2, 1: 2}
    assert sorted([*learns.tolist(), *judges.tolist()]) == list(range(10))
    assert learns.tolist() != sorted(learns.tolist())  # by chance


def test_the_worst_group_is_the_one_with_the_smallest_share_of_right_answers():
    right = torch.tensor([True, True, False, True, False, False])

    # Group 0: 2 of 2; group 2: 1 of 4.
    assert worst_share(right, torch.tensor([0, 0, 2, 2, 2, 2])) == 0.25


def test_a_constant_feature_is_not_blown_up_by_its_rounding():
    rows = [[1.0, 5.0], [3.0, 5.0], [1.0, 5.0 + 1e-9], [3.0, 5.0]]
    features = torch.tensor(rows, dtype=torch.float64)

    mean, scale = standard(features, centred=True)
    uncentred, same = standard(features, centred=False)

    assert mean.tolist() == pytest.approx([2.0, 5.0])
    assert scale.tolist() == [1.0, 1.0]  # 1, 3, 1, 3 deviates by 1 from 2
    assert uncentred.tolist() == [0.0, 0.0]
    assert torch.equal(scale, same)


@pytest.mark.parametrize(("classes", "logits"), [(2, 1), (2, 2), (3, 3)])
def test_standardisation_becomes_part_of_the_last_layer(classes, logits):
    chance = np.random.default_rng(0)
    features = chance.normal(size=(60, 4)) * [1.0, 10.0, 0.1, 3.0] + [0.0, 50.0, -2.0, 7.0]
    labels = np.arange(60) % classes
    features[:, 1] += 20 * labels
    mean, scale = standard(torch.from_numpy(features), centred=True)
    known = (features - mean.numpy()) / scale.numpy()
    model = regression(known, labels, penalty=1.0, intercept=True, seed=0)

    weight, bias = folded([model, model], mean=mean, scale=scale, logits=logits)

    said = torch.from_numpy(features) @ weight.T + bias
    assert said.shape == (60, logits)
    decision = torch.from_numpy(model.decision_function(known))
    given = said[:, 1] - said[:, 0] if logits == 2 else said[:, 0] if logits == 1 else said
    assert torch.allclose(given, decision, atol=1e-5)
    wanted = torch.from_numpy(model.predict_proba(known))
    assert torch.allclose(class_probabilities(said), wanted, atol=1e-5)


def test_the_layer_is_the_mean_of_the_refits():
    chance = np.random.default_rng(1)
    features, labels = chance.normal(size=(40, 3)), np.arange(40) % 2
    one, other = (
        regression(features[part], labels[part], penalty=1.0, intercept=True, seed=0)
        for part in (slice(0, 20), slice(20, 40))
    )
    plain = {"mean": torch.zeros(3).double(), "scale": torch.ones(3).double(), "logits": 1}

    weight, bias = folded([one, other], **plain)

    assert weight.numpy() == pytest.approx((one.coef_ + other.coef_) / 2)
    assert bias.numpy() == pytest.approx((one.intercept_ + other.intercept_) / 2)


def test_the_penalty_is_of_the_first_power():
    # Noise gets no weight at all, which a penalty on squares never does.
    chance = np.random.default_rng(0)
    features, labels = chance.normal(size=(200, 30)), np.arange(200) % 2
    features[:, 0] += 2 * labels

    model = regression(features, labels, penalty=0.1, intercept=True, seed=0)

    assert (model.coef_ == 0).sum() > 20
    assert model.coef_[0, 0] > 0.5


def test_a_layer_without_bias_is_fitted_without_one():
    features, labels = np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([0, 0, 1, 1])

    models = [
        regression(features, labels, penalty=100.0, intercept=intercept, seed=0)
        for intercept in (True, False)
    ]

    assert models[0].intercept_[0] < 0  # small features are of class 0
    assert float(np.sum(models[1].intercept_)) == 0


@pytest.mark.parametrize(("logits", "bias"), [(2, True), (1, True), (2, False)])
def test_it_lifts_the_worst_group_of_a_model_that_leans_on_the_clue(
    last_layer_context, leaning, worst, logits, bias
):
    told, saved = [], []
    context = last_layer_context("dfr", watcher=told.append, save=saved.append)
    before = leaning(logits, bias=bias)

    tuned = tune(context, before)

    assert worst(context, before) == 0
    assert worst(context, tuned.after) > 0.9
    assert tuned.facts["C"] in PENALTIES
    assert tuned.facts["pictures of a group"] == 6
    assert saved == [tuned]
    assert {p.stage for p in told} == {"finetune"}
    assert (told[-1].done, told[-1].total) == (200, 200)
    for name, value in before.model.state_dict().items():
        after = tuned.after.model.state_dict()[name]
        assert torch.equal(value, after) == (not name.startswith("head."))


def test_the_penalty_is_chosen_by_the_worst_group_of_the_other_half(
    last_layer_context, leaning, monkeypatch
):
    # Only fits with C 0.3 answer at all well; the others always say class 0.
    def fitted(features, labels, *, penalty, intercept, seed):
        model = regression(features, labels, penalty=1.0, intercept=intercept, seed=seed)
        if penalty != 0.3:
            model.coef_, model.intercept_ = 0 * model.coef_, 0 * model.intercept_ - 1
        return model

    monkeypatch.setattr("masktune.training.rivals.dfr.regression", fitted)

    assert tune(last_layer_context("dfr"), leaning()).facts["C"] == 0.3


def test_of_equal_penalties_the_first_is_taken(last_layer_context, leaning, monkeypatch):
    monkeypatch.setattr("masktune.training.rivals.dfr.worst_share", lambda *_: 0.5)

    assert tune(last_layer_context("dfr"), leaning()).facts["C"] == 1.0


def test_the_seed_decides_the_draws(last_layer_context, leaning):
    one, again, other = (
        tune(last_layer_context("dfr", seed=seed), leaning()).after.model.head.weight
        for seed in (0, 0, 1)
    )

    assert torch.equal(one, again)
    assert not torch.equal(one, other)


def test_more_than_two_classes_are_told_apart(leaning_bundle, leaning, last_layer_context):
    # The label is how red a picture is, in three steps; the model before does not care.
    labels = torch.arange(60) % 3
    pixels = torch.randint(0, 20, (60, 3, 8, 8), generator=stream(0, "pixels"))
    pixels[:, 0] += 80 * labels[:, None, None]
    split = in_memory("validation", pixels.to(torch.uint8), labels, torch.arange(60) // 3 % 2)
    card = replace(leaning_bundle.card, classes=("a", "b", "c"))
    bundle = replace(leaning_bundle, card=card, train=split, validation=split, tests={"t": split})
    context = last_layer_context("dfr", bundle=bundle)
    before = leaning(3)

    tuned = tune(context, before)

    assert context.ask(before.model, split).correct().mean() < 0.5
    assert context.ask(tuned.after.model, split).correct().mean() == 1


def test_a_class_that_does_not_validate_is_named(last_layer_context, leaning_bundle):
    validation = leaning_bundle.validation
    alone = in_memory(
        "validation", validation.images.batch(range(40)), *2 * (validation.labels[:40],)
    )
    context = last_layer_context("dfr", bundle=replace(leaning_bundle, validation=alone))

    with pytest.raises(DataError, match="of 'toy' is of 'bright', and DFR learns from validation"):
        RIVALS["dfr"].check(context.bundle, context.config)


def test_validation_pictures_without_groups_are_refused(leaning_bundle, last_layer_context):
    validation = leaning_bundle.validation
    nobody = torch.full_like(validation.attributes, UNKNOWN)
    unknown = replace(leaning_bundle, validation=replace(validation, attributes=nobody))

    config = last_layer_context("dfr").config

    RIVALS["dfr"].check(leaning_bundle, config)
    with pytest.raises(ConfigError, match="DFR needs validation groups"):
        RIVALS["dfr"].check(unknown, config)


def test_it_can_be_stopped_between_fits(last_layer_context, leaning):
    class StoppedError(Exception):
        pass

    def stop(progress: Progress):
        if progress.done > 150:
            raise StoppedError

    with pytest.raises(StoppedError):
        tune(last_layer_context("dfr", watcher=stop), leaning())


@pytest.mark.slow
@pytest.mark.parametrize("rival", ["dfr", "afr", "dac"])
@pytest.mark.parametrize(
    ("arch", "size"), [("small-cnn-bn", 28), ("resnet20", 28), ("resnet18", 32), ("vit_b_16", 32)]
)
def test_only_the_last_layer_of_any_architecture_moves_and_the_file_is_an_ordinary_one(
    toy, last_layer_context, tmp_path, rival, arch, size
):
    few = {
        name: in_memory(
            name,
            torch.nn.functional.interpolate(split.images.batch(range(8)), (size, size)),
            split.labels[:8],
            split.attributes[:8],
        )
        for name, split in (("train", toy.train), ("validation", toy.validation))
    }
    card = replace(toy.card, size=(size, size))
    bundle = replace(toy, card=card, **few, tests={"turned": few["validation"]})
    model = build(arch, 2, size=size).eval()
    if arch.startswith("vit"):
        torch.nn.init.normal_(model.heads.head.weight)  # zeros at first, which look nowhere
    before = Checkpoint(model=model, arch=arch, classes=2, lr=0.01, size=(size, size))

    tuned = RIVALS[rival].tune(last_layer_context(rival, bundle=bundle), before)

    moved = {
        name
        for name, value in model.state_dict().items()
        if not torch.equal(value, tuned.after.model.state_dict()[name])
    }
    heads = ("head.", "linear.", "fc.", "heads.head.")
    assert moved
    assert all(name.startswith(heads) for name in moved)
    path = tmp_path / "after.safetensors"
    path.write_bytes(checkpoint_bytes(tuned.after))
    again = load_checkpoint(path, classes=2)
    probe = torch.rand(2, 3, size, size)
    assert torch.allclose(again.model.eval()(probe), tuned.after.model(probe), atol=1e-6)


def test_a_network_that_ends_in_a_convolution_is_refused(toy, last_layer_context):
    model = build("squeezenet1_1", 2).eval()
    before = Checkpoint(model=model, arch="squeezenet1_1", classes=2, lr=0.01)

    with pytest.raises(ModelError, match="do not come from a linear last layer"):
        tune(last_layer_context("dfr", bundle=toy), before)


@pytest.mark.slow
def test_two_processes_find_the_layer_that_one_finds(tmp_path):
    found = {}
    for processes in (1, 2):
        out = tmp_path / str(processes)
        several = ("-m", "torch.distributed.run", "--nproc_per_node", "2", "--standalone")
        words = ["-m", "masktune", "run", "--dataset", "biased-mnist-5k", "--model", "bundled"]
        words += ["--rival", "dfr", "--out", str(out), "--json"]
        done = subprocess.run(
            [sys.executable, *(several if processes == 2 else ()), *words],
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        found[processes] = json.loads(done.stdout), load_checkpoint(out / "after.safetensors")

    (one, alone), (two, together) = found[1], found[2]
    assert one["rival"] == two["rival"]
    for name, value in alone.model.state_dict().items():
        assert torch.allclose(value, together.model.state_dict()[name], rtol=1e-3, atol=1e-4)
    assert one["test"]["biased"]["after"]["average"] == pytest.approx(
        two["test"]["biased"]["after"]["average"], abs=0.005
    )
