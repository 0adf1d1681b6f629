import copy
import itertools
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import nn

from masktune.compute import accelerator
from masktune.config import TrainConfig
from masktune.data.augment import COLOURS
from masktune.data.batches import shuffled
from masktune.data.preprocess import Preprocess
from masktune.data.splits import part
from masktune.errors import ModelError
from masktune.models.build import build
from masktune.models.logits import class_loss, class_probabilities
from masktune.models.predict import predict
from masktune.seeds import stream
from masktune.training import fit as fit_module
from masktune.training.fit import ERM, Best, Resume, finetune, fit, make_optimizer, train

CONFIG = TrainConfig(epochs=2, batch_size=32, lr=0.01)


@pytest.fixture
def model():
    return build("small-cnn", 2, seed=0)


def weights(model):
    return torch.cat([p.flatten() for p in model.state_dict().values()])


def test_training_leaves_the_model_it_was_given_alone(toy, model):
    was = copy.deepcopy(model.state_dict())

    tuned = train(model, toy.train, config=CONFIG)

    assert all(torch.equal(was[name], value) for name, value in model.state_dict().items())
    assert not torch.equal(weights(model), weights(tuned))


def test_the_same_seed_gives_the_same_weights_bit_for_bit(toy, model):
    first, again, other = (train(model, toy.train, config=CONFIG, seed=s) for s in (5, 5, 6))

    assert torch.equal(weights(first), weights(again))
    assert not torch.equal(weights(first), weights(other))


def test_training_does_not_disturb_or_read_the_global_generator(toy, model):
    torch.manual_seed(1)
    first = train(model, toy.train, config=CONFIG)
    after_training = torch.rand(1)
    torch.manual_seed(1)

    assert torch.equal(after_training, torch.rand(1))
    assert torch.equal(weights(first), weights(train(model, toy.train, config=CONFIG)))


def test_training_learns(toy, model):
    tuned = train(model, toy.train, config=TrainConfig(epochs=6, batch_size=16, lr=0.01))

    assert predict(tuned, toy.validation).correct().mean() >= 0.95


def test_the_watcher_hears_every_step_with_loss_and_accuracy(toy, model):
    heard = []

    train(model, toy.train, config=CONFIG, watcher=heard.append)

    assert [(p.done, p.total) for p in heard] == [(n, 6) for n in range(1, 7)]  # 2 x ceil(96 / 32)
    assert all(p.stage == "train" and p.loss > 0 and 0 <= p.accuracy <= 1 for p in heard)


def test_what_the_watcher_raises_stops_the_training(toy, model):
    def stop(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(model, toy.train, config=CONFIG, watcher=stop)


def test_a_schedule_is_really_stepped(toy, model):
    # With a rate that decays to nothing after the first epoch, the second changes no parameter.
    once = TrainConfig(epochs=1, batch_size=32, lr=0.01)
    twice = TrainConfig(epochs=2, batch_size=32, lr=0.01, decay_at=(1,), decay_factor=1e-30)
    # weight decay and momentum act through the rate, so they stop too

    first, second = (train(model, toy.train, config=c) for c in (once, twice))

    for name, value in first.named_parameters():
        assert torch.equal(value, dict(second.named_parameters())[name])


@pytest.mark.parametrize("augment", ["none", "flip,jitter"])
def test_an_interrupted_training_goes_on_to_the_same_weights(augment, toy, model):
    config = TrainConfig(epochs=3, batch_size=32, lr=0.01, decay_at=(1, 2), augment=augment)
    states = []
    whole = train(
        model,
        toy.train,
        config=config,
        resume=Resume(state=None, save=lambda s: states.append(copy.deepcopy(s))),
    )

    resumed = train(
        build("small-cnn", 2, seed=9),  # its weights are replaced by the saved ones
        toy.train,
        config=config,
        resume=Resume(state=states[1], save=lambda _: None),
    )

    assert [s["epoch"] for s in states] == [1, 2, 3]
    assert torch.equal(weights(whole), weights(resumed))


def test_training_by_the_usual_settings_is_a_plain_loop_with_pytorchs_steps_bit_for_bit(toy, model):
    config = TrainConfig(epochs=4, batch_size=32, lr=0.01, decay_at=(1, 2), decay_factor=0.1)

    tuned = train(model, toy.train, config=config, seed=3)

    plain = copy.deepcopy(model).train()
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [1, 2], 0.1)
    for epoch in range(4):
        order = torch.tensor(shuffled(len(toy.train), stream(3, f"order/train/{epoch}")))
        for few in order.split(32):
            images = toy.train.images.pixels[few].float() / 255
            loss = nn.functional.cross_entropy(plain(images), toy.train.labels[few])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scheduler.step()
    assert torch.equal(weights(tuned), weights(plain))


class Noting(ERM):
    """Notes the rate of every step."""

    def __init__(self, monkeypatch):
        self.rates = []

        def noted(*given):
            self.optimizer = make_optimizer(*given)
            return self.optimizer

        monkeypatch.setattr(fit_module, "make_optimizer", noted)

    def loss(self, model, images, batch, unlabelled):
        self.rates.append(self.optimizer.param_groups[0]["lr"])
        return super().loss(model, images, batch, unlabelled)


def test_the_rate_warms_up_step_by_step_and_falls_along_a_cosine(toy, model, monkeypatch):
    # 2 epochs of 3 steps, of which one epoch warms up; then half a cosine in 3 steps.
    objective = Noting(monkeypatch)

    fitted(
        model, toy.train, objective=objective, config=replace(CONFIG, warmup=1, schedule="cosine")
    )

    third = 0.01 * (0.01 + 0.99 * 0.75)  # (1 + cos 60 degrees) / 2 = 3/4
    two_thirds = 0.01 * (0.01 + 0.99 * 0.25)
    expected = [0.01 / 3, 0.02 / 3, 0.01, 0.01, third, two_thirds]
    assert objective.rates == pytest.approx(expected)


def test_a_resumed_training_goes_on_at_the_rates_of_the_unbroken_one(toy, model, monkeypatch):
    config = TrainConfig(epochs=3, batch_size=32, lr=0.01, warmup=1.5, optimizer="adamw")
    states, objective = [], Noting(monkeypatch)
    keep = Resume(state=None, save=lambda state: states.append(copy.deepcopy(state)))
    whole = fitted(model, toy.train, objective=objective, config=config, resume=keep)

    again = Noting(monkeypatch)
    resumed = fitted(
        build("small-cnn", 2, seed=9),
        toy.train,
        objective=again,
        config=config,
        resume=Resume(state=states[0], save=lambda _: None),
    )

    assert objective.rates == pytest.approx([0.01 * n / 4.5 for n in (1, 2, 3, 4)] + [0.01] * 5)
    assert again.rates == objective.rates[3:]
    assert torch.equal(weights(whole), weights(resumed))


def test_a_finetune_neither_warms_up_nor_falls(toy, model):
    config = TrainConfig(epochs=9, batch_size=32, lr=0.5, schedule="cosine", warmup=2.5)

    tuned = finetune(model, toy.train, keep=None, lr=0.01, config=config, seed=3)

    expected = _one_epoch_by_hand(model, toy.train, lr=0.01, seed=3)
    assert torch.equal(weights(tuned), weights(expected))


def test_a_finetune_is_exactly_one_epoch_at_the_rate_given(toy, model):
    heard = []
    config = TrainConfig(epochs=9, batch_size=32, lr=0.5, decay_at=(1,))

    tuned = finetune(
        model, toy.train, keep=None, lr=0.01, config=config, watcher=heard.append, seed=3
    )

    assert [p.done for p in heard] == [1, 2, 3]
    # One plain SGD step is visible in the first batch: the rate is 0.01, not 0.5 nor decayed.
    expected = _one_epoch_by_hand(model, toy.train, lr=0.01, seed=3)
    assert torch.allclose(weights(tuned), weights(expected), atol=1e-6)


def _one_epoch_by_hand(model, split, *, lr, seed):
    model = copy.deepcopy(model).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9, weight_decay=1e-4)
    order = torch.tensor(shuffled(len(split), stream(seed, "order/finetune/0")))
    for few in order.split(32):
        images = split.images.pixels[few].float() / 255
        loss = nn.functional.cross_entropy(model(images), split.labels[few])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


def test_a_finetune_sees_hidden_pixels_as_black(toy, model):
    # Everything hidden: the network only ever sees black, so its first layer's weights get no
    # gradient and only shrink by weight decay.
    config = TrainConfig(epochs=1, batch_size=32, lr=0.01, weight_decay=0.0)

    def nothing(positions):
        return torch.zeros(len(positions), 28, 28, dtype=torch.bool)

    tuned = finetune(model, toy.train, keep=nothing, lr=0.01, config=config)

    assert torch.equal(tuned.features[0].weight, model.features[0].weight)
    assert not torch.equal(tuned.head.weight, model.head.weight)


def test_the_keeper_is_asked_for_the_positions_of_the_batch(toy, model):
    asked = []

    def keep(positions):
        asked.extend(positions.tolist())
        return torch.ones(len(positions), 28, 28, dtype=torch.bool)

    finetune(model, toy.train, keep=keep, lr=0.01, config=CONFIG)

    assert sorted(asked) == list(range(96))
    assert asked != sorted(asked)


def test_a_loss_that_is_not_a_number_is_explained(toy, model):
    with pytest.raises(ModelError, match="training loss became") as caught:
        train(model, toy.train, config=TrainConfig(epochs=20, batch_size=32, lr=1e20))

    assert "smaller learning rate" in caught.value.remedy


def test_a_model_with_every_parameter_frozen_is_refused(model):
    model.requires_grad_(False)

    with pytest.raises(ModelError, match="frozen"):
        make_optimizer(model, CONFIG)


@pytest.mark.parametrize(("name", "kind"), [("adam", "Adam"), ("adamw", "AdamW")])
def test_another_optimizer_is_used_when_the_settings_say_so(name, kind, model):
    config = TrainConfig(epochs=1, batch_size=1, lr=0.5, optimizer=name, weight_decay=0.25)

    optimizer = make_optimizer(model, config)

    assert type(optimizer).__name__ == kind
    assert (optimizer.defaults["lr"], optimizer.defaults["weight_decay"]) == (0.5, 0.25)


def test_a_one_logit_model_answers_for_two_classes():
    # sigmoid(0) = 1/2; ln 3 gives 3/4.
    logits = torch.tensor([[0.0], [1.0986123]])

    assert class_probabilities(logits)[:, 1].tolist() == pytest.approx([0.5, 0.75])
    assert class_loss(logits, torch.tensor([1, 1])).item() == pytest.approx(
        (0.6931472 + 0.2876821) / 2
    )


def test_smoothed_labels_share_a_part_among_all_classes():
    # Probabilities 3/4 and 1/4. Of a smoothing of 0.2 the wrong class gets 0.1: the loss is
    # 0.9 ln(4/3) + 0.1 ln 4.
    expected = 0.9 * math.log(4 / 3) + 0.1 * math.log(4)
    two, one = torch.tensor([[math.log(3), 0.0]]), torch.tensor([[-math.log(3)]])

    for logits in (two, one):
        loss = class_loss(logits, torch.tensor([0]), smoothing=0.2)
        assert loss.item() == pytest.approx(expected)


@pytest.mark.parametrize("learn", [train, partial(finetune, keep=None, lr=0.01)])
@pytest.mark.parametrize(
    "changes",
    [{"label_smoothing": 0.1}, {"momentum": 0.5}, {"weight_decay": 0.5}, {"optimizer": "adamw"}],
)
def test_what_training_and_finetune_share_changes_both(changes, learn, toy, model):
    usual, other = (
        learn(model, toy.train, config=config) for config in (CONFIG, replace(CONFIG, **changes))
    )

    assert not torch.equal(weights(usual), weights(other))


def test_a_last_single_picture_joins_the_batch_before(toy):
    # 33 pictures of 28 x 28 end in maps of 1 x 1: batch norm could not normalise one of them.
    few = part(toy.train, torch.arange(33))
    asked = []

    def keep(positions):
        asked.append(len(positions))
        return torch.ones(len(positions), 28, 28, dtype=torch.bool)

    heard = []
    config = TrainConfig(epochs=1, batch_size=16, lr=0.01)
    model = build("resnet18", 2, seed=0)
    finetune(model, few, keep=keep, lr=0.01, config=config, watcher=heard.append)

    assert asked == [16, 17]
    assert [(p.done, p.total) for p in heard] == [(1, 2), (2, 2)]


def test_a_last_batch_of_two_stays_as_it_is(toy, model):
    asked = []

    def keep(positions):
        asked.append(len(positions))
        return torch.ones(len(positions), 28, 28, dtype=torch.bool)

    few = part(toy.train, torch.arange(34))
    finetune(model, few, keep=keep, lr=0.01, config=TrainConfig(epochs=1, batch_size=16, lr=0.01))

    assert asked == [16, 16, 2]


def test_who_asks_for_batches_of_one_gets_them(toy):
    heard = []
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 28 * 28, 2))
    config = TrainConfig(epochs=1, batch_size=1, lr=0.01)

    train(model, part(toy.train, torch.arange(3)), config=config, watcher=heard.append)

    assert len(heard) == 3


class Doubled(ERM):
    """Draws the last three pictures twice over; twice the loss; a scale that is learnt with it."""

    def __init__(self, unlabelled=None):
        self.unlabelled = unlabelled
        self.scale = nn.ParameterList([nn.Parameter(torch.tensor(2.0))])
        self.seen = []

    def draw(self, split, generator):
        order = super().draw(split, generator)
        return [*order, *order[-3:]]

    def loss(self, model, images, batch, unlabelled):
        self.seen.append((len(images), None if unlabelled is None else len(unlabelled)))
        loss, logits = super().loss(model, images, batch, None)
        return self.scale[0] * loss, logits

    def modules(self):
        return nn.ModuleDict({"scale": self.scale})


def fitted(model, split, *, objective=None, config=CONFIG, **more):
    return fit(
        model,
        split,
        objective=objective or ERM(),
        config=config,
        stage="train",
        preprocess=Preprocess(),
        compute=accelerator("cpu"),
        **more,
    )


def test_the_loop_with_erm_gives_the_weights_of_a_plain_loop_bit_for_bit(toy, model):
    config = TrainConfig(epochs=1, batch_size=32, lr=0.01)

    tuned = finetune(model, toy.train, keep=None, lr=0.01, config=config, seed=3)

    expected = _one_epoch_by_hand(model, toy.train, lr=0.01, seed=3)
    assert torch.equal(weights(tuned), weights(expected))


def test_an_objective_draws_the_examples_and_gives_the_loss(toy, model):
    objective, heard = Doubled(), []

    fitted(model, toy.train, objective=objective, watcher=heard.append)

    # 96 + 3 pictures in batches of 32, in two epochs.
    assert objective.seen == [(32, None), (32, None), (32, None), (3, None)] * 2
    assert [(p.done, p.total) for p in heard] == [(n, 8) for n in range(1, 9)]


def test_what_an_objective_owns_is_trained_saved_and_resumed(toy, model):
    states, objective = [], Doubled()
    keep = Resume(state=None, save=lambda state: states.append(copy.deepcopy(state)))
    whole = fitted(model, toy.train, objective=objective, resume=keep)

    again = Doubled()
    resumed = fitted(
        model, toy.train, objective=again, resume=Resume(state=states[0], save=lambda _: None)
    )

    assert objective.scale[0] != 2.0
    assert again.scale[0] == objective.scale[0]
    assert torch.equal(weights(whole), weights(resumed))


def test_unlabelled_pictures_come_in_batches_of_the_same_size(toy, model):
    few = part(toy.validation, torch.arange(40))  # fewer than the 99 labelled: seen again
    objective = Doubled(unlabelled=few)

    fitted(model, toy.train, objective=objective)

    assert objective.seen[:4] == [(32, 32), (32, 32), (32, 32), (3, 3)]


def test_pictures_are_augmented_after_hiding_and_by_a_stream_of_their_own(toy, model, monkeypatch):
    shown = []

    def brighter(images, generator):
        shown.append((images.amax().item(), torch.rand(1, generator=generator).item()))
        return images + 1.0

    def nothing(positions):
        return torch.zeros(len(positions), 28, 28, dtype=torch.bool)

    seen = []

    class Looking(ERM):
        def loss(self, model, images, batch, unlabelled):
            seen.append(images.unique().tolist())
            return super().loss(model, images, batch, unlabelled)

    monkeypatch.setitem(COLOURS, "brighter", brighter)
    config = replace(CONFIG, augment="brighter")
    first = fitted(model, toy.train, objective=Looking(), config=config, keep=nothing, seed=1)
    once = list(shown)
    second = fitted(model, toy.train, config=config, keep=nothing, seed=1)

    assert seen == [[1.0]] * 6
    assert [highest for highest, _ in once] == [0.0] * 6
    assert shown[6:] == once
    assert len({chance for _, chance in once}) == 6
    assert torch.equal(weights(first), weights(second))


@pytest.mark.parametrize("learn", [train, partial(finetune, keep=None, lr=0.01)])
def test_augmentation_is_part_of_the_settings_of_training_and_finetune(learn, toy, model):
    turned = replace(CONFIG, augment="flip,rotate15")

    first, again, plain = (learn(model, toy.train, config=c) for c in (turned, turned, CONFIG))

    assert torch.equal(weights(first), weights(again))
    assert not torch.equal(weights(first), weights(plain))


def test_processes_draw_different_chances_for_their_parts_of_a_batch(toy, model, monkeypatch):
    drawn = []

    def look(images, generator):
        drawn.append(torch.rand(1, generator=generator).item())
        return images

    class Second:  # the second process, as far as chance goes
        process_index = 1

        def __getattr__(self, name):
            return getattr(accelerator("cpu"), name)

    monkeypatch.setitem(COLOURS, "look", look)
    config = replace(CONFIG, augment="look")
    train(model, toy.train, config=config, compute=accelerator("cpu"))
    first = {*drawn}
    drawn.clear()
    train(model, toy.train, config=config, compute=Second())

    assert len(first) == len(drawn) == 6
    assert first.isdisjoint(drawn)


def test_the_model_of_the_best_epoch_is_the_result_also_after_an_interruption(toy, model):
    config = TrainConfig(epochs=4, batch_size=32, lr=0.01)
    scores, states, after = iter([0.5, 0.9, 0.9, 0.1]), [], []

    def score(trained):
        after.append(weights(trained))
        return next(scores)

    keep = Resume(state=None, save=lambda state: states.append(copy.deepcopy(state)))
    best = fitted(model, toy.train, config=config, best=Best(score), resume=keep)
    scores = iter([0.9, 0.1])
    resumed = fitted(
        model,
        toy.train,
        config=config,
        best=Best(score),
        resume=Resume(state=states[1], save=lambda _: None),
    )

    assert torch.equal(weights(best), after[1])  # of two equal ones the first
    assert torch.equal(weights(resumed), after[1])
    assert not torch.equal(after[1], after[2])


def test_a_best_epoch_that_an_older_version_kept_is_taken_up():
    best = Best(lambda _: 0.0)

    best.load_state_dict({"epoch": 3, "score": 0.9, "model": {}})

    assert (best.epoch, best.value, best.beside) == (3, 0.9, {})


def test_training_ends_when_the_best_epoch_is_too_long_ago_also_after_an_interruption(toy, model):
    config = TrainConfig(epochs=9, batch_size=32, lr=0.01)
    states, heard = [], []

    def trained(scores, state=None, save=states.append):
        best = Best(lambda _: scores.pop(0), patience=2)
        keep = Resume(state=state, save=lambda found: save(copy.deepcopy(found)))
        found = fitted(
            model, toy.train, config=config, best=best, resume=keep, watcher=heard.append
        )
        return found, best

    whole, best = trained([0.5, 0.9, 0.9, 0.8, 1.0])
    assert (best.epoch, best.value) == (2, 0.9)
    assert len(heard) == 4 * 3  # epochs 3 and 4 were no better: the fifth is not begun

    resumed, best = trained([0.9, 0.8, 1.0], states[1], save=lambda _: None)
    assert best.epoch == 2
    assert torch.equal(weights(whole), weights(resumed))
    # Killed after its last epoch: there is nothing left to do.
    heard.clear()
    resumed, _ = trained([], states[3], save=lambda _: None)
    assert heard == []
    assert torch.equal(weights(whole), weights(resumed))


@pytest.fixture
def stopped_clock(monkeypatch):
    monkeypatch.setattr(fit_module.time, "monotonic", lambda: 0.0)


def test_values_are_read_every_20_steps_and_told_one_by_one(toy, model, stopped_clock):
    config = TrainConfig(epochs=1, batch_size=2, lr=0.01)
    objective, heard = Counting(), []

    def watch(progress):
        heard.append((progress.done, objective.steps))

    fitted(model, toy.train, objective=objective, config=config, watcher=watch)

    # 48 steps: told when 20, 40 and 48 are done.
    assert heard == [(n, 20 if n <= 20 else 40 if n <= 40 else 48) for n in range(1, 49)]


def test_steps_that_take_long_are_told_at_once(toy, model, monkeypatch):
    moments = itertools.count()
    monkeypatch.setattr(fit_module.time, "monotonic", lambda: float(next(moments)))
    objective, heard = Counting(), []

    def watch(progress):
        heard.append((progress.done, objective.steps))

    fitted(model, toy.train, objective=objective, watcher=watch)

    assert heard == [(n, n) for n in range(1, 7)]


class Counting(ERM):
    """Counts the steps; from ``wrong_at`` on its loss is no number."""

    def __init__(self, wrong_at=math.inf):
        self.steps, self.wrong_at = 0, wrong_at

    def loss(self, model, images, batch, unlabelled):
        self.steps += 1
        loss, logits = super().loss(model, images, batch, unlabelled)
        return loss * (math.nan if self.steps >= self.wrong_at else 1.0), logits


def test_a_loss_that_is_no_number_stops_within_20_steps(toy, model, stopped_clock):
    objective, heard = Counting(wrong_at=23), []
    config = TrainConfig(epochs=1, batch_size=2, lr=0.01)

    with pytest.raises(ModelError, match="training loss became nan"):
        fitted(model, toy.train, objective=objective, config=config, watcher=heard.append)

    assert objective.steps == 40
    assert [p.done for p in heard] == list(range(1, 23))


@pytest.mark.slow
def test_trainings_in_several_threads_draw_what_each_draws_alone(toy):
    # Dropout and fresh weights read PyTorch's one generator of the process.
    config = TrainConfig(epochs=2, batch_size=32, lr=0.01)

    def trained(seed):
        start = build("small-cnn", 2, seed=seed)
        start.features.append(nn.Dropout(0.5))
        return weights(train(start, toy.train, config=config, seed=seed))

    alone = [trained(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(trained, range(4)))

    assert all(torch.equal(a, b) for a, b in zip(alone, together, strict=True))
