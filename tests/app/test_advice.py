"""The card "Which k?" of the Finetune page: its numbers, its words and its buttons."""

import csv
import io
from dataclasses import replace

import pytest

from app import cached, jobs
from app.components.advice_card import look_words, table_html, trials_csv, trials_figure
from masktune.advice import Advice, Trial
from masktune.config import MaskingConfig
from masktune.errors import ModelError
from masktune.runs import RunFolder
from masktune.sweep import KS
from tests.app.conftest import DEMO, demo_config


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


@pytest.fixture
def quick(monkeypatch):
    """Answer at once instead of asking a model; say how often a look was asked for."""
    looks = []

    def look(model, bundle, *, masking, watcher, **_):
        looks.append(masking)
        return TRIALS

    monkeypatch.setattr(cached, "quick_look", look)
    cached._kept("thresholds").clear()
    yield looks
    cached._kept("thresholds").clear()


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
    assert at.slider(key="finetune_k").value == 1.5
    assert at.session_state["masktune"].masking.k == 1.5
    assert at.query_params["k"] in ("1.5", ["1.5"])
    assert at.button(key="advice_use").disabled


def test_other_statistics_are_looked_at_anew(home, quick, open_page):
    at = open_page("finetune", dataset=DEMO)
    at.button(key="advice_look").click().run()

    at.selectbox(key="finetune_statistics").select("all").run()

    assert "Suggest a k" in labels(at)
    at.button(key="advice_look").click().run()
    assert [masking.statistics for masking in quick] == ["positive", "all"]


def test_the_thorough_way_is_one_ordinary_run_for_each_k_without_those_that_are_here(
    home, quick, open_page, monkeypatch
):
    started = []

    def start(config, **_):
        path = home / "runs" / f"run-{len(started)}"
        RunFolder.claim(path, config)
        started.append(config)
        return path

    here = demo_config(masking=MaskingConfig(k=2.0))
    folder = home / "runs" / "earlier"
    RunFolder.claim(folder, here)
    done = replace(jobs.look(folder), state="done")
    monkeypatch.setattr(jobs, "start", start)
    monkeypatch.setattr(jobs, "history", lambda: [done])
    at = open_page("finetune", dataset=DEMO)
    at.button(key="advice_look").click().run()
    assert "Finetune at 6 thresholds" in labels(at)

    at.button(key="advice_runs").click().run()

    assert started == [demo_config(masking=MaskingConfig(k=k)) for k in KS if k != 2.0]
    assert at.session_state["masktune"].run == "run-0"


@pytest.mark.parametrize("address", [{"model": "train"}, {}])
def test_where_there_is_no_threshold_to_choose_the_card_is_away(home, quick, open_page, address):
    at = open_page("finetune", dataset=DEMO, **address)
    if not address:
        assert "Which k?" in said(at)
        at.segmented_control(key="finetune_what").set_value("random").run()

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
    cached._kept("thresholds").clear()
    at = open_page("finetune", dataset=DEMO)

    at.button(key="advice_look").click().run()

    assert not at.exception
    assert "**Suggested: k = 2**" in said(at)


def test_the_table_makes_the_suggested_row_strong():
    table = table_html(TRIALS, Advice(k=1.5, reason=""))

    assert "<td><b>1.5</b></td><td><b>4.0%</b></td><td><b>0.0%</b></td>" in table
    assert table.count("<td><b>") == 4
    assert "on 200 pictures; 99.0% when nothing is hidden" in table


def test_the_chart_says_what_it_shows():
    figure = trials_figure(TRIALS, k=2.0)

    assert [line.name for line in figure.data] == [
        "right answers when hidden",
        "pixels hidden",
        "pictures with nothing hidden",
    ]
    assert list(figure.data[2].y) == [0.0, 0.0, 0.25]
    assert "k = 2.5: 4.0% of the pixels hidden, nothing hidden in 25.0%" in figure.layout.meta


def test_the_file_holds_every_trial_with_fractions_and_the_suggestion():
    rows = list(csv.DictReader(io.StringIO(trials_csv(TRIALS).decode())))

    assert [row["k"] for row in rows] == ["1.0", "1.5", "2.5"]
    assert rows[2]["empty_fraction"] == "0.25"
    assert rows[0]["accuracy_hidden"] == "0.64"
    assert [row["suggested"] for row in rows] == ["0", "1", "0"]


def test_a_look_at_every_picture_says_so():
    assert "all 200 training pictures" in look_words(TRIALS, 200)
