"""Runs as a page: what is asked for is in the address, and what is deleted comes back."""

import json
import shutil
from pathlib import Path

import pytest

from app.runs import together
from app.state import RUNS_PAGE
from masktune.runs import index, jobs, trash
from masktune.runs.parcel import pack
from tests.app.conftest import address
from tests.masktune.runs.test_index import put as put_small
from tests.masktune.runs.test_index import put_training
from tests.old_runs import DEMO, put


@pytest.fixture
def two(home):
    """Give a home with two runs at k = 1 and 2, on the same pictures."""
    first = put(DEMO, home / "runs")
    second = shutil.copytree(first, home / "runs" / "20261102-080000-biased-mnist-5k-00000002")
    for path, k in ((first, 1.0), (second, 2.0)):
        config = json.loads((path / "config.json").read_text())
        config["masking"] |= {"k": k, "strategy": "heat"}
        (path / "config.json").write_text(json.dumps(config))
    return first.name, second.name


def said(at) -> str:
    return " ".join(
        [each.value for each in at.markdown] + [each.proto.body for each in at.get("html")]
    )


def test_a_home_without_runs_says_how_to_get_one(home, open_page):
    at = open_page("runs")

    assert not at.exception
    assert "No run yet" in said(at)


def test_an_address_brings_the_search_the_order_and_the_ticked_runs(two, open_page):
    given = {
        "ticked": ",".join(two),
        "runs_search": "mnist",
        "runs_state": "finished",
        "runs_sort": "k",
        "runs_order": "up",
        "runs_test": "original",
        "runs_curve": "accuracy",
        "runs_against": two[1],
    }

    at = open_page("runs", **given)

    assert not at.exception
    assert not at.error
    assert {name: value for name, value in address(at).items() if name in RUNS_PAGE} == given
    text = said(at)
    assert "2 runs." in text
    assert "**2 runs ticked**" in text
    assert text.index("MaskTune, k = 1") < text.index("MaskTune, k = 2")
    assert "On “original”" in [header.value for header in at.header]
    # The same answers: every paired difference is none.
    assert "0.0" in text


def test_answers_of_ticked_runs_are_read_once(two, open_page, monkeypatch):
    read, asked = together._open, []
    monkeypatch.setattr(together, "_open", lambda *of: asked.append(of) or read(*of))
    at = open_page("runs", ticked=",".join(two), runs_curve="risk")
    assert asked

    asked.clear()
    at.run()

    assert not at.exception
    assert asked == []


def test_a_link_that_names_what_is_not_here_shows_all(two, open_page):
    at = open_page("runs", runs_dataset="no-such", runs_sort="beauty", ticked="gone,../x")

    assert not at.exception
    assert "2 runs." in said(at)
    assert "ticked**" not in said(at)


def test_what_is_deleted_is_brought_back_by_undo(two, open_page):
    at = open_page("runs")
    at.checkbox(key=f"tick_{two[0]}").check().run()
    assert at.session_state.ticked == two[0]

    next(button for button in at.button if button.label == "Delete").click().run()

    assert [job.id for job in jobs.every()] == [two[1]]
    assert at.session_state.ticked == ""
    assert "1 run was deleted." in said(at)

    next(button for button in at.button if button.label == "Undo").click().run()

    assert not at.exception
    assert {job.id for job in jobs.every()} == {*two}
    assert trash.thrown() == []


def test_a_pinned_run_comes_first_and_an_archived_one_is_left_out(two, open_page):
    at = open_page("runs")
    at.checkbox(key=f"tick_{two[0]}").check().run()
    next(button for button in at.button if button.label == "Pin").click().run()
    assert said(at).index("★ MaskTune, k = 1") < said(at).index("MaskTune, k = 2")

    next(button for button in at.button if button.label == "Archive").click().run()

    assert "1 of 2 runs" in said(at)
    assert jobs.find(two[0]).archived


def test_tags_are_added_to_ticked_runs_and_taken_off_again(two, open_page):
    jobs.describe(jobs.path_of(two[0]), tags=["old", "mine"])
    at = open_page("runs", ticked=",".join(two))

    at.multiselect[0].set_value(["old"])
    next(one for one in at.text_input if one.label == "Add tags").set_value("new")
    next(button for button in at.button if button.label == "Save").click().run()

    assert not at.exception
    assert [jobs.find(run).tags for run in two] == [("mine", "new"), ("new",)]


def test_a_training_is_listed_as_one_and_opened_as_a_model(home, open_page):
    path = put_training(home, "runs/trained")
    at = open_page("runs")
    assert "Training: small-cnn, 12 epochs" in said(at)
    assert at.selectbox(key="runs_method").options == ["All", "Training only"]

    at.button(key="open_trained").click().run()

    assert not at.exception
    assert at.session_state.run is None
    assert at.session_state.model == str(path / "before.safetensors")
    assert "training" not in address(at)  # nothing is awaited: another training may follow


def test_what_somebody_called_a_run_is_no_markdown(two, open_page):
    jobs.describe(jobs.path_of(two[0]), name="![x](https://example.org/x.png)")

    at = open_page("runs")

    told = [at.checkbox(key=f"tick_{two[0]}").label, at.button(key=f"open_{two[0]}").help]
    assert not any("![x](" in text for text in told)


def test_an_imported_run_is_seen_whatever_was_asked_for_before(two, open_page):
    packed = pack(jobs.path_of(two[0]))
    shutil.rmtree(jobs.path_of(two[0]))
    other = jobs.path_of(two[1]) / "config.json"
    other.write_text(other.read_text().replace('"heat"', '"random"'))
    at = open_page("runs", runs_search="mine", runs_method="random", runs_state="failed")

    upload = next(each for each in at.file_uploader if each.label == "A run as a ZIP")
    upload.set_value(("run.zip", packed, "application/zip")).run()

    assert not at.exception
    assert "1 of 2 runs" not in said(at)
    assert "**1 run ticked**" in said(at)


@pytest.mark.slow
def test_a_thousand_unchanged_runs_are_opened_by_their_index(home, open_page, monkeypatch):
    for number in range(1000):
        put_small(home, f"runs/20261101-{number:06d}-biased-mnist-5k-{number:08x}")
    open_page("runs")
    index._known.clear()  # as a server that is started anew
    opened = []
    plain = Path.read_text
    monkeypatch.setattr(
        Path, "read_text", lambda path, *a, **b: opened.append(path.name) or plain(path, *a, **b)
    )

    at = open_page("runs")

    assert not at.exception
    assert "1,000 runs." in said(at)
    assert {"result.json", "config.json", "status.json", "about.json"}.isdisjoint(opened)
