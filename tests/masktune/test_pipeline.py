import csv
import io
import json
import shutil
import sys
import time
import types
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save
from torch import nn

from masktune.checkpoints.checkpoint import load_checkpoint
from masktune.cli.advise import try_thresholds
from masktune.config import MaskingConfig, RunConfig, TrainConfig
from masktune.data.card import UNKNOWN
from masktune.datasets.catalogue import load
from masktune.errors import ConfigError, MaskTuneError, ModelError, RunFolderError
from masktune.heat import hiding
from masktune.models.build import build
from masktune.models.predict import predict
from masktune.pipeline import run
from masktune.runs import load as loading
from masktune.runs.export import mask_files
from masktune.runs.folder import RunFolder
from masktune.runs.open import OpenRun
from masktune.runs.queue import wait_for_turn
from masktune.runs.resume import HEAT, Saved
from masktune.scores.result import RunResult
from masktune.studies.advice import TunedScores
from masktune.training.rates import FinetuneRate

CONFIG = RunConfig(
    dataset="toy",
    recipe="biased-mnist-5k",
    arch="small-cnn",
    training=TrainConfig(epochs=4, batch_size=16, lr=0.01),
    device="cpu",
)
SHORT = replace(CONFIG, training=replace(CONFIG.training, epochs=1))


@pytest.fixture(autouse=True)
def toy_in_the_catalogue(toy, monkeypatch):
    """Datasets are asked for by name; here every name is the toy."""
    monkeypatch.setattr(loading, "load", lambda _, **__: toy)


@pytest.fixture(scope="module")
def finished(tmp_path_factory, toy):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loading, "load", lambda _, **__: toy)
        return run(CONFIG, out=tmp_path_factory.mktemp("runs") / "run")


def test_a_run_folder_holds_the_files_of_the_contract(finished):
    names = {path.name for path in finished.folder.iterdir()}

    assert names == {
        "config.json",
        "data.json",
        "status.json",
        "events.jsonl",
        "before.safetensors",
        "after.safetensors",
        "heat.safetensors",
        "predictions.npz",
        "result.json",
        "report.html",
        "log.txt",
    }


def test_the_result_has_the_shape_of_the_contract(finished):
    document = json.loads((finished.folder / "result.json").read_text())
    scores = document["test"]["turned"]["after"]

    assert document == json.loads(json.dumps(finished.to_json()))
    assert set(document) >= {
        "run", "dataset", "seed", "config", "device", "test", "validation", "selective",
        "masking", "seconds",
    }  # fmt: skip
    assert set(scores) >= {
        "average", "train_weighted", "group_mean", "worst_group", "worst_name", "groups",
    }  # fmt: skip
    assert set(scores["groups"][0]) == {"label", "attribute", "count", "accuracy", "interval"}
    row = document["selective"]["turned"][0]
    assert set(row) == {"score", "target", "coverage", "error", "gamma"}
    assert {r["score"] for r in document["selective"]["turned"]} == {"joint", "before", "after"}
    assert {"k", "hidden_fraction", "empty_fraction"} <= set(document["masking"]["rounds"][0])
    assert document["masking"]["rounds"][0]["lr"] == 0.01  # the rate the ERM ended with
    assert "test" not in document["masking"]["rounds"][0]  # of one round, the result says it


def test_a_run_says_how_many_seconds_every_stage_took(finished):
    seconds = json.loads((finished.folder / "result.json").read_text())["seconds"]

    assert list(seconds) == ["load", "train", "heat", "finetune", "evaluate", "report"]
    assert min(finished.seconds.values()) > 0
    assert finished.took == pytest.approx(sum(seconds.values()), abs=0.01)
    assert finished.cpu_seconds > 0


@pytest.mark.usefixtures("no_report")
def test_loading_counts_from_when_the_turn_of_a_job_came(tmp_path, monkeypatch):
    # A job imports PyTorch after its turn came and before its run is carried out.
    folder = tmp_path / "run"
    RunFolder.claim(folder, SHORT)
    wait_for_turn(folder)
    came = RunFolder(folder).status()["began"]
    monkeypatch.setattr(time, "time", lambda: came + 100.0)

    seconds = run(SHORT, out=folder).seconds

    assert seconds["load"] == pytest.approx(100.0)
    assert RunFolder(folder).status()["began"] == came


@pytest.mark.usefixtures("no_report")
def test_loading_does_not_count_from_when_a_killed_process_began(tmp_path, monkeypatch):
    # In a container the next process often has the same number.
    folder = RunFolder.claim(tmp_path / "run", SHORT)
    folder.began = 1000.0
    folder.say("running")
    folder.write_json("status.json", {**folder.status(), "started": 1000.0})

    assert run(SHORT, out=folder.path).seconds["load"] < 100


@pytest.fixture(scope="module")
def hiding_much(finished, tmp_path_factory, toy):
    """Give a run at k = 0, which hides so much that the model does not answer all right."""
    config = replace(
        CONFIG,
        model=str(finished.folder / "before.safetensors"),
        masking=MaskingConfig(k=0.0),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loading, "load", lambda _, **__: toy)
        return run(config, out=tmp_path_factory.mktemp("much") / "run")


def test_a_run_says_how_its_model_does_on_the_training_pictures_as_hidden(hiding_much, toy):
    shown = OpenRun(hiding_much.folder)
    (record,) = hiding_much.to_json()["masking"]["rounds"]

    def right(model, keep=None):
        return predict(model, toy.train, keep=keep).correct().mean()

    assert record["train_accuracy"] == right(shown.after.model, shown.keeper(1))
    # So that it can be told from what else might be recorded:
    assert record["train_accuracy"] < right(shown.after.model)
    assert record["train_accuracy"] > right(shown.before.model, shown.keeper(1))
    assert record["fitted"] is True


@pytest.mark.usefixtures("no_report")
def test_what_hiding_takes_away_is_told_once_and_before_the_first_step_of_the_finetune(tmp_path):
    heard = []
    config = replace(CONFIG, masking=MaskingConfig(k=0.0, rounds=2))

    result = run(
        config,
        out=tmp_path / "run",
        watcher=lambda progress: heard.append(progress.stage),
        tell=heard.append,
    )

    rate, told = (one for one in heard if not isinstance(one, str))
    assert isinstance(rate, FinetuneRate)
    assert heard.index(rate) < heard.index("heat")
    assert heard.index("heat") < heard.index(told) < heard.index("finetune")
    assert [one.hiding for one in result.masking.rounds] == [told, None]


@pytest.mark.usefixtures("no_report")
def test_of_many_pictures_without_groups_some_are_judged_by_where_the_model_looks_in_them(
    tmp_path, toy, monkeypatch
):
    unknown = replace(toy.train, attributes=torch.full_like(toy.train.attributes, UNKNOWN))
    plain = replace(toy, train=unknown, card=replace(toy.card, attributes=()))
    monkeypatch.setattr(loading, "load", lambda _, **__: plain)
    monkeypatch.setattr(hiding, "SAMPLE", 20)

    (first,) = run(SHORT, out=tmp_path / "run").masking.rounds

    assert (first.hiding.by, first.hiding.of, first.hiding.whole.count) == ("clue", 96, 20)
    assert sum(group.count for group in first.hiding.groups) == 20


def test_a_sweep_says_of_a_k_what_a_run_at_that_k_says(hiding_much):
    config = RunConfig.from_json(hiding_much.to_json()["config"])

    (trial,) = try_thresholds(config, (0.0,), quick=False)

    (record,) = hiding_much.to_json()["masking"]["rounds"]
    assert trial.tuned == TunedScores.from_result(hiding_much)
    assert trial.hidden_fraction == record["hidden_fraction"]
    assert trial.empty_fraction == record["empty_fraction"]


def test_every_number_follows_from_the_stored_predictions(finished):
    pair = OpenRun(finished.folder).predictions.tests["turned"]

    assert finished.accuracy("turned") == pair.after.correct().mean()
    assert finished.accuracy("turned", "before") == pair.before.correct().mean()


def test_the_stored_models_give_the_stored_predictions(finished, toy):
    shown = OpenRun(finished.folder)

    for which in ("before", "after"):
        again = predict(getattr(shown, which).model, toy.validation)
        stored = getattr(shown.predictions.validation, which).probabilities
        assert np.allclose(again.probabilities, stored, atol=1e-6)


def test_a_run_that_several_threads_open_at_once_is_the_same_for_each(finished):
    def opened(_):
        shown = OpenRun(finished.folder)
        weights = torch.cat([w.flatten() for w in shown.after.model.state_dict().values()])
        answers = shown.predictions.tests["turned"].after.probabilities
        return weights.numpy().tobytes(), answers.tobytes()

    alone = opened(0)
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as threads:
            together = set(threads.map(opened, range(12)))
    finally:
        sys.setswitchinterval(usual)

    assert together == {alone}


def test_the_tuned_model_carries_the_rate_its_successor_needs(finished):
    assert load_checkpoint(finished.folder / "before.safetensors").lr == 0.01


@pytest.mark.usefixtures("no_report")
def test_the_same_settings_give_the_same_numbers_in_another_folder(finished, tmp_path):
    again = run(CONFIG, out=tmp_path / "again")

    assert again.to_json()["test"] == finished.to_json()["test"]
    assert again.to_json()["selective"] == finished.to_json()["selective"]


def test_a_finished_run_answers_at_once_without_working_again(finished):
    told = []

    again = run(CONFIG, out=finished.folder, watcher=told.append)

    assert told == []
    assert again.to_json() == finished.to_json()


def test_other_settings_do_not_overwrite_a_finished_run(finished):
    was = (finished.folder / "result.json").read_bytes()

    with pytest.raises(RunFolderError, match="other settings"):
        run(replace(CONFIG, seed=1), out=finished.folder)

    assert (finished.folder / "result.json").read_bytes() == was


class Stop(KeyboardInterrupt):
    pass


@pytest.mark.slow
@pytest.mark.usefixtures("no_report")
@pytest.mark.parametrize("where", [("train", 9), ("heat", 1), ("finetune", 2), ("predict", 100)])
def test_an_interrupted_run_goes_on_to_the_same_result(where, finished, tmp_path):
    def interrupt(progress):
        if (progress.stage, progress.done) == where:
            raise Stop

    with pytest.raises(Stop):
        run(CONFIG, out=tmp_path / "run", watcher=interrupt)
    assert RunFolder(tmp_path / "run").status()["state"] == "interrupted"
    told = []

    result = run(CONFIG, out=tmp_path / "run", watcher=told.append)

    assert result.to_json()["test"] == finished.to_json()["test"]
    stages = {p.stage for p in told}
    assert ("train" in stages) == (where[0] == "train")
    if where[0] == "train":  # 6 steps an epoch: the first epoch is not repeated
        assert min(p.done for p in told if p.stage == "train") == 7
    assert not (tmp_path / "run" / "training.pt").exists()


PRACTISED = replace(
    CONFIG,
    training=TrainConfig(
        epochs=8,
        batch_size=8,
        lr=0.002,
        schedule="cosine",
        warmup=1.5,
        best="worst-group",
        patience=3,
        optimizer="adamw",
        weight_decay=0.01,
        label_smoothing=0.1,
        freeze="features.1",
        augment="shift10",
    ),
    batch_norm="frozen",
)
"""Everything that practitioners change, at once."""


@pytest.fixture(scope="module")
def practised(tmp_path_factory, toy):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loading, "load", lambda _, **__: toy)
        return run(PRACTISED, out=tmp_path_factory.mktemp("practised") / "run")


@pytest.mark.slow
@pytest.mark.usefixtures("no_report")
@pytest.mark.parametrize("where", [("train", 62), ("heat", 1)])
def test_an_interrupted_run_by_other_settings_goes_on_to_the_same_result(
    where, practised, tmp_path
):
    def interrupt(progress):
        if (progress.stage, progress.done) == where:
            raise Stop

    with pytest.raises(Stop):
        run(PRACTISED, out=tmp_path / "run", watcher=interrupt)

    result = run(PRACTISED, out=tmp_path / "run")

    assert result.best_epoch == practised.best_epoch
    for name in ("before.safetensors", "after.safetensors"):
        one, other = (
            load_checkpoint(folder / name).model.state_dict()
            for folder in (tmp_path / "run", practised.folder)
        )
        assert all(torch.equal(one[key], other[key]) for key in one)


@pytest.mark.slow
def test_a_run_says_whose_epoch_it_started_from_and_ends_its_training_early(practised, toy):
    lines = (practised.folder / "events.jsonl").read_text().splitlines()
    steps = [event["step"] for event in map(json.loads, lines) if event["stage"] == "train"]
    before = load_checkpoint(practised.folder / "before.safetensors")

    # The best epoch, three more that were no better, and not the eighth; 12 steps each.
    assert (practised.best_epoch, len(steps)) == (4, 7 * 12)
    assert before.epoch == practised.best_epoch
    assert RunResult.read(practised.folder).best_epoch == practised.best_epoch
    assert "best epoch" in (practised.folder / "report.html").read_text()
    # Its best epoch answers every validation picture, so no later one is better.
    assert predict(before.model, toy.validation).correct().all()
    # The finetune takes the rate that the cosine ends with.
    assert practised.masking.rounds[0].lr == 0.002 * 0.01


def test_what_is_frozen_is_as_it_started_before_and_after(practised):
    start = build("small-cnn", 2, seed=0).state_dict()
    before, after = (
        load_checkpoint(practised.folder / f"{name}.safetensors").model.state_dict()
        for name in ("before", "after")
    )
    first = [name for name in start if name.startswith(("features.0", "features.1."))]

    assert all(torch.equal(start[name], before[name]) for name in first)
    assert all(torch.equal(start[name], after[name]) for name in first)
    # Batch norm after it has learnt in the ERM, and stayed in the finetune.
    later = "features.4.running_mean"
    assert not torch.equal(start[later], before[later])
    assert torch.equal(before[later], after[later])


@pytest.mark.slow
@pytest.mark.usefixtures("no_report")
def test_the_best_epoch_by_worst_group_needs_groups_and_says_so_before_it_trains(
    tmp_path, toy, monkeypatch
):
    nobody = torch.full_like(toy.validation.attributes, UNKNOWN)
    without = replace(toy, validation=replace(toy.validation, attributes=nobody))
    monkeypatch.setattr(loading, "load", lambda _, **__: without)
    told = []

    with pytest.raises(ConfigError, match="needs validation groups, and 'toy'") as caught:
        run(PRACTISED, out=tmp_path / "run", watcher=told.append)

    assert "--best average" in caught.value.remedy
    assert "train" not in {progress.stage for progress in told}
    by_average = replace(PRACTISED, training=replace(PRACTISED.training, best="average"))
    assert run(by_average, out=tmp_path / "run").best_epoch


def test_heat_that_an_interrupted_round_left_does_not_count(finished, tmp_path):
    shutil.copytree(finished.folder, tmp_path / "run")
    (heat,) = (store := OpenRun(tmp_path / "run").store).rounds
    (tmp_path / "run" / HEAT).write_bytes(save(*store.adding(heat.clone()).to_tensors()))

    assert len(Saved.read(RunFolder(tmp_path / "run")).tuned.store.rounds) == 1


@pytest.mark.parametrize(
    ("where", "name"),
    [(("train", 9), "training.pt"), (("predict", 100), "heat.safetensors")],
)
def test_a_damaged_file_of_an_interrupted_run_is_named(where, name, tmp_path):
    def interrupt(progress):
        if (progress.stage, progress.done) == where:
            raise Stop

    with pytest.raises(Stop):
        run(CONFIG, out=tmp_path / "run", watcher=interrupt)
    (tmp_path / "run" / name).write_bytes(b"nonsense" * 9)

    with pytest.raises(RunFolderError, match=f"{name} of the unfinished run .* is damaged") as told:
        run(CONFIG, out=tmp_path / "run")

    assert "--out" in told.value.remedy


@pytest.mark.usefixtures("no_report")
@pytest.mark.parametrize("strategy", ["random", "none", "soft", "global", "topk"])
def test_every_strategy_differs_in_nothing_but_what_is_hidden(strategy, finished, tmp_path):
    config = replace(
        CONFIG,
        model=str(finished.folder / "before.safetensors"),
        masking=MaskingConfig(strategy=strategy),
    )

    result = run(config, out=tmp_path / "run")

    before, as_ever = (r.to_json()["test"]["turned"]["before"] for r in (result, finished))
    assert before == as_ever
    hidden = result.to_json()["masking"]["rounds"][0]["hidden_fraction"]
    assert (hidden == 0) == (strategy == "none")
    heated = strategy in ("soft", "global", "topk")
    assert (tmp_path / "run" / "heat.safetensors").exists() == heated


@pytest.mark.usefixtures("no_report")
def test_rounds_add_up_and_say_what_each_achieved(finished, tmp_path):
    config = replace(
        CONFIG,
        model=str(finished.folder / "before.safetensors"),
        masking=MaskingConfig(rounds=2),
    )

    rounds = run(config, out=tmp_path / "run").to_json()["masking"]["rounds"]

    assert len(OpenRun(tmp_path / "run").store.rounds) == 2
    assert rounds[1]["hidden_fraction"] > rounds[0]["hidden_fraction"]
    assert all(0 <= r["test"]["turned"]["average"] <= 1 for r in rounds)


@pytest.mark.usefixtures("no_report")
def test_rounds_end_when_nothing_useful_is_left(finished, tmp_path, toy, monkeypatch):
    from masktune.training import masktune as module

    # From the second round on everything is hidden: no model can fit black pictures.
    honest = module.keeper

    def hide_all_later(now):
        if now.number == 1:
            return honest(now)
        return lambda index: torch.zeros(len(index), 28, 28, dtype=torch.bool)

    monkeypatch.setattr(module, "keeper", hide_all_later)
    config = replace(
        CONFIG,
        model=str(finished.folder / "before.safetensors"),
        masking=MaskingConfig(rounds=5),
    )

    document = run(config, out=tmp_path / "run").to_json()

    assert document["masking"]["stopped_early"]
    assert [r["fitted"] for r in document["masking"]["rounds"]] == [True, False]
    # The model of the round that failed is dropped: the result is that of round 1.
    assert [r["kept"] for r in document["masking"]["rounds"]] == [True, False]
    kept = document["masking"]["rounds"][0]["test"]["turned"]["average"]
    assert document["test"]["turned"]["after"]["average"] == kept
    # What the tuned model saw is what round 1 hid.
    shown = OpenRun(tmp_path / "run")
    index = dict(mask_files(shown, [0, 1]))["index.csv"].decode()
    found = [float(row["hidden"]) for row in csv.DictReader(io.StringIO(index))]
    assert found == (1 - shown.keeper(1)(torch.arange(2)).double().mean(dim=(1, 2))).tolist()


def test_a_first_round_that_does_not_fit_is_still_the_result(finished, tmp_path, monkeypatch):
    from masktune.training import masktune as module

    def everything(*_, **__):
        return lambda index: torch.zeros(len(index), 28, 28, dtype=torch.bool)

    monkeypatch.setattr(module, "keeper", everything)
    config = replace(
        CONFIG,
        model=str(finished.folder / "before.safetensors"),
        masking=MaskingConfig(rounds=5),
    )

    document = run(config, out=tmp_path / "run").to_json()

    (record,) = document["masking"]["rounds"]
    assert (record["fitted"], record["kept"]) == (False, True)
    assert document["test"]["turned"]["after"]["average"] == record["test"]["turned"]["average"]
    report = (tmp_path / "run" / "report.html").read_text()
    assert "Round 1 left too little to learn from" in report
    assert "dropped" not in report


@pytest.fixture
def without_maps(monkeypatch):
    """Give the name of an architecture that has no feature map: one linear layer."""
    module = types.ModuleType("flat_networks")
    module.make = lambda classes: nn.Sequential(nn.Flatten(), nn.Linear(3 * 28 * 28, classes))
    monkeypatch.setitem(sys.modules, "flat_networks", module)
    return "flat_networks:make"


@pytest.mark.parametrize("strategy", ["random", "none"])
def test_a_network_without_maps_runs_where_no_heat_is_needed(strategy, without_maps, tmp_path):
    config = replace(CONFIG, arch=without_maps, masking=MaskingConfig(strategy=strategy))

    document = run(config, out=tmp_path / "run").to_json()

    assert document["masking"]["layer"] is None
    assert 0 <= document["test"]["turned"]["after"]["average"] <= 1
    report = (tmp_path / "run" / "report.html").read_text()
    assert "has no feature map" in report
    assert run(config, out=tmp_path / "run").to_json() == document


def test_a_network_without_maps_is_refused_before_it_is_trained(without_maps, tmp_path):
    told = []

    with pytest.raises(ModelError, match="no spatial feature map") as caught:
        run(replace(CONFIG, arch=without_maps), out=tmp_path / "run", watcher=told.append)

    assert "--strategy random" in caught.value.remedy
    assert "train" not in {progress.stage for progress in told}


@pytest.mark.usefixtures("no_report")
def test_a_rate_given_for_the_finetune_is_used(finished, tmp_path):
    config = replace(CONFIG, model=str(finished.folder / "before.safetensors"), finetune_lr=1e-12)

    document = run(config, out=tmp_path / "run").to_json()

    # So small a rate moves no weight; only batch norm's running statistics do.
    before, after = (
        load_checkpoint(tmp_path / "run" / f"{name}.safetensors").model
        for name in ("before", "after")
    )
    assert torch.allclose(before.head.weight, after.head.weight, atol=1e-9)
    assert document["config"]["finetune_lr"] == 1e-12


def test_weights_that_are_not_numbers_fail_with_a_remedy_and_say_so(finished, tmp_path):
    from masktune.checkpoints.checkpoint import checkpoint_bytes

    broken = load_checkpoint(finished.folder / "before.safetensors")
    broken.model.head.weight.data.fill_(float("nan"))
    (tmp_path / "nan.safetensors").write_bytes(checkpoint_bytes(broken))

    with pytest.raises(MaskTuneError) as caught:
        run(replace(CONFIG, model=str(tmp_path / "nan.safetensors")), out=tmp_path / "run")

    assert caught.value.remedy
    assert RunFolder(tmp_path / "run").status()["state"] == "failed"
    assert not RunFolder(tmp_path / "run").finished()


def test_the_bundled_model_is_not_tested_on_pictures_it_has_seen(tmp_path):
    with pytest.raises(ConfigError, match="split of seed 0"):
        run(replace(CONFIG, model="bundled", seed=3), out=tmp_path / "run")


@pytest.mark.usefixtures("no_report")
def test_a_disk_that_fills_up_ends_the_run_with_a_remedy(tmp_path, full_disk):
    with full_disk(room=100_000), pytest.raises(RunFolderError) as caught:
        run(SHORT, out=tmp_path / "run")

    assert "Free some space" in caught.value.remedy
    assert run(SHORT, out=tmp_path / "run").accuracy("turned") >= 0


def test_a_run_that_is_not_finished_cannot_be_viewed(tmp_path):
    RunFolder.claim(tmp_path / "run", CONFIG)

    with pytest.raises(RunFolderError, match="has no result"):
        assert OpenRun(tmp_path / "run").bundle
    with pytest.raises(RunFolderError, match="not a run folder"):
        assert OpenRun(tmp_path).result


@pytest.fixture
def boxed_pictures(tmp_path):
    """Give the settings of a run on twelve pictures in files, with boxes over some of them."""
    for number in range(12):
        name = ("bright", "dark")[number % 2]
        path = tmp_path / "pictures" / name / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = np.full((28, 28, 3), 200 - 150 * (number % 2), np.uint8)
        Image.fromarray(pixels).save(path)
    bundle = load("folder", root=tmp_path / "pictures", seed=0)
    rows = [f"{path.name},0,0,14,28" for path in bundle.train.images.files[:-1]]
    boxes = tmp_path / "boxes.csv"
    boxes.write_text("file,left,top,right,bottom\n" + "\n".join(rows))
    return replace(
        CONFIG,
        dataset="folder",
        root=str(tmp_path / "pictures"),
        training=replace(CONFIG.training, epochs=1, batch_size=4),
        masking=MaskingConfig(strategy="judged", regions=str(boxes)),
    )


@pytest.mark.usefixtures("no_report")
def test_boxes_of_a_run_stay_with_it(boxed_pictures, tmp_path, monkeypatch):
    monkeypatch.setattr(loading, "load", load)
    boxes = tmp_path / "boxes.csv"

    result = run(boxed_pictures, out=tmp_path / "run")

    count = len(boxes.read_text().splitlines()) - 1
    first = result.masking.rounds[0]
    assert first.hidden_fraction == pytest.approx(0.5 * count / (count + 1))  # halves, but one
    assert first.empty_fraction == pytest.approx(1 / (count + 1))
    assert (tmp_path / "run" / "regions.csv").read_bytes() == boxes.read_bytes()
    boxes.unlink()
    keep = OpenRun(tmp_path / "run").keeper(1)(torch.tensor([0]))
    assert keep[0, :, 14:].all()
    assert not keep[0, :, :14].any()


def test_a_run_does_not_go_on_with_other_boxes(boxed_pictures, tmp_path, monkeypatch):
    monkeypatch.setattr(loading, "load", load)

    def interrupt(progress):
        if progress.stage == "finetune":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(boxed_pictures, out=tmp_path / "run", watcher=interrupt)
    boxes = tmp_path / "boxes.csv"
    boxes.write_text(boxes.read_text().replace(",14,28", ",20,28"))

    with pytest.raises(RunFolderError, match="no longer holds the boxes"):
        run(boxed_pictures, out=tmp_path / "run")


def test_judged_is_refused_before_anything_is_trained_where_nobody_knows_the_clue(tmp_path):
    with pytest.raises(ConfigError, match="Nobody says where the clue is"):
        run(replace(CONFIG, masking=MaskingConfig(strategy="judged")), out=tmp_path / "run")

    assert not (tmp_path / "run" / "before.safetensors").exists()
