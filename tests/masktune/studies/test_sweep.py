import copy
from dataclasses import replace

import pytest
import torch

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.compute import accelerator
from masktune.config import MaskingConfig, RunConfig, TrainConfig
from masktune.errors import ConfigError, ModelError
from masktune.heat.explain import explain
from masktune.heat.layers import heat_layer
from masktune.heat.strategies import Round, hidden_area, keeper
from masktune.models.build import build
from masktune.models.predict import predict
from masktune.progress import unwatched
from masktune.studies import sweep as module
from masktune.studies.sweep import quick_look, rules, sweep, with_rate
from masktune.training.context import Context
from masktune.training.fit import finetune, train

CONFIG = TrainConfig(epochs=4, batch_size=32, lr=0.03)
MASKING = MaskingConfig()


@pytest.fixture(scope="module")
def model(toy):
    return train(build("small-cnn", 2, seed=0), toy.train, config=CONFIG)


@pytest.fixture(scope="module")
def store(toy, model):
    return explain(model, toy.train, layer=heat_layer(model, None, size=toy.card.size))


def settings(lr=None, seed=0, masking=MASKING):
    return RunConfig(
        dataset="toy",
        recipe="biased-mnist-5k",
        arch="small-cnn",
        training=CONFIG,
        masking=masking,
        finetune_lr=lr,
        seed=seed,
        device="cpu",
    )


def context(bundle, *, watcher=unwatched, **more):
    compute = accelerator("cpu")
    return Context(config=settings(**more), bundle=bundle, compute=compute, watcher=watcher)


def swept(model, bundle, *ks, store=None, **more):
    before = Checkpoint(model=model, arch="small-cnn", classes=2, lr=0.01)
    return sweep(context(bundle, **more), before, ks=ks, store=store)


def looked(model, bundle, *ks, store=None, **more):
    return quick_look(context(bundle, **more), model, ks=ks, store=store)


def unlabelled(bundle):
    """Give the same pictures with other attributes and without test sets."""

    def blind(split):
        return replace(split, attributes=torch.full_like(split.attributes, -1))

    splits = {"train": blind(bundle.train), "validation": blind(bundle.validation), "tests": {}}
    return replace(bundle, card=replace(bundle.card, attributes=()), **splits)


@pytest.mark.parametrize("seed", [0, 3])
def test_a_sweep_gives_what_the_steps_of_a_run_give_one_by_one(toy, model, store, seed):
    (trial,) = swept(model, toy, 0.0, seed=seed, lr=0.03)

    masking = MaskingConfig(k=0.0)
    now = Round(masking=masking, store=store, size=(28, 28), count=96, number=1, seed=0)
    keep = keeper(now)
    after = finetune(model, toy.train, keep=keep, lr=0.03, config=CONFIG, seed=seed)
    valid = predict(after, toy.validation)
    area = hidden_area(keep, 96)
    assert trial.k == 0.0
    assert trial.pictures == 96
    assert trial.largest_class == 0.5
    assert trial.hidden_fraction == area.hidden_fraction
    assert trial.empty_fraction == area.empty_fraction
    assert trial.seen == predict(model, toy.train).correct().mean()
    assert trial.hidden == predict(model, toy.train, keep=keep).correct().mean()
    assert trial.hidden < trial.seen  # so that the two are told apart
    assert trial.tuned is not None
    assert trial.tuned.train == predict(after, toy.train, keep=keep).correct().mean()
    assert trial.tuned.validation == valid.correct().mean()
    by_class = [valid.correct()[valid.labels == label].mean() for label in (0, 1)]
    assert trial.tuned.worst_class == min(by_class)


def test_attributes_change_the_verdict_of_a_sweep_alone_and_test_sets_nothing(toy, model):
    (known,), (unknown,) = (
        swept(model, pictures, 2.0, lr=0.005) for pictures in (toy, unlabelled(toy))
    )

    assert replace(known, hiding=None) == replace(unknown, hiding=None)
    assert (known.hiding.by, unknown.hiding.by) == ("group", "clue")


def test_a_trial_says_what_hiding_takes_away_from_how_many_of_the_training_pictures(
    toy, model, monkeypatch
):
    monkeypatch.setattr(module, "SAMPLE", 20)
    (trial,) = looked(model, toy, 1)

    assert (trial.hiding.whole.count, trial.hiding.of) == (20, len(toy.train))
    assert trial.hiding.whole.change.before == trial.seen
    assert trial.hiding.whole.change.after == trial.hidden
    assert trial.hiding.whole.hidden_fraction == pytest.approx(trial.hidden_fraction)
    assert trial.hiding.empty_fraction == pytest.approx(trial.empty_fraction)


def test_a_trial_knows_whether_the_model_before_tells_the_classes_apart(toy, model, store):
    (trained,) = looked(model, toy, 1.0, store=store)
    fresh = build("small-cnn", 2, seed=0)
    with torch.no_grad():
        list(fresh.parameters())[-1].copy_(torch.tensor([9.0, -9.0]))  # the bias: always class 0
    (blind,) = looked(fresh, toy, 1.0, store=store)

    assert (trained.learnt, blind.learnt) == (True, False)


def test_a_rate_and_its_steps_are_known_of_sgd_only(toy, model, store):
    (trial,) = looked(model, toy, 1, store=store)
    sgd = settings()
    sgd = replace(sgd, training=replace(sgd.training, batch_size=64))
    adam = replace(sgd, training=replace(sgd.training, optimizer="adam"))
    before = Checkpoint(model=model, arch="small-cnn", classes=2, lr=0.02)

    (known,) = with_rate([trial], sgd, before, pictures=129)
    (unknown,) = with_rate([trial], adam, before, pictures=129)

    assert (known.lr, known.steps) == (0.02, 3)
    assert unknown == trial
    assert trial.lr is None


def test_a_larger_k_never_hides_more_and_thresholds_come_in_order_once_each(toy, model):
    trials = looked(model, toy, 3, 0, 2, 2, 1)

    assert [trial.k for trial in trials] == [0, 1, 2, 3]
    areas = [trial.hidden_fraction for trial in trials]
    assert areas == sorted(areas, reverse=True)
    assert areas[0] > areas[-1]
    assert all(trial.tuned is None for trial in trials)


def test_heat_that_is_known_is_not_computed_again(toy, model, store, monkeypatch):
    expected = looked(model, toy, 1)

    def refuse(*_, **__):
        raise AssertionError("the heat was computed again")

    monkeypatch.setattr(module, "look", refuse)

    assert looked(model, toy, 1, store=store) == expected
    with pytest.raises(AssertionError, match="again"):
        looked(model, toy, 1)


def test_a_quick_look_takes_a_sample_and_each_picture_keeps_its_own_heat(
    toy, model, store, monkeypatch
):
    monkeypatch.setattr(module, "SAMPLE", 10)

    (alone,) = looked(model, toy, 1, seed=4)
    (given,) = looked(model, toy, 1, seed=4, store=store)
    (other,) = looked(model, toy, 1, seed=5)

    assert alone.pictures == 10
    assert alone.seen == 1.0  # each picture has its own label too
    assert alone.hidden_fraction == pytest.approx(given.hidden_fraction, abs=1e-6)
    assert alone.hidden == given.hidden
    assert alone.hidden_fraction != other.hidden_fraction


def test_pictures_of_a_sample_are_read_in_batches_not_all_at_once(toy, model, monkeypatch):
    asked = []

    class Watched:
        def __init__(self, chosen):
            self.chosen = chosen

        def __len__(self):
            return len(self.chosen)

        def take(self, positions):
            return Watched([self.chosen[position] for position in positions])

        def batch(self, positions):
            asked.append([self.chosen[position] for position in positions])
            return toy.train.images.batch(asked[-1])

    monkeypatch.setattr(module, "SAMPLE", 10)
    seen = replace(toy, train=replace(toy.train, images=Watched(range(len(toy.train)))))

    looked(model, seen, 1)

    assert len({position for positions in asked for position in positions}) == 10


def test_the_layer_and_the_statistics_of_the_settings_are_used(toy, model):
    layers = looked(model, toy, 1, masking=MaskingConfig(statistics="all"))

    assert layers != looked(model, toy, 1)
    with pytest.raises(ModelError, match="nowhere"):
        looked(model, toy, 1, masking=MaskingConfig(layer="nowhere"))


def test_the_watcher_hears_one_steady_progress_up_to_the_end(toy, model):
    heard = []

    swept(model, toy, 1, 2, lr=0.005, watcher=heard.append)

    assert {progress.stage for progress in heard} == {"sweep"}
    done = [progress.done for progress in heard]
    assert done == sorted(done)
    # Heat, the pictures whole, and four steps for each k, in hundredths.
    assert heard[-1].done == heard[-1].total == 1000


def test_a_watcher_that_raises_stops_the_sweep(toy, model):
    def stop(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        looked(model, toy, 2, watcher=stop)


def test_the_model_before_is_left_alone(toy, model):
    was = copy.deepcopy(model.state_dict())

    swept(model, toy, 0, lr=0.05)

    assert all(torch.equal(was[name], value) for name, value in model.state_dict().items())


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"ks": ()}, "no k to try"),
        ({"masking": MaskingConfig(strategy="random")}, "suggested for the strategy 'random'"),
        ({"masking": MaskingConfig(strategy="cold")}, "suggested for the strategy 'cold'"),
        ({"ks": (-1,)}, "k is -1"),
        ({"ks": (0, float("nan"))}, "k is nan"),
    ],
)
def test_what_cannot_be_tried_is_refused_before_anything_is_tried(changes, problem):
    with pytest.raises(ConfigError, match=problem):
        rules(**{"masking": MASKING, "ks": (1,), **changes})


def test_several_rounds_of_the_settings_are_not_tried_one_is():
    tried = rules(MaskingConfig(k=1.0, rounds=3), ks=(2, 0))

    assert tried == [MaskingConfig(k=0.0), MaskingConfig(k=2.0)]


def test_heat_of_other_pictures_is_refused(toy, model, store):
    short = replace(store, rounds=(store.rounds[0][:50],))

    with pytest.raises(ConfigError, match="of 50 pictures, but there are 96"):
        swept(model, toy, 1, store=short)
    with pytest.raises(ConfigError, match="of 50 pictures, but there are 96"):
        looked(model, toy, 1, store=short)


def test_what_is_hidden_is_filled_as_the_settings_say(toy, model, store):
    masking = MaskingConfig(fill="noise")
    now = Round(
        masking=replace(masking, k=1.0), store=store, size=toy.card.size, count=96, number=1,
        seed=3, split=toy.train,
    )  # fmt: skip
    asked = predict(model, toy.train, keep=keeper(now))

    (trial,) = looked(model, toy, 1, store=store, masking=masking, seed=3)

    assert trial.hidden == pytest.approx(asked.correct().mean())
