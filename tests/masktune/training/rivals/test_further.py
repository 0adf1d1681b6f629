"""What rivals with further heads share: they go on where they were, on any architecture.

On any architecture those go too that sample by themselves, and those of two networks.
"""

import copy
import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from torchvision.models import VisionTransformer

from masktune.checkpoints.checkpoint import Checkpoint, load_checkpoint
from masktune.compute import accelerator
from masktune.config import RunConfig, TrainConfig
from masktune.data.types import in_memory
from masktune.errors import ModelError
from masktune.models.build import build
from masktune.scores.result import RunPredictions
from masktune.training import by_recipe
from masktune.training.context import Context
from masktune.training.fit import Resume
from masktune.training.methods import RIVALS
from tests.masktune.training.test_distributed import two_processes

pytestmark = pytest.mark.slow  # many trainings

CONFIG = RunConfig(
    dataset="toy",
    recipe="biased-mnist-5k",
    arch="small-cnn",
    training=TrainConfig(epochs=2, batch_size=32, lr=0.01, best="average"),
    device="cpu",
)
OURS = ("selectivenet", "deep-gamblers", "osp", "divdis", "cim")


def before_of(arch="small-cnn", **more):
    return Checkpoint(model=build(arch, 2, **more), arch=arch, classes=2, lr=0.01)


@pytest.mark.parametrize("best", ["last", "average"])
@pytest.mark.parametrize("rival", OURS)
def test_a_training_goes_on_where_it_was_bit_for_bit(toy, rival, best):
    states = []
    training = replace(CONFIG.training, best=best)
    context = Context(
        config=replace(CONFIG, rival=rival, training=training),
        bundle=toy,
        compute=accelerator("cpu"),
        resume=lambda _: Resume(state=None, save=lambda state: states.append(copy.deepcopy(state))),
    )
    whole = RIVALS[rival].tune(context, before_of())
    assert [state["epoch"] for state in states] == [1, 2]

    for state in states:  # in the middle, and after the last epoch
        kept = copy.deepcopy(state)
        going_on = replace(
            context, resume=lambda _, kept=kept: Resume(state=kept, save=lambda _: None)
        )
        resumed = RIVALS[rival].tune(going_on, before_of())

        found = resumed.after.model.state_dict()
        for name, value in whole.after.model.state_dict().items():
            assert torch.equal(found[name], value)
        assert resumed.facts == whole.facts
        assert (whole.own is None) == (not RIVALS[rival].has_own_score)
        for name, scores in (whole.own or {}).items():
            assert resumed.own[name].tolist() == scores.tolist()


def colours(toy, side):
    """Return the toy in another size."""

    def sized(split):
        pixels = split.images.batch(range(8)).float()
        larger = torch.nn.functional.interpolate(pixels, size=(side, side)).to(torch.uint8)
        return in_memory(split.name, larger, split.labels[:8], split.attributes[:8])

    return replace(
        toy,
        card=replace(toy.card, size=(side, side)),
        train=sized(toy.train),
        validation=sized(toy.validation),
        tests={name: sized(split) for name, split in toy.tests.items()},
    )


def small_vit():
    torch.manual_seed(0)
    sizes = {"image_size": 32, "patch_size": 16, "num_layers": 2, "num_heads": 2}
    return VisionTransformer(**sizes, hidden_dim=16, mlp_dim=32, num_classes=2)


@pytest.mark.parametrize(
    "arch", ["small-cnn", pytest.param("resnet18", marks=pytest.mark.slow), "vit"]
)
@pytest.mark.parametrize("rival", ["selectivenet", "divdis", "groupdro", "lff"])
def test_cnn_resnet_and_vit_take_further_heads_own_sampling_and_a_second_network(toy, rival, arch):
    # ViTs that have a name have a hundred million weights.
    model = small_vit() if arch == "vit" else build(arch, 2, size=32)
    before = Checkpoint(model=model.eval(), arch=arch, classes=2, lr=0.01)
    training = TrainConfig(epochs=1, batch_size=4, lr=0.01)
    context = Context(
        config=replace(CONFIG, rival=rival, start="erm", training=training),
        bundle=colours(toy, 32),
        compute=accelerator("cpu"),
    )

    tuned = RIVALS[rival].tune(context, before)

    answers = context.ask_both(before, tuned.after, tuned.own).tests["turned"]
    assert answers.after.probabilities.shape == (8, 2)
    assert not np.array_equal(answers.before.probabilities, answers.after.probabilities)
    assert tuned.layer is not None


def test_a_network_without_a_linear_last_layer_is_refused_in_words(toy):
    before = before_of("squeezenet1_1")
    context = Context(
        config=replace(CONFIG, rival="selectivenet", start="erm"),
        bundle=toy,
        compute=accelerator("cpu"),
    )

    with pytest.raises(ModelError, match="do not come from a linear last layer"):
        RIVALS["selectivenet"].tune(context, before)


def test_it_is_refused_before_a_model_before_is_trained_for_it(toy, monkeypatch):
    monkeypatch.setattr(by_recipe, "train", lambda *_, **__: pytest.fail("it was trained"))
    context = Context(
        config=replace(CONFIG, rival="selectivenet", arch="squeezenet1_1", model=None),
        bundle=toy,
        compute=accelerator("cpu"),
    )

    with pytest.raises(ModelError, match="do not come from a linear last layer"):
        by_recipe.model_before(context)


@pytest.mark.slow
def test_two_processes_train_a_further_head_and_agree_on_its_score(tmp_path):
    words = ["--dataset", "biased-mnist-5k", "--model", "bundled", "--rival", "selectivenet"]
    words += ["--epochs", "1", "--batch-size", "500", "--best", "average"]

    document = two_processes("run", *words, "--out", str(tmp_path / "two"))

    assert {row["score"] for row in document["selective"]["biased"]} >= {"own"}
    said = RunPredictions.read(tmp_path / "two" / "predictions.npz")
    assert said.tests["biased"].own.shape == (1000,)
    assert document["rival"] == {
        "mean selection on validation": round(float(said.validation.own.mean()), 4)
    }
    events = (tmp_path / "two" / "events.jsonl").read_text().splitlines()
    steps = [json.loads(line)["step"] for line in events]
    assert steps == list(range(1, 8))  # 3,500 pictures: each step once, not once in each process
    load_checkpoint(tmp_path / "two" / "after.safetensors")
