import pytest
import torch

from masktune.data.batches import Batches, loader
from masktune.data.card import UNKNOWN
from masktune.data.frame import Frame
from masktune.data.images import FileImages
from masktune.data.picture import PictureError
from masktune.data.types import Split
from tests import layouts


@pytest.mark.parametrize("workers", [0, 1])
def test_a_picture_that_vanished_is_named_also_by_a_worker_process(tmp_path, workers):
    paths = [layouts.picture(tmp_path / f"{n}.png", label=n) for n in range(4)]
    split = Split(
        name="train",
        images=FileImages(paths, Frame(resize=(8, 8))),
        labels=torch.arange(4),
        attributes=torch.full((4,), UNKNOWN),
    )
    paths[2].unlink()
    read = iter(Batches(loader(split, [[0, 1], [2, 3]], workers=workers)))

    assert next(read).labels.tolist() == [0, 1]
    with pytest.raises(PictureError, match=r"2\.png cannot be read as a picture") as caught:
        next(read)

    assert caught.value.problem.endswith("it does not exist.")
    assert caught.value.remedy == "Replace it or leave it out."
