"""The comparison of fresh and restored momentum does what its table says."""

from dataclasses import replace

import pytest
import torch

from benchmarks.momentum import FRESH, RESTORED, erm, going_on, hidden, table
from masktune.config import TrainConfig
from masktune.datasets.catalogue import load
from masktune.recipes import recipe
from tests import layouts

SMALL = replace(recipe("mnist-two-squares"), training=TrainConfig(epochs=1, batch_size=16, lr=0.01))


@pytest.fixture
def root(tmp_path):
    return layouts.mnist(tmp_path / "root", each=8)


def test_what_is_not_kept_is_black_and_the_rest_as_it_was(root):
    train = load(SMALL.dataset, root=root).train

    def without_the_first_row(index):
        keep = torch.ones(len(index), 28, 28, dtype=torch.bool)
        keep[:, 0] = False
        return keep

    before = train.images.batch(range(len(train)))
    after = hidden(train, without_the_first_row).images.batch(range(len(train)))

    assert before[:, :, 0].any()
    assert not after[:, :, 0].any()
    assert torch.equal(after[:, :, 1:], before[:, :, 1:])
    assert after.dtype == torch.uint8


def test_going_on_starts_with_the_momentum_of_the_erm(root):
    bundle = load(SMALL.dataset, root=root)
    trained = erm(SMALL, bundle, 0)
    still = {**trained.state["optimizer"], "state": {}}  # as if it had never moved

    with_it, without_it = (
        going_on(bundle, SMALL.training, {**trained.state, "optimizer": optimizer}, 0)(
            trained.model, None, 1
        )
        for optimizer in (trained.state["optimizer"], still)
    )

    assert not torch.equal(with_it.head.weight, without_it.head.weight)


@pytest.mark.slow
def test_the_table_has_the_erm_and_two_rounds_of_both(root):
    found = table(SMALL, root=root, seeds=2)

    rows = [(r["arm"], r["moment"], r["rounds"]) for r in found["rows"] if r["test"] == "biased"]
    assert rows == [
        (FRESH, "before", None),
        (FRESH, "after", 1),
        (FRESH, "after", 2),
        (RESTORED, "after", 1),
        (RESTORED, "after", 2),
    ]
    assert all(row["n"] == 2 for row in found["rows"])
    assert found["command"] == "python -m benchmarks.momentum --root root --seeds 2"
