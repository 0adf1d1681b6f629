import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from masktune.data.preprocess import hide
from masktune.errors import ConfigError
from masktune.heat.keep import (
    heat_statistics,
    keep_all_but_top,
    keep_masks,
    random_keep_masks,
)

AWKWARD = [0.1, 0.7, 0.9, 0.001, 1 / 3]
"""Values whose sum, divided by their number, need not give them back."""


def authors_keep(heat, k):
    """The authors' rule for one map, written slowly: statistics over the positive pixels."""
    positive = np.where(heat > 0, heat, np.nan)
    keep = np.ones(heat.shape, dtype=bool)
    if np.isnan(positive).all():
        return keep
    tau = np.nanmean(positive) + k * np.nanstd(positive)
    for place in np.ndindex(heat.shape):
        keep[place] = not heat[place] > tau
    return keep


def papers_keep(heat, k):
    """The paper's text for one map: mean and standard deviation over all heat values."""
    mu = sum(heat.flat) / heat.size
    sigma = math.sqrt(sum((value - mu) ** 2 for value in heat.flat) / heat.size)
    keep = np.ones(heat.shape, dtype=bool)
    for place in np.ndindex(heat.shape):
        keep[place] = not heat[place] > mu + k * sigma
    return keep


def exact_keep(heat, k, *, statistics):
    """Either rule in rational numbers: h > mu + k sigma iff (h - mu)^2 > k^2 var and h > mu."""
    values = [Fraction(float(v)) for v in heat.flat if v > 0 or statistics == "all"]
    keep = np.ones(heat.shape, dtype=bool)
    if not values:
        return keep
    mu = sum(values) / len(values)
    variance = sum((v - mu) ** 2 for v in values) / len(values)
    for place in np.ndindex(heat.shape):
        above = Fraction(float(heat[place])) - mu
        keep[place] = not (above > 0 and above**2 > Fraction(k) ** 2 * variance)
    return keep


def random_maps(count=60, side=14):
    """Maps as a ReLU leaves them, from dense to nearly empty, and the special ones."""
    rng = np.random.default_rng(5)
    maps = [
        np.maximum(rng.normal(loc=loc, size=(side, side)), 0) for loc in np.linspace(-3, 2, count)
    ]
    hot = np.zeros((side, side))
    hot[3, 4] = 1.0
    almost = np.full((side, side), 0.25)
    almost[0, 0] = 1.0
    return np.stack([*maps, np.zeros((side, side)), np.full((side, side), 0.5), hot, almost])


@pytest.mark.parametrize("k", [0.0, 0.5, 1.0, 2.0, 2.5, 3.0])
@pytest.mark.parametrize(("statistics", "rule"), [("positive", authors_keep), ("all", papers_keep)])
def test_keep_equals_the_rule_written_slowly(k, statistics, rule):
    maps = random_maps()

    keep = keep_masks(torch.from_numpy(maps), k, statistics=statistics).numpy()

    expected = np.stack([rule(heat, k) for heat in maps])
    assert keep.dtype == bool
    assert np.array_equal(keep, expected)
    assert not expected.all()


@pytest.mark.parametrize("statistics", ["positive", "all"])
def test_keep_equals_the_rule_in_rational_numbers(statistics):
    rng = np.random.default_rng(2)
    maps = np.maximum(rng.normal(size=(40, 5, 5)), 0).astype(np.float32)

    keep = keep_masks(torch.from_numpy(maps), 1.5, statistics=statistics).numpy()

    expected = np.stack([exact_keep(heat, 1.5, statistics=statistics) for heat in maps])
    assert np.array_equal(keep, expected)
    assert not expected.all()


def test_only_the_pixel_above_mean_plus_one_sigma_is_hidden():
    # Positive heat 1, 1, 1, 1, 6: mu = 2, sigma = 2, so tau = 4.
    heat = torch.tensor([[[0.0, 1.0, 1.0], [1.0, 1.0, 6.0]]])

    assert keep_masks(heat, 1.0).tolist() == [[[True, True, True], [True, True, False]]]


def test_a_pixel_at_the_threshold_is_kept():
    # Positive heat 1, 1, 1, 1, 6 again: at k = 2 tau is exactly 6.
    heat = torch.tensor([[[0.0, 1.0, 1.0], [1.0, 1.0, 6.0]]])

    assert keep_masks(heat, 2.0).all()
    assert not keep_masks(heat, 1.999).all()


def test_zeros_count_when_the_statistics_are_over_all_heat():
    # Heat 0, 0, 0, 4: over all mu = 1, sigma = sqrt(3), tau = 2.7; the positive heat is uniform.
    heat = torch.tensor([[[0.0, 0.0], [0.0, 4.0]]])

    assert keep_masks(heat, 1.0, statistics="all").tolist() == [[[True, True], [True, False]]]
    assert keep_masks(heat, 1.0, statistics="positive").all()


def test_statistics_are_the_mean_and_the_population_deviation():
    heat = torch.tensor([[[0.0, 2.0], [4.0, 6.0]]])

    positive = heat_statistics(heat)
    everything = heat_statistics(heat, statistics="all")

    assert [float(s) for s in positive] == pytest.approx([4.0, math.sqrt(8 / 3)])
    assert [float(s) for s in everything] == pytest.approx([3.0, math.sqrt(5)])
    assert all(s.dtype == torch.float64 for s in positive)


def test_statistics_of_no_heat_are_zero():
    mu, sigma = heat_statistics(torch.zeros(2, 3, 3))

    assert mu.tolist() == sigma.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("value", AWKWARD)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_statistics_of_uniform_heat_are_exact(value, dtype):
    heat = torch.full((1, 7, 7), value, dtype=dtype)
    holed = heat.clone()
    holed[0, 0] = 0.0

    for case, statistics in [(heat, "all"), (heat, "positive"), (holed, "positive")]:
        mu, sigma = heat_statistics(case, statistics=statistics)
        assert (float(mu), float(sigma)) == (float(heat[0, 0, 0]), 0.0)


# Properties are about results, not about how busy the machine is.
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=60)
maps = st.lists(
    st.lists(
        st.one_of(st.just(0.0), st.floats(0, 1, width=32), st.sampled_from(AWKWARD)),
        min_size=6,
        max_size=6,
    ),
    min_size=4,
    max_size=4,
)
rules = st.sampled_from(["positive", "all"])


@patient
@given(heat=maps, first=st.floats(0, 4), second=st.floats(0, 4), statistics=rules)
def test_a_larger_k_never_hides_more(heat, first, second, statistics):
    heat = torch.tensor([heat], dtype=torch.float64)
    small, large = sorted([first, second])

    kept_at_small = keep_masks(heat, small, statistics=statistics)
    kept_at_large = keep_masks(heat, large, statistics=statistics)

    assert (kept_at_large | ~kept_at_small).all()


@patient
@given(
    value=st.one_of(st.sampled_from(AWKWARD), st.floats(1e-6, 1)),
    side=st.integers(1, 33),
    k=st.floats(0, 4),
    statistics=rules,
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_uniform_heat_hides_nothing(value, side, k, statistics, dtype):
    assert keep_masks(
        torch.full((1, side, side), value, dtype=dtype), k, statistics=statistics
    ).all()


@patient
@given(
    value=st.one_of(st.sampled_from(AWKWARD), st.floats(1e-6, 1)),
    warm=st.lists(st.booleans(), min_size=49, max_size=49),
    k=st.floats(0, 4),
)
def test_uniform_heat_amid_zeros_hides_nothing_by_its_positive_values(value, warm, k):
    heat = torch.tensor(warm).view(1, 7, 7) * torch.tensor(value, dtype=torch.float64)

    assert keep_masks(heat, k, statistics="positive").all()


@patient
@given(heat=maps, k=st.floats(0, 3), statistics=rules)
def test_some_heat_always_survives(heat, k, statistics):
    heat = torch.tensor([heat], dtype=torch.float64)

    keep = keep_masks(heat, k, statistics=statistics)

    assert keep[heat == heat.min()].all()


@patient
@given(seed=st.integers(0, 1000), k=st.floats(0, 3), statistics=rules)
def test_the_keep_of_a_picture_does_not_depend_on_its_batch(seed, k, statistics):
    generator = torch.Generator().manual_seed(seed)
    heat = torch.randn(5, 9, 9, generator=generator, dtype=torch.float64).relu()

    together = keep_masks(heat, k, statistics=statistics)

    assert torch.equal(
        together, torch.cat([keep_masks(h[None], k, statistics=statistics) for h in heat])
    )


@pytest.mark.parametrize("k", [math.nan, math.inf, -math.inf])
def test_a_threshold_that_is_no_number_is_refused(k):
    with pytest.raises(ConfigError, match=f"k is {k}") as caught:
        keep_masks(torch.rand(1, 3, 3), k)

    assert "0 to 3" in caught.value.remedy


@pytest.mark.parametrize(("fraction", "hidden"), [(0.0, 0), (0.1, 10), (0.25, 25), (1.0, 100)])
def test_as_many_of_the_hottest_pixels_are_hidden_as_asked_for(fraction, hidden):
    heat = torch.rand(6, 10, 10, generator=torch.Generator().manual_seed(0)) + 0.01

    keep = keep_all_but_top(heat, fraction)

    assert (~keep).sum(dim=(1, 2)).tolist() == [hidden] * 6
    for picture, kept in zip(heat, keep, strict=True):
        assert fraction in (0.0, 1.0) or picture[~kept].min() >= picture[kept].max()


def test_ties_among_the_hottest_still_hide_the_number_asked_for():
    keep = keep_all_but_top(torch.full((2, 3, 3), 0.5), 1 / 3)

    assert (~keep).sum(dim=(1, 2)).tolist() == [3, 3]
    assert torch.equal(keep[0], keep[1])


def test_each_picture_may_have_its_own_number_of_hottest_pixels():
    heat = torch.tensor([[0.1, 0.4], [0.2, 0.3]]).expand(3, 2, 2)

    keep = keep_all_but_top(heat, torch.tensor([0.0, 0.25, 0.75]))

    assert keep.flatten(1).tolist() == [
        [True, True, True, True],
        [True, False, True, True],
        [True, False, False, False],
    ]


def test_pixels_without_heat_are_never_among_the_hottest():
    heat = torch.zeros(2, 4, 4)
    heat[0, 1, 2], heat[0, 3, 3] = 0.4, 0.9

    keep = keep_all_but_top(heat, 0.5)

    assert (~keep).nonzero().tolist() == [[0, 1, 2], [0, 3, 3]]


def windows(keep):
    """Give (top, left, height, width) of each hidden window; fails unless it is one rectangle."""
    found = []
    for kept in keep.numpy():
        rows, columns = np.nonzero(~kept)
        top, left = rows.min(), columns.min()
        height, width = rows.max() - top + 1, columns.max() - left + 1
        assert len(rows) == height * width
        found.append((top, left, height, width))
    return np.array(found)


@pytest.mark.parametrize("size", [(12, 12), (9, 14), (14, 9), (4, 4)])
def test_random_windows_are_squares_of_every_side_from_two_to_half(size):
    keep = random_keep_masks(3000, size, generator=torch.Generator().manual_seed(0))

    assert keep.shape == (3000, *size)
    assert keep.dtype == torch.bool
    top, left, height, width = windows(keep).T
    assert (height == width).all()
    assert set(height) == set(range(2, min(size) // 2 + 1))
    assert {(0, 0), (0, size[1]), (size[0], 0), (size[0], size[1])} <= {
        (r if r == 0 else b, c if c == 0 else d)
        for r, c, b, d in zip(top, left, top + height, left + width, strict=True)
    }


def test_random_windows_lie_anywhere_equally_often():
    keep = random_keep_masks(20_000, (10, 10), generator=torch.Generator().manual_seed(3))

    found = windows(keep)

    for side in range(2, 6):
        placed = found[found[:, 2] == side]
        places = 11 - side
        # Expected 5,000 / places in each row and column; five sigmas of a binomial around it.
        expected = len(placed) / places
        assert len(placed) == pytest.approx(5000, abs=5 * math.sqrt(20_000 * 3 / 16))
        for axis in (0, 1):
            counts = np.bincount(placed[:, axis], minlength=places)
            assert len(counts) == places
            assert np.abs(counts - expected).max() < 5 * math.sqrt(expected)


def test_the_same_generator_state_gives_the_same_windows():
    def draw(seed):
        return random_keep_masks(20, (9, 9), generator=torch.Generator().manual_seed(seed))

    generator = torch.Generator().manual_seed(1)
    first, second = (random_keep_masks(20, (9, 9), generator=generator) for _ in range(2))

    assert torch.equal(draw(1), draw(1))
    assert torch.equal(first, draw(1))
    assert not torch.equal(first, second)


def test_random_windows_leave_torchs_own_generator_alone():
    before = torch.get_rng_state()

    random_keep_masks(20, (9, 9), generator=torch.Generator().manual_seed(1))

    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("size", [(3, 10), (10, 3)])
def test_pictures_too_small_for_windows_are_refused(size):
    with pytest.raises(ConfigError, match=f"{size[0]}x{size[1]} picture is too small"):
        random_keep_masks(1, size, generator=torch.Generator())


def test_what_is_not_kept_is_painted_black():
    images = torch.tensor([[[[10, 20]], [[30, 40]], [[50, 60]]]], dtype=torch.uint8)
    keep = torch.tensor([[[True, False]]])

    hidden = hide(images, keep)

    assert hidden.dtype == torch.uint8
    assert hidden.tolist() == [[[[10, 0]], [[30, 0]], [[50, 0]]]]


def test_each_picture_is_hidden_by_its_own_keep():
    images = torch.ones(2, 3, 2, 2)
    keep = torch.stack([torch.zeros(2, 2, dtype=torch.bool), torch.ones(2, 2, dtype=torch.bool)])

    assert hide(images, keep).sum(dim=(1, 2, 3)).tolist() == [0.0, 12.0]


def test_a_soft_keep_darkens():
    hidden = hide(torch.tensor([[[[0.8, 0.4]]]]), torch.tensor([[[0.5, 1.0]]]))

    assert hidden[0, 0, 0].tolist() == pytest.approx([0.4, 0.4])


def test_statistics_that_do_not_exist_are_refused():
    with pytest.raises(ConfigError, match="There are no statistics 'foo'") as caught:
        keep_masks(torch.ones(1, 2, 2), statistics="foo")

    assert caught.value.remedy == "Choose positive, all."


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("dtype", [torch.bool, torch.float32])
def test_no_value_passes_through_a_hidden_place(value, dtype):
    images = torch.tensor([[[[value, 2.0]]]])

    hidden = hide(images, torch.tensor([[[0.0, 1.0]]]).to(dtype))

    assert hidden.tolist() == [[[[0.0, 2.0]]]]
