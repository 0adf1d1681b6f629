import csv
import io
import zipfile
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from masktune.config import MaskingConfig, RunConfig, TrainConfig
from masktune.data.preprocess import Preprocess
from masktune.errors import ConfigError, RunFolderError
from masktune.heat.strategies import Round, keeper
from masktune.pipeline import run
from masktune.runs import load as loading
from masktune.runs.export import (
    hidden_files,
    mask_files,
    masks_zip,
    predictions_csv,
    write_masks,
)
from masktune.runs.open import OpenRun


@pytest.fixture(scope="module")
def finished(toy, tmp_path_factory):
    """Give what opens a finished run of a strategy on the toy."""
    runs = {}

    def opened(strategy: str, fill: str = "black"):
        named = f"{strategy}-{fill}"
        if named not in runs:
            config = RunConfig(
                dataset="toy",
                recipe="biased-mnist-5k",
                arch="small-cnn",
                training=TrainConfig(epochs=1, batch_size=16, lr=0.01),
                masking=MaskingConfig(strategy=strategy, k=1.0, fill=fill),
                device="cpu",
            )
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(loading, "load", lambda _, **__: toy)
                patch.setattr("masktune.pipeline.report_html", lambda _: "")
                path = run(config, out=tmp_path_factory.mktemp("runs") / named).folder
                runs[named] = OpenRun(path)
                assert runs[named].bundle is toy  # read while the stand-in is there
        return runs[named]

    return opened


def pixels(content: bytes) -> np.ndarray:
    return np.array(Image.open(io.BytesIO(content)))


def kept(run_view) -> torch.Tensor:
    """What the run kept, computed apart."""
    config = run_view.config
    now = Round(
        masking=config.masking,
        store=run_view.store,
        size=(28, 28),
        count=96,
        number=1,
        seed=config.seed,
    )
    return keeper(now)(torch.arange(96))


def test_a_keep_map_is_white_where_a_pixel_survives_and_the_picture_black_elsewhere(finished, toy):
    run_view = finished("heat")
    keep = kept(run_view)
    assert 0 < keep.float().mean() < 1

    found = dict(mask_files(run_view))

    rows = list(csv.DictReader(io.StringIO(found["index.csv"].decode())))
    assert [int(row["position"]) for row in rows] == list(range(96))
    for position in range(0, 96, 17):
        want = keep[position].numpy()
        picture = toy.train.images.batch([position])[0].permute(1, 2, 0).numpy()
        assert np.array_equal(pixels(found[f"keep/{position:06d}.png"]), want * np.uint8(255))
        masked = pixels(found[f"masked/{position:06d}.png"])
        assert np.array_equal(masked, picture * want[:, :, None])
        assert float(rows[position]["hidden"]) == pytest.approx(1 - want.mean())


@pytest.mark.parametrize(("strategy", "fill"), [("cold", "noise"), ("paste", "black")])
def test_a_masked_picture_is_filled_as_the_model_saw_it(strategy, fill, toy, monkeypatch, finished):
    """What the epoch of the finetune reads off is written down, and set beside the export."""
    seen = {}
    usual = Preprocess.of

    def watched(self, batch, keep=None, **how):
        made = usual(self, batch, keep, **how)
        if keep is not None and how:  # the training loop, which may augment
            seen.update(zip(batch.positions.tolist(), made, strict=True))
        return made

    monkeypatch.setattr(Preprocess, "of", watched)
    found = dict(mask_files(finished(strategy, fill)))

    assert len(seen) == 96
    for position in range(0, 96, 17):
        picture = (seen[position].permute(1, 2, 0) * 255).round().byte().numpy()
        assert np.array_equal(pixels(found[f"masked/{position:06d}.png"]), picture)
        kept = pixels(found[f"keep/{position:06d}.png"]) == 255
        own = toy.train.images.batch([position])[0].permute(1, 2, 0).numpy()
        assert np.array_equal(picture[kept], own[kept])
        assert 0 < kept.mean() < 0.5  # the hot part is the smaller one


def test_a_soft_mask_is_grey(finished):
    found = dict(mask_files(finished("soft"), [0, 1]))
    maps = [pixels(found[name]) for name in ("keep/000000.png", "keep/000001.png")]
    levels = {int(level) for one in maps for level in np.unique(one)}

    assert len(levels) > 10


def test_random_windows_are_exported_as_one_rectangle_each(finished):
    found = dict(mask_files(finished("random"), [5]))

    hidden = pixels(found["keep/000005.png"]) == 0
    rows, columns = np.flatnonzero(hidden.any(1)), np.flatnonzero(hidden.any(0))
    assert hidden.sum() == len(rows) * len(columns) > 0


def test_the_export_folder_says_which_file_is_which(finished, tmp_path):
    written = write_masks(finished("heat"), tmp_path / "out")

    rows = list(csv.DictReader((tmp_path / "out" / "index.csv").read_text().splitlines()))
    assert written == len(rows) == 96
    assert rows[3]["label"] == "bright"
    assert rows[3]["attribute"] == "spot"
    for row in rows[:2]:
        assert (tmp_path / "out" / row["keep map"]).is_file()
        assert (tmp_path / "out" / row["masked picture"]).is_file()
    assert "white pixels survive" in (tmp_path / "out" / "README.txt").read_text()


def test_an_export_never_mixes_with_files_that_are_there(finished, tmp_path):
    (tmp_path / "mine.txt").write_text("precious")

    with pytest.raises(ConfigError, match="not empty"):
        write_masks(finished("heat"), tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_run_that_hid_nothing_has_nothing_to_export(finished, tmp_path):
    with pytest.raises(RunFolderError, match="hid nothing"):
        write_masks(finished("none"), tmp_path / "out")


def test_the_zip_holds_the_chosen_pictures_only(finished):
    archive = zipfile.ZipFile(io.BytesIO(masks_zip(finished("heat"), [4, 90])))

    assert archive.namelist() == [
        "keep/000004.png", "masked/000004.png", "keep/000090.png", "masked/000090.png",
        "index.csv", "README.txt",
    ]  # fmt: skip


def test_a_full_disk_is_explained(finished, tmp_path, full_disk):
    run_view = finished("heat")  # before the disk is full

    with full_disk(room=10), pytest.raises(ConfigError, match="cannot be written into"):
        write_masks(run_view, tmp_path / "out")


def test_every_answer_is_a_row_with_both_models_probabilities(finished):
    run_view = finished("heat")

    rows = list(csv.DictReader(io.StringIO(predictions_csv(run_view).decode())))

    assert [row["test set"] for row in rows] == ["turned"] * 40 + ["validation"] * 40
    after = run_view.predictions.tests["turned"].after
    assert [float(row["after: bright"]) for row in rows[:40]] == after.probabilities[:, 1].tolist()
    right = sum(row["after"] == row["label"] for row in rows[:40])
    assert right == after.correct().sum()
    assert {row["group"] for row in rows[:40]} == {"dark, spot", "bright, plain"}
    assert {row["file"] for row in rows} == {""}  # pictures in memory have no file


def test_a_score_of_the_models_own_stands_beside_its_probabilities(finished):
    run_view = finished("heat")
    pair = replace(run_view.predictions.tests["turned"], own=-np.arange(40) / 64)
    said = replace(run_view.predictions, tests={"turned": pair})
    scored = OpenRun(run_view.path, bundle=run_view.bundle, predictions=said)

    text = predictions_csv(scored, tests=["turned"]).decode()

    rows = list(csv.DictReader(io.StringIO(text)))
    assert [float(row["own score"]) for row in rows] == pair.own.tolist()
    assert float(rows[3]["after: bright"]) == pair.after.probabilities[3, 1]


def test_one_test_set_can_be_asked_for_alone(finished):
    rows = predictions_csv(finished("heat"), tests=["turned"]).decode().splitlines()

    assert len(rows) == 1 + 40


def test_files_of_a_few_pictures_are_named_by_their_places_in_the_whole(toy):
    def keep(rows):
        return torch.ones(len(rows), 28, 28, dtype=torch.bool)

    files = dict(hidden_files(keep, toy.train, card=toy.card, positions=[1, 0],
                              numbers=range(500, 596), read_me="Two."))  # fmt: skip

    assert [*files] == [
        *("keep/000501.png", "masked/000501.png", "keep/000500.png", "masked/000500.png"),
        *("index.csv", "README.txt"),
    ]
    rows = [*csv.DictReader(io.StringIO(files["index.csv"].decode()))]
    assert [row["position"] for row in rows] == ["501", "500"]
    assert files["README.txt"] == b"Two."
