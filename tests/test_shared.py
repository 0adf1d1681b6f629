"""Extras on real data that lies beside the project on some machines; never needed, never copied."""

from pathlib import Path

import pytest

from masktune.checkpoints.checkpoint import load_checkpoint
from masktune.checkpoints.inspect import diagnose
from masktune.config import RunConfig, TrainConfig
from masktune.data.preprocess import Preprocess
from masktune.datasets.catalogue import load
from masktune.models.predict import predict
from masktune.pipeline import run

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
RESNET32 = DATA / "resnet32-d509ac18.th"
CIFAR = DATA / "cifar10-subset.npz"
WATERBIRDS = DATA / "waterbirds_v1.0"

pytestmark = pytest.mark.slow


def needs(*paths: Path) -> pytest.MarkDecorator:
    absent = [path.name for path in paths if not path.exists()]
    return pytest.mark.skipif(bool(absent), reason=f"{', '.join(absent)} not in ../shared/data")


@needs(RESNET32, CIFAR)
def test_the_public_resnet32_is_recognised_and_right_on_four_of_five_cifar_pictures():
    found = diagnose(RESNET32)
    assert (found.verdict, found.arch, found.classes) == ("ok", "resnet32", 10)

    bundle = load("cifar10", root=CIFAR)
    card = bundle.card
    answers = predict(
        load_checkpoint(RESNET32, classes=10).model,
        bundle.tests["test"],
        preprocess=Preprocess(mean=card.mean, std=card.std),
    )

    assert len(answers.labels) == 2000
    assert answers.correct().mean() >= 0.80


@needs(WATERBIRDS)
def test_the_waterbirds_subset_goes_through_end_to_end_with_a_model_from_scratch(tmp_path):
    """A small frame and network: the point is the way from files to report, not the accuracy."""
    config = RunConfig(
        dataset="waterbirds",
        recipe="waterbirds",
        arch="resnet20",
        training=TrainConfig(epochs=1, batch_size=64, lr=0.01),
        root=str(WATERBIRDS),
        frame="resize 32",
        device="cpu",
    )

    document = run(config, out=tmp_path / "run").to_json()

    groups = document["test"]["test"]["after"]["groups"]
    assert [group["count"] for group in groups] == [110, 110, 50, 50]
    assert any("subset of the original release" in said for said in document["data"]["findings"])
    assert (tmp_path / "run" / "report.html").is_file()
