"""The pictures of the Compare page: the mix that is shown first, and what is hidden."""

import cv2
import numpy as np
import pytest
import torch

from app.compare.pictures import ACROSS, mixed, view_tiles
from masktune.heat.keep import keep_masks
from masktune.show.answers import answers_at
from masktune.show.contact_sheets import looks


def test_the_mix_fills_a_row_with_every_group(outcome):
    chosen = mixed(outcome)

    assert len(chosen) == ACROSS
    assert {answer.group for answer in answers_at(outcome.test, chosen)} == set(
        outcome.group_names().values()
    )
    assert len({answer.state for answer in answers_at(outcome.test, chosen)}) == 4


def test_the_hidden_view_hatches_what_is_hotter_than_the_threshold(outcome):
    positions = outcome.positions(state="fixed")[:2]
    found = looks(outcome.view, outcome.test.split, positions)
    keep = keep_masks(torch.from_numpy(found.before), 2.0).numpy()

    tiles = view_tiles_without_cache(outcome, positions, "Hidden", found)
    plain = view_tiles(outcome, positions, "Picture")

    for tile, picture, kept in zip(tiles, plain, keep, strict=True):
        factor = tile.shape[0] // kept.shape[0]
        far = cv2.erode(kept.astype(np.uint8), np.ones((3, 3))).astype(bool)
        far = far.repeat(factor, axis=0).repeat(factor, axis=1)
        assert (tile[far] == picture[far]).all()
        assert (tile != picture).any() == (not kept.all())


def view_tiles_without_cache(outcome, positions, which, found):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("app.compare.pictures.looks_of", lambda *_: found)
        return view_tiles(outcome, positions, which)
