import pytest
import torch

from masktune.datasets.catalogue import load
from masktune.errors import DataError
from tests import layouts


def test_ten_digits_are_ten_classes_and_a_fifth_validates(tmp_path):
    bundle = load("mnist", root=layouts.mnist(tmp_path))

    assert [len(bundle.train), len(bundle.validation)] == [80, 20]
    assert bundle.tests["test"].labels.tolist() == list(range(10))
    assert bundle.card.classes == tuple("0123456789")
    assert bundle.card.attributes == ()


def test_labels_belong_to_their_digits_and_pictures_are_grey(tmp_path):
    train = load("mnist", root=layouts.mnist(tmp_path)).train

    pixels = train.images.batch(range(len(train)))

    # The generator paints grey = 20 * digit + 10.
    assert torch.equal(pixels[:, 0, 0, 0].long(), 20 * train.labels + 10)
    assert torch.equal(pixels[:, 0], pixels[:, 2])


def test_a_missing_file_is_named(tmp_path):
    root = layouts.mnist(tmp_path)
    gone = root / "MNIST" / "raw" / "t10k-labels-idx1-ubyte"
    gone.unlink()

    with pytest.raises(DataError) as caught:
        load("mnist", root=root)

    assert f"{gone.parent}: {gone.name} is missing" in caught.value.problem
    assert "train-images" not in caught.value.problem


def test_files_that_are_still_packed_are_not_called_missing(tmp_path):
    with pytest.raises(DataError, match="t10k-labels-idx1-ubyte are still packed") as caught:
        load("mnist", root=layouts.mnist(tmp_path, packed=True))

    assert caught.value.remedy == "Unpack the .gz files there."


@pytest.mark.parametrize("length", [0, 2, 8, 500])
def test_a_truncated_file_is_explained(tmp_path, length):
    root = layouts.mnist(tmp_path)
    path = root / "MNIST" / "raw" / "train-images-idx3-ubyte"
    path.write_bytes(path.read_bytes()[:length])

    with pytest.raises(DataError, match="MNIST cannot be read"):
        load("mnist", root=root)
