"""``python -m masktune advise``: the toy takes the place of every dataset."""

import json
import re
from dataclasses import replace

import pytest

from masktune.checkpoints.checkpoint import Checkpoint, checkpoint_bytes
from masktune.cli import advise as advising
from masktune.cli.advise import advice_document, advice_text, try_thresholds
from masktune.cli.main import main
from masktune.config import MaskingConfig, RunConfig, TrainConfig
from masktune.errors import ConfigError
from masktune.models.build import build
from masktune.progress import Progress
from masktune.runs import load as loading
from masktune.scores.hiding import RULE as HIDING_RULE
from masktune.show.hiding import TITLES
from masktune.studies.advice import RULE, Advice, Trial, TunedScores
from masktune.studies.sweep import KS
from masktune.training import masktune
from masktune.training.fit import train
from masktune.training.rates import RATE_RULE

TRAINING = TrainConfig(epochs=4, batch_size=32, lr=0.03)
LOOKED = Trial(
    k=1.5,
    pictures=1000,
    hidden_fraction=0.125,
    empty_fraction=0.0,
    largest_class=0.5,
    seen=1.0,
    hidden=0.625,
)
TUNED = replace(LOOKED, k=2.0, tuned=TunedScores(train=0.875, validation=0.75, worst_class=0.5))


@pytest.fixture(scope="module")
def model(toy, tmp_path_factory):
    """Give the checkpoint of a model that was trained on the toy."""
    trained = train(build("small-cnn", 2, seed=0), toy.train, config=TRAINING)
    path = tmp_path_factory.mktemp("model") / "model.safetensors"
    checkpoint = Checkpoint(model=trained, arch="small-cnn", classes=2, lr=0.01)
    path.write_bytes(checkpoint_bytes(checkpoint))
    return str(path)


@pytest.fixture(autouse=True)
def toy_in_the_catalogue(toy, monkeypatch):
    monkeypatch.setattr(loading, "load", lambda _, **__: toy)


def config(model, **changes):
    values = {"dataset": "toy", "recipe": "toy", "arch": "small-cnn", "training": TRAINING}
    return RunConfig(**{**values, "model": model, "device": "cpu", **changes})


def advise(model, *more):
    return main(["advise", "--dataset", "biased-mnist-5k", "--model", model, *more])


def test_without_quick_every_k_is_finetuned_and_json_is_one_document(model, capsys):
    assert advise(model, "--ks", "2,0", "--json") == 0

    said = json.loads(capsys.readouterr().out)
    assert list(said) == ["trials", "advice", "hiding_rule"]
    assert [trial["k"] for trial in said["trials"]] == [0.0, 2.0]
    assert all(set(t["tuned"]) == {"train", "validation", "worst_class"} for t in said["trials"])
    assert set(said["advice"]) == {"k", "reason", "lr", "lr_reason", "rule", "rate_rule"}
    for trial in said["trials"]:
        assert trial["hiding"]["whole"]["before"] == trial["seen"]
        assert trial["hiding"]["verdict"] in TITLES
        assert trial["hiding"]["reason"]


def test_quick_looks_at_the_usual_thresholds_and_finetunes_nothing(model, capsys, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("something was finetuned")

    monkeypatch.setattr(advising, "sweep", refuse)

    assert advise(model, "--quick") == 0

    said = capsys.readouterr()
    table = said.out.split("\nOn 96 training pictures")[0].splitlines()
    assert [line.split()[0] for line in table[2:]] == [f"{k:g}" for k in KS]
    assert "after" not in table[0]
    assert RULE in said.out
    assert "sweep" in said.err  # progress, on the other stream


def test_the_pictures_of_the_settings_are_read_with_their_root_seed_frame_and_normalisation(
    model, toy, monkeypatch
):
    asked = {}

    def load(dataset, **options):
        asked.update(options, dataset=dataset)
        return toy

    monkeypatch.setattr(loading, "load", load)
    where = {"root": "here", "seed": 5, "frame": "shorter 32, crop 28", "normalise": "half"}
    where |= {"validation": "test", "exceptions": "authors"}
    where |= {"stamp": "one-sided", "correlation": 0.9}
    where |= {"attributes": "by-hand.csv", "class_names": "cow,camel"}

    try_thresholds(config(model, **where), (1.0,), quick=True)

    del asked["watcher"]
    assert asked == {"dataset": "toy", **where, "class_names": ("cow", "camel")}


def test_the_model_is_shown_its_pictures_as_the_card_normalises_them(model, toy, monkeypatch):
    plain = try_thresholds(config(model), (1.0,), quick=True)
    dark = replace(toy, card=replace(toy.card, mean=(0.9,) * 3, std=(1.0,) * 3))
    monkeypatch.setattr(loading, "load", lambda _, **__: dark)

    assert try_thresholds(config(model), (1.0,), quick=True)[0].seen != plain[0].seen


@pytest.mark.parametrize(
    ("rate", "expected"), [(None, 0.01), (0.5, 0.5)], ids=["of the checkpoint", "given"]
)
def test_the_finetunes_take_the_rate_a_run_would_take(model, monkeypatch, rate, expected):
    asked = []

    def finetune(before, _, **options):
        asked.append(options)
        return before

    monkeypatch.setattr(masktune, "finetune", finetune)

    try_thresholds(config(model, finetune_lr=rate, seed=3), (1.0, 2.0), quick=False)

    assert [(o["lr"], o["config"], o["seed"]) for o in asked] == [(expected, TRAINING, 3)] * 2


def test_settings_of_a_control_are_tried_with_heat(model):
    random = config(model, masking=MaskingConfig(strategy="random", rounds=2))

    assert try_thresholds(random, (1.0,), quick=True) == try_thresholds(
        config(model), (1.0,), quick=True
    )


def test_without_a_model_there_is_nothing_to_look_at_and_no_picture_is_read(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("pictures were read")

    monkeypatch.setattr(loading, "load", refuse)

    with pytest.raises(ConfigError, match=r"no model to look at.*Give its checkpoint by --model"):
        try_thresholds(config(None), (1.0,), quick=True)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "no model to look at"),
        (["--model", "nowhere.pt"], "no checkpoint nowhere.pt"),
        (["--model", "bundled", "--seed", "1"], "trained on the split of seed 0"),
        (["--model", "bundled", "--ks", "1,two"], "'1,two' is not a row of numbers"),
        (["--model", "bundled", "--ks", ""], "'' is not a row of numbers"),
        (["--model", "bundled", "--ks", "1,nan"], "k is nan"),
        (["--model", "bundled", "--k", "2"], "Unrecognized arguments: --k 2"),
        (["--model", "bundled", "--rival", "dfr"], "Unrecognized arguments: --rival dfr"),
        (["--model", "bundled", "--heads", "3"], "Unrecognized arguments: --heads 3"),
        (["--model", "bundled", "--device", "tpu"], "no device 'tpu'"),
    ],
)
def test_a_mistake_is_one_problem_and_one_remedy_and_exit_2(arguments, problem, capsys):
    assert main(["advise", "--dataset", "biased-mnist-5k", *arguments]) == 2

    said = capsys.readouterr()
    said_problem, said_remedy = said.err.strip().splitlines()
    assert said.out == ""
    assert problem in said_problem
    assert said_remedy


def test_other_processes_work_too_but_say_nothing(model, capsys, monkeypatch):
    worked = []

    def work(*_, watcher, **__):
        watcher(Progress(stage="sweep", done=1, total=1))
        worked.append(1)
        return (LOOKED,)

    monkeypatch.setenv("RANK", "1")
    monkeypatch.setattr(advising, "try_thresholds", work)

    assert advise(model) == 0

    assert worked == [1]
    assert capsys.readouterr() == ("", "")


def test_a_k_that_was_not_finetuned_has_a_dash_where_the_others_have_numbers():
    lines = advice_text((LOOKED, TUNED), Advice(k=2.0, reason="It is so.")).splitlines()

    assert lines[2].split() == ["1.5", "12.5%", "0.0%", "62.5%", "–", "–", "–"]
    assert lines[3].split() == ["2", "12.5%", "0.0%", "62.5%", "87.5%", "75.0%", "50.0%"]
    assert len({len(line) for line in lines[:4]}) == 1  # columns end below one another
    assert lines[4].startswith("On 1,000 training pictures; the model before answers 100.0%")
    assert "Suggested: k = 2. It is so." in lines
    assert lines[-1] == RULE


def test_where_no_k_is_suggested_the_text_says_so():
    assert "No k stands out. Why." in advice_text((LOOKED,), Advice(k=None, reason="Why."))


def test_the_document_tells_a_finetuned_k_from_one_that_was_only_looked_at():
    document = advice_document((LOOKED, TUNED), Advice(k=None, reason="Why."))

    assert document["trials"][0]["tuned"] is None
    assert document["trials"][1]["tuned"] == {
        "train": 0.875,
        "validation": 0.75,
        "worst_class": 0.5,
    }
    assert document["advice"] == {
        "k": None,
        "reason": "Why.",
        "lr": None,
        "lr_reason": "",
        "rule": RULE,
        "rate_rule": RATE_RULE,
    }


def test_the_text_gives_the_rate_and_the_verdict_at_each_k_with_their_rules(model, capsys):
    assert advise(model, "--ks", "0,2", "--quick") == 0

    said = capsys.readouterr().out
    assert re.search(r"^k = 0: (Hiding takes away|What hiding takes away)", said, re.MULTILINE)
    assert re.search(r"^k = 2: ", said, re.MULTILINE)
    assert said.rstrip().endswith(HIDING_RULE)
    slow = advice_text((LOOKED,), Advice(k=1.5, reason="So.", lr=0.02, lr_reason="Try 0.02."))
    assert "Try 0.02." in slow
    assert slow.endswith(RATE_RULE)
    harmful = advice_text((LOOKED,), Advice(k=1.5, reason="So.", lr_reason="None."))
    assert harmful.endswith(RATE_RULE)
