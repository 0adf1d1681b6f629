import pytest
import torch

from masktune.seeds import isolated, stream, stream_seed


def test_a_stream_repeats_for_the_same_seed_and_name():
    first = torch.rand(5, generator=stream(4, "order/1"))
    second = torch.rand(5, generator=stream(4, "order/1"))

    assert torch.equal(first, second)


@pytest.mark.parametrize("other", [(4, "order/2"), (5, "order/1"), (41, "order/1")])
def test_streams_of_other_seeds_and_names_differ(other):
    drawn = torch.rand(5, generator=stream(4, "order/1"))

    assert not torch.equal(drawn, torch.rand(5, generator=stream(*other)))


def test_seeds_of_streams_are_the_same_on_every_machine():
    # printf 0/split | sha256sum begins with 68a30a9f8b07670a; the lowest bit is dropped.
    assert stream_seed(0, "split") == 0x68A30A9F8B07670A // 2


def test_seeds_of_streams_fit_every_generator():
    seeds = [stream_seed(seed, "a") for seed in range(200)]

    assert len(set(seeds)) == 200
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_isolated_code_repeats_and_leaves_the_callers_chance_alone():
    torch.manual_seed(11)
    expected = torch.rand(3)
    torch.manual_seed(11)

    with isolated(0, "weights"):
        first = torch.rand(3)
    with isolated(0, "weights"):
        second = torch.rand(3)

    assert torch.equal(first, second)
    assert torch.equal(torch.rand(3), expected)


def test_the_callers_chance_comes_back_after_a_failure():
    torch.manual_seed(11)
    before = torch.get_rng_state()

    with pytest.raises(RuntimeError), isolated(0, "weights"):
        torch.rand(3).view(2)

    assert torch.equal(torch.get_rng_state(), before)
