import pytest
import torch

from masktune.checkpoints.checkpoint import load_checkpoint
from masktune.config import AUTO, RunConfig, TrainConfig
from masktune.data.card import UNKNOWN
from masktune.datasets import imagenet9
from masktune.datasets.catalogue import load
from masktune.errors import DataError
from masktune.models.build import build
from masktune.models.predict import predict
from masktune.pipeline import run
from masktune.runs.open import OpenRun
from masktune.scores.result import Gaps
from tests import layouts, results


@pytest.mark.parametrize("form", ["in9l", "bg_challenge", "masktune"])
def test_every_variant_becomes_a_test_set_of_its_name(tmp_path, form):
    bundle = load("imagenet9", root=layouts.imagenet9(tmp_path, form=form))

    assert tuple(bundle.tests) == ("original", "mixed_same", "mixed_rand", "only_fg")
    assert bundle.card.tests == tuple(bundle.tests)
    assert [len(bundle.train), len(bundle.validation)] == [18, 18]
    assert {len(split) for split in bundle.tests.values()} == {18}


def test_all_eight_variants_are_known_and_masks_are_no_pictures(tmp_path):
    root = layouts.imagenet9(tmp_path, each=1, variants=imagenet9.VARIANTS)

    bundle = load("imagenet9", root=root)

    assert len(bundle.tests) == 8
    assert bundle.skipped == ()
    assert "not there" not in bundle.findings[0]


def test_the_label_is_the_number_before_the_underscore(tmp_path):
    bundle = load("imagenet9", root=layouts.imagenet9(tmp_path))

    split = bundle.tests["mixed_rand"]

    assert split.labels.tolist() == [label for label in range(9) for _ in range(2)]
    assert [path.parent.name for path in split.images.paths[4:6]] == ["02_wheeled vehicle"] * 2
    assert bundle.card.classes[2] == "wheeled vehicle"
    assert set(split.attributes.tolist()) == {UNKNOWN}


def test_without_a_training_part_four_fifths_of_original_train_and_it_is_said(tmp_path):
    # 10 pictures a class: 8 train, of which assemble sets 2 aside to validate; 2 stay a test.
    root = layouts.imagenet9(tmp_path, each=10, training=False)

    bundle = load("imagenet9", root=root)

    sizes = [len(bundle.train), len(bundle.validation), len(bundle.tests["original"])]
    assert sizes == [9 * 6, 9 * 2, 9 * 2]
    assert len(bundle.tests["mixed_same"]) == 90
    assert "72 pictures of 'original'" in bundle.findings[1]
    assert "optimistic" in bundle.findings[1]


def test_the_seed_decides_which_pictures_of_original_train(tmp_path):
    root = layouts.imagenet9(tmp_path, each=5, training=False, variants=("original",))

    first, again, other = (
        set(load("imagenet9", root=root, seed=seed).tests["original"].images.paths)
        for seed in (1, 1, 2)
    )

    assert first == again
    assert first != other


def test_training_pictures_without_a_validation_part_set_some_aside(tmp_path):
    root = layouts.imagenet9(tmp_path, each=5)
    (root / "in9l" / "val").rename(tmp_path / "elsewhere")

    bundle = load("imagenet9", root=root)

    assert [len(bundle.train), len(bundle.validation)] == [36, 9]


def test_the_variant_original_may_bring_training_pictures_and_stays_a_test(tmp_path):
    root = layouts.imagenet9(tmp_path, each=5)
    (root / "in9l" / "train").rename(root / "original" / "train")
    (root / "in9l" / "val").rename(tmp_path / "elsewhere")

    bundle = load("imagenet9", root=root)

    assert [len(bundle.train), len(bundle.validation)] == [36, 9]
    assert len(bundle.tests["original"]) == 45


def test_what_a_mac_leaves_beside_pictures_is_no_picture(tmp_path):
    root = layouts.imagenet9(tmp_path)
    (root / "only_fg" / "val" / "00_dog" / "._n00_0.JPEG").write_bytes(b"Mac OS X")

    bundle = load("imagenet9", root=root)

    assert len(bundle.tests["only_fg"]) == 18
    assert bundle.skipped == ()


def test_a_folder_without_variants_names_the_path_expected(tmp_path):
    with pytest.raises(DataError) as caught:
        load("imagenet9", root=tmp_path)

    assert str(tmp_path / "original" / "val") in caught.value.problem


def test_variants_without_original_or_training_cannot_train(tmp_path):
    root = layouts.imagenet9(tmp_path, variants=("mixed_same",), training=False)

    with pytest.raises(DataError, match="no pictures to train on") as caught:
        load("imagenet9", root=root)

    assert str(root / "in9l" / "train") in caught.value.problem


@pytest.mark.parametrize("name", ["dog", "09_cow"])
def test_a_folder_that_is_no_class_is_named(tmp_path, name):
    root = layouts.imagenet9(tmp_path)
    (root / "mixed_same" / "val" / name).mkdir()

    with pytest.raises(DataError, match=f"{name} is no class"):
        load("imagenet9", root=root)


def test_a_variant_without_pictures_is_named(tmp_path):
    root = layouts.imagenet9(tmp_path)
    (root / "no_fg" / "val" / "00_dog").mkdir(parents=True)

    with pytest.raises(DataError, match="holds no pictures") as caught:
        load("imagenet9", root=root)

    assert str(root / "no_fg" / "val") in caught.value.problem


def test_the_bg_gap_is_mixed_same_minus_mixed_rand():
    tests = {
        "mixed_same": results.both(0.5, 0.75),
        "mixed_rand": results.both(0.25, 0.375),
        "original": results.both(1.0, 1.0),
    }

    assert results.a_result(tests, rounds=[{}]).bg_gap == Gaps(before=0.25, after=0.375)
    del tests["mixed_rand"]
    assert results.a_result(tests, rounds=[{}]).bg_gap is None


def test_pixels_are_normalised_as_for_in9_models(tmp_path):
    bundle = load("imagenet9", root=layouts.imagenet9(tmp_path, each=1))

    assert bundle.card.mean == (0.4717, 0.4499, 0.3837)
    assert bundle.train.images.batch([0]).shape == (1, 3, 224, 224)
    assert bundle.train.images.batch([0]).dtype == torch.uint8


@pytest.mark.slow
def test_a_model_of_1000_classes_is_scored_by_the_kind_its_answer_belongs_to(tmp_path):
    """A run end to end: heat, finetune, every variant and the BG-gap."""
    root = layouts.imagenet9(tmp_path / "in9", variants=("original", "mixed_same", "mixed_rand"))
    torch.save(build("resnet20", 1000).state_dict(), tmp_path / "thousand.pth")
    config = RunConfig(
        dataset="imagenet9-1000",
        recipe="imagenet9",
        arch=AUTO,
        training=TrainConfig(epochs=1, batch_size=16, lr=0.01),
        root=str(root),
        frame="resize 32",
        model=str(tmp_path / "thousand.pth"),
        device="cpu",
    )

    document = run(config, out=tmp_path / "run").to_json()

    tests = document["test"]
    gap = tests["mixed_same"]["after"]["average"] - tests["mixed_rand"]["after"]["average"]
    assert document["bg_gap"]["after"] == pytest.approx(gap)
    seen = OpenRun(tmp_path / "run")
    assert seen.bundle.card.classes[-1] == "none of the nine"
    before = seen.predictions.tests["original"].before
    assert before.probabilities.shape[1] == 10
    plain = load_checkpoint(tmp_path / "thousand.pth")
    part = seen.bundle.tests["original"]
    answers = predict(plain.model, part, preprocess=seen.preprocess).answers()
    assert before.answers().tolist() == [seen.bundle.card.pool[answer] for answer in answers]
