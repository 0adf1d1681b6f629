"""How much of a picture, its clue and the thing is hidden."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from masktune.data.fills import filled
from masktune.data.preprocess import Preprocess
from masktune.data.regions import TensorRegions
from masktune.data.splits import part
from masktune.data.types import in_memory
from masktune.datasets.catalogue import load
from masktune.heat import hiding
from masktune.heat.hiding import clue_members, clues_of, keep_of, measure_hiding, sample_of
from masktune.heat.store import HeatStore


def split(count=3):
    """Give pictures of 2 x 4 whose left half is the thing and whose corner is the clue."""
    where = torch.zeros(count, 2, 4, dtype=torch.bool)
    thing, clue = where.clone(), where.clone()
    thing[:, :, :2] = True
    clue[:-1, 0, 3] = True  # the last picture has none
    pixels = torch.randint(256, (count, 3, 2, 4), generator=torch.Generator().manual_seed(0))
    pictures = in_memory("train", pixels.byte(), torch.arange(count) % 2)
    return replace(pictures, thing=TensorRegions(thing), clue=TensorRegions(clue))


def test_shares_are_of_the_picture_the_clue_the_thing_and_the_rest():
    keep = torch.ones(3, 2, 4, dtype=torch.bool)
    keep[0, 0] = False  # the upper row: half of all three, and the clue
    keep[2, :, 0] = False  # the left column: half of the thing

    measured = measure_hiding(lambda index: keep[index], split())

    assert measured.hidden.tolist() == [0.5, 0.0, 0.25]
    assert measured.clue[:2].tolist() == [1.0, 0.0]
    assert np.isnan(measured.clue[2])
    assert measured.thing.tolist() == [0.5, 0.0, 0.5]
    assert measured.rest.tolist() == [0.5, 0.0, 0.0]


def test_a_soft_mask_counts_by_how_much_it_darkens():
    measured = measure_hiding(lambda index: torch.full((len(index), 2, 4), 0.75), split())

    assert measured.hidden.tolist() == [0.25] * 3
    assert measured.thing.tolist() == [0.25] * 3


def test_what_nobody_knows_is_not_measured_and_nothing_hidden_is_nothing_covered():
    plain = replace(split(), thing=None, clue=None)

    assert measure_hiding(None, plain).clue is None
    assert measure_hiding(None, plain).rest is None
    assert measure_hiding(None, split()).thing.tolist() == [0.0] * 3
    assert measure_hiding(None, split()).hidden.tolist() == [0.0] * 3


def test_a_picture_of_which_no_thing_is_known_has_no_rest_either():
    pictures = split()
    empty = replace(pictures, thing=TensorRegions(torch.zeros(3, 2, 4, dtype=torch.bool)))

    assert np.isnan(measure_hiding(None, empty).rest).all()


def test_a_large_set_is_sampled_by_the_seed(monkeypatch):
    monkeypatch.setattr(hiding, "SAMPLE", 4)
    train = split(9)

    assert sample_of(split(4), seed=0).tolist() == [0, 1, 2, 3]
    drawn = sample_of(train, seed=0)
    assert len(set(drawn.tolist())) == 4
    assert drawn.equal(drawn.sort().values)
    assert drawn.equal(sample_of(train, seed=0))
    assert any(not drawn.equal(sample_of(train, seed=seed)) for seed in (1, 2, 3))


@pytest.mark.parametrize("fill", ["black", "noise", "another"])
def test_some_pictures_are_hidden_and_filled_as_they_are_among_all(fill):
    train, some = split(6), torch.tensor([4, 1])
    keep = torch.rand(6, 2, 4, generator=torch.Generator().manual_seed(1)) > 0.5
    whole = filled(lambda index: keep[index], fill, split=train, seed=0, stage="1")
    way = Preprocess()

    every = way.of(train.__getitems__(range(6)), whole)
    few = way.of(part(train, some).__getitems__(range(2)), keep_of(whole, some))

    assert few.equal(every[some])


def test_places_of_the_same_name_are_told_apart(monkeypatch):
    heat = torch.zeros(6, 3, 3)
    store = HeatStore(rounds=(heat,), size=(6, 6), layer="a", method="xgradcam")

    class Found:
        def __init__(self, place, members):
            self.place, self.members = place, members

    found = [Found("top", [0]), Found("top", [1]), Found("centre", [2]), Found("top", [3])]
    monkeypatch.setattr(hiding, "find_clues", lambda *_, **__: found)

    assert clue_members(store, seed=0) == {
        "top": [0],
        "top (2)": [1],
        "centre": [2],
        "top (3)": [3],
    }


def test_only_pictures_with_heat_and_without_attributes_have_places_for_groups():
    heat = torch.zeros(4, 3, 3)
    heat[:, 0, 0] = 1.0
    store = HeatStore(rounds=(heat,), size=(6, 6), layer="a", method="xgradcam")
    known = load("biased-mnist-5k").card
    plain = replace(known, attributes=())

    assert clues_of(store, known, seed=0) is clues_of(None, plain, seed=0) is None
    found = clues_of(store, plain, seed=0)
    assert {name: members.tolist() for name, members in found.items()} == {"top left": [0, 1, 2, 3]}
