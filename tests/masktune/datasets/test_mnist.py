import gzip
import struct

import numpy as np
import pytest
import torch

from masktune.data.card import DataSettings
from masktune.data.fingerprint import fingerprint
from masktune.data.types import Arrays
from masktune.datasets import mnist
from masktune.datasets.catalogue import CATALOGUE, load
from masktune.errors import DataError
from masktune.progress import unwatched


@pytest.fixture(scope="module")
def one():
    return load("biased-mnist-5k", seed=0)


def square(pictures):
    """Tell which pictures carry the blue square."""
    blue = torch.tensor([0, 0, 255], dtype=torch.uint8)[:, None, None]
    return (pictures[:, :, :4, :4] == blue).all(dim=(1, 2, 3))


def test_the_split_is_3500_500_1000(one):
    assert [len(one.train), len(one.validation)] == [3500, 500]
    assert {name: len(part) for name, part in one.tests.items()} == {
        "biased": 1000,
        "original": 1000,
    }


def test_training_carries_the_square_on_99_percent_of_0_to_4_and_1_percent_of_5_to_9(one):
    labels, squares = one.train.labels, square(one.train.images.pixels)

    assert squares[labels == 0].sum() == round(0.99 * int((labels == 0).sum()))
    assert squares[labels == 1].sum() == round(0.01 * int((labels == 1).sum()))
    assert torch.equal(one.train.attributes, squares.long())


def test_biased_turns_the_clue_round_and_original_has_none(one):
    biased, original = one.tests["biased"], one.tests["original"]

    assert torch.equal(square(biased.images.pixels), biased.labels == 1)
    assert not square(original.images.pixels).any()
    assert torch.equal(biased.attributes, biased.labels)


def test_apart_from_the_square_both_test_sets_show_the_same_digits(one):
    biased, original = one.tests["biased"].images.pixels, one.tests["original"].images.pixels

    assert torch.equal(biased[:, :, 4:], original[:, :, 4:])


def test_no_digit_is_in_two_splits(one):
    digits = mnist.bundled_digits(None, DataSettings(seed=0), unwatched)
    parts = (digits.train, digits.validation, digits.tests["test"])
    rows = [part.images.pixels.flatten(1) for part in parts]
    every = torch.cat(rows)

    # The 5,000 digits are all different, so any repetition would come from the split.
    assert len(torch.unique(every, dim=0)) == 5000


def test_the_same_seed_gives_the_same_pictures_and_another_seed_others():
    first, again, other = (load("biased-mnist-5k", seed=s).train for s in (3, 3, 4))

    assert torch.equal(first.images.pixels, again.images.pixels)
    assert not torch.equal(first.labels, other.labels)


def test_two_squares_come_together_in_two_corners():
    train = load("two-squares-mnist-5k").train
    red = torch.tensor([255, 0, 0], dtype=torch.uint8)[:, None, None]
    right = (train.images.pixels[:, :, :4, -4:] == red).all(dim=(1, 2, 3))

    assert torch.equal(square(train.images.pixels), right)
    assert torch.equal(right.long(), train.attributes)


@pytest.mark.parametrize(
    ("key", "seed", "known"),
    [
        ("biased-mnist-5k", 0, "2:c902f7f38c34d6ac1edead5dd167d32f"),
        ("biased-mnist-5k", 3, "2:06225be59e3fd4a080827d3cf67ce2a9"),
        ("two-squares-mnist-5k", 0, "2:2ae5267471b9be1378834c284a7a2324"),
        ("two-squares-mnist-5k", 3, "2:dfd6066433aa3a755fb3d309eddbcfa9"),
    ],
)
def test_exceptions_by_chance_are_those_from_before_they_could_be_chosen(key, seed, known):
    """Fingerprints, so pixels and order, of the version before."""
    assert fingerprint(load(key, seed=seed)) == known
    assert fingerprint(load(key, seed=seed, exceptions="random")) == known


def test_the_authors_exceptions_are_4s_and_5s_only():
    digits = mnist.bundled_digits(None, DataSettings(seed=1), unwatched)

    bundle = load("biased-mnist-5k", seed=1, exceptions="authors")

    for name, shown in (("train", digits.train), ("validation", digits.validation)):
        found = getattr(bundle, name)
        low, square = shown.labels < 5, found.attributes == 1
        assert set(shown.labels[low & ~square].tolist()) == {4}
        assert set(shown.labels[~low & square].tolist()) == {5}
        # As many as by chance, the last 4s and the first 5s of the part.
        for kind, chosen, first in ((4, ~square, False), (5, square, True)):
            places = (shown.labels == kind).nonzero()[:, 0]
            expected = chosen[places].sort(descending=first, stable=True).values
            assert torch.equal(chosen[places], expected)
    usual = load("biased-mnist-5k", seed=1)
    assert bundle.train.attributes.sum() == usual.train.attributes.sum()
    assert torch.equal(bundle.train.labels, usual.train.labels)
    assert torch.equal(bundle.tests["biased"].images.pixels, usual.tests["biased"].images.pixels)


@pytest.mark.parametrize("key", ["mnist", "cows-and-camels"])
def test_pictures_without_a_choice_of_exceptions_refuse_it(key):
    with pytest.raises(DataError, match=f"'{key}' does not heed --exceptions authors") as caught:
        load(key, exceptions="authors")

    assert "two-squares-mnist" in caught.value.remedy


def idx_root(folder, labels_train, labels_test):
    """Write MNIST files the way torchvision keeps them, with grey level = digit."""
    raw = folder / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for name, labels in (("train", labels_train), ("t10k", labels_test)):
        count = len(labels)
        pixels = np.repeat(np.array(labels, dtype=np.uint8), 28 * 28)
        images = struct.pack(">IIII", 0x803, count, 28, 28) + pixels.tobytes()
        digits = struct.pack(">II", 0x801, count) + bytes(labels)
        for kind, content in (("images-idx3", images), ("labels-idx1", digits)):
            (raw / f"{name}-{kind}-ubyte").write_bytes(content)
            (raw / f"{name}-{kind}-ubyte.gz").write_bytes(gzip.compress(content))
    return folder


@pytest.mark.parametrize("key", ["biased-mnist", "two-squares-mnist"])
def test_all_of_mnist_is_read_from_a_root_and_a_fifth_validates(key, tmp_path):
    root = idx_root(tmp_path, list(range(10)) * 20, list(range(10)))

    bundle = load(key, root=root)

    assert [len(bundle.train), len(bundle.validation)] == [160, 40]
    assert bundle.tests["biased"].labels.tolist() == [0] * 5 + [1] * 5


def test_a_root_without_the_files_is_explained(tmp_path):
    with pytest.raises(DataError, match="MNIST cannot be read") as caught:
        load("biased-mnist", root=tmp_path)

    assert "MNIST/raw" in caught.value.remedy


def test_a_root_that_does_not_exist_is_explained(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        load("biased-mnist", root=tmp_path / "nowhere")


def test_an_unknown_dataset_is_answered_with_the_known_ones():
    with pytest.raises(DataError, match="no dataset 'nope'") as caught:
        load("nope")

    assert all(key in caught.value.remedy for key in CATALOGUE)


@pytest.mark.slow
@pytest.mark.parametrize("key", [k for k, card in CATALOGUE.items() if card.bundled])
def test_what_a_bundled_card_promises_is_there(key):
    card = CATALOGUE[key]

    bundle = load(key)

    assert tuple(bundle.tests) == card.tests
    assert bundle.train.images.batch([0]).shape[2:] == card.size
    assert int(bundle.train.attributes.max()) < len(card.attributes)


def test_the_clue_is_the_painted_squares_and_the_thing_the_strokes(one):
    train = one.train
    clue, thing = (found.batch(range(len(train))) for found in (train.clue, train.thing))

    assert clue[:, :4, :4].flatten(1).all(dim=1).equal(train.attributes == 1)
    assert clue.sum(dim=(1, 2)).equal(16 * train.attributes)
    assert not (clue & thing).any()
    assert thing.equal((train.images.pixels[:, 0] > 127) & ~clue)  # the square's red is 0


def test_a_stroke_under_a_square_is_no_more_of_the_thing():
    white = torch.full((20, 28, 28), 255, dtype=torch.uint8)
    digits = mnist._digits("train", white, torch.arange(20) % 10)
    read = mnist.biased(lambda *_: Arrays(train=digits, tests={"test": digits}), mnist.ONE)

    biased = read(None, DataSettings(), unwatched).tests["biased"]

    assert biased.thing.batch([0, 9]).sum(dim=(1, 2)).tolist() == [28 * 28, 28 * 28 - 16]


def test_with_two_squares_both_are_the_clue():
    biased = load("two-squares-mnist-5k", seed=0).tests["biased"]
    clue = biased.clue.batch([int(biased.labels.argmax())])[0]

    assert clue.sum() == 32
    assert clue[:4, :4].all()
    assert clue[:4, -4:].all()
