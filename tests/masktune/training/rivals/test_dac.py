from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.optim import SGD

from masktune.config import MaskingConfig, RivalConfig
from masktune.data.fills import filled
from masktune.data.types import Batch, in_memory
from masktune.errors import ModelError
from masktune.heat.store import HeatStore
from masktune.progress import unwatched
from masktune.seeds import stream
from masktune.training import masktune
from masktune.training.context import Known
from masktune.training.rivals import dac
from masktune.training.rivals.dac import easy, elbow, hot_parts, learn, tune


def store_of(*heat):
    """Heat of pictures as large as itself."""
    maps = torch.tensor(heat)
    return HeatStore(rounds=(maps,), size=(maps.shape[1], maps.shape[2]), layer="", method="")


def test_easy_are_the_best_answered_of_every_class():
    losses = torch.tensor([0.1, 0.2, 0.3, 0.4, 5.0, 9.0, 7.0])
    labels = torch.tensor([0, 0, 0, 0, 1, 1, 1])

    # Half of four, and of three rounded to two: 5 and 7, however badly.
    assert easy(losses, labels, share=0.5).tolist() == [0, 1, 4, 6]
    assert easy(losses, labels, share=0.01).tolist() == [0, 4]
    assert easy(losses, labels, share=1.0).tolist() == list(range(7))


def test_the_hot_part_is_the_hottest_share_of_each_picture_where_there_is_heat():
    store = store_of(
        [[0.1, 0.2], [0.3, 0.4]], [[0.1, 0.2], [0.3, 0.4]], [[0, 0], [0, 1.0]], [[0.0, 0], [0, 0]]
    )

    keep = hot_parts(store, torch.tensor([0.25, 0.5, 0.75, 0.75]))

    assert keep(torch.tensor([0, 1, 2, 3])).tolist() == [
        [[False, False], [False, True]],
        [[False, False], [True, True]],
        [[False, False], [False, True]],  # what has no heat is not hot
        [[True, True], [True, True]],  # nothing is hot: it stays whole
    ]
    assert keep(torch.tensor([1]))[0].sum() == 2  # by position, not by place in the batch


@pytest.mark.parametrize(
    ("losses", "column"),
    [
        ([0.0, 0.0, 0.0, 1.0, 2.0, 3.0], 2),  # flat, then a steady rise
        ([0.0, 0.1, 0.2, 0.3, 0.4, 3.0], 4),
        ([1.0, 1.0, 1.0, 1.0, 1.0, 1.0], 5),  # no elbow: the smallest hot part
        ([0.0, 2.0, 2.5, 2.8, 2.9, 3.0], 5),  # never below the line
        ([3.0, 2.0, 1.0, 0.5, 0.2, 0.0], 5),  # the more is hidden the better
    ],
)
def test_the_elbow_is_where_the_loss_begins_to_rise_steeply(losses, column):
    assert elbow(torch.tensor([losses, losses]).double()).tolist() == [column] * 2


def test_nothing_is_pasted_on_its_own_class():
    # Pictures say their label by their brightness, hot only in the first column.
    labels = torch.tensor([0, 1, 2] * 20)
    pixels = (labels * 100)[:, None, None, None].expand(60, 3, 2, 2).to(torch.uint8)
    few = in_memory("train", pixels, labels)
    heat = torch.tensor([[1.0, 0.1], [1.0, 0.1]]).expand(60, 2, 2)
    store = HeatStore(rounds=(heat,), size=(2, 2), layer="", method="")
    parts = hot_parts(store, torch.full((60,), 0.5))
    positions = torch.arange(60)
    batch = Batch(positions, pixels, labels, labels)

    around = []
    for number in range(dac.RATES):
        paste = filled(parts, "another", split=few, seed=0, stage=f"dac/{number}")
        painted = paste.paint(pixels.float() / 255, paste(positions), batch) * 255
        assert torch.equal(painted[:, 0, 0, 0].round().long(), labels * 100)  # its own hot part
        around.append(painted[:, 0, 0, 1].round().long())  # another's cold part

    assert all((cold != labels * 100).all() for cold in around)
    assert not torch.equal(around[0], around[1])  # pairs are drawn anew


def test_a_batch_has_the_loss_of_its_pictures_and_ten_times_that_of_what_was_made(monkeypatch):
    # Zero weights and one picture of class 0: all have the slope -1/2 times features, the layer
    # moves by 1/2 of plain + 10 kept + 10 pasted = 1/2 (1 + 20 + 30).
    monkeypatch.setattr(dac, "EPOCHS", 1)
    head = nn.Linear(1, 2, bias=False)
    nn.init.zeros_(head.weight)

    learn(
        head,
        SGD(head.parameters(), lr=1.0),
        plain=torch.tensor([[1.0]]),
        labels=torch.tensor([0]),
        easy=torch.tensor([0]),
        more=(torch.tensor([[2.0]]), torch.tensor([[3.0]])),
        generator=stream(0, "order"),
        watcher=unwatched,
    )

    assert head.weight.flatten().tolist() == [25.5, -25.5]


def test_what_was_made_is_learnt_with_the_picture_it_was_made_of(monkeypatch):
    # Batches of one: the second picture, of class 1, is the only easy one.
    monkeypatch.setattr(dac, "EPOCHS", 1)
    monkeypatch.setattr(dac, "BATCH", 1)
    head = nn.Linear(2, 2, bias=False)
    nn.init.zeros_(head.weight)

    learn(
        head,
        SGD(head.parameters(), lr=0.1),
        plain=torch.zeros(3, 2),
        labels=torch.tensor([0, 1, 0]),
        easy=torch.tensor([1]),
        more=(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 2.0]])),
        generator=stream(0, "order"),
        watcher=unwatched,
    )

    # Once 0.1 * 10 * 1/2 of each.
    assert head.weight.tolist() == [[-0.5, -1.0], [0.5, 1.0]]


@pytest.mark.parametrize(("logits", "bias"), [(2, True), (1, True), (2, False)])
def test_the_clue_is_taught_again_where_it_is_what_is_hot_and_only_the_last_layer_learns(
    last_layer_context, leaning, monkeypatch, logits, bias
):
    # 80 pictures make few steps.
    monkeypatch.setattr(dac, "RATE", 0.1)
    monkeypatch.setattr(dac, "BATCH", 8)
    told, saved = [], []
    context = last_layer_context("dac", watcher=told.append, save=saved.append)
    before = leaning(logits, bias=bias)

    tuned = tune(context, before)

    train = context.bundle.train
    assert context.ask(tuned.after.model, train).correct().mean() > 0.9
    assert tuned.facts["easy pictures"] == 48  # 0.6 of 40 in each class
    assert 0.2 <= tuned.facts["hot share"] <= 0.7
    assert saved == [tuned]
    assert {p.stage for p in told} == {"heat", "finetune"}
    assert (told[-1].done, told[-1].total) == (1600, 1600)
    for name, value in before.model.state_dict().items():
        after = tuned.after.model.state_dict()[name]
        assert torch.equal(value, after) == (not name.startswith("head."))


def test_the_share_of_easy_pictures_is_a_setting_and_the_seed_decides_the_rest(
    last_layer_context, leaning
):
    def tuned(**more):
        return tune(last_layer_context("dac", **more), leaning())

    one, again, other = tuned(), tuned(), tuned(seed=1)
    half = tuned(settings=RivalConfig(easy_share=0.5))

    weight = one.after.model.head.weight
    assert torch.equal(weight, again.after.model.head.weight)
    assert not torch.equal(weight, other.after.model.head.weight)
    assert half.facts["easy pictures"] == 40


def test_heat_is_read_by_the_explainer_and_at_the_layer_asked_for(
    last_layer_context, leaning, monkeypatch
):
    asked = {}

    def explain(model, split, **words):
        asked.update(words, count=len(split))
        return HeatStore(rounds=(torch.rand(len(split), 8, 8),), size=(8, 8), layer="", method="")

    monkeypatch.setattr(masktune, "explain", explain)
    masking = MaskingConfig(method="eigencam", layer="maps")

    tune(last_layer_context("dac", masking=masking), leaning())

    assert (asked["method"], asked["layer"], asked["count"]) == ("eigencam", "maps", 80)
    nowhere = replace(masking, layer="nowhere")
    with pytest.raises(ModelError, match="nowhere"):
        tune(last_layer_context("dac", masking=nowhere), leaning())


def test_heat_that_another_run_has_is_taken_bit_for_bit_where_it_is_the_same(
    last_layer_context, leaning, monkeypatch
):
    looked = []
    explain = masktune.explain
    monkeypatch.setattr(
        masktune, "explain", lambda *given, **more: looked.append(1) or explain(*given, **more)
    )
    # One of 3 easy pictures a class, which rounds otherwise where it is explained by itself.
    context = last_layer_context("dac", settings=RivalConfig(easy_share=0.03))
    before = leaning()
    alone = tune(context, before)
    heat = masktune.look(context, before.model, "maps")
    del looked[:]

    known = replace(context, known=Known(fingerprint="", heat=heat))
    taken = tune(known, before)
    assert looked == []
    for name, value in alone.after.model.state_dict().items():
        assert torch.equal(value, taken.after.model.state_dict()[name])
    assert taken.facts == alone.facts

    for other in (replace(heat, layer="elsewhere"), replace(heat, method="gradcam")):
        tune(replace(known, known=Known(fingerprint="", heat=other)), before)
    assert len(looked) == 2
