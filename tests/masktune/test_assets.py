"""The bundled checkpoints give the numbers their README promises."""

import json
from pathlib import Path

import pytest

from masktune.checkpoints.checkpoint import bundled_checkpoint, load_checkpoint
from masktune.config import RunConfig
from masktune.data.preprocess import Preprocess
from masktune.datasets.catalogue import CATALOGUE, load
from masktune.files import ASSETS
from masktune.models.predict import predict
from masktune.pipeline import run
from masktune.recipes import recipe

GOLDEN = json.loads((ASSETS / "golden.json").read_text("utf-8"))
DEMOS = [key for key, card in CATALOGUE.items() if card.bundled]


def test_every_bundled_dataset_has_a_checkpoint_and_golden_numbers():
    assert sorted(GOLDEN) == sorted(DEMOS)
    assert sorted(p.stem for p in ASSETS.glob("*.safetensors")) == sorted(DEMOS)


@pytest.mark.slow
@pytest.mark.parametrize("key", DEMOS)
def test_the_bundled_model_scores_what_is_written(key):
    bundle = load(key)
    model = load_checkpoint(bundled_checkpoint(key), classes=len(bundle.card.classes)).model
    preprocess = Preprocess(mean=bundle.card.mean, std=bundle.card.std)

    for name, split in bundle.tests.items():
        accuracy = predict(model, split, preprocess=preprocess).correct().mean()
        # Nothing is trained here: only the rounding of another processor may differ.
        assert accuracy == pytest.approx(GOLDEN[key][name]["before"]["average"], abs=0.004)


@pytest.mark.slow
@pytest.mark.parametrize("key", ["biased-mnist-5k", "two-squares-mnist-5k"])
def test_masktune_from_the_bundled_model_repairs_it_as_written(key, tmp_path: Path):
    base = recipe(CATALOGUE[key].recipe)
    config = RunConfig(
        dataset=key,
        recipe=base.name,
        arch=base.arch,
        training=base.training,
        masking=base.masking,
        model="bundled",
    )

    result = run(config, out=tmp_path / "run")

    golden = GOLDEN[key]["biased"]["after"]["average"]
    assert result.accuracy("biased") == pytest.approx(golden, abs=0.04)
    assert result.accuracy("biased") > result.accuracy("biased", "before") + 0.3
