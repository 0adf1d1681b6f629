import csv
import io
import json
import os
import shutil
from dataclasses import replace

import psutil
import pytest

from app import jobs
from app.components import finetune_history, finetune_time, jobcard
from app.components.finetune_charts import (
    accuracy_chart,
    loss_chart,
    newest_stage,
    running_mean,
    speed,
    steps_csv,
)
from app.components.finetune_plan import control_settings, effort_words, settings
from app.components.finetune_results import on_same_pictures, outcome, runs_csv
from app.components.finetune_time import Pace, seconds_left, seconds_of, stages, usual, widths
from app.components.jobcard import stages_html, where, working_html
from app.jobs import Job
from app.subject import Subject
from masktune.config import MaskingConfig
from masktune.recipes import recipe
from masktune.runs import RunFolder
from tests.app.conftest import DEMO, demo_config

TRAINS = replace(demo_config(), model=None)


def texts(at):
    """Give everything a page says, without the marks that keep it from being read as Markdown."""
    kinds = ("markdown", "caption", "header", "title", "error", "code")
    plain = [element.value for kind in kinds for element in at.get(kind)]
    return "\n".join([*plain, *(e.proto.body for e in at.get("html"))]).replace("\\", "")


def button(at, label):
    return next(b for b in at.button if b.label == label)


def labels(at):
    return [b.label for b in at.button]


# The page


def test_with_nothing_loaded_the_page_offers_the_demo_and_the_way_to_own_pictures(home, open_page):
    at = open_page("finetune")

    assert not at.exception
    assert "nothing to finetune yet" in texts(at)
    assert {"Open the demo", "Choose pictures and model"} <= set(labels(at))

    button(at, "Open the demo").click().run()

    assert not at.exception
    assert at.session_state["masktune"].subject == Subject(dataset=DEMO)
    assert "Finetune for one epoch" in labels(at)


def test_before_the_first_run_the_time_is_not_made_up(home, open_page):
    at = open_page("finetune", dataset=DEMO)

    assert not at.exception
    said = texts(at)
    assert "unknown until the first run" in said
    assert "3,500 pictures, 55 steps" in said
    assert "No run is open" in said
    assert not button(at, "Finetune for one epoch").disabled


def test_the_rate_of_the_models_last_epoch_is_shown_as_the_default(home, open_page):
    at = open_page("finetune", dataset=DEMO)

    rate = at.number_input(key="finetune_rate")

    assert rate.value is None
    assert rate.placeholder.startswith("0.01")


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
    at.number_input(key="finetune_rate").set_value(0.005)
    at.number_input(key="finetune_rounds").set_value(2)
    at.run()

    button(at, "Finetune for one epoch").click().run()

    assert not at.exception
    masking = MaskingConfig(k=1.5, rounds=2)
    assert asked == [demo_config(masking=masking, finetune_lr=0.005)]
    assert at.query_params["run"] == "run-1"
    assert at.session_state["masktune"].masking == masking
    assert "Waiting: MaskTune, k = 1.5, 2 rounds" in texts(at)
    assert button(at, "Finetune for one epoch").disabled
    assert "One run at a time" in texts(at)


def test_one_click_also_starts_both_controls_which_share_all_but_what_is_hidden(asked, open_page):
    at = open_page("finetune", dataset=DEMO, k="1.5")
    at.checkbox(key="finetune_controls").check().run()

    button(at, "Finetune for one epoch").click().run()

    assert [config.masking.strategy for config in asked] == ["heat", "random", "none"]
    assert len({replace(config, masking=MaskingConfig()) for config in asked}) == 1
    assert at.query_params["run"] == "run-1"  # the page shows MaskTune itself


def test_where_a_model_must_be_trained_the_controls_start_from_the_trained_one(
    asked, home, open_page
):
    at = open_page("finetune", dataset=DEMO, model="train")
    assert "The model is trained first: 12 epochs" in texts(at)
    at.checkbox(key="finetune_controls").check().run()

    button(at, "Train, then finetune").click().run()

    trained = str(home / "runs" / "run-1" / "before.safetensors")
    assert [config.model for config in asked] == [None, trained, trained]
    assert "train" in texts(at)


@pytest.mark.parametrize(
    ("key", "typed", "problem", "remedy"),
    [
        ("finetune_rounds", 0, "at least one round, not 0", "Set rounds to 1"),
        ("finetune_rate", -1.0, "finetuning rate is -1.0", "Give a number above 0"),
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
    assert at.session_state["masktune"].masking == MaskingConfig()


def test_the_other_rules_have_their_own_fields(asked, open_page):
    at = open_page("finetune", dataset=DEMO)
    at.segmented_control(key="finetune_what").set_value("other").run()
    at.selectbox(key="finetune_other").set_value("topk").run()
    at.number_input(key="finetune_share").set_value(12.5).run()
    assert at.slider(key="finetune_k").disabled

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


# Runs in every state


@pytest.fixture
def a_run(home):
    """Make a run folder in some state; this process stands in for those that work or wait."""

    def make(name="a-run", *, config=None, events=0, log="", **status):
        path = home / "runs" / name
        folder = RunFolder.claim(path, config or demo_config())
        known = {"stage": "", "step": 0, "total": 0}
        if status["state"] in ("queued", "running"):
            known |= {"pid": os.getpid(), "started": psutil.Process().create_time()}
        folder.write_json("status.json", {**known, **status})
        for step in range(1, events + 1):
            record = {"time": 100.0 + step / 4, "stage": "finetune", "step": step, "total": 55}
            folder.append("events.jsonl", json.dumps({**record, "loss": 1 / step, "accuracy": 0.5}))
        if log:
            (path / "log.txt").write_text(log)
        return path

    return make


def test_a_running_run_shows_stage_step_speed_and_both_charts(a_run, open_page):
    a_run(state="running", stage="finetune", step=28, total=55, eta=4.2, events=28)

    at = open_page("finetune", dataset=DEMO, run="a-run")

    assert not at.exception
    said = texts(at)
    assert "Running: MaskTune, k = 2.0" in said
    assert "Finetune, step 28 of 55" in said
    assert "4 s left of this stage" in said  # no earlier run tells how long the rest takes
    assert "4.0 steps a second" in said
    assert "You can close this page; the run goes on" in said
    assert len(at.get("plotly_chart")) == 2
    assert "Stop the run" in labels(at)
    assert button(at, "Finetune for one epoch").disabled


def test_a_waiting_run_says_how_many_are_ahead(a_run, open_page):
    a_run("first", state="running")
    a_run("second", state="queued", ticket=1)
    a_run("mine", state="queued", ticket=2)

    at = open_page("finetune", dataset=DEMO, run="mine")

    assert not at.exception
    assert "2 runs are ahead. One run at a time; this one starts by itself." in texts(at)
    assert not at.get("plotly_chart")


def test_somebody_elses_run_does_not_disable_the_button_but_is_told(a_run, open_page):
    a_run(state="running")

    at = open_page("finetune", dataset=DEMO)

    assert not button(at, "Finetune for one epoch").disabled
    assert "1 other run is under way. Yours waits its turn." in texts(at)


def test_cancelling_stops_the_run(a_run, open_page, monkeypatch):
    path = a_run(state="running")
    stopped = []

    def cancel(which):
        stopped.append(which)
        RunFolder(which).write_json("status.json", {"state": "cancelled"})

    monkeypatch.setattr(jobs, "cancel", cancel)
    at = open_page("finetune", dataset=DEMO, run="a-run")

    button(at, "Stop the run").click().run()

    assert not at.exception
    assert stopped == [path]
    assert "Cancelled: MaskTune" in texts(at)
    assert "Go on with this run" in labels(at)


def test_a_failed_run_shows_problem_remedy_and_the_end_of_its_log(a_run, open_page, monkeypatch):
    path = a_run(
        state="failed",
        stage="finetune",
        problem="The training loss became nan.",
        remedy="Use a smaller learning rate.",
        log="".join(f"line {number}\n" for number in range(50)),
    )
    again = []
    monkeypatch.setattr(jobs, "resume", again.append)

    at = open_page("finetune", dataset=DEMO, run="a-run")

    assert not at.exception
    said = at.error[0].value.replace("\\", "")
    assert "The training loss became nan." in said
    assert "Use a smaller learning rate." in said
    assert "line 49" in at.code[0].value
    assert "line 9\n" not in at.code[0].value

    button(at, "Start again").click().run()

    assert again == [path]


def test_a_run_whose_process_is_gone_is_shown_as_failed(a_run, open_page):
    a_run(state="running", stage="heat", step=3, total=7, pid=1, started=0.0)

    at = open_page("finetune", dataset=DEMO, run="a-run")

    assert not at.exception
    assert "Failed: MaskTune" in texts(at)
    assert "killed or ran out of memory" in at.error[0].value


def test_a_finished_run_says_what_it_came_to_and_leads_to_compare(
    home_with_run, finished_run, open_page
):
    at = open_page("finetune", dataset=DEMO, run=finished_run.name)

    assert not at.exception
    said = texts(at)
    assert "Done: MaskTune, k = 2.0" in said
    assert "Tuning helped the worst group of “biased”" in said
    assert "95% interval" in said
    assert "n = 511" in said
    assert "Compare before and after" in labels(at)
    assert len(at.get("plotly_chart")) == 2
    assert "**About" in said  # the run has shown how long one takes


def test_a_run_in_the_address_brings_its_pictures_with_it(home_with_run, finished_run, open_page):
    at = open_page("finetune", run=finished_run.name)

    assert not at.exception
    assert at.session_state["masktune"].subject == Subject(dataset=DEMO)
    assert at.query_params["dataset"] == DEMO


def test_a_model_that_was_just_trained_is_taken_for_the_next_run(a_run, open_page, finished_run):
    path = a_run(config=TRAINS, state="running", stage="finetune")
    shutil.copy(finished_run / "before.safetensors", path)

    at = open_page("finetune", dataset=DEMO, model="train", run="a-run")

    assert not at.exception
    assert at.session_state["masktune"].subject.model == str(path / "before.safetensors")
    assert at.session_state["masktune"].run == "a-run"
    assert "Finetune for one epoch" in labels(at)


def test_a_result_of_another_version_does_not_break_the_page(
    home_with_run, finished_run, open_page
):
    RunFolder(home_with_run / "runs" / finished_run.name).write_json("result.json", {"old": True})

    at = open_page("finetune", dataset=DEMO)

    assert not at.exception


# The list of runs


def test_the_list_holds_the_runs_on_these_pictures_only(a_run, open_page):
    a_run("here", state="failed", problem="It broke.")
    a_run("other-pictures", config=demo_config(dataset="two-squares-mnist-5k"), state="failed")
    a_run("other-split", config=demo_config(seed=1), state="failed")

    at = open_page("finetune", dataset=DEMO)

    assert [b.key for b in at.button if b.label == "Open"] == ["open_here"]
    assert "It broke." in texts(at)


def test_opening_a_run_shows_it(home_with_run, finished_run, open_page):
    at = open_page("finetune", dataset=DEMO)

    at.button(key=f"open_{finished_run.name}").click().run()

    assert not at.exception
    assert at.query_params["run"] == finished_run.name
    assert "Done: MaskTune" in texts(at)


def test_a_run_gets_a_name_and_a_note(home_with_run, finished_run, open_page):
    at = open_page("finetune", dataset=DEMO)
    next(t for t in at.text_input if t.label == "Name").set_value("As <published>")
    at.text_area[0].set_value("Seed 0")

    at.button(key=f"save_{finished_run.name}").click().run()

    assert not at.exception
    job = jobs.find(finished_run.name)
    assert (job.name, job.note) == ("As <published>", "Seed 0")
    assert "As &lt;published&gt;" in texts(at)  # never read as HTML


def test_deleting_asks_first(home_with_run, finished_run, open_page):
    at = open_page("finetune", dataset=DEMO, run=finished_run.name)
    assert at.button(key=f"delete_{finished_run.name}").disabled

    at.checkbox(key=f"sure_{finished_run.name}").check().run()
    at.button(key=f"delete_{finished_run.name}").click().run()

    assert not at.exception
    assert jobs.history() == []
    assert at.session_state["masktune"].run is None
    assert "No run is open" in texts(at)


def test_the_model_of_a_deleted_run_is_let_go(a_run, open_page, finished_run):
    path = a_run(config=TRAINS, state="cancelled")
    shutil.copy(finished_run / "before.safetensors", path)
    at = open_page("finetune", dataset=DEMO, run="a-run", model=str(path / "before.safetensors"))

    at.checkbox(key="sure_a-run").check().run()
    at.button(key="delete_a-run").click().run()

    assert not at.exception
    assert at.session_state["masktune"].subject == Subject(dataset=DEMO)


def test_two_chosen_runs_go_to_the_compare_page(home_with_run, finished_run, open_page):
    shutil.copytree(finished_run, home_with_run / "runs" / "second")
    at = open_page("finetune", dataset=DEMO)
    at.checkbox(key=f"choose_{finished_run.name}").check().run()
    assert button(at, "Compare the chosen runs").disabled
    assert "Tick one more" in texts(at)

    at.checkbox(key="choose_second").check().run()

    assert not button(at, "Compare the chosen runs").disabled
    assert set(at.session_state["masktune"].compared) == {finished_run.name, "second"}


def test_a_long_list_comes_in_pages_and_what_was_chosen_stays_chosen(
    home_with_run, finished_run, open_page, monkeypatch
):
    monkeypatch.setattr(finetune_history, "AT_ONCE", 1)
    shutil.copytree(finished_run, home_with_run / "runs" / "second")
    RunFolder(home_with_run / "runs" / "second").write_json("about.json", {"created": 1.0})
    at = open_page("finetune", dataset=DEMO)
    assert [b.key for b in at.button if b.label == "Open"] == [f"open_{finished_run.name}"]
    at.checkbox(key=f"choose_{finished_run.name}").check().run()

    at.session_state["runs_page"] = 2
    at.run()

    assert not at.exception
    assert [b.key for b in at.button if b.label == "Open"] == ["open_second"]
    assert at.session_state["masktune"].compared == (finished_run.name,)


# Settings


def test_settings_are_the_recipe_with_what_was_chosen():
    masking = MaskingConfig(k=1.0)

    assert settings(Subject(dataset=DEMO), masking=masking) == demo_config(masking=masking)
    assert settings(Subject(dataset=DEMO, model="train"), masking=masking).model is None
    assert settings(Subject(dataset=DEMO, model="a.pt"), masking=masking).model == "a.pt"
    # The command line reads a folder without its last slash; both must mean the same run.
    assert settings(Subject(dataset=DEMO, root="data/"), masking=masking).root == "data"


def test_runs_at_several_k_share_their_controls():
    at_1, at_2 = (
        control_settings(demo_config(masking=MaskingConfig(k=k, statistics=s, rounds=2)))
        for k, s in ((1.0, "all"), (2.0, "positive"))
    )

    assert at_1 == at_2
    assert [c.masking.strategy for c in at_1] == ["random", "none"]
    assert {c.masking.rounds for c in at_1} == {2}
    # A control has the other one as its control.
    assert [c.masking.strategy for c in control_settings(at_1[0])] == ["none"]


def test_the_effort_is_told_in_pictures_and_steps():
    assert effort_words(demo_config(), 1, 129) == "129 pictures, 3 steps an epoch."
    assert effort_words(demo_config(), 3, 128) == "128 pictures, 2 steps each."
    assert effort_words(TRAINS, 1, None) == "The model is trained first: 12 epochs."
    once = replace(TRAINS, training=replace(TRAINS.training, epochs=1))
    assert effort_words(once, 1, None) == "The model is trained first: one epoch."


# Time


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (demo_config(), "load heat finetune predict report"),
        (TRAINS, "load train heat finetune predict report"),
        (demo_config(masking=MaskingConfig(strategy="none")), "load finetune predict report"),
    ],
)
def test_stages_are_those_that_a_run_goes_through(config, expected):
    assert " ".join(stages(config)) == expected


def test_every_round_has_its_own_stages():
    config = demo_config(masking=MaskingConfig(rounds=2))

    assert stages(config)[1:-2] == ("heat", "finetune", "heat 2", "finetune 2")


PACE = Pace(around=4.0, train=5.0, heat=2.0, finetune=6.0, predict=3.0)


def test_an_estimate_adds_up_all_parts():
    two = demo_config(masking=MaskingConfig(rounds=2))

    assert sum(seconds_of(demo_config(), PACE).values()) == 4 + 2 + 6 + 3
    assert sum(seconds_of(two, PACE).values()) == 4 + 2 * (2 + 6) + 3
    assert sum(seconds_of(TRAINS, PACE).values()) == 4 + 12 * 5 + 2 + 6 + 3


def test_what_no_run_has_shown_is_not_estimated():
    never_trained = replace(PACE, train=None)

    assert seconds_of(TRAINS, never_trained) is None
    assert seconds_of(demo_config(), never_trained) is not None
    assert seconds_of(demo_config(), None) is None


def past_run(home, name, *, config=None, seconds, waited=0.0, steps=55):
    """Make a finished run that took some seconds."""
    path = home / "runs" / name
    folder = RunFolder.claim(path, config or demo_config())
    folder.write_json("about.json", {"created": 1000.0})
    folder.write_json("status.json", {"updated": 1000.0 + sum(seconds.values()) + waited})
    folder.append(
        "events.jsonl",
        json.dumps(
            {
                "time": 1.0,
                "stage": "finetune",
                "step": steps,
                "total": steps,
                "loss": 1.0,
                "accuracy": 1.0,
            }
        ),
    )
    rounds = [{}] * folder_rounds(path)
    folder.write_json("result.json", {"seconds": seconds, "masking": {"rounds": rounds}})
    return jobs.look(path)


def folder_rounds(path):
    return jobs.look(path).config.masking.rounds


def test_the_pace_is_the_middle_of_earlier_runs_and_waiting_does_not_count(home):
    past = [
        past_run(
            home,
            str(n),
            seconds={"train": 0.1, "heat": heat, "finetune": 6.0, "evaluate": 3.0},
            waited=w,
        )
        for n, (heat, w) in enumerate([(1.0, 30.0), (2.0, 4.0), (9.0, 500.0)])
    ]

    pace = usual(demo_config(), past, pictures=3500)

    assert pace.heat == 2.0
    assert pace.around == pytest.approx(4.0)
    assert pace.train is None  # a model that is only loaded shows nothing about training
    assert pace.same


def test_of_many_earlier_runs_the_newest_tell(home):
    seconds = {"train": 0.0, "heat": 9.0, "finetune": 6.0, "evaluate": 3.0}
    old = [past_run(home, f"old{n}", seconds=seconds) for n in range(6)]
    new = [past_run(home, f"new{n}", seconds={**seconds, "heat": 1.0}) for n in range(5)]

    assert usual(demo_config(), [*new, *old], pictures=None).heat == 1.0


def test_rounds_and_epochs_are_counted_one_by_one(home):
    config = replace(TRAINS, masking=MaskingConfig(rounds=3))
    seconds = {"train": 60.0, "heat": 6.0, "finetune": 9.0, "evaluate": 2.0}

    pace = usual(config, [past_run(home, "a", config=config, seconds=seconds)], pictures=None)

    assert (pace.train, pace.heat, pace.finetune, pace.predict) == (5.0, 2.0, 3.0, 2.0)


def test_a_part_that_a_run_did_not_do_says_nothing(home):
    seconds = {"train": 0.0, "heat": 0.0, "finetune": 5.0, "evaluate": 2.0}
    control = demo_config(masking=MaskingConfig(strategy="none"))

    pace = usual(
        demo_config(), [past_run(home, "a", config=control, seconds=seconds)], pictures=None
    )

    assert (pace.heat, pace.finetune) == (None, 5.0)
    assert seconds_of(demo_config(), pace) is None
    assert seconds_of(control, pace) is not None


def test_other_pictures_count_where_there_are_no_runs_on_these_by_their_pixels(home):
    seconds = {"train": 0.0, "heat": 2.0, "finetune": 4.0, "evaluate": 2.0}
    # 10 steps of 64 pictures, as large as those of the demo.
    other = past_run(
        home, "a", config=demo_config(dataset="two-squares-mnist-5k"), seconds=seconds, steps=10
    )

    pace = usual(demo_config(), [other], pictures=1280)

    assert (pace.heat, pace.finetune, pace.same) == (4.0, 8.0, False)
    assert usual(demo_config(), [other], pictures=None) is None
    assert usual(replace(demo_config(), arch="resnet18"), [other], pictures=1280) is None
    assert usual(demo_config(), [], pictures=1280) is None


def at_stage(stage, step=0, total=0, *, state="running", left=None, config=None):
    return Job(
        path=None,
        config=config or demo_config(),
        state=state,
        stage=stage,
        step=step,
        total=total,
        seconds_left=left,
    )


def test_the_time_left_is_this_stage_and_all_later_ones():
    # Later than the finetune: predict 3 s, report a quarter of 4 s.
    assert seconds_left(at_stage("finetune", 5, 10, left=2.5), PACE) == 2.5 + 3 + 1
    assert seconds_left(at_stage("finetune", 1, 10), PACE) == 6 + 3 + 1
    assert seconds_left(at_stage("finetune", 10, 10), PACE) == 3 + 1
    assert seconds_left(at_stage(""), PACE) is None
    assert seconds_left(at_stage("finetune", 5, 10, left=2.5), None) is None


def test_stages_are_as_wide_as_they_are_long_but_never_too_narrow_to_see():
    wide = dict(zip(stages(TRAINS), widths(TRAINS, PACE), strict=True))

    assert wide["train"] == 60.0
    assert wide["heat"] == wide["report"] == pytest.approx(0.06 * 75)
    assert len(widths(demo_config(), None)) == 5


def test_estimates_know_no_tenths():
    assert [finetune_time.about(s) for s in (0.2, 24.7, 840.0)] == ["1 s", "25 s", "14 min"]


# The job card


def test_a_complete_stage_means_that_the_next_is_under_way():
    assert where(at_stage("")) == (0, 0.0)
    assert where(at_stage("load", 1, 1)) == (1, 0.0)
    assert where(at_stage("heat", 3, 4)) == (1, 0.75)
    assert where(at_stage("finetune", 55, 55)) == (3, 0.0)
    assert where(at_stage("report", 1, 1)) == (4, 0.0)
    assert where(at_stage("report", state="done")) == (5, 0.0)
    assert where(at_stage("finetune", 3, 4, state="queued")) == (0, 0.0)


def test_the_bar_fills_stage_by_stage():
    html = stages_html(at_stage("heat", 3, 4), widths(demo_config(), PACE))

    assert html.count("width:100.0%") == 1
    assert html.count("width:75.0%") == 1
    assert html.count("width:0.0%") == 3
    assert html.count('class="now"') == 1
    assert 'aria-label="Running, stage 2 of 5"' in html


def test_a_run_that_comes_up_says_what_it_is_doing():
    assert "PyTorch and the pictures are being read" in working_html(at_stage(""), None, None)


def test_the_fragment_rests_when_a_run_has_ended(a_run, monkeypatch):
    asked = []

    def fragment(_, *, run_every):
        asked.append(run_every)
        return lambda *_: None

    monkeypatch.setattr(jobcard.st, "fragment", fragment)
    path = a_run(state="running")

    jobcard.follow(jobs.look(path), None)
    RunFolder(path).write_json("status.json", {"state": "cancelled"})
    jobcard.follow(jobs.look(path), None)

    assert asked == [jobcard.POLL, None]


# Charts and files


def event(step, *, stage="finetune", loss=0.5, accuracy=0.5, total=55):
    return {
        "time": 10.0 + step / 4, "stage": stage, "step": step, "total": total,
        "loss": loss, "accuracy": accuracy,
    }  # fmt: skip


def test_the_running_mean_looks_back_only():
    assert running_mean([1.0, 3.0, 5.0, 7.0], 2).tolist() == [1.0, 2.0, 4.0, 6.0]


def test_charts_reach_to_the_last_step_and_say_where_they_end():
    steps = [event(step, loss=1.0, accuracy=0.75) for step in range(1, 29)]

    loss, accuracy = loss_chart(steps), accuracy_chart(steps)

    assert tuple(loss.layout.xaxis.range) == (0, 55)
    assert loss.layout.yaxis.range[0] == 0
    assert loss.layout.annotations[0].text == "1.00"
    assert accuracy.layout.annotations[0].text == "75%"
    assert tuple(accuracy.layout.yaxis.range) == pytest.approx((0.7, 1.015))
    assert "28 of 55 steps of finetune" in loss.layout.meta
    assert len(loss.data[1].x) == 28


def test_one_step_is_already_drawn():
    assert loss_chart([event(1)]).data[1].mode == "markers"


def test_a_loss_of_zero_still_has_an_axis():
    assert loss_chart([event(1, loss=0.0)]).layout.yaxis.range[1] > 0


def test_the_newest_stage_is_drawn_alone():
    both = [event(1, stage="train"), event(2, stage="train"), event(1), event(2)]

    assert newest_stage(both) == both[2:]


def test_the_speed_is_steps_a_second_of_late():
    slow = {**event(0), "time": 0.0}

    assert speed([event(step) for step in range(1, 10)]) == pytest.approx(4.0)
    assert speed([slow, *(event(step) for step in range(1, 10))], over=5) == pytest.approx(4.0)
    assert speed([event(1)]) is None
    assert speed([event(1), event(1)]) is None


def test_steps_are_saved_as_csv():
    rows = list(csv.DictReader(io.StringIO(steps_csv([event(1, loss=0.25)]).decode())))

    assert rows == [{"stage": "finetune", "step": "1", "loss": "0.25", "accuracy": "0.5"}]


def test_the_outcome_of_a_run_is_what_its_result_says(home_with_run, finished_run):
    job = jobs.find(finished_run.name)
    scores = jobs.result(job.path)["test"]["biased"]

    result = outcome(job)

    assert result.test == "biased"
    assert result.after.to_json() == scores["after"]
    assert result.before.to_json() == scores["before"]


def test_the_list_is_saved_as_csv_with_all_numbers(home_with_run, finished_run, a_run):
    a_run("failed", state="failed", problem="It broke, twice.")
    worst = outcome(jobs.find(finished_run.name)).after.worst

    rows = list(csv.DictReader(io.StringIO(runs_csv(jobs.history()).decode())))

    done = next(row for row in rows if row["state"] == "done")
    failed = next(row for row in rows if row["state"] == "failed")
    assert float(done["worst after"]) == worst.accuracy
    assert (float(done["worst after, low"]), float(done["worst after, high"])) == worst.interval
    assert done["worst after, n"] == "511"
    assert (failed["problem"], failed["worst after"]) == ("It broke, twice.", "")


def test_a_folder_with_or_without_its_last_slash_is_the_same(home):
    path = home / "runs" / "a"
    RunFolder.claim(path, demo_config(root="data"))

    assert on_same_pictures(jobs.look(path), Subject(dataset=DEMO, root="data/"))
    assert not on_same_pictures(jobs.look(path), Subject(dataset=DEMO))


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
        assert rate.placeholder == f"{training.last_lr:g}, usual"
