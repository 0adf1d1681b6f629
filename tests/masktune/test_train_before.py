"""A training on its own: the model before that a run would train, and nothing after it."""

import json
import sys
import types
from dataclasses import replace

import pytest
import torch
from torch import nn

from masktune.checkpoints.checkpoint import load_checkpoint, read_tensors
from masktune.cli.main import main
from masktune.config import RunConfig, TrainConfig
from masktune.errors import ConfigError, RunFolderError
from masktune.pipeline import run, train_before
from masktune.runs import load as loading
from masktune.runs.folder import RunFolder
from masktune.runs.open import OpenRun
from masktune.scores.result import OnlyBeforeError, RunResult
from masktune.scores.trained import TrainResult

CONFIG = RunConfig(
    dataset="toy",
    recipe="biased-mnist-5k",
    arch="small-cnn",
    training=TrainConfig(epochs=3, batch_size=16, lr=0.01),
    device="cpu",
    only_before=True,
)


@pytest.fixture(autouse=True)
def toy_in_the_catalogue(toy, monkeypatch):
    monkeypatch.setattr(loading, "load", lambda _, **__: toy)


@pytest.fixture(scope="module")
def trained(tmp_path_factory, toy):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loading, "load", lambda _, **__: toy)
        return train_before(CONFIG, out=tmp_path_factory.mktemp("runs") / "trained")


def test_a_training_leaves_an_ordinary_folder_without_anything_after(trained):
    document = json.loads((trained.folder / "result.json").read_text())

    assert {path.name for path in trained.folder.iterdir()} == {
        "config.json", "data.json", "status.json", "events.jsonl", "before.safetensors",
        "result.json", "log.txt",
    }  # fmt: skip
    assert RunFolder(trained.folder).status()["state"] == "done"
    assert [*document["test"]["turned"]] == [*document["validation"]] == ["before"]
    assert not {"selective", "flips", "masking"} & {*document}
    assert [*document["seconds"]] == ["load", "train", "evaluate"]
    assert document["config"]["only_before"] is True


def test_its_model_is_bit_by_bit_that_of_a_run_with_the_same_settings(trained, tmp_path):
    whole = run(replace(CONFIG, only_before=False), out=tmp_path / "run")

    alone, notes = read_tensors(trained.folder / "before.safetensors")
    of_run, noted = read_tensors(tmp_path / "run" / "before.safetensors")
    assert notes == noted
    assert alone.keys() == of_run.keys()
    assert all(torch.equal(alone[name], of_run[name]) for name in alone)
    assert (
        trained.to_json()["test"]["turned"]["before"]
        == (whole.to_json()["test"]["turned"]["before"])
    )


@pytest.mark.slow
def test_a_run_from_its_folder_ends_as_the_run_that_trained_by_itself(trained, tmp_path):
    whole = run(replace(CONFIG, only_before=False), out=tmp_path / "one")
    model = str(trained.folder / "before.safetensors")

    taken = run(replace(CONFIG, only_before=False, model=model), out=tmp_path / "two")

    assert taken.to_json()["test"] == whole.to_json()["test"]


def test_a_finished_training_answers_at_once_without_working_again(trained):
    told = []

    again = train_before(CONFIG, out=trained.folder, watcher=told.append)

    assert told == []
    assert again.to_json() == trained.to_json()


class Stop(KeyboardInterrupt):
    pass


def test_an_interrupted_training_goes_on_with_the_next_epoch_to_the_same_model(trained, tmp_path):
    def interrupt(progress):
        if (progress.stage, progress.done) == ("train", 9):
            raise Stop

    with pytest.raises(Stop):
        train_before(CONFIG, out=tmp_path / "run", watcher=interrupt)
    assert RunFolder(tmp_path / "run").status()["state"] == "interrupted"
    told = []

    result = train_before(CONFIG, out=tmp_path / "run", watcher=told.append)

    assert result.to_json()["test"] == trained.to_json()["test"]
    assert min(p.done for p in told if p.stage == "train") == 7  # 6 steps an epoch
    assert not (tmp_path / "run" / "training.pt").exists()


def test_who_looks_for_a_model_after_is_told_what_to_do(trained):
    opened = OpenRun(trained.folder)
    folder = str(trained.folder)

    for part in ("result", "predictions", "after", "origin"):
        with pytest.raises(OnlyBeforeError) as caught:
            getattr(opened, part)
        assert caught.value.problem.startswith(f"{folder} holds a trained model and no finetune")
        assert "give its folder as the model of masktune run" in caught.value.remedy
    assert opened.before.arch == "small-cnn"
    with pytest.raises(OnlyBeforeError):
        RunResult.read(trained.folder)


def test_a_version_that_knows_no_trainings_says_that_the_result_is_newer(trained, monkeypatch):
    monkeypatch.setattr("masktune.scores.result.NEWEST", 2)  # what that version read up to

    with pytest.raises(RunFolderError, match="has format 3, and this one reads up to 2"):
        RunResult.read(trained.folder)


def test_a_run_still_writes_what_older_versions_read(trained, tmp_path):
    model = str(trained.folder / "before.safetensors")

    result = run(replace(CONFIG, only_before=False, model=model), out=tmp_path / "run")

    assert result.to_json()["format"] == 2


def test_a_damaged_result_of_a_training_is_said(trained, tmp_path):
    document = trained.to_json()
    del document["validation"]["before"]["groups"]
    (tmp_path / "result.json").write_text(json.dumps(document))

    with pytest.raises(RunFolderError, match=r"result.json is missing or damaged: 'groups'"):
        TrainResult.read(tmp_path)


def test_a_run_does_not_go_into_the_folder_of_a_training(trained, capsys):
    with pytest.raises(RunFolderError, match="holds a model that was trained only") as caught:
        run(replace(CONFIG, only_before=False), out=trained.folder)

    assert caught.value.remedy.endswith(f"start from its model by --model {trained.folder}.")


def test_a_model_that_is_given_is_not_to_be_trained():
    with pytest.raises(ConfigError, match=r"The model .* is trained already") as caught:
        replace(CONFIG, model="mine.pth")

    assert "--weights" in caught.value.remedy


def test_a_network_without_maps_can_be_trained(tmp_path, monkeypatch):
    module = types.ModuleType("flat_networks")
    module.make = lambda classes: nn.Sequential(nn.Flatten(), nn.Linear(3 * 28 * 28, classes))
    monkeypatch.setitem(sys.modules, "flat_networks", module)

    result = train_before(replace(CONFIG, arch="flat_networks:make"), out=tmp_path / "run")

    assert 0 <= result.test["turned"].average <= 1


def test_the_weights_of_a_training_are_those_before(trained, tmp_path, capsys):
    file = tmp_path / "mine.safetensors"

    assert main(["weights", str(trained.folder), "--export", str(file), "--json"]) == 0

    assert json.loads(capsys.readouterr().out)["of"] == "before"
    saved = load_checkpoint(file).model.state_dict()
    own = load_checkpoint(trained.folder / "before.safetensors").model.state_dict()
    assert all(torch.equal(saved[name], own[name]) for name in own)


def test_the_weights_after_a_training_are_not_there(trained, tmp_path, capsys):
    words = ["weights", str(trained.folder), "--of", "after", "--export", str(tmp_path / "a.pt")]

    assert main(words) == 2

    assert "holds a trained model and no finetune" in capsys.readouterr().err
