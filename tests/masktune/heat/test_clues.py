import numpy as np
import pytest
import torch

from masktune.heat.clues import (
    _centres,
    _silhouette,
    _squares,
    find_clues,
    hidden_shares,
    mean_heat_of,
)
from masktune.heat.keep import keep_masks
from masktune.heat.store import HeatStore


@pytest.fixture
def store():
    """60 maps hot top left, 30 hot bottom right, with a little noise."""
    generator = torch.Generator().manual_seed(0)
    heat = 0.05 * torch.rand(90, 6, 6, generator=generator)
    heat[:60, 0, 0] = 1.0
    heat[60:, 5, 5] = 1.0
    empty = HeatStore(rounds=(), size=(12, 12), layer="features", method="xgradcam")
    return empty.adding(heat)


def test_two_habits_are_two_clues_the_larger_first(store):
    clues = find_clues(store)

    assert [clue.place for clue in clues] == ["top left", "bottom right"]
    assert clues[0].members.tolist() == list(range(60))
    assert clues[1].members.tolist() == list(range(60, 90))


def test_a_clue_says_how_much_of_the_heat_lies_in_its_place(store):
    clue = find_clues(store)[0]

    # The corner ninth holds 1 plus three places of noise; the other 32 places hold noise only.
    assert clue.focus == pytest.approx((1 + 3 * 0.025) / (1 + 35 * 0.025), abs=0.05)


def test_a_small_bright_place_outweighs_a_wide_faint_glow():
    heat = torch.full((20, 6, 6), 0.0)
    heat[:, 2:, :] = 0.1  # 24 faint places: the bottom ninths hold 0.4 each
    heat[:, 0, 0] = 0.3
    empty = HeatStore(rounds=(), size=(6, 6), layer="features", method="xgradcam")

    (clue,) = find_clues(empty.adding(heat))

    assert clue.place == "top left"
    assert clue.focus == pytest.approx(0.3 / 2.7)


def test_pictures_that_are_all_alike_are_one_clue():
    heat = torch.zeros(20, 3, 3)
    heat[:, 1, 1] = 1.0
    empty = HeatStore(rounds=(), size=(6, 6), layer="features", method="xgradcam")

    (clue,) = find_clues(empty.adding(heat))

    assert clue.place == "centre"
    assert len(clue.members) == 20


def test_the_same_seed_gives_the_same_clues(store):
    first, again = find_clues(store, seed=3), find_clues(store, seed=3)

    assert [c.members.tolist() for c in first] == [c.members.tolist() for c in again]


def test_hidden_shares_are_those_of_keep_masks(store):
    shares = hidden_shares(store, [0.0, 2.0], statistics="positive")

    keep = keep_masks(store.fine(torch.arange(90)), 2.0)
    assert shares.shape == (2, 90)
    assert shares[1] == pytest.approx(1 - keep.double().mean(dim=(1, 2)).numpy())
    assert (shares[0] >= shares[1]).all()


def test_mean_heat_is_the_mean_of_the_fine_heat(store):
    members = np.array([0, 61])

    assert mean_heat_of(store, members) == pytest.approx(
        store.fine(torch.from_numpy(members)).mean(dim=0).numpy()
    )


def test_one_picture_that_differs_from_1499_others_is_a_clue_of_its_own():
    """A sample of 500 for the silhouette would miss it."""
    generator = torch.Generator().manual_seed(0)
    heat = 0.01 * torch.rand(1500, 6, 6, generator=generator)
    heat[:, 0, 0] = 1.0
    heat[700] = 0.0
    heat[700, 5, 5] = 1.0
    empty = HeatStore(rounds=(), size=(6, 6), layer="features", method="xgradcam")

    clues = find_clues(empty.adding(heat))

    assert [(clue.place, len(clue.members)) for clue in clues] == [
        ("top left", 1499),
        ("bottom right", 1),
    ]


def test_groups_and_silhouettes_are_those_of_scikit_learn():
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score

    generator = np.random.default_rng(0)
    maps = np.vstack([generator.normal(at, 0.4, (40, 6)) for at in (0.0, 1.5, 3.0)])
    theirs = KMeans(3, n_init=4, random_state=0).fit(maps)

    centres = _centres(maps, 3, seed=0)

    numbers = _squares(maps, centres).argmin(axis=1)
    assert _squares(maps, centres).min(axis=1).sum() == pytest.approx(theirs.inertia_)
    apart = np.linalg.norm(maps[:, None] - maps[None], axis=2)
    assert _silhouette(apart, numbers) == pytest.approx(silhouette_score(maps, numbers))
