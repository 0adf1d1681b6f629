"""The Finetune page: empty, filled in, refused, and with a run in its address."""

import shutil
from dataclasses import replace

import pytest

from app.finetune.plan import frozen_as_begun
from masktune.config import MaskingConfig
from masktune.data.types import DatasetBundle
from masktune.recipes import recipe
from masktune.runs import jobs
from masktune.runs.folder import RunFolder
from masktune.training import freeze
from tests.app.conftest import DEMO, TRAINS, address, demo_config


def texts(at):
    """Give everything a page says, without the marks that keep it from being read as Markdown."""
    kinds = ("markdown", "caption", "header", "title", "error", "code")
    plain = [element.value for kind in kinds for element in at.get(kind)]
    return "\n".join([*plain, *(e.proto.body for e in at.get("html"))]).replace("\\", "")


def button(at, label):
    return next(b for b in at.button if b.label == label)


def labels(at):
    return [b.label for b in at.button]


def test_with_nothing_loaded_the_page_offers_the_demo_and_the_way_to_own_pictures(home, open_page):
    at = open_page("finetune")

    assert not at.exception
    assert "nothing to finetune yet" in texts(at)
    assert {"Open the demo", "Choose pictures and model"} <= set(labels(at))

    button(at, "Open the demo").click().run()

    assert not at.exception
    assert at.session_state.dataset == DEMO
    assert "Finetune for one epoch" in labels(at)


def test_the_button_says_how_many_rounds_it_starts(home, open_page):
    at = open_page("finetune", dataset=DEMO, rounds="3")

    assert "Finetune in 3 rounds" in labels(at)
    assert "Finetune for one epoch" not in labels(at)


def test_only_devices_of_this_machine_are_offered_and_the_one_that_is_set(
    home, open_page, monkeypatch
):
    monkeypatch.setattr("masktune.compute._here", lambda: "cpu")

    def offered(**address):
        return open_page("finetune", dataset=DEMO, **address).selectbox(key="device").options

    assert offered() == ["auto", "cpu"]
    assert offered(device="cuda") == ["auto", "cpu", "cuda"]


def test_boxes_over_pictures_without_files_are_refused_before_a_run_starts(home, open_page):
    at = open_page("finetune", dataset=DEMO, strategy="judged")

    assert not at.exception
    assert not button(at, "Finetune for one epoch").disabled  # by the dataset's own squares
    at.text_input(key="regions").set_value("boxes.csv").run()

    assert "these pictures are made in memory" in texts(at)
    assert button(at, "Finetune for one epoch").disabled


def test_the_fill_is_in_the_address_and_has_no_use_where_nothing_is_hidden(home, open_page):
    at = open_page("finetune", dataset=DEMO, fill="blur")

    assert at.selectbox(key="fill").value == "blur"
    assert not at.selectbox(key="fill").disabled
    at = open_page("finetune", dataset=DEMO, strategy="none")
    assert at.selectbox(key="fill").disabled


def test_before_the_first_run_the_time_is_not_made_up(home, open_page):
    at = open_page("finetune", dataset=DEMO)

    assert not at.exception
    said = texts(at)
    assert "unknown until the first run" in said
    assert "3,500 pictures, 55 steps" in said
    assert "No run is open" in said
    assert "Earlier runs" not in said
    assert not button(at, "Finetune for one epoch").disabled


def test_the_rate_of_the_models_last_epoch_is_shown_as_the_default(home, open_page):
    at = open_page("finetune", dataset=DEMO)

    rate = at.number_input(key="finetune_lr")

    assert rate.value is None
    assert rate.placeholder.startswith("0.01")


def test_a_training_too_short_for_the_rate_to_decay_is_finetuned_at_the_rate_it_ends_with(
    home, open_page
):
    usual = recipe("imagenet9").training
    once = replace(usual, epochs=1)
    assert once.last_lr != usual.last_lr
    address = {"dataset": "imagenet9", "model": "train"}

    for more, training in (({}, usual), ({"epochs": "1"}, once)):
        at = open_page("finetune", **address, **more)

        assert not at.exception
        rate = next(box for box in at.number_input if box.label == "Learning rate")
        assert rate.placeholder == f"{training.last_lr:g}"


@pytest.fixture
def asked(monkeypatch, home):
    """Take note of the runs that are asked for instead of starting them."""
    configs = []

    def start(config, *, name="", note=""):
        configs.append(config)
        path = home / "runs" / f"run-{len(configs)}"
        RunFolder.claim(path, config)
        return path

    monkeypatch.setattr(jobs, "start", start)
    return configs


def test_the_button_starts_what_the_fields_say_and_the_address_names_the_run(asked, open_page):
    at = open_page("finetune", dataset=DEMO, k="1.5")
    at.number_input(key="finetune_lr").set_value(0.005)
    at.number_input(key="rounds").set_value(2)
    at.run()

    button(at, "Finetune in 2 rounds").click().run()

    assert not at.exception
    masking = MaskingConfig(k=1.5, rounds=2)
    assert asked == [demo_config(masking=masking, finetune_lr=0.005)]
    assert address(at)["run"] == "run-1"
    assert (at.session_state["k"], at.session_state["rounds"]) == (1.5, 2)
    assert "Waiting: MaskTune, k = 1.5, 2 rounds" in texts(at)
    assert button(at, "Finetune in 2 rounds").disabled
    assert "One run at a time" in texts(at)


def test_one_click_also_starts_both_controls_which_share_all_but_what_is_hidden(asked, open_page):
    at = open_page("finetune", dataset=DEMO, k="1.5")
    at.checkbox(key="controls").check().run()

    button(at, "Finetune for one epoch").click().run()

    assert [config.masking.strategy for config in asked] == ["heat", "random", "none"]
    assert "One run at a time, and 2 more are under way." in texts(at)
    assert len({replace(config, masking=MaskingConfig()) for config in asked}) == 1
    assert address(at)["run"] == "run-1"  # the page shows MaskTune itself


def test_where_a_model_must_be_trained_the_controls_start_from_the_trained_one(
    asked, home, open_page
):
    at = open_page("finetune", dataset=DEMO, model="train")
    assert "The model is trained first: 12 epochs" in texts(at)
    at.checkbox(key="controls").check().run()

    button(at, "Train, then finetune").click().run()

    trained = str(home / "runs" / "run-1" / "before.safetensors")
    assert [config.model for config in asked] == [None, trained, trained]
    assert "train" in texts(at)


@pytest.mark.parametrize(
    ("key", "typed", "problem", "remedy"),
    [
        ("rounds", 0, "at least one round, not 0", "Set rounds to 1"),
        ("rounds", 1000, "number of rounds is 1,000.", "Give 20 at most"),
        ("finetune_lr", -1.0, "finetuning rate is -1.0", "Give a number above 0"),
        ("finetune_lr", 1e12, "finetuning rate is 1e+12.", "Give 100 at most"),
        ("batch_size", 99999999, "batch size is 99,999,999.", "Give 65,536 at most"),
    ],
)
def test_a_bad_value_is_explained_and_stays_as_typed(key, typed, problem, remedy, home, open_page):
    at = open_page("finetune", dataset=DEMO)

    at.number_input(key=key).set_value(typed).run()

    assert not at.exception
    said = at.error[0].value.replace("\\", "")
    assert problem in said
    assert remedy in said
    assert at.number_input(key=key).value == typed
    assert button(at, "Finetune for one epoch").disabled


def test_the_other_rules_have_their_own_fields(asked, open_page):
    at = open_page("finetune", dataset=DEMO)
    at.segmented_control(key="strategy_switch").set_value("other").run()
    at.selectbox(key="strategy_rule").set_value("topk").run()
    at.number_input(key="share").set_value(12.5).run()
    assert at.slider(key="k").disabled

    button(at, "Finetune for one epoch").click().run()

    assert (asked[0].masking.strategy, asked[0].masking.top_fraction) == ("topk", 0.125)


def test_a_model_that_cannot_be_read_is_explained_and_the_button_says_why(home, open_page):
    at = open_page("finetune", dataset=DEMO, model="/nowhere/model.pt")

    assert not at.exception
    assert "There is no checkpoint" in at.error[0].value
    assert button(at, "Finetune for one epoch").disabled
    assert "on the Load page" in texts(at)


def test_an_address_of_a_run_that_is_gone_says_so(home, open_page):
    at = open_page("finetune", dataset=DEMO, run="20260101-000000-gone")

    assert not at.exception
    assert "There is no run 20260101-000000-gone" in at.error[0].value.replace("\\", "")
    assert not button(at, "Finetune for one epoch").disabled


def test_somebody_elses_run_does_not_disable_the_button_but_is_told(a_run, open_page):
    a_run(state="running")

    at = open_page("finetune", dataset=DEMO)

    assert not button(at, "Finetune for one epoch").disabled
    assert "1 other run is under way. Yours waits its turn." in texts(at)


def test_a_run_in_the_address_brings_its_pictures_with_it(home_with_run, finished_run, open_page):
    at = open_page("finetune", run=finished_run.name)

    assert not at.exception
    assert at.session_state.dataset == DEMO
    assert address(at)["dataset"] == DEMO


def test_a_model_that_was_just_trained_is_taken_for_the_next_run(a_run, open_page, finished_run):
    path = a_run(config=TRAINS, state="running", stage="finetune")
    shutil.copy(finished_run / "before.safetensors", path)

    at = open_page("finetune", dataset=DEMO, model="train", run="a-run")

    assert not at.exception
    assert at.session_state["model"] == str(path / "before.safetensors")
    assert at.session_state["run"] == "a-run"
    assert "Finetune for one epoch" in labels(at)


def test_a_result_of_another_version_does_not_break_the_page(
    home_with_run, finished_run, open_page
):
    RunFolder(home_with_run / "runs" / finished_run.name).write_json("result.json", {"old": True})

    at = open_page("finetune", dataset=DEMO)

    assert not at.exception


@pytest.mark.slow
def test_how_it_learns_is_set_under_more_settings_kept_and_carried(home, open_page, asked):
    at = open_page("finetune", dataset=DEMO)

    at.selectbox(key="optimizer").set_value("adamw").run()
    at.number_input(key="weight_decay").set_value(0.05).run()
    at.selectbox(key="freeze").set_value("features").run()
    at.selectbox(key="batch_norm").set_value("frozen").run()

    assert not at.exception
    assert not at.error
    assert at.selectbox(key="batch_norm").options == [
        "Mean and deviation learnt",
        "Mean and deviation kept",
    ]
    assert at.selectbox(key="freeze").options[:3] == [
        "None, all may learn",
        "All but the last layer",
        "Up to features",
    ]
    # Up to the last layer nothing would be left to learn.
    assert "Up to hidden" in at.selectbox(key="freeze").options
    assert "Up to head" not in at.selectbox(key="freeze").options
    # AdamW has no momentum to set, and nothing is trained for which the rate could fall.
    keys = {box.key for box in (*at.number_input, *at.selectbox, *at.text_input)}
    assert "label_smoothing" in keys
    assert keys.isdisjoint({"momentum", "schedule", "decay_at", "warmup", "best", "patience"})
    said = {"optimizer": "adamw", "weight_decay": "0.05", "freeze": "features"}
    assert said.items() <= address(at).items()
    again = at.switch_page("mask/page.py").run().switch_page("finetune/page.py").run()
    assert again.selectbox(key="freeze").value == "features"

    button(again, "Finetune for one epoch").click().run()

    (config,) = asked
    training = config.training
    assert (training.optimizer, training.weight_decay, training.freeze) == (
        "adamw",
        0.05,
        "features",
    )
    assert config.batch_norm == "frozen"


def test_a_model_without_batch_norm_is_not_asked_about_it(home, open_page, monkeypatch):
    monkeypatch.setattr(freeze, "with_statistics", lambda _modules: [])

    at = open_page("finetune", dataset=DEMO)

    assert not at.exception
    assert "freeze" in {box.key for box in at.selectbox}
    assert "batch_norm" not in {box.key for box in at.selectbox}


def test_with_the_body_frozen_batch_norm_is_not_asked(home, open_page):
    at = open_page("finetune", dataset=DEMO, freeze="body")

    assert at.selectbox(key="freeze").value == "body"
    assert "batch_norm" not in {box.key for box in at.selectbox}


def test_a_setting_of_training_that_cannot_be_used_cannot_be_typed(home, open_page):
    at = open_page("finetune", dataset=DEMO, momentum="0.9995")
    bounds = {name: at.number_input(key=name) for name in ("momentum", "label_smoothing")}

    assert bounds["momentum"].value == 0.9995
    assert {name: (box.min, box.max) for name, box in bounds.items()} == {
        "momentum": (0.0, 0.9995),
        "label_smoothing": (0.0, 0.999),
    }
    assert at.number_input(key="weight_decay").min == 0.0


def test_the_best_epoch_by_groups_that_nobody_knows_is_refused_before_the_run(
    home, open_page, monkeypatch
):
    monkeypatch.setattr(DatasetBundle, "knows_groups", lambda *_: False)

    at = open_page("finetune", dataset=DEMO, model="train", best="worst-group")

    assert "needs validation groups" in texts(at)
    assert button(at, "Finetune for one epoch").disabled


def test_a_training_that_may_end_early_is_so_many_epochs_at_most(home, open_page):
    at = open_page("finetune", dataset=DEMO, model="train", best="average", patience="2")

    assert "The model is trained first: 12 epochs at most." in texts(at)


def test_another_method_has_fields_of_its_own_and_is_started_by_its_name(asked, open_page):
    at = open_page("finetune", dataset=DEMO)
    at.selectbox(key="rival").set_value("groupdro").run()

    assert not at.exception
    assert "It needs training groups." in texts(at)
    assert "Group DRO trains for 12 epochs." in texts(at)
    assert not [widget for widget in at.slider if widget.label == "Threshold k"]
    at.number_input(key="group_step").set_value(0.1).run()
    at.selectbox(key="start").set_value("erm").run()
    at.number_input(key="epochs").set_value(2).run()
    button(at, "Start Group DRO").click().run()

    (config, *more) = asked
    assert (config.rival, config.start, config.training.epochs) == ("groupdro", "erm", 2)
    assert config.rival_settings.group_step == 0.1
    assert config.masking.strategy == "none"
    assert not more


def test_a_method_that_retrains_the_last_layer_asks_nothing_of_training(home, open_page):
    at = open_page("finetune", dataset=DEMO, rival="dfr")

    assert "Only the last layer learns." in texts(at)
    assert "batch_size" not in {widget.key for widget in at.number_input}
    assert not button(at, "Start DFR").disabled


def test_a_method_whose_groups_nobody_knows_is_refused_before_it_starts(
    home, open_page, monkeypatch
):
    monkeypatch.setattr(DatasetBundle, "knows_groups", lambda *_: False)

    at = open_page("finetune", dataset=DEMO, rival="groupdro")

    assert "Group DRO needs training groups" in texts(at)
    assert button(at, "Finetune for one epoch").disabled


def test_another_method_takes_its_own_penalty_and_freezes_as_usual(home, open_page):
    at = open_page("finetune", dataset=DEMO, rival="sd", penalty="0.3", freeze="body")
    assert (at.session_state.penalty, at.session_state.freeze) == (0.3, "body")

    at.selectbox(key="rival").set_value("selectivenet").run()

    assert not at.exception
    assert (at.session_state.penalty, at.session_state.freeze) == (None, "none")


def test_masktune_taken_up_again_after_a_rival_hides_by_heat(home, open_page):
    at = open_page("finetune", dataset=DEMO, rival="jtt", strategy="none")
    at.selectbox(key="rival").set_value("masktune").run()

    assert not at.exception
    assert at.session_state.strategy == "heat"
    assert "Finetune for one epoch" in labels(at)


@pytest.mark.parametrize(
    ("frozen", "start", "becomes"),
    [
        ("none", "erm", "blocks.4"),  # the recipe's layers come back with the model before
        ("blocks.4", "scratch", "none"),
        ("body", "erm", "body"),  # that somebody chose stays chosen
    ],
)
def test_what_is_frozen_follows_where_a_method_begins(frozen, start, becomes):
    now = {"dataset": "waterbirds", "recipe": "waterbirds-pretrained", "model": "erm.pt"}
    now |= {"arch": "auto", "weights": "none", "rival": "groupdro", "start": start}

    found = frozen_as_begun({**now, "freeze": frozen, "erm_batch_norm": "learnt"})

    assert found["freeze"] == becomes
