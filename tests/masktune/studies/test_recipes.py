"""Every recipe runs on data in its dataset's real layout, and says what the paper says."""

import hashlib
import json
from dataclasses import replace

import pytest

from masktune.cli.main import main
from masktune.config import MaskingConfig
from masktune.datasets.catalogue import CATALOGUE
from masktune.recipes import RECIPES, TABLES, recipe
from masktune.studies.experiments import (
    EXPERIMENTS,
    ONE_MORE,
    experiment,
)
from masktune.studies.paper import Number, printed
from masktune.studies.reproduce import Request, plan
from masktune.studies.tables import command
from masktune.training import masktune
from tests import layouts

NUMBER = ("arm", "test", "moment", "measure", "target", "rounds")
BUNDLED = ("biased-mnist-5k", "two-squares-mnist-5k", "cows-and-camels", "cows-and-camels-stamp")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("MASKTUNE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_the_papers_experiments_are_all_there():
    assert set(EXPERIMENTS) >= {
        "mnist-square", "mnist-two-squares", "mnist-randmask", "celeba", "waterbirds", "imagenet9",
        *TABLES, "cifar10-selective", "svhn-selective", "cats-vs-dogs-selective", *BUNDLED,
    }  # fmt: skip


@pytest.mark.parametrize("name", [n for n, e in EXPERIMENTS.items() if e.printed])
def test_a_recipe_of_the_paper_hides_at_two_sigma_and_repeats_three_times(name):
    found = experiment(name)

    assert found.seeds == (0, 1, 2)
    assert all(arm.masking.k == 2.0 for arm in found.arms)
    printed_only = {"SIN, released weights", "IN+SIN, released weights", "CGN, printed only"}
    assert {number.arm for number in found.printed} - printed_only <= {a.name for a in found.arms}
    assert all(0 < number.value <= 1 for number in found.printed.values())


def test_the_papers_numbers_are_those_that_were_typed_in_from_it():
    """The digest is of the 73 that earlier versions made in code, to the last bit."""
    fields = [
        "arm",
        "test",
        "moment",
        "measure",
        "target",
        "rounds",
        "value",
        "std",
        "tolerance",
        "source",
    ]
    numbers = [
        (name, *(getattr(number, field) for field in fields))
        for name in EXPERIMENTS
        if name not in TABLES
        for number in printed(name).values()
    ]

    assert len(numbers) == 73
    digest = hashlib.sha256(repr(numbers).encode()).hexdigest()
    assert digest == "b844c4de977a88d441e79d60e00bbec66d05a243da035e71f958c4ae1f7d90cc"
    worst = Number(arm="MaskTune", test="test", moment="after", measure="worst_group")
    assert printed("celeba")[worst].value == 0.78
    assert printed("biased-mnist-5k") == {}


@pytest.mark.parametrize(
    ("name", "epochs", "batch", "lr", "last"),
    [
        ("mnist-square", 100, 128, 0.01, 0.00125),  # halved every 25 epochs
        ("mnist-two-squares", 100, 128, 0.01, 0.00125),
        ("mnist-two-squares-random", 100, 128, 0.01, 0.00125),
        ("celeba", 20, 512, 1e-4, 1e-4),
        ("imagenet9", 100, 1024, 0.1, 1e-4),  # a tenth every 30 epochs
        ("cifar10-selective", 300, 128, 0.1, 0.1 / 2**11),  # halved every 25 epochs
        ("svhn-selective", 300, 1024, 0.1, 0.1 / 2**11),
        ("cats-vs-dogs-selective", 200, 128, 0.001, 1e-4),  # a tenth once, at epoch 50
    ],
)
def test_schedules_are_those_of_the_implementation_details(name, epochs, batch, lr, last):
    training = recipe(name).training

    assert (training.epochs, training.batch_size, training.lr) == (epochs, batch, lr)
    assert training.last_lr == pytest.approx(last)


def test_optimisers_are_those_of_the_implementation_details():
    assert recipe("svhn-selective").training.weight_decay == 5e-4
    assert recipe("cats-vs-dogs-selective").training.optimizer == "adam"
    others = [r for r in RECIPES.values() if r.dataset not in ("svhn", "cats-vs-dogs")]
    assert {(r.training.optimizer, r.training.weight_decay) for r in others} == {("sgd", 1e-4)}


def test_the_two_squares_are_masked_up_to_three_times_both_ways():
    arms = {arm.name: arm.masking for arm in experiment("mnist-two-squares").at("short").arms}

    assert arms == {
        "accumulative": MaskingConfig(rounds=3),
        "non-accumulative": MaskingConfig(rounds=3, accumulate=False),
    }


def test_the_papers_schedule_is_finetuned_at_its_last_rate_and_at_its_first():
    first = "MaskTune at the first rate"  # as the authors' code, which never decays it
    rates = {arm.name: arm.finetune_lr for arm in experiment("mnist-square").arms}

    assert rates == {"MaskTune": None, first: 0.01}
    # The short schedule does not decay, so both would be the same run.
    assert [arm.name for arm in experiment("mnist-square").at("short").arms] == ["MaskTune"]


@pytest.mark.parametrize("name", ["mnist-square", "mnist-two-squares", "mnist-randmask"])
def test_the_digits_are_as_the_authors_code_has_them_and_as_the_papers_text(name):
    authors, text = recipe(name).at("short"), recipe(f"{name}-random").at("short")

    assert (authors.arch, authors.exceptions) == ("small-cnn-bn", "authors")
    training = authors.training
    assert (training.epochs, training.batch_size, training.last_lr) == (3, 128, 0.01)
    assert (text.arch, text.exceptions) == ("small-cnn", "random")
    assert (text.training.epochs, text.training.batch_size) == (4, 32)
    assert (authors.dataset, authors.masking) == (text.dataset, text.masking)
    assert experiment(f"{name}-random").printed == experiment(name).printed != {}


def test_a_run_of_a_dataset_takes_exceptions_by_chance_unless_told():
    assert {RECIPES[card.recipe].exceptions for card in CATALOGUE.values()} == {"random"}


@pytest.mark.parametrize(
    ("names", "augment"),
    [
        (
            ("cifar10-selective", "cifar10-augment", "cats-vs-dogs-selective"),
            "flip,rotate15,shift10",
        ),
        (("svhn-selective",), "crop4"),
        (("waterbirds", "celeba"), "resized-crop,flip"),
        (("imagenet9",), "resized-crop,flip,jitter,lighting"),
        ((*BUNDLED, "mnist", "mnist-square", "mnist-two-squares", "own"), "none"),
    ],
)
def test_augmentation_is_the_authors_at_every_scale(names, augment):
    scales = ("tiny", "short", "paper")

    found = {recipe(name).at(scale).training.augment for name in names for scale in scales}

    assert found == {augment}


def test_what_is_changed_in_an_experiment_makes_other_runs_and_another_table(tmp_path):
    usual = Request(recipe="mnist-two-squares", scale="short", seeds=1)
    changed = replace(usual, exceptions="random", augment="crop4")

    before, after = (list(plan(request, out=tmp_path)) for request in (usual, changed))

    assert {planned.config.exceptions for planned in before} == {"authors"}
    assert {planned.config.exceptions for planned in after} == {"random"}
    assert {planned.config.training.augment for planned in after} == {"crop4"}
    assert {p.path for p in before}.isdisjoint({p.path for p in after})
    assert after[1].path.is_relative_to(
        tmp_path / "mnist-two-squares-short-exceptions-random-augment-crop4"
    )
    assert command(changed).endswith("--seeds 1 --exceptions random --augment crop4")
    assert command(replace(usual, augment="recipe")) == command(usual)


def test_cifar10_is_learnt_with_and_without_augmentation_for_the_same_thirty_epochs(tmp_path):
    request = Request(recipe="cifar10-augment", scale="short", seeds=1)

    runs = {planned.method: planned.config.training for planned in plan(request, out=tmp_path)}

    without = f"{ONE_MORE}: MaskTune, no augmentation"
    assert {*runs} == {ONE_MORE, "MaskTune", without, "MaskTune, no augmentation"}
    assert runs[ONE_MORE].epochs == 30
    assert runs[without] == replace(runs[ONE_MORE], augment="none")
    # Another one may be asked for; what it is compared with stays.
    asked = list(plan(replace(request, augment="crop4"), out=tmp_path))
    assert [planned.config.training.augment for planned in asked] == [
        "crop4", "crop4", "none", "none",
    ]  # fmt: skip


def test_models_trained_before_there_were_exceptions_and_augmentation_are_found(tmp_path):
    first = next(plan(Request(recipe="mnist-square-random", scale="short"), out=tmp_path))

    assert first.path == tmp_path / "erm" / "biased-mnist-9fa1d9f2" / "seed-0"


def test_the_papers_two_squares_need_the_second_round():
    by_round = {
        number.rounds: number.value
        for number in printed("mnist-two-squares").values()
        if number.arm == "accumulative" and number.test == "biased"
    }

    assert by_round == pytest.approx({None: 0.1859, 1: 0.2468, 2: 0.9701, 3: 0.9888})


def test_the_study_changes_one_thing_at_a_time():
    study, short = recipe("mnist-two-squares-study"), recipe("mnist-two-squares-random").at("short")
    first, *others = experiment("mnist-two-squares-study").arms

    assert (study.dataset, study.training) == (short.dataset, short.training)
    assert (first.masking, first.training, first.finetune_lr) == (study.masking, None, None)
    for arm in others:
        changes = (arm.masking != study.masking, arm.training is not None, arm.finetune_lr)
        assert sum(map(bool, changes)) == 1


def test_an_arm_that_trains_otherwise_has_an_erm_model_of_its_own(tmp_path):
    request = Request(recipe="mnist-two-squares-study", scale="short", seeds=1)

    runs = {planned.method: planned for planned in plan(request, out=tmp_path)}

    longer, same = runs["ERM of 12 epochs"], runs["finetune at rate 0.005"]
    own = runs[f"{ONE_MORE}: ERM of 12 epochs"]
    assert own.config.training.epochs == longer.config.training.epochs == 12
    assert longer.config.model == str(own.path / "before.safetensors")
    assert same.config.model == str(runs[ONE_MORE].path / "before.safetensors")
    assert (same.config.finetune_lr, longer.config.finetune_lr) == (0.005, None)
    assert own.path != runs[ONE_MORE].path


def test_a_backbone_is_finetuned_at_its_last_rate_and_at_five_times_that_with_its_controls():
    found = experiment("stamped-pets").at("short")
    arms = {arm.name: (arm.masking.strategy, arm.masking.k, arm.finetune_lr) for arm in found.arms}

    assert (found.recipe.training.lr, found.recipe.training.last_lr) == (0.01, 0.002)
    assert arms == {
        **{f"k = {k}": ("heat", k, None) for k in (0.5, 1, 2)},
        **{f"k = {k}, rate x 5": ("heat", k, 0.01) for k in (0.5, 1, 2)},
        "RandMask, rate x 5": ("random", 2.0, 0.01),
        "one more epoch, rate x 5": ("none", 2.0, 0.01),
        "without stamps": ("heat", 1, 0.01),
    }


def test_on_waterbirds_what_else_may_be_hidden_is_asked_of_the_backbone_at_a_rate_that_moves_it():
    found = experiment("other-way-waterbirds").at("short")
    arms = {arm.name.removesuffix(", rate x 5"): arm for arm in found.arms}

    assert (found.recipe.arch, found.recipe.training.last_lr) == (
        "timm/tf_efficientnet_lite0",
        0.002,
    )
    assert {arm.finetune_lr for arm in found.arms} == {0.01}
    shown = {name: (arm.masking.strategy, arm.masking.k) for name, arm in arms.items()}
    assert shown == {
        "RandMask": ("random", 2.0),
        ONE_MORE: ("none", 2.0),
        **{f"{way}, k = {k}": (way, k) for way in ("cold", "paste") for k in (0, 1)},
        **{f"MaskTune{fill}": ("heat", 1) for fill in ("", ", mean colour", ", blur", ", noise")},
        "MaskTune, another picture": ("heat", 1),
    }


def test_an_arm_at_a_faster_rate_is_left_out_where_another_does_the_same():
    rates = {name: [arm.name for arm in experiment(name).at("tiny").arms] for name in EXPERIMENTS}

    assert rates["waterbirds-pretrained"] == ["k = 0", "k = 1", "k = 2", "RandMask, rate x 5"]
    assert "MaskTune, rate x 5" in rates["other-way-waterbirds"]
    assert rates["mnist-square"] == ["MaskTune"]


def test_the_ceiling_has_an_erm_model_of_its_own_that_never_saw_a_stamp(tmp_path):
    both, one = (
        {p.method: p for p in plan(Request(recipe=name, seeds=1, weights="w.pth"), out=tmp_path)}
        for name in ("stamped-pets", "stamped-pets-one-sided")
    )

    ceiling, own = both["without stamps"], both[f"{ONE_MORE}: without stamps"]
    assert (ceiling.config.stamp, own.config.stamp) == ("none", "none")
    assert ceiling.config.model == str(own.path / "before.safetensors")
    assert both["k = 1"].config.stamp == "two-sided"
    assert one["k = 1"].config.stamp == "one-sided"
    assert own.path == one[f"{ONE_MORE}: without stamps"].path  # the same cats, so one model
    assert both[ONE_MORE].path != one[ONE_MORE].path
    assert {p.config.normalise for p in both.values()} == {"0.498 / 0.502"}
    assert {p.config.batch_norm for p in both.values()} == {"frozen"}


def test_another_network_takes_neither_the_recipes_weights_nor_its_layers(tmp_path):
    usual = Request(recipe="stamped-pets", scale="short", seeds=1, weights="w.pth")
    other = replace(usual, arch="resnet18", stamp="one-sided", correlation=0.9)

    first = next(plan(other, out=tmp_path)).config
    lower = next(plan(replace(other, freeze="layer2", weights=None), out=tmp_path)).config

    assert next(plan(usual, out=tmp_path)).config.training.freeze == "blocks.4"
    assert (first.arch, first.weights, first.normalise) == ("resnet18", "w.pth", None)
    assert first.batch_norm == "learnt"
    assert RECIPES["stamped-pets"].at("tiny").batch_norm == "learnt"
    assert (first.training.freeze, first.stamp, first.correlation) == ("none", "one-sided", 0.9)
    assert (lower.training.freeze, lower.weights) == ("layer2", None)
    assert command(other).endswith("--stamp one-sided --correlation 0.9 --arch resnet18")


def test_a_model_that_saw_all_training_pictures_is_validated_on_test_pictures(tmp_path):
    request = Request(recipe="cifar10-selective", model="m.th", validation="test", seeds=1)

    runs = list(plan(request, out=tmp_path))

    assert {planned.config.validation for planned in runs} == {"test"}
    assert command(request).endswith("--seeds 1 --model m.th --validation test")
    own = list(plan(replace(request, validation="own"), out=tmp_path))
    assert own[0].path != runs[0].path  # another split, so other runs
    assert "--validation" not in command(replace(request, validation="own"))


def repeat(capsys, *words):
    assert main(["reproduce", *words, "--device", "cpu", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [n for n in EXPERIMENTS if RECIPES[n].dataset in layouts.LAYOUTS and "mnist-randmask" not in n],
)
def test_a_recipe_runs_at_scale_tiny_on_data_in_the_real_layout(name, tmp_path, capsys, home):
    root = layouts.LAYOUTS[RECIPES[name].dataset](tmp_path / "root")

    table = repeat(capsys, name, "--scale", "tiny", "--seeds", "1", "--root", str(root))

    assert (table["recipe"], table["scale"], table["seeds"]) == (name, "tiny", [0])
    arms = {row["arm"] for row in table["rows"] if row["values"]}
    assert arms == {ONE_MORE, *(arm.name for arm in experiment(name).at("tiny").arms)}
    assert all(0 <= value <= 1 for row in table["rows"] for value in row["values"])
    # Every number of the paper has ours beside it, unless the tiny dataset has no such test set.
    tests = {row["test"] for row in table["rows"]}
    wanted = [number for number in experiment(name).printed if number.test in tests]
    assert wanted or not experiment(name).printed  # of ours: the paper prints nothing of the kind
    assert sum(row["paper"] is not None for row in table["rows"]) == len(wanted)
    # Abstaining is asked of the control as well: any second model may make a joint score better.
    scored = {(row["arm"], row["moment"]) for row in table["rows"] if row["target"] is not None}
    control = {(ONE_MORE, "joint"), (ONE_MORE, "after")}
    abstains = "selective" in name
    assert control <= scored if abstains else not scored
    # Who has learnt when to abstain is also ranked as if it had not.
    own = {arm for arm, moment in scored if moment == "own"}
    assert {(arm, "after") for arm in own} <= scored
    assert bool(own) == (abstains and name in TABLES)
    grouped = any(row["measure"] == "worst_group" for row in table["rows"])
    assert bool(table["classes"]) == (not grouped)  # without groups, classes are looked at
    assert str(tmp_path) not in json.dumps(table)
    folder = home / "reproductions" / f"{name}-tiny"
    assert (folder / "table.md").is_file()
    study = json.loads((folder / "study.json").read_text())
    assert (study["kind"], study["state"]) == ("reproduction", "done")
    assert study["table"] == table
    assert study["step"] == study["total"] == len(study["plan"])
    assert all((folder / one["run"] / "result.json").is_file() for one in study["plan"])


@pytest.mark.slow
def test_recipes_share_the_erm_model_and_what_is_done_is_not_done_again(tmp_path, capsys, home):
    root = layouts.LAYOUTS["biased-mnist"](tmp_path / "root")
    words = ("--scale", "tiny", "--seeds", "1", "--root", str(root))

    repeat(capsys, "mnist-square", *words)
    models = list((home / "reproductions" / "erm").rglob("before.safetensors"))
    made = models[0].stat().st_mtime_ns
    first = repeat(capsys, "mnist-square", *words)
    second = repeat(capsys, "mnist-randmask", *words)

    assert len(models) == 1
    assert models[0].stat().st_mtime_ns == made
    assert [row["values"] for row in first["rows"] if row["moment"] == "before"] == [
        row["values"] for row in second["rows"] if row["moment"] == "before"
    ]
    assert "MaskTune" in {row["arm"] for row in first["rows"]}


@pytest.mark.slow
def test_arms_that_begin_with_one_model_look_with_its_heat_and_others_do_not(
    tmp_path, capsys, home, monkeypatch
):
    looked, look = [], masktune.look

    def counted(context, *of, **more):
        looked.append(context)
        return look(context, *of, **more)

    monkeypatch.setattr(masktune, "look", counted)
    root = layouts.LAYOUTS["waterbirds"](tmp_path / "root")
    words = ("other-way-waterbirds", "--scale", "tiny", "--seeds", "1", "--root", str(root))
    table = repeat(capsys, *words)
    folder = home / "reproductions" / "other-way-waterbirds-tiny"

    assert len(looked) == 1 < len([*folder.glob("seed-0/*/result.json")])
    (folder / "study.json").unlink()  # as an earlier version left it
    assert repeat(capsys, *words) == table
    (folder / "study.json").write_text(json.dumps({"kind": "grid", "state": "done"}))
    assert main(["reproduce", *words]) == 2
    assert "holds another grid" in capsys.readouterr().err


def test_only_the_first_of_several_processes_writes_and_speaks(tmp_path, monkeypatch, capsys, home):
    took_part = []

    def together(request, **_):
        took_part.append(request.recipe)
        return []

    monkeypatch.setattr("masktune.cli.reproduce.reproduce", together)
    monkeypatch.setenv("RANK", "1")
    (home / "reproductions" / "mnist-square-short").mkdir(parents=True)

    assert main(["reproduce", "mnist-square", "--scale", "short"]) == 0
    assert main(["reproduce", "--results", str(tmp_path / "results.md")]) == 0
    assert main(["reproduce", "--list"]) == 0

    assert took_part == ["mnist-square"]  # its share of the work, but no table
    assert [path for path in home.rglob("*") if path.is_file()] == []
    assert not (tmp_path / "results.md").exists()
    assert capsys.readouterr().out == ""


def test_the_list_says_what_each_needs_and_what_is_here(tmp_path, capsys):
    layouts.waterbirds(tmp_path / "all" / "waterbirds")

    assert main(["reproduce", "--list", "--root", str(tmp_path / "all"), "--json"]) == 0

    known = {row["recipe"]: row for row in json.loads(capsys.readouterr().out)["recipes"]}
    assert known["biased-mnist-5k"]["state"] == "present"
    assert known["waterbirds"]["state"].startswith("present in")
    assert "metadata.csv" in known["waterbirds"]["needs"]
    assert known["celeba"]["state"].startswith("not in")
    assert "IMAGENET1K_V1 (downloaded, or by --weights) at scale" in known["celeba"]["needs"]
    needs = known["stamped-pets"]["needs"]
    assert "pip install timm" in needs
    assert needs.endswith("timm/tf_efficientnet_lite0.in1k (downloaded, or by --weights)")


def test_without_a_root_the_list_looks_where_downloads_go(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("MASKTUNE_HOME", str(tmp_path))
    layouts.mnist(tmp_path / "data")

    assert main(["reproduce", "--list", "--json"]) == 0

    known = {row["recipe"]: row for row in json.loads(capsys.readouterr().out)["recipes"]}
    assert known["mnist-square"]["state"] == f"present in {tmp_path / 'data'}"
    assert known["cifar10-selective"]["state"] == f"not in {tmp_path / 'data'}"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["magic"], "no experiment 'magic'"),
        (["mnist"], "no experiment 'mnist'"),
        (["mnist-square", "--scale", "huge"], "no scale 'huge'"),
        (["mnist-square", "--seeds", "0"], "There are 0 seeds"),
        ([], "No experiment is named"),
    ],
)
def test_mistakes_are_explained(words, problem, capsys):
    assert main(["reproduce", *words]) == 2

    assert problem in capsys.readouterr().err


def test_a_disk_that_fills_up_leaves_the_page_of_results_as_it_was(tmp_path, full_disk):
    page = tmp_path / "results.md"
    page.write_text("as it was")

    with full_disk(), pytest.raises(OSError, match="too large"):
        main(["reproduce", "--results", str(page), "--out", str(tmp_path / "none")])

    assert page.read_text() == "as it was"
