from dataclasses import replace

import pytest
import torch

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.compute import accelerator
from masktune.config import MaskingConfig, RunConfig, TrainConfig
from masktune.data.card import UNKNOWN
from masktune.errors import ConfigError
from masktune.models.build import build
from masktune.training.context import Context, Tuned
from masktune.training.fit import ERM, fit
from masktune.training.masktune import best_of, masktune
from masktune.training.methods import RIVALS, USUAL, Rival

CONFIG = RunConfig(
    dataset="toy",
    recipe="biased-mnist-5k",
    arch="small-cnn",
    training=TrainConfig(epochs=1, batch_size=32, lr=0.01),
    masking=MaskingConfig(rounds=2),
    device="cpu",
)


class EqualGroups(ERM):
    """A small rival: as many pictures of the smallest group as of every other, in each epoch."""

    def draw(self, split, generator):
        groups = split.labels * 2 + split.attributes
        known = [torch.nonzero(groups == group).flatten() for group in groups.unique()]
        least = min(map(len, known))
        drawn = [members[torch.randperm(len(members), generator=generator)] for members in known]
        return torch.cat([members[:least] for members in drawn]).tolist()


def equal_groups(context, before):
    model = fit(
        before.model,
        context.bundle.train,
        objective=EqualGroups(),
        config=context.config.training,
        stage="equal groups",
        preprocess=context.preprocess,
        compute=context.compute,
        watcher=context.watcher,
    )
    tuned = Tuned(after=replace(before, model=model))
    context.save(tuned)
    return tuned


RIVAL = Rival(
    name="equal",
    title="Equal groups",
    needs=frozenset({"training groups"}),
    tune=equal_groups,
)


@pytest.fixture
def before():
    return Checkpoint(model=build("small-cnn", 2), arch="small-cnn", classes=2, lr=0.01)


def context_of(bundle, **more):
    return Context(config=CONFIG, bundle=bundle, compute=accelerator("cpu"), **more)


def test_the_usual_method_is_the_papers():
    assert USUAL == next(iter(RIVALS)) == "masktune"
    assert RIVALS[USUAL].tune is masktune
    assert all(name == rival.name for name, rival in RIVALS.items())


def test_a_rival_is_an_objective_and_a_function(toy, before):
    told, saved = [], []
    context = context_of(toy, watcher=told.append, save=saved.append)
    RIVAL.check(toy)

    tuned = RIVAL.tune(context, before)

    assert {(p.stage, p.total) for p in told} == {("equal groups", 3)}
    assert saved == [tuned]
    answers = context.ask_both(before, tuned.after)
    assert len(answers.tests["turned"].after.probabilities) == 40


def test_a_dataset_without_groups_is_refused_by_who_needs_them(toy):
    nobody = torch.full_like(toy.train.attributes, UNKNOWN)
    without = replace(toy, train=replace(toy.train, attributes=nobody))

    RIVALS[USUAL].check(without)
    with pytest.raises(ConfigError, match="Equal groups needs training groups, and 'toy'") as error:
        RIVAL.check(without)

    assert "MaskTune" in error.value.remedy


@pytest.mark.parametrize(("best", "score"), [("average", 0.5), ("worst-group", 0.0)])
def test_the_best_epoch_is_told_by_all_validation_pictures_or_by_their_worst_group(
    toy, before, best, score
):
    # Fresh weights answer the same about every picture: right about one class, half of them.
    training = replace(CONFIG.training, best=best, patience=4)
    context = replace(context_of(toy), config=replace(CONFIG, training=training))

    found = best_of(context)

    assert (found.score(before.model), found.patience) == (score, 4)


def test_rounds_go_on_from_what_was_saved(toy, before):
    states = []
    whole = masktune(context_of(toy, save=states.append), before)

    resumed = masktune(context_of(toy, saved=states[0]), before)

    assert [len(state.records) for state in states] == [1, 2]
    assert len(states[0].store.rounds) == 1
    assert resumed.records == whole.records
    for one, other in zip(
        resumed.after.model.parameters(), whole.after.model.parameters(), strict=True
    ):
        assert torch.equal(one, other)
