import json
from dataclasses import replace
from pathlib import Path

import pytest

from masktune.checkpoints.settings import OPTIONS, settings
from masktune.data.types import in_memory
from masktune.errors import ConfigError
from masktune.scores.groups import GroupScore, Summary
from masktune.scores.result import SplitResult
from masktune.studies.carry_out import seconds_left
from masktune.studies.tournament.plan import (
    METHODS,
    Outcome,
    Planned,
    Request,
    caution,
    check_needs,
    choose,
    heeded,
    plan,
    several,
    supervision,
)
from masktune.studies.tournament.tries import TRIABLE, tries_of
from masktune.training.methods import RIVALS
from tests.masktune.conftest import card

DIGITS = {"dataset": "biased-mnist-5k"}


def request(*methods, **changes):
    given = {**DIGITS, **changes.pop("given", {})}
    return Request(given=given, methods=methods, **changes)


def scores(average, worst):
    groups = (GroupScore("0", "a", 10, worst, None), GroupScore("1", "a", 10, 1.0, None))
    summary = Summary(average=average, train_weighted=None, group_mean=average, scores=groups)
    return SplitResult(name="validation", before=summary, after=summary)


def planned(k=None, rate=None, method="masktune"):
    config = request(method).configs[method]
    return Planned(method=method, seed=0, k=k, rate=rate, config=config, path=Path(f"{k} {rate}"))


def test_every_rival_and_both_controls_can_be_set_side_by_side():
    assert set(METHODS) == {*RIVALS, "random", "none"}


def test_the_model_before_is_trained_once_a_seed_by_the_run_without_hiding():
    runs = [*plan(request("masktune", "sd", seeds=2), out=Path("out"))]

    assert [one.path.as_posix() for one in runs] == [
        *("out/seed-0/none", "out/seed-0/masktune-k-2", "out/seed-0/sd"),
        *("out/seed-1/none", "out/seed-1/masktune-k-2", "out/seed-1/sd"),
    ]
    assert [one.config.model for one in runs[:3]] == [
        None, "out/seed-0/none/before.safetensors", "out/seed-0/none/before.safetensors",
    ]  # fmt: skip
    assert [one.config.seed for one in runs] == [0, 0, 0, 1, 1, 1]
    assert runs[0].config.masking.strategy == "none"
    assert runs[2].config.rival == "sd"
    assert runs[2].config.training == runs[0].config.training


def test_a_given_model_starts_every_run_and_nothing_is_added():
    runs = [*plan(request("sd", "masktune", given={"model": "erm.pt"}), out=Path("out"))]

    assert [one.method for one in runs] == ["masktune", "sd"]  # its heat may serve others
    assert {one.config.model for one in runs} == {"erm.pt"}


def test_a_model_in_its_folder_is_set_beside_others_with_its_own_seed(tmp_path):
    trained = replace(settings({**DIGITS, "seed": 3}), only_before=True)
    (tmp_path / "config.json").write_text(json.dumps(trained.to_json()))
    (tmp_path / "before.safetensors").write_bytes(b"")

    runs = list(plan(request("masktune", given={"model": str(tmp_path)}), out=Path("out")))

    assert [run.config.seed for run in runs] == [3]
    assert runs[0].config.model == str(tmp_path / "before.safetensors")


def test_ks_are_masktunes_and_rates_are_of_all_that_have_one():
    tried = request("masktune", "random", "sd", "dfr", ks=(1.0, 2.0), rates=(1.0, 3.0))
    runs = [*plan(tried, out=Path("out"), usual=0.01)]
    erm, *others = runs

    assert erm.path.name == "none"  # for its model only
    assert [one.path.name for one in others] == [
        *("masktune-k-1", "masktune-k-1-rate-3", "masktune-k-2", "masktune-k-2-rate-3"),
        *("random", "random-rate-3", "sd", "sd-rate-3", "dfr"),
    ]
    usual = erm.config.training.lr
    assert [one.config.training.lr for one in others[6:8]] == [usual, 3 * usual]
    assert [one.config.finetune_lr for one in others[:2]] == [None, pytest.approx(0.03)]


def test_a_threshold_beyond_3_is_refused():
    with pytest.raises(ConfigError, match=r"k is 9\. Give 0 \(hides most\) to 3"):
        request("masktune", ks=(2.0, 9.0))


def test_a_factor_is_on_the_rate_that_the_recipe_ends_with():
    given = {"epochs": 4, "lr": 0.08, "decay_at": "2", "decay_factor": 0.5}
    runs = [*plan(request("masktune", rates=(3.0,), given=given), out=Path("out"))]

    assert [one.config.finetune_lr for one in runs] == [None, pytest.approx(0.12)]


def test_the_run_that_is_there_for_its_model_does_not_compete():
    tried = request("none", rates=(3.0,))
    runs = [*plan(tried, out=Path("out"))]

    assert [one.path.name for one in runs] == ["none", "none-rate-3"]
    assert not several(tried, "none")


def test_what_is_chosen_has_the_best_worst_group_on_validation():
    tried = [
        (planned(k=1.0, rate=1.0), scores(0.9, 0.2)),
        (planned(k=2.0, rate=1.0), scores(0.7, 0.5)),
    ]

    assert choose(tried, by_groups=True).k == 2.0
    assert choose(tried, by_groups=False).k == 1.0


def test_of_equal_settings_the_smaller_rate_wins_then_the_larger_k():
    tried = [(planned(k=k, rate=rate), scores(0.9, 0.5)) for k in (1.0, 2.0) for rate in (3.0, 1.0)]

    found = choose(tried, by_groups=True)

    assert (found.k, found.rate) == (2.0, 1.0)


def test_settings_are_tried_by_the_methods_that_look_at_them_and_by_no_others():
    tries = {"penalty": (0.5, 1.0), "start": ("scratch", "erm"), "worst_share": (0.2,)}
    tried = request("masktune", "sd", "cvar-dro", "afr", tries=tries)
    erm, *others = plan(tried, out=Path("out"))

    assert erm.path.name == "none"
    assert [one.path.name for one in others] == [
        "masktune-k-2",
        *(f"sd-penalty-{p}-start-{s}" for p in ("0.5", "1") for s in ("scratch", "erm")),
        *(f"cvar-dro-start-{s}-worst-share-0.2" for s in ("scratch", "erm")),
        *("afr-penalty-0.5", "afr-penalty-1"),
    ]
    assert [one.config.rival_settings.penalty for one in others] == [
        *(None, 0.5, 0.5, 1.0, 1.0, None, None, 0.5, 1.0)
    ]
    assert [one.config.start for one in others[1:3]] == ["scratch", "erm"]
    assert others[2].words == "penalty = 0.5, start = erm"
    assert [several(tried, name) for name in tried.methods] == [False, True, True, True]


def test_a_combination_in_which_a_setting_does_nothing_is_run_once():
    tries = {"rounds": (1, 2), "accumulate": (True, False)}
    tried = request("masktune", ks=(1.0, 2.0), rates=(1.0, 3.0), tries=tries)
    _, *others = plan(tried, out=Path("out"))

    assert [one.words for one in others if one.k == 1 and one.rate == 1] == [
        "k = 1, rounds = 1",  # one round accumulates nothing
        "k = 1, rounds = 2, accumulate = True",
        "k = 1, rounds = 2, accumulate = False",
    ]
    assert len({one.path for one in others}) == len(others) == 3 * 2 * 2


def test_the_run_that_is_there_for_its_model_tries_nothing():
    beside = request("masktune", tries={"batch_norm": ("learnt", "frozen")})
    first, *others = plan(beside, out=Path("out"))

    assert first.path.name == "none"
    assert [one.path.name for one in others] == [
        *("masktune-k-2-batch-norm-learnt", "masktune-k-2-batch-norm-frozen")
    ]
    assert {one.config.model for one in others} == {"out/seed-0/none/before.safetensors"}

    first, second, *others = plan(request("masktune", "none", tries=beside.tries), out=Path("out"))
    assert (first.path.name, first.config.model) == ("none-batch-norm-learnt", None)
    assert second.path.name == "none-batch-norm-frozen"
    assert second.config.model == "out/seed-0/none-batch-norm-learnt/before.safetensors"


def test_thresholds_and_rates_that_differ_little_have_folders_of_their_own_and_are_said_in_full():
    tried = request("masktune", ks=(0.12345678, 0.12345679), rates=(1.0, 1.23456789))
    _, *others = plan(tried, out=Path("out"))

    assert len({one.path for one in others}) == 4
    assert "--ks 0.12345678,0.12345679 --rates 1,1.23456789 " in tried.command("out")


def test_layers_whose_names_differ_little_have_folders_of_their_own():
    tried = request("masktune", tries={"layer": ("layer_1", "layer.1", "Layer_1")})
    _, *others = plan(tried, out=Path("out"))

    assert len({one.path for one in others}) == 3


@pytest.mark.parametrize("name", [name for name in TRIABLE if OPTIONS[name].choices])
def test_every_choice_of_a_setting_has_a_folder_of_its_own(name):
    choices = OPTIONS[name].choices
    tried = request(*METHODS, tries={name: choices})
    runs = [*plan(tried, out=Path("out"))]

    assert len({one.path for one in runs}) == len(runs)
    assert {value for one in runs for _, value in one.tried} == {*choices}


def test_what_is_tried_is_chosen_on_validation_seed_by_seed():
    tried = request("cvar-dro", tries={"worst_share": (0.1, 0.5, 1.0)}, seeds=2)
    runs = [*plan(tried, out=Path("out"))]
    # By worst group the second of seed 0; of seed 1 the first of two that are alike.
    validation = {
        (0, 0.1): scores(0.9, 0.2), (0, 0.5): scores(0.7, 0.6), (0, 1.0): scores(0.8, 0.5),
        (1, 0.1): scores(0.6, 0.3), (1, 0.5): scores(0.9, 0.4), (1, 1.0): scores(0.9, 0.4),
    }  # fmt: skip

    class Result:
        def __init__(self, one):
            share = one.config.rival_settings.worst_share
            self.validation = validation[one.seed, share]

    outcome = Outcome(
        request=tried,
        out=Path("out"),
        runs=runs,
        done={one: Result(one) for one in runs},
        by_groups=True,
        learning={},
    )

    assert {seed: one.words for (_, seed), one in outcome.chosen.items()} == {
        0: "worst-share = 0.5", 1: "worst-share = 0.5",
    }  # fmt: skip
    by_average = replace(outcome, by_groups=False)
    assert [one.words for one in by_average.chosen.values()] == [
        *("worst-share = 0.1", "worst-share = 0.5")
    ]
    assert supervision(tried, "cvar-dro", by_groups=True) == ["validation groups"]


def chosen(tried, runs, validation):
    """Return what is chosen of the runs that have scores on validation, by method and seed."""

    class Result:
        def __init__(self, one):
            self.validation = validation[one.path.name]

    done = {one: Result(one) for one in runs if one.path.name in validation}
    known = {"request": tried, "out": Path("out"), "runs": runs, "done": done}
    found = Outcome(**known, by_groups=True, learning={}).chosen
    return {which: one.path.name for which, one in found.items()}


def test_nothing_is_chosen_of_a_method_before_all_of_its_settings_are_finished():
    tried = request("masktune", "none", ks=(1.0, 2.0))
    runs = [*plan(tried, out=Path("out"))]
    validation = {"none": scores(0.9, 0.5), "masktune-k-1": scores(0.9, 0.6)}

    assert chosen(tried, runs, validation) == {("none", 0): "none"}
    validation["masktune-k-2"] = scores(0.9, 0.4)
    assert chosen(tried, runs, validation)["masktune", 0] == "masktune-k-1"


def test_a_run_that_is_there_for_its_model_is_not_chosen():
    tried = request("none", rates=(3.0,))
    runs = [*plan(tried, out=Path("out"))]
    validation = {"none": scores(0.9, 0.9), "none-rate-3": scores(0.5, 0.1)}

    assert chosen(tried, runs, validation) == {("none", 0): "none-rate-3"}


def test_pretrained_weights_are_for_those_that_train_from_them():
    given = {"weights": "net.pth", "arch": "resnet20"}

    runs = [*plan(request("masktune", "sd", given=given), out=Path("out"))]
    begun = [*plan(request("sd", given={**given, "start": "erm"}), out=Path("out"))]

    assert [(one.method, one.config.weights) for one in runs] == [
        *(("none", "net.pth"), ("masktune", None), ("sd", "net.pth"))
    ]
    assert [one.config.weights for one in begun] == ["net.pth", None]


def test_needs_of_what_is_tried_are_checked_too(toy):
    with pytest.raises(ConfigError, match="payoff is 3, and there are 2 classes"):
        check_needs(request("deep-gamblers", tries={"payoff": (1.5, 3.0)}), toy)


def test_divdis_says_whose_pictures_it_may_have_looked_at():
    tried = request("divdis", tries={"unlabelled": ("test", "validation")})

    assert supervision(tried, "divdis", by_groups=False) == [
        *("unlabelled pictures", "unlabelled test pictures")
    ]


def test_a_given_option_counts_where_only_something_tried_looks_at_it():
    tried = request("masktune", tries={"rounds": (1, 2)}, given={"accumulate": False})

    assert [config.masking.accumulate for _, config in tried.variants["masktune"]] == [True, False]


def test_supervision_says_what_was_used_also_for_choosing():
    tried = request("masktune", "groupdro", "divdis", "dfr", ks=(1.0, 2.0))

    def told(method, *, by_groups=True):
        return supervision(tried, method, by_groups=by_groups)

    assert told("masktune") == ["validation groups"]
    assert told("masktune", by_groups=False) == []
    assert told("groupdro") == ["training groups"]
    assert told("divdis") == ["unlabelled pictures", "validation groups"]  # for its head
    assert told("divdis", by_groups=False) == ["unlabelled pictures"]
    assert told("dfr") == ["validation groups"]
    assert told("before") == []


def test_an_epoch_chosen_by_worst_group_is_supervision_of_all_that_start_from_it():
    trained = request("masktune", "sd", given={"best": "worst-group"})
    given = request("masktune", "sd", given={"best": "worst-group", "model": "erm.pt"})

    assert supervision(trained, "before", by_groups=True) == ["validation groups"]
    assert supervision(trained, "masktune", by_groups=True) == ["validation groups"]
    assert supervision(given, "masktune", by_groups=True) == []
    assert supervision(given, "sd", by_groups=True) == ["validation groups"]


def test_divdis_says_that_it_looked_at_the_test_set_and_that_it_used_no_groups():
    looked = request("divdis", given={"unlabelled": "test", "best": "average"})

    assert supervision(looked, "divdis", by_groups=True) == ["unlabelled test pictures"]


@pytest.mark.parametrize(
    ("methods", "changes", "problem", "remedy"),
    [
        (("masktune", "nosuch", "other"), {}, "'nosuch' or 'other'", "deep-gamblers"),
        ((), {}, "No method", "masktune"),
        (("sd", "sd"), {}, "sd is named twice", "once"),
        (("masktune",), {"ks": (1.0, 1.0)}, "k 1.0 is named twice", "once"),
        (("random", "sd"), {"ks": (1.0,)}, "no method among these has one", "add masktune"),
        (("dfr", "afr"), {"rates": (1.0, 3.0)}, "last layer", "--rates"),
        (("sd",), {"rates": (0.0,)}, "rates are 0.0", "above 0"),
        (("sd",), {"seeds": 0}, "0 seeds", "from 1 up"),
        (("sd",), {"seeds": 2, "given": {"model": "bundled"}}, "split of seed 0", "--seeds 1"),
        (("sd",), {"given": {"model": "bundled", "seed": 3}}, "split of seed 0", "--seeds 1"),
        (("masktune",), {"given": {"error_weight": 9}}, "--error-weight 9 would do", "add a"),
        (("masktune",), {"given": {"model": "bundled", "epochs": 3}}, "--epochs 3", "Leave it"),
        (("sd",), {"tries": {"lr": (0.1,)}}, "'lr' is no setting of a method", "worst-share"),
        (("sd",), {"tries": {"k": (0.1,)}}, "'k' is no setting of a method", "Thresholds k"),
        (("sd",), {"tries": {"penalty": ()}}, "penalty has no value", "Give some"),
        (("sd",), {"tries": {"penalty": (1.0, 1.0)}}, "penalty 1.0 is named twice", "once"),
        (("sd",), {"tries": {"penalty": (-1.0,)}}, "--penalty is -1.0", "from 0 up"),
        (("sd",), {"tries": {"heads": (3,)}}, "no method among these looks at it", "divdis"),
        (
            ("random",),
            {"tries": {"statistics": ("all",)}},
            "statistics is to be tried, and no method among these looks at it",
            "masktune",
        ),
        (
            ("sd",),
            {"tries": {"penalty": (1.0,)}, "given": {"penalty": 2.0}},
            "penalty is given, and values of it are to be tried",
            "one of both",
        ),
    ],
)
def test_what_makes_no_tournament_is_refused_in_words(methods, changes, problem, remedy):
    with pytest.raises(ConfigError) as refused:
        request(*methods, **changes)

    assert problem in refused.value.problem
    assert remedy in refused.value.remedy


def test_an_option_that_one_method_looks_at_is_taken():
    tried = request("masktune", "jtt", given={"error_weight": 9, "model": "bundled", "epochs": 3})

    assert tried.configs["jtt"].rival_settings.error_weight == 9
    assert tried.configs["jtt"].training.epochs == 3


def test_needs_are_checked_before_anything_is_trained(toy):
    blind = in_memory("train", toy.train.images.batch(range(8)), toy.train.labels[:8])
    without = replace(toy, card=card(attributes=()), train=blind)

    with pytest.raises(ConfigError, match="Group DRO needs training groups"):
        check_needs(request("masktune", "groupdro"), without)
    check_needs(request("masktune", "groupdro"), toy)


def test_the_time_that_is_left_is_that_of_runs_of_the_same_method():
    class Took:
        def __init__(self, took):
            self.took = took

    one, two, three, other = (
        planned(k=1.0), planned(k=2.0), planned(k=3.0), planned(method="sd"),
    )  # fmt: skip

    assert seconds_left([one, two], {}) is None
    assert seconds_left([one, two, three, other], {one: Took(10.0), two: Took(20.0)}) == 30.0


def test_the_command_repeats_the_tournament():
    tries = {"penalty": (0.1, 2.0), "start": ("scratch", "erm")}
    tried = request(
        *("masktune", "sd"),
        ks=(1.0, 2.5),
        rates=(1.0, 3.0),
        tries=tries,
        given={"epochs": 2},
        seeds=3,
    )

    assert tried.command("my runs") == (
        "python -m masktune tournament --dataset biased-mnist-5k --epochs 2 --methods masktune,sd "
        "--ks 1,2.5 --rates 1,3 --try penalty=0.1,2 --try start=scratch,erm --seeds 3 "
        "--out 'my runs'"
    )
    assert tries_of("penalty=0.1,2 start=scratch,erm") == tries


def test_a_model_made_here_is_tested_on_the_split_of_its_own_seed_or_that_is_said(tmp_path):
    folder = tmp_path / "trained"
    folder.mkdir()
    (folder / "before.safetensors").touch()
    trained = settings({**DIGITS, "seed": 3})
    (folder / "config.json").write_text(json.dumps(trained.to_json()))
    file = str(folder / "before.safetensors")

    assert caution({"model": file}, [3]) == caution({"model": str(folder)}, [3]) == []
    assert len(caution({"model": file}, [0])) == len(caution({"model": str(folder)}, [0, 3])) == 1


def test_which_settings_change_something_is_found_without_reading_weights(monkeypatch):
    def read(weights, *, likely):
        raise AssertionError(f"{weights} is read")

    monkeypatch.setattr("masktune.checkpoints.start.arch_of_weights", read)
    given = {**DIGITS, "weights": "net.pth", "arch": "resnet20", "epochs": 2, "lr": None}

    assert heeded(given, ["none"]) == {n: v for n, v in given.items() if v is not None}
