"""Validating on test pictures, for models that have seen all the others."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from masktune.cli.main import main
from masktune.data.splits import joined, part, validated_by_test
from masktune.datasets.catalogue import load
from masktune.errors import ConfigError, DataError
from masktune.runs.open import OpenRun
from tests import layouts


def pixels(split):
    return split.images.batch(range(len(split)))


@pytest.fixture
def cifar(tmp_path):
    """Give an .npz file of 100 training and 20 test pictures, no two alike."""
    rng = np.random.default_rng(0)
    np.savez(
        tmp_path / "cifar10.npz",
        x_train=rng.integers(0, 256, (100, 32, 32, 3), dtype=np.uint8),
        y_train=np.arange(100) % 10,
        x_test=rng.integers(0, 256, (20, 32, 32, 3), dtype=np.uint8),
        y_test=np.arange(20) % 10,
    )
    return tmp_path / "cifar10.npz"


def test_half_of_the_test_pictures_validate_and_every_training_picture_trains(cifar):
    own, held = load("cifar10", root=cifar), load("cifar10", root=cifar, validation="test")

    assert (len(own.train), len(own.validation), len(own.tests["test"])) == (80, 20, 20)
    assert (len(held.train), len(held.validation), len(held.tests["test"])) == (100, 10, 10)
    assert torch.equal(pixels(held.train), torch.cat([pixels(own.train), pixels(own.validation)]))
    assert torch.equal(held.train.labels, torch.cat([own.train.labels, own.validation.labels]))
    assert held.validation.name == "validation"
    assert "10 of the 20 test pictures, chosen by the seed, validate." in held.findings[-1]
    assert "20 of the 100 training pictures, chosen by the seed, validate." in own.findings
    assert "training pictures, chosen" not in " ".join(held.findings)


def test_only_the_finding_about_validation_is_taken_back(cifar):
    own = load("cifar10", root=cifar)
    other = "Photographers are training pictures, chosen by the seed, validate."

    held = validated_by_test(replace(own, findings=(*own.findings, other)), seed=0)

    assert other in held.findings
    assert own.set_aside in own.findings
    assert own.set_aside not in held.findings
    assert held.set_aside == held.findings[-1]


def test_no_picture_both_validates_and_tests_and_each_keeps_its_label(cifar):
    whole = load("cifar10", root=cifar).tests["test"]
    held = load("cifar10", root=cifar, validation="test")

    labels = {bytes(p.numpy()): int(y) for p, y in zip(pixels(whole), whole.labels, strict=True)}
    found = {}
    for split in (held.validation, held.tests["test"]):
        for picture, label in zip(pixels(split), split.labels, strict=True):
            found[bytes(picture.numpy())] = int(label)
    assert found == labels  # 20 of them: had one been in both parts, another would be missing


def test_the_seed_decides_which_half_validates(cifar):
    first, again, other = (
        load("cifar10", root=cifar, validation="test", seed=seed).validation for seed in (0, 0, 1)
    )

    assert torch.equal(pixels(first), pixels(again))
    assert not torch.equal(pixels(first), pixels(other))


def test_files_are_not_read_and_the_run_still_knows_them_by_name(tmp_path):
    root = layouts.waterbirds(tmp_path / "birds")
    own, held = load("waterbirds", root=root), load("waterbirds", root=root, validation="test")

    assert not own.findings[-1].startswith("The model has seen")
    assert held.train.images.paths == [*own.train.images.paths, *own.validation.images.paths]
    halves = [*held.validation.images.paths, *held.tests["test"].images.paths]
    assert sorted(halves) == sorted(own.tests["test"].images.paths)
    assert torch.equal(
        held.train.attributes, torch.cat([own.train.attributes, own.validation.attributes])
    )


def test_of_several_test_sets_none_validates():
    with pytest.raises(DataError, match="has 2 test sets"):
        load("biased-mnist-5k", validation="test")


def test_one_test_picture_cannot_do_both(cifar):
    bundle = load("cifar10", root=cifar)
    single = part(bundle.tests["test"], torch.tensor([3]))

    with pytest.raises(DataError, match="has one picture"):
        validated_by_test(replace(bundle, tests={"test": single}), seed=0)


def test_another_word_is_refused_before_any_file_is_read():
    with pytest.raises(ConfigError, match=r"no validation 'tset'.*own, test"):
        load("cifar10", root="nowhere", validation="tset")


def test_chosen_pictures_are_brought_into_the_frame_when_they_are_asked_for(cifar):
    split = load("cifar10", root=cifar, frame="resize 8").tests["test"]

    chosen = part(split, torch.tensor([7, 2]))

    assert chosen.images.pixels.shape == (2, 3, 32, 32)  # as they are, not in the frame
    assert torch.equal(pixels(chosen), split.images.batch([7, 2]))
    assert chosen.labels.tolist() == [7, 2]


def test_joined_pictures_in_a_frame_are_those_of_both(cifar):
    split = load("cifar10", root=cifar, frame="resize 8").tests["test"]

    both = joined(part(split, torch.tensor([1])), part(split, torch.tensor([5, 0])))

    assert torch.equal(pixels(both), split.images.batch([1, 5, 0]))


def test_a_run_that_validates_on_test_pictures_says_so_and_can_be_read_again(cifar, tmp_path):
    small = ["--arch", "small-cnn", "--epochs", "1", "--batch-size", "16", "--lr", "0.01"]
    words = ["run", "--dataset", "cifar10", *small]
    out = ["--root", str(cifar), "--out", str(tmp_path / "run"), "--json"]

    assert main([*words, *out, "--validation", "test", "--device", "cpu"]) == 0

    found = OpenRun(tmp_path / "run")
    assert found.config.validation == "test"
    assert len(found.predictions.validation.before.labels) == len(found.bundle.validation) == 10
    assert "10 of the 20 test pictures" in " ".join(found.result.data.findings)
