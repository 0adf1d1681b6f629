"""The card "Which k?" of the Finetune page: its numbers, its words and its buttons."""

import csv
import io
from dataclasses import replace

import pytest

from app import loaded as cached
from app.finetune.advice_card import runs_words
from app.finetune.advice_numbers import (
    look_words,
    table_words,
    trials_figure,
    trials_table,
)
from app.state import sensible
from masktune.checkpoints.settings import OPTIONS
from masktune.config import MaskingConfig
from masktune.errors import ModelError
from masktune.runs import jobs
from masktune.runs.folder import RunFolder
from masktune.runs.queue import STUDY
from masktune.scores.hiding import HiddenGroup, Hiding
from masktune.show.tables import csv as csv_of
from masktune.show.tables import html
from masktune.studies import jobs as studies
from masktune.studies.advice import Trial, TunedScores
from masktune.studies.grid import at_thresholds, plan
from masktune.studies.sweep import KS
from tests import results
from tests.app.conftest import DEMO, address, demo_config


def trial(k: float, **changes) -> Trial:
    values = {
        "pictures": 200,
        "hidden_fraction": 0.04,
        "empty_fraction": 0.0,
        "largest_class": 0.5,
        "seen": 0.99,
        "hidden": 0.64,
    }
    return Trial(k=k, **{**values, **changes})


TRIALS = (trial(1.0, hidden_fraction=0.1), trial(1.5), trial(2.5, empty_fraction=0.25))
TUNED = TunedScores(train=0.9, validation=0.8, worst_class=0.7)
SOME = (TRIALS[0], replace(TRIALS[1], tuned=TUNED), TRIALS[2])


def make_run(home, name, *, k=1.5, fit=0.9, state="done", **changes):
    """Write the folder of a run as the page would find it; give its job.

    Its model answers 70% of one class and 90% of the other right; the worst group is at 40%.
    """
    config = demo_config(**{"masking": MaskingConfig(k=k), **changes})
    folder = RunFolder.claim(home / "runs" / name, config)
    if state == "done":
        folder.write_json("result.json", run_result(fit))
    elif state == "failed":
        folder.write_json("status.json", {"state": "failed"})
    job = jobs.look(folder.path)
    assert job.state == state
    return job


def run_result(fit):
    rows = [
        ("0–4", "a", 50, 1.0),
        ("0–4", "b", 50, 0.4),
        ("5–9", "a", 90, 1.0),
        ("5–9", "b", 10, 0.0),
    ]
    scores = results.scores(rows)
    record = {"fitted": True} if fit is None else {"fitted": True, "train_accuracy": fit}
    both = {"before": scores, "after": scores}
    return results.a_result({"test": both}, rounds=[record]).to_json()


def look_with(jobs_here, open_page, monkeypatch, **address):
    """Open the page among some runs and take the quick look."""
    monkeypatch.setattr(jobs, "every", lambda: list(jobs_here))
    at = open_page("finetune", dataset=DEMO, **address)
    return at.button(key="advice_look").click().run()


@pytest.fixture
def quick(monkeypatch):
    """Answer at once instead of asking a model; say how often a look was asked for."""
    looks = []

    def look(context, model, *, store):
        looks.append(context.config.masking)
        return TRIALS

    monkeypatch.setattr(cached, "quick_look", look)
    cached._THRESHOLDS.clear()
    yield looks
    cached._THRESHOLDS.clear()


def labels(at):
    return [button.label for button in at.button]


def said(at):
    kinds = ("markdown", "caption", "header", "error")
    plain = [element.value for kind in kinds for element in at.get(kind)]
    return "\n".join([*plain, *(e.proto.body for e in at.get("html"))]).replace("\\", "")


def test_nobody_gets_a_look_unasked_and_one_click_shows_the_suggestion(home, quick, open_page):
    at = open_page("finetune", dataset=DEMO)
    assert not at.exception
    assert quick == []
    assert "Hide 1,000 training pictures at 7 thresholds" in said(at)

    at.button(key="advice_look").click().run()

    assert not at.exception
    assert len(quick) == 1
    assert "Suggest a k" not in labels(at)
    assert "**Suggested: k = 1.5**" in said(at)
    assert "A quick look at 200 of 3,500 training pictures: nothing was finetuned" in said(at)

    at.run()

    assert len(quick) == 1  # what was looked at is kept


def test_use_this_k_moves_the_slider_and_the_next_run_takes_it(home, quick, open_page):
    at = open_page("finetune", dataset=DEMO, k="2")
    at.button(key="advice_look").click().run()

    at.button(key="advice_use").click().run()

    assert not at.exception
    assert at.slider(key="k").value == 1.5
    assert at.session_state["k"] == 1.5
    assert address(at)["k"] == "1.5"
    assert at.button(key="advice_use").disabled


def test_the_rate_is_suggested_for_the_batches_and_the_optimiser_of_the_plan(
    home, quick, open_page
):
    at = open_page("finetune", dataset=DEMO)
    at.button(key="advice_look").click().run()
    assert "Use this rate" not in labels(at)  # 55 steps of 64 pictures at 0.01 move the model

    at.number_input(key="batch_size").set_value(128).run()
    assert "0.01, times 28 steps is 0.28" in said(at)
    at.button(key="advice_rate").click().run()

    assert not at.exception
    assert at.session_state["finetune_lr"] == 0.018
    assert at.button(key="advice_rate").disabled
    at.selectbox(key="optimizer").set_value("adam").run()
    assert "Use this rate" not in labels(at)


def test_where_the_verdict_cannot_tell_it_is_said_and_no_larger_rate_offered(
    home, quick, open_page, monkeypatch
):
    whole = HiddenGroup(
        label="all", count=200, right_before=198, fixed=0, broken=70, hidden_fraction=0.04, empty=0
    )
    unclear = Hiding(verdict="cannot tell", of=200, by="group", whole=whole, groups=(whole,))
    judged = tuple(replace(one, hiding=unclear) for one in TRIALS)
    monkeypatch.setattr(cached, "quick_look", lambda *_, **__: judged)
    at = open_page("finetune", dataset=DEMO)
    at.number_input(key="batch_size").set_value(128).run()

    at.button(key="advice_look").click().run()

    assert not at.exception
    assert "The verdict here is “cannot tell”, not that hiding takes away" in said(at)
    assert "times 28 steps is 0.28: under 0.5 models hardly moved. A larger rate makes" in said(at)
    assert "Use this rate" not in labels(at)


def test_other_statistics_are_looked_at_anew(home, quick, open_page):
    at = open_page("finetune", dataset=DEMO)
    at.button(key="advice_look").click().run()

    at.selectbox(key="statistics").select("all").run()

    assert "Suggest a k" in labels(at)
    at.button(key="advice_look").click().run()
    assert [masking.statistics for masking in quick] == ["positive", "all"]


def test_the_thorough_way_is_one_grid_of_every_k_without_those_that_are_here(
    home, quick, open_page, monkeypatch
):
    started = []
    monkeypatch.setattr("masktune.studies.jobs.launch", lambda *said, **_: started.append(said))
    monkeypatch.setattr(cached, "quick_look", lambda *_, **__: tuple(trial(k) for k in KS))
    here = [make_run(home, "done", k=2.0), make_run(home, "under-way", k=3.0, state="queued")]
    at = look_with(here, open_page, monkeypatch)
    assert "Finetune at 5 thresholds" in labels(at)

    at.button(key="advice_runs").click().run()

    assert not at.exception
    left = [k for k in KS if k not in (2.0, 3.0)]
    [(path, words)] = started
    assert words[words.index("--ks") + 1] == ",".join(f"{k:g}" for k in left)
    [study] = studies.history()
    assert (study.path, study.kind) == (path, "grid")
    assert [one["k"] for one in study.plan] == left
    assert "Waiting: 0 of 5 runs, 5 settings × 1 seed" in said(at)
    assert {"Finetunes under way", "Pause", "Stop the grid"} <= {*labels(at)}
    assert at.button(key="advice_runs").disabled


@pytest.mark.parametrize(
    "address", [{}, {"finetune_lr": "0.05"}, {"rounds": "2"}, {"strategy": "cold"}, {"layer": "0"}]
)
def test_runs_of_the_grid_are_at_the_settings_of_the_plan(home, quick, open_page, address):
    config = sensible({"dataset": DEMO, "model": "bundled", **read(address)})

    runs = [*plan(at_thresholds(config, [0.5, 3.0]), out=home)]

    at_k = [replace(config, masking=replace(config.masking, k=k)) for k in (0.5, 3.0)]
    assert [one.config for one in runs] == at_k


def read(address):
    return {name: OPTIONS[name].read(text) for name, text in address.items()}


@pytest.fixture
def a_sweep(home):
    """Put a grid of thresholds into the home as the card starts it, with some finished runs."""

    def put(*ks, done=(), **changes):
        config = demo_config(**changes)
        asked = at_thresholds(config, ks)
        path = home / "studies" / "a-sweep"
        runs = [*plan(asked, out=path)]
        for one in runs[: len(done)]:
            RunFolder.claim(one.path, one.config).write_json("result.json", run_result(0.9))
        folder = RunFolder(path)
        about = {"strategies": asked.strategies, "ks": ks, "rates": asked.rates}
        folder.write_json("request.json", {**about, "seeds": asked.seeds, "created": 1.0})
        told = {"kind": "grid", "about": {**asked.given}, "table": {}, "step": len(done)}
        told["plan"] = [one.to_json(out=path) for one in runs]
        folder.write_json(STUDY, {**told, "state": "interrupted", "updated": 1.0})

    return put


def test_finished_runs_of_a_paused_grid_fill_the_table_and_it_can_go_on(
    home, quick, open_page, a_sweep
):
    a_sweep(1.0, 1.5, 2.5, done=(1.0, 1.5))
    at = open_page("finetune", dataset=DEMO)
    at.button(key="advice_look").click().run()

    assert not at.exception
    assert "Paused: 2 of 3 runs" in said(at)
    assert "k = 1 and 1.5 were also finetuned" in said(at)
    assert "Finetune at 1 threshold" in labels(at)
    assert "Go on with this grid" in labels(at)

    at.button(key="compare_a-sweep").click().run()

    ids = [f"studies/a-sweep/seed-0/heat-k-{k}" for k in ("1", "1.5")]
    assert (at.session_state.run, at.session_state.compared) == (ids[1], ids)  # the plan's k is 2


def test_where_no_grid_can_be_made_the_card_says_why_and_still_has_its_numbers(
    home, quick, open_page, a_sweep
):
    a_sweep(1.0, 1.5)
    at = open_page("finetune", dataset=DEMO, seed="1")
    at.button(key="advice_look").click().run()

    assert not at.exception
    assert not at.error
    assert "Suggested: k = " in said(at)
    assert at.button(key="advice_runs").disabled
    assert "The bundled model was trained on the split of seed 0" in said(at)


@pytest.mark.parametrize(
    "changes", [{"finetune_lr": 0.5}, {"masking": MaskingConfig(rounds=2)}], ids=str
)
def test_a_grid_at_other_settings_is_not_that_of_the_card(home, quick, open_page, a_sweep, changes):
    a_sweep(1.0, 1.5, **changes)
    at = open_page("finetune", dataset=DEMO)
    at.button(key="advice_look").click().run()

    assert not at.exception
    assert "Paused:" not in said(at)


def test_finished_runs_fill_the_table_and_the_words_say_which_k_they_are(
    home, quick, open_page, monkeypatch
):
    at = look_with([make_run(home, "done")], open_page, monkeypatch)

    assert not at.exception
    cells = "<td><b>90.0%</b></td><td><b>80.0%</b></td><td><b>70.0%</b></td></tr>"
    assert cells in said(at)
    assert "only k = 1.5 was also finetuned for one epoch" in said(at)
    assert "Finetuned, it answers 90.0% of the hidden training pictures right" in said(at)
    assert "Finetune at 2 thresholds" in labels(at)


def test_a_finetune_that_does_not_fit_its_pictures_moves_the_suggestion(
    home, quick, open_page, monkeypatch
):
    # The floor lies half way from 0.5 to 0.99: 0.745.
    at = look_with([make_run(home, "done", fit=0.74)], open_page, monkeypatch)

    assert "**Suggested: k = 1**" in said(at)


def test_of_several_runs_at_a_k_the_newest_that_can_be_read_counts(
    home, quick, open_page, monkeypatch
):
    here = [
        make_run(home, "of-another-version", fit=None),
        make_run(home, "newer", fit=0.92),
        make_run(home, "older", fit=0.91),
    ]
    at = look_with(here, open_page, monkeypatch)

    assert "<b>92.0%</b>" in said(at)


@pytest.mark.parametrize(
    "changes",
    [
        {"state": "queued"},
        {"state": "failed"},
        {"fit": None},
        {"finetune_lr": 0.5},
        {"seed": 1},
        {"model": "other.pt"},
        {"masking": MaskingConfig(k=1.5, statistics="all")},
        {"masking": MaskingConfig(k=1.5, rounds=2)},
        {"masking": MaskingConfig(k=1.5, strategy="random")},
    ],
    ids=str,
)
def test_a_run_that_is_not_done_or_of_other_settings_counts_for_nothing(
    home, quick, open_page, monkeypatch, changes
):
    at = look_with([make_run(home, "other", **changes)], open_page, monkeypatch)

    assert not at.exception
    assert said(at).count("<td>–</td>") + said(at).count("<td><b>–</b></td>") == 9
    assert "nothing was finetuned" in said(at)
    under_way = changes.get("state") == "queued"
    assert f"Finetune at {2 if under_way else 3} thresholds" in labels(at)


def test_a_result_that_cannot_be_read_counts_for_nothing(home, quick, open_page, monkeypatch):
    job = make_run(home, "broken")
    (job.path / "result.json").write_text("{")

    at = look_with([job], open_page, monkeypatch)

    assert not at.exception
    assert "nothing was finetuned" in said(at)


def test_runs_of_the_plans_rounds_are_said_to_be_of_several(home, quick, open_page, monkeypatch):
    job = make_run(home, "twice", masking=MaskingConfig(k=1.5, rounds=2))
    at = look_with([job], open_page, monkeypatch)
    assert "nothing was finetuned" in said(at)

    at.number_input(key="rounds").set_value(2).run()

    assert "only k = 1.5 was also finetuned in 2 rounds" in said(at)


@pytest.mark.parametrize(
    ("wanted", "trials", "words"),
    [
        (3, TRIALS, "Finetune at 3 thresholds"),
        (1, SOME, "Finetune at 1 threshold"),
        (0, SOME, "Finetunes under way"),
        (0, SOME[1:2], "Finetuned at every k here"),
    ],
)
def test_the_button_tells_what_is_missing_from_what_is_under_way_and_done(wanted, trials, words):
    assert runs_words(wanted, trials) == words


@pytest.mark.parametrize("address", [{"model": "train"}, {}])
def test_where_there_is_no_threshold_to_choose_the_card_is_away(home, quick, open_page, address):
    at = open_page("finetune", dataset=DEMO, **address)
    if not address:
        assert "Which k?" in said(at)
        at.segmented_control(key="strategy_switch").set_value("random").run()

    assert not at.exception
    assert "Which k?" not in said(at)


def test_what_goes_wrong_while_looking_is_explained_and_the_page_stays(
    home, quick, open_page, monkeypatch
):
    def fail(*_, **__):
        raise ModelError("The heat cannot be read.", "Choose another layer.")

    monkeypatch.setattr(cached, "quick_look", fail)
    at = open_page("finetune", dataset=DEMO)

    at.button(key="advice_look").click().run()

    assert not at.exception
    assert "The heat cannot be read." in said(at)
    assert "Finetune for one epoch" in labels(at)


@pytest.mark.slow
def test_the_look_of_the_demo_suggests_the_papers_k(home, open_page):
    cached._THRESHOLDS.clear()
    at = open_page("finetune", dataset=DEMO)

    at.button(key="advice_look").click().run()

    assert not at.exception
    assert "**Suggested: k = 2**" in said(at)


def test_the_table_makes_the_suggested_row_strong():
    table = html(trials_table(TRIALS))

    assert "<b>1.5</b></th><td><b>4.0%</b></td><td><b>0.0%</b></td>" in table
    assert table.count("<b>") == 8
    assert table.count("<td>–</td>") == 2 * 3  # nothing was finetuned, and no number is made up
    assert "on 200 training pictures; 99.0% when nothing is hidden" in table_words(TRIALS)


def test_the_chart_says_what_it_shows():
    figure = trials_figure(TRIALS, k=2.0)

    assert [line.name for line in figure.data] == [
        "right when hidden, before",
        "pixels hidden",
        "pictures with nothing hidden",
    ]
    assert list(figure.data[2].y) == [0.0, 0.0, 0.25]
    assert "k = 2.5: 4.0% of the pixels hidden, nothing hidden in 25.0%" in figure.layout.meta
    assert "validation" not in figure.layout.meta


def test_the_chart_has_a_gap_in_the_validation_line_where_nothing_was_finetuned():
    figure = trials_figure(SOME, k=2.0)

    assert figure.data[3].name == "right on validation, after"
    assert list(figure.data[3].y) == [None, 0.8, None]
    assert figure.data[3].connectgaps is None
    assert figure.layout.meta.count("After the finetune 80.0% right on validation.") == 1


def test_the_file_holds_every_trial_with_fractions_and_the_suggestion():
    rows = list(csv.DictReader(io.StringIO(csv_of(trials_table(TRIALS)).decode())))

    assert [row["k"] for row in rows] == ["1.0", "1.5", "2.5"]
    assert rows[2]["empty_fraction"] == "0.25"
    assert rows[0]["accuracy_hidden"] == "0.64"
    assert [row["suggested"] for row in rows] == ["0", "1", "0"]
    assert rows[0]["tuned_train"] == rows[0]["tuned_validation"] == ""


def test_the_file_holds_what_finetunes_came_to():
    row = list(csv.DictReader(io.StringIO(csv_of(trials_table(SOME)).decode())))[1]

    tuned = {name: value for name, value in row.items() if name.startswith("tuned")}
    assert tuned == {
        "tuned_train": "0.9",
        "tuned_validation": "0.8",
        "tuned_worst_class": "0.7",
    }


def test_the_words_tell_finetuned_thresholds_from_those_only_looked_at():
    both = (*SOME[:2], replace(SOME[2], tuned=TUNED))

    assert "k = 1.5 and 2.5 were also finetuned for one epoch" in look_words(both, 3500)
    assert "on all 3,500" in look_words(both, 3500)
    assert "every k here was also finetuned in 2 rounds" in look_words(both[1:], 3500, rounds=2)


def test_a_look_at_every_picture_says_so():
    assert "all 200 training pictures" in look_words(TRIALS, 200)
