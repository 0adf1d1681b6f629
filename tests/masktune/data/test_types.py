import pytest
import torch

from masktune.data.card import UNKNOWN
from masktune.data.images import TensorImages
from masktune.data.types import DatasetBundle, Split
from masktune.errors import DataError


def make(labels: list[int], name: str = "train") -> Split:
    pixels = torch.arange(len(labels) * 3 * 4 * 4).view(-1, 3, 4, 4) % 256
    return Split(
        name=name,
        images=TensorImages(pixels.to(torch.uint8)),
        labels=torch.tensor(labels),
        attributes=torch.full((len(labels),), UNKNOWN),
    )


def test_the_index_of_an_example_is_its_position():
    part = make([0, 1, 1])

    example = part[2]

    assert example.index == 2
    assert example.label == 1
    assert torch.equal(example.image, part.images.batch([2])[0])


def test_a_batch_holds_what_single_examples_hold_in_the_order_asked_for():
    part = make([0, 1, 0, 1])

    batch = part.__getitems__([3, 0])

    assert batch.positions.tolist() == [3, 0]
    assert batch.labels.tolist() == [1, 0]
    assert torch.equal(batch.images, torch.stack([part[3].image, part[0].image]))


def test_pictures_in_memory_stay_bytes():
    assert make([0, 1]).images.batch([0, 1]).dtype == torch.uint8


def test_an_empty_split_is_refused():
    with pytest.raises(DataError, match="'train' is empty"):
        make([])


def test_labels_must_match_the_pictures():
    with pytest.raises(DataError, match="3 pictures, 2 labels"):
        Split(
            name="train",
            images=make([0, 0, 0]).images,
            labels=torch.tensor([0, 1]),
            attributes=torch.tensor([0, 0, 0]),
        )


def test_a_training_split_without_one_of_the_classes_is_refused(toy):
    with pytest.raises(DataError, match="no picture of 'bright'"):
        DatasetBundle(
            card=toy.card, train=make([0, 0]), validation=make([0, 1]), tests={"t": make([1])}
        )
