"""Tournaments on the toy: what is shared, what decides, and what happens after a kill."""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch

from masktune.checkpoints.checkpoint import Checkpoint, checkpoint_bytes
from masktune.checkpoints.settings import settings
from masktune.data.types import in_memory
from masktune.errors import Cancelled, ConfigError, ModelError, RunFolderError
from masktune.models.build import build
from masktune.pipeline import run
from masktune.runs import load as loading
from masktune.runs.open import OpenRun
from masktune.studies import carry_out
from masktune.studies.tournament.carry_out import tournament
from masktune.studies.tournament.plan import METHODS, Request
from masktune.studies.tournament.table import document
from masktune.training import masktune
from tests.masktune.conftest import split

GIVEN = {"dataset": "biased-mnist-5k", "epochs": 1, "batch_size": 32, "device": "cpu"}


pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_report")]


@pytest.fixture(autouse=True)
def toy_in_the_catalogue(toy, monkeypatch):
    monkeypatch.setattr(loading, "load", lambda _, **__: toy)


@pytest.fixture
def counted(monkeypatch):
    """Count heat and runs that are carried out."""
    found = {"heat": 0, "runs": []}

    def explain(*given, **more):
        found["heat"] += 1
        return was(*given, **more)

    def counting(config, *, out, **more):
        if not (out / "result.json").is_file():
            found["runs"].append(out.name)
        return run(config, out=out, **more)

    was = masktune.explain
    monkeypatch.setattr(masktune, "explain", explain)
    monkeypatch.setattr(carry_out, "run", counting)
    return found


def request(*methods, given=None, **changes):
    return Request(given={**GIVEN, **(given or {})}, methods=methods, **changes)


def study(path):
    return json.loads((path / "study.json").read_text())


def test_a_tournament_is_a_folder_of_runs_with_its_table(tmp_path, counted):
    asked = request("masktune", "random", "none", "sd", ks=(1.0, 2.0), seeds=2)

    outcome = tournament(asked, out=tmp_path)
    told = document(outcome)

    assert {path.name for path in tmp_path.iterdir()} == {
        "seed-0", "seed-1", "study.json", "table.csv", "abstaining.csv", "table.md", "table.tex",
        "report.html",
    }  # fmt: skip
    assert counted["runs"] == [*("none", "masktune-k-1", "masktune-k-2", "random", "sd")] * 2
    assert counted["heat"] == 2  # once a seed
    assert [row["method"] for row in told["rows"]] == [
        "before", "masktune", "random", "none", "sd",
    ]  # fmt: skip
    assert all(row["test"]["turned"]["average"]["n"] == 2 for row in told["rows"])
    assert [[one["score"] for one in row["abstaining"]] for row in told["rows"]] == [
        ["before"], ["joint", "after"], ["after", "joint"], ["after", "joint"], ["after"],
    ]  # fmt: skip
    for row in told["rows"]:  # where everything is answered, softmax response gives the average
        for one in row["abstaining"]:
            if one["score"] != "joint":
                everything = one["test"]["turned"]["error"][0]["mean"]
                assert everything == pytest.approx(1 - row["test"]["turned"]["average"]["mean"])
    assert study(tmp_path)["state"] == "done"
    assert study(tmp_path)["table"] == json.loads(json.dumps(told))
    assert all((tmp_path / one["run"] / "result.json").is_file() for one in study(tmp_path)["plan"])


def test_rates_are_told_before_anything_runs_and_stand_in_the_table(tmp_path, counted):
    told = []
    asked = request("masktune", "sd", rates=(3.0,), given={"lr": 0.02})

    outcome = tournament(
        asked, out=tmp_path, tell=lambda words: told.append((words, [*counted["runs"]]))
    )

    said = "0.06 in the finetune of MaskTune (the last one of the ERM); 0.06 at the start of"
    assert said in told[0][0]
    assert {tuple(before) for _, before in told} == {()}
    document_ = study(tmp_path)["table"]
    assert document_["learning"] == json.loads(json.dumps(outcome.learning))
    assert document_["learning"]["words"] == [words for words, _ in told]
    settings_ = {row["method"]: row["settings"] for row in document_["rows"]}
    assert settings_["masktune"] == "k = 2, rate × 3, finetuned at 0.06"
    assert settings_["sd"] == "rate × 3"
    for name in ("report.html", "table.md"):
        assert said in (tmp_path / name).read_text()


def test_a_setting_that_is_tried_is_chosen_and_named_wherever_the_table_is(tmp_path):
    asked = request("dac", "cvar-dro", tries={"easy_share": (0.5, 1.0)})

    told = document(tournament(asked, out=tmp_path))

    assert study(tmp_path)["table"]["tries"] == {"easy_share": [0.5, 1.0]}
    tried = [one for one in told["runs"] if one["method"] == "dac"]
    assert [(one["settings"], one["run"]) for one in tried] == [
        (f"easy-share = {share}", f"seed-0/dac-easy-share-{share}") for share in ("0.5", "1")
    ]
    # By worst group on validation, of equal ones the first.
    best = max(tried, key=lambda one: one["validation"]["worst_group"])
    assert [one["chosen"] for one in tried] == [one is best for one in tried]
    settings_ = {row["method"]: row["settings"] for row in told["rows"]}
    assert settings_ == {"before": "", "dac": best["settings"], "cvar-dro": ""}
    assert "--try easy-share=0.5,1" in told["command"]
    facts = {
        share: OpenRun(tmp_path / "seed-0" / f"dac-easy-share-{share}").result.rival
        for share in ("0.5", "1")
    }
    assert facts["1"]["easy pictures"] == 2 * facts["0.5"]["easy pictures"] == 96
    for name in ("report.html", "table.csv", "table.md", "table.tex"):
        assert best["settings"] in (tmp_path / name).read_text()


def test_a_layer_to_try_that_is_not_there_is_refused_before_a_folder_is_made(tmp_path):
    with pytest.raises(ModelError, match="nowhere"):
        tournament(request("masktune", tries={"layer": ("nowhere",)}), out=tmp_path / "out")

    assert not (tmp_path / "out").exists()


def test_what_is_shared_changes_no_bit(tmp_path, counted):
    tournament(request("masktune", ks=(1.0, 2.0)), out=tmp_path / "all")
    shared = tmp_path / "all" / "seed-0" / "masktune-k-2"  # the second: it took the first's heat
    config = OpenRun(shared).config

    run(config, out=tmp_path / "alone")

    assert counted["heat"] == 2  # one for both thresholds, one for the run on its own
    ours, theirs = OpenRun(shared), OpenRun(tmp_path / "alone")
    weights, others = ours.after.model.state_dict(), theirs.after.model.state_dict()
    assert all((weights[name] == others[name]).all() for name in weights)
    assert (ours.store.rounds[0] == theirs.store.rounds[0]).all()
    for one, other in (
        (ours.predictions.validation, theirs.predictions.validation),
        (ours.predictions.tests["turned"], theirs.predictions.tests["turned"]),
    ):
        assert np.array_equal(one.before.probabilities, other.before.probabilities)
        assert np.array_equal(one.after.probabilities, other.after.probabilities)


def test_heat_of_another_explainer_is_not_taken(tmp_path, counted):
    tournament(request("masktune"), out=tmp_path)
    first = tmp_path / "seed-0" / "masktune-k-2"
    known = carry_out._known(first)
    config = OpenRun(first).config
    other = replace(config, masking=replace(config.masking, method="gradcam"))

    run(other, out=tmp_path / "other", known=known)

    assert counted["heat"] == 2


@pytest.mark.slow
def test_a_killed_tournament_goes_on_and_does_no_run_again(tmp_path, counted):
    asked = request("masktune", "sd", "random")

    def kill(progress):
        if "Spectral decoupling" in progress.stage and progress.stage.endswith("finetune"):
            raise Cancelled

    with pytest.raises(Cancelled):
        tournament(asked, out=tmp_path, watcher=kill)
    assert study(tmp_path)["state"] == "cancelled"
    assert [row["method"] for row in study(tmp_path)["table"]["rows"]] == ["before", "masktune"]
    # Nobody who is killed by force says so.
    left = study(tmp_path) | {"state": "running", "pid": 2**22, "started": 1.0}
    (tmp_path / "study.json").write_text(json.dumps(left))

    tournament(asked, out=tmp_path)

    assert counted["runs"] == ["none", "masktune-k-2", "sd", "sd", "random"]
    assert counted["heat"] == 1
    assert study(tmp_path)["state"] == "done"


@pytest.mark.slow
def test_more_methods_go_on_in_the_same_folder(tmp_path, counted):
    tournament(request("masktune"), out=tmp_path)

    tournament(request("masktune", "random"), out=tmp_path)

    assert counted["runs"] == ["none", "masktune-k-2", "random"]


def test_a_tournament_goes_on_from_another_folder(tmp_path, counted, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tournament(request("random"), out=Path("runs"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")

    tournament(request("random"), out=Path("../runs").resolve())

    assert counted["runs"] == ["none", "random"]


def test_another_tournament_is_refused(tmp_path):
    tournament(request("none"), out=tmp_path)

    with pytest.raises(RunFolderError, match=r"another tournament \(epochs\)"):
        tournament(request("none", given={"epochs": 2}), out=tmp_path)


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")

    with pytest.raises(RunFolderError, match="not the folder of a tournament"):
        tournament(request("none"), out=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_tournament_that_somebody_else_carries_out_is_refused(tmp_path):
    tournament(request("none"), out=tmp_path)
    parent = psutil.Process(os.getppid())
    left = {"state": "running", "pid": parent.pid, "started": parent.create_time()}
    (tmp_path / "study.json").write_text(json.dumps(study(tmp_path) | left))

    with pytest.raises(RunFolderError, match="running process"):
        tournament(request("none"), out=tmp_path)


@pytest.mark.slow
def test_test_sets_decide_nothing(tmp_path, toy, monkeypatch):
    """The same tournament with every test label turned round chooses the same."""
    asked = request("masktune", rates=(1.0, 10.0))
    right = tournament(asked, out=tmp_path / "right")
    turned = replace(toy.tests["turned"], labels=1 - toy.tests["turned"].labels)
    other = replace(toy, tests={"turned": turned})
    monkeypatch.setattr(loading, "load", lambda _, **__: other)

    wrong = tournament(asked, out=tmp_path / "wrong")

    picked, again = (
        next(iter(one.chosen.values())).path.name for one in (right, wrong)
    )  # by validation
    averages = {
        one.path.name: result.test["turned"].after.average for one, result in right.done.items()
    }
    assert picked == again
    assert len(set(averages.values())) > 1  # a choice by test sets would have turned round
    assert all(
        result.test["turned"].after.average == pytest.approx(1 - averages[one.path.name])
        for one, result in wrong.done.items()
    )


def test_only_what_was_chosen_shows_its_test_sets(tmp_path):
    told = document(tournament(request("masktune", ks=(1.0, 2.0)), out=tmp_path))

    assert [sorted(one) for one in told["runs"]] == [
        sorted(["method", "title", "seed", "settings", "run", "state", "validation", "chosen"])
    ] * 3
    assert sum(one["chosen"] for one in told["runs"]) == 1


def test_needs_are_refused_before_a_folder_is_made(tmp_path, toy, monkeypatch):
    def blind(part):
        return in_memory(part.name, part.images.batch(range(len(part))), part.labels)

    without = replace(
        toy,
        card=replace(toy.card, attributes=()),
        train=blind(toy.train),
        validation=blind(toy.validation),
        tests={"turned": blind(toy.tests["turned"])},
    )
    monkeypatch.setattr(loading, "load", lambda _, **__: without)

    with pytest.raises(ConfigError, match="Group DRO needs training groups"):
        tournament(request("masktune", "groupdro"), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()

    told = document(tournament(request("masktune", ks=(1.0, 2.0)), out=tmp_path / "out"))
    assert told["chosen_by"] == "average"
    assert told["worst_is"] == {"turned": "class"}
    assert told["rows"][1]["supervision"] == []


def test_a_network_that_a_method_cannot_begin_with_is_refused_before_a_folder_is_made(tmp_path):
    ends_in_a_convolution = {"arch": "squeezenet1_1"}
    with pytest.raises(ModelError, match="do not come from a linear last layer"):
        tournament(
            request("masktune", "selectivenet", given=ends_in_a_convolution), out=tmp_path / "out"
        )

    one = Checkpoint(model=build("small-cnn", 1), arch="small-cnn", classes=1, lr=0.01)
    (tmp_path / "one.safetensors").write_bytes(checkpoint_bytes(one))
    one_logit = {"model": str(tmp_path / "one.safetensors"), "start": "erm"}
    with pytest.raises(ModelError, match="the model has one logit for both"):
        tournament(request("osp", given=one_logit), out=tmp_path / "out")

    assert not (tmp_path / "out").exists()


def test_pictures_that_change_between_runs_are_refused(tmp_path, toy, monkeypatch):
    tournament(request("none"), out=tmp_path)
    other = replace(toy, train=replace(toy.train, labels=1 - toy.train.labels))
    monkeypatch.setattr(loading, "load", lambda _, **__: other)

    with pytest.raises(RunFolderError, match="no longer those"):
        tournament(request("none", "random"), out=tmp_path)


@pytest.mark.slow
def test_every_method_can_take_part(tmp_path, toy, monkeypatch):
    both = [split("x", 24, attribute_is_label=known, seed=4 + known) for known in (True, False)]

    def mixed(name):
        images = torch.cat([part.images.batch(range(24)) for part in both])
        labels = torch.cat([part.labels for part in both])
        return in_memory(name, images, labels, torch.cat([part.attributes for part in both]))

    balanced = replace(toy, train=mixed("train"), validation=mixed("validation"))
    monkeypatch.setattr(loading, "load", lambda _, **__: balanced)

    told = document(tournament(request(*METHODS), out=tmp_path))

    assert [row["method"] for row in told["rows"]] == ["before", *METHODS]


def test_only_the_heat_of_the_first_round_is_that_of_the_model_before(tmp_path):
    run(settings({**GIVEN, "rounds": 2}), out=tmp_path / "run")

    known = carry_out._known(tmp_path / "run")

    assert len(OpenRun(tmp_path / "run").store.rounds) == 2
    assert len(known.heat.rounds) == 1
