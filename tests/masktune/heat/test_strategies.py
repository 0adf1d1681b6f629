import subprocess
import sys
from dataclasses import replace
from typing import get_args

import pytest
import torch

from masktune.config import MaskingConfig, Strategy
from masktune.data.fills import FILLS, Filled
from masktune.data.preprocess import Preprocess, hide
from masktune.data.regions import TensorRegions
from masktune.data.types import in_memory
from masktune.errors import ConfigError, ModelError
from masktune.heat.keep import keep_masks
from masktune.heat.store import HeatStore
from masktune.heat.strategies import STRATEGIES, Round, check, hidden_area, keeper, mean_heat


@pytest.fixture
def store():
    """Two rounds for three 8 x 8 pictures; round 1 is hot top left, round 2 bottom right."""
    first, second = torch.zeros(3, 4, 4), torch.zeros(3, 4, 4)
    first[:, 0, 0], second[:, 3, 3] = 1.0, 1.0
    first[2] = second[2] = 0.0  # the third picture has no heat
    empty = HeatStore(rounds=(), size=(8, 8), layer="features", method="xgradcam")
    return empty.adding(first).adding(second)


EVERY = torch.arange(3)


def pictures():
    pixels = torch.arange(3 * 3 * 8 * 8).remainder(251).to(torch.uint8).view(3, 3, 8, 8)
    return in_memory("train", pixels, torch.tensor([0, 1, 1]))


def with_clue():
    where = torch.zeros(3, 8, 8, dtype=torch.bool)
    where[0, 2:4, 5:] = True  # the other two pictures have none
    return replace(pictures(), clue=TensorRegions(where))


def make(store, number=1, **settings):
    now = Round(
        masking=MaskingConfig(**settings),
        store=store,
        size=(8, 8),
        count=3,
        number=number,
        seed=0,
        split=with_clue(),
    )
    return keeper(now)


def test_heat_hides_what_keep_masks_hides(store):
    keep = make(store, k=1.0)(EVERY)

    assert torch.equal(keep, keep_masks(store.fine(EVERY), 1.0))
    assert not keep[0, 0, 0]
    assert keep[2].all()


def test_cold_hides_what_heat_keeps_and_leaves_a_picture_without_heat_whole(store):
    heat, cold = make(store, k=1.0)(EVERY), make(store, strategy="cold", k=1.0)(EVERY)

    assert torch.equal(cold[:2], ~heat[:2])
    assert cold[0, 0, 0]
    assert int((~cold[0]).sum()) > 40
    assert cold[2].all()


def test_cold_leaves_a_picture_whole_where_k_is_so_large_that_nothing_is_hot(store):
    assert make(store, strategy="cold", k=100.0)(EVERY).all()


def test_paste_hides_what_cold_does_and_shows_another_class_there(store):
    cold, paste = make(store, strategy="cold", k=1.0), make(store, strategy="paste", k=1.0)
    batch = pictures().__getitems__([0, 1])
    seen = Preprocess().of(batch, paste)
    partner = int(paste.chance.partners[0])
    own, other = (pictures().images.batch([n])[0].float() / 255 for n in (0, partner))
    kept, theirs = cold(torch.tensor([0, partner]))

    assert torch.equal(paste(EVERY), cold(EVERY))
    assert partner in (1, 2)  # of the other class
    assert torch.equal(seen[0][:, kept], own[:, kept])
    rest = ~kept & (~theirs if not theirs.all() else torch.ones_like(kept))
    assert torch.equal(seen[0][:, rest], other[:, rest])


def test_black_is_no_fill_of_its_own_and_the_others_say_what_they_are(store):
    keep = make(store, k=1.0)
    batch = pictures().__getitems__([0, 1, 2])

    assert not isinstance(keep, Filled)
    assert torch.equal(Preprocess().of(batch, keep), hide(batch.images.float() / 255, keep(EVERY)))
    for name in FILLS.keys() - {"black"}:
        painted = make(store, k=1.0, fill=name)
        assert painted.fill is FILLS[name]
        assert torch.equal(painted(EVERY), keep(EVERY))


def test_noise_is_drawn_anew_in_every_round(store):
    first, second = (make(store, n, strategy="random", fill="noise") for n in (1, 2))

    assert not torch.equal(first.chance.seeds, second.chance.seeds)


def test_a_fill_without_pictures_is_a_mistake(store):
    masking = MaskingConfig(fill="noise")

    with pytest.raises(ValueError, match="needs the pictures"):
        keeper(Round(masking=masking, store=store, size=(8, 8), count=3, number=1, seed=0))


def test_accumulating_a_pixel_hidden_once_stays_hidden(store):
    both = make(store, 2, rounds=2, k=1.0)(EVERY)
    newest = make(store, 2, rounds=2, k=1.0, accumulate=False)(EVERY)

    assert not both[0, 0, 0]
    assert not both[0, 7, 7]
    assert newest[0, 0, 0]
    assert not newest[0, 7, 7]
    assert torch.equal(both, make(store, 1, k=1.0)(EVERY) & newest)


def test_a_keeper_answers_for_the_positions_asked(store):
    keep = make(store, k=1.0)

    assert torch.equal(keep(torch.tensor([2, 0])), keep(EVERY)[[2, 0]])


def test_random_windows_do_not_change_while_training_but_from_round_to_round(store):
    keep = make(store, strategy="random")
    later = make(store, 2, strategy="random", accumulate=False)

    assert torch.equal(keep(EVERY), keep(EVERY))
    assert torch.equal(keep(EVERY), make(store, strategy="random")(EVERY))
    assert not torch.equal(keep(EVERY), later(EVERY))


def test_no_strategy_hides_nothing(store):
    assert make(store, strategy="none") is None
    assert hidden_area(None, 3).hidden_fraction == 0.0


def test_soft_masks_darken_twice_when_they_accumulate(store):
    once, twice = make(store, strategy="soft"), make(store, 2, strategy="soft")
    heat = store.fine(EVERY)
    later = store.fine(EVERY, round_number=2)

    assert once(EVERY).dtype == torch.float32
    assert torch.equal(once(EVERY), (1 - heat).float())
    assert torch.allclose(twice(EVERY), ((1 - heat) * (1 - later)).float())


def test_global_hides_above_the_mean_over_the_training_set(store):
    tau = mean_heat(store, round_number=1, statistics="all")

    keep = make(store, strategy="global", statistics="all")(EVERY)

    assert tau == pytest.approx(float(store.fine(EVERY).mean()))
    assert torch.equal(keep, store.fine(EVERY) <= tau)


def test_the_global_mean_over_positive_heat_counts_positive_pixels_only(store):
    heat = store.fine(EVERY)

    tau = mean_heat(store, round_number=1, statistics="positive")

    assert tau == pytest.approx(float(heat.sum() / (heat > 0).sum()))


def test_topk_hides_the_share_asked_for(store):
    keep = make(store, strategy="topk", top_fraction=0.125)(EVERY)

    assert [int((~k).sum()) for k in keep] == [8, 8, 0]  # 64 / 8, and none without heat


def test_hidden_area_counts_pixels_and_pictures_where_nothing_is_hidden(store):
    keep = torch.ones(3, 8, 8, dtype=torch.bool)
    keep[0, :4] = False  # half of one picture of three

    area = hidden_area(lambda index: keep[index], 3)

    assert area.hidden_fraction == pytest.approx(1 / 6)
    assert area.empty_fraction == pytest.approx(2 / 3)


def test_a_store_survives_its_file_and_costs_four_bytes_a_place(store):
    tensors, notes = store.to_tensors()

    again = HeatStore.from_tensors(tensors, notes)

    assert torch.equal(again.rounds[1], store.rounds[1])
    assert (again.size, again.layer, again.method) == ((8, 8), "features", "xgradcam")
    assert tensors["round_1"].nbytes == 3 * 16 * 4


def test_heat_that_is_not_a_number_is_refused(store):
    with pytest.raises(ModelError, match="not numbers"):
        store.adding(torch.full((3, 4, 4), float("nan")))


def test_every_strategy_of_the_settings_is_there_once():
    assert tuple(STRATEGIES) == get_args(Strategy)
    assert all(name == strategy.name for name, strategy in STRATEGIES.items())


def test_what_a_strategy_says_about_itself_is_so(store):
    """Those that need no heat work without a store; those without make hide nothing."""
    for name, strategy in STRATEGIES.items():
        if not strategy.hides:
            assert make(store, strategy=name) is None
        elif strategy.needs_heat:
            with pytest.raises(ValueError, match="needs heat"):
                make(None, strategy=name)
        else:
            assert make(None, strategy=name)(EVERY).shape == (3, 8, 8)


@pytest.mark.parametrize("name", STRATEGIES)
def test_the_settings_that_a_strategy_heeds_change_what_it_hides(name, store):
    """And those that it does not heed change nothing."""
    generator = torch.Generator().manual_seed(0)
    noisy = store.adding((torch.rand(3, 4, 4, generator=generator) - 0.6).relu())
    changes = {"k": 0.0, "statistics": "all", "top_fraction": 0.5}

    def hidden(**settings):
        keep = make(noisy, 3, **{"strategy": name, "accumulate": False, "k": 1.0, **settings})
        return None if keep is None else keep(EVERY).tolist()

    usual = hidden()
    moved = {setting for setting, value in changes.items() if hidden(**{setting: value}) != usual}

    assert moved == STRATEGIES[name].settings & set(changes)


def test_the_table_of_strategies_needs_no_pytorch():
    code = (
        "import sys, masktune.config; before = 'torch' in sys.modules; "
        "import masktune.heat.strategies; print(('torch' in sys.modules) == before)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "True"


def test_judged_hides_the_clue_and_nothing_else_whatever_the_heat(store):
    keep = make(None, strategy="judged")
    hidden = torch.zeros(8, 8, dtype=torch.bool)
    hidden[2:4, 5:] = True

    assert keep(torch.tensor([2, 0]))[0].all()
    assert torch.equal(~keep(torch.tensor([2, 0]))[1], hidden)
    assert hidden_area(keep, 3).empty_fraction == pytest.approx(2 / 3)
    check(MaskingConfig(strategy="judged"), with_clue())


def test_judged_without_regions_says_which_pictures_have_some_and_how_a_list_looks():
    with pytest.raises(ConfigError, match=r"columns file, left, top.*cows and camels"):
        check(MaskingConfig(strategy="judged"), pictures())
    check(MaskingConfig(), pictures())  # heat needs none
