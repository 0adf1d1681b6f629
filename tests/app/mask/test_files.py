"""Keep maps and masked pictures that leave the Mask page."""

import io
import zipfile
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from app import loaded
from app.mask import files
from app.mask.sheet import Beside
from masktune.data.splits import part
from masktune.heat.keep import keep_masks
from masktune.heat.store import HeatStore
from masktune.progress import unwatched
from tests.app.mask.test_page import choice


def store(count: int) -> HeatStore:
    heat = torch.rand(count, 7, 7, generator=torch.Generator().manual_seed(count))
    return HeatStore(rounds=(heat,), size=(28, 28), layer="features", method="xgradcam")


def read(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def pixels(content: bytes):
    return np.asarray(Image.open(io.BytesIO(content)))


def test_the_sheets_files_are_named_by_training_position_and_hidden_as_the_core_does():
    positions, heat = (40, 7), store(2)

    found = read(files.sheet_zip([Beside(title="", choice=choice(), store=heat)], positions, 1.0))

    assert sorted(found) == [
        "README.txt",
        "index.csv",
        *(f"{folder}/{number:06d}.png" for folder in ("keep", "masked") for number in (7, 40)),
    ]
    keep = keep_masks(heat.fine(torch.tensor([1])), 1.0)[0].numpy()
    assert np.array_equal(pixels(found["keep/000007.png"]), keep * 255)
    image = loaded.bundle(choice().subject).train.images.batch([7])[0].permute(1, 2, 0).numpy()
    assert np.array_equal(pixels(found["masked/000007.png"]), image * keep[..., None])
    line = found["index.csv"].decode().splitlines()[2].split(",")
    assert line[0] == "7"
    assert float(line[4]) == pytest.approx(1 - keep.mean())
    assert "xgradcam at layer features, k = 1," in found["README.txt"].decode()


def test_every_column_has_a_folder_that_says_what_it_is():
    columns = [Beside(title=name, choice=choice(), store=store(1)) for name in ("one", "two")]

    found = read(files.sheet_zip(columns, (3,), 2.0))

    assert {name.split("/")[0] for name in found} == {"column-1", "column-2"}
    assert found["column-2/README.txt"].decode().startswith("two\n")


def test_the_whole_set_is_hidden_like_the_sheet_and_made_once():
    data = loaded.bundle(choice().subject)
    few, heat, seen = replace(data, train=part(data.train, torch.arange(70))), store(70), []

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loaded, "bundle", lambda *_, **__: few)
        content = files.whole_zip(choice(), 1.0, heat, watcher=seen.append)
        again = files.whole_zip(choice(), 1.0, heat, watcher=unwatched)
        largest = files.largest(choice())

    assert files.has_whole(choice(), 1.0)
    assert not files.has_whole(choice(), 1.1)
    assert again is content
    found = read(content)
    assert len(found) == 2 * 70 + 2
    keep = keep_masks(heat.fine(torch.tensor([69])), 1.0)[0].numpy()
    assert np.array_equal(pixels(found["keep/000069.png"]), keep * 255)
    assert largest == 70 * 28 * 28 * 4
    files._ZIPS.clear()
