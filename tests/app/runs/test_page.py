"""Runs as a page: what is asked for is in the address, and what is deleted comes back."""

import io
import json
import re
import shutil
import zipfile
from csv import DictReader
from pathlib import Path
from urllib.parse import unquote

import psutil
import pytest

from app.runs import actions, together
from app.shared import pieces
from app.shared.run_rows import finished_runs
from app.state import RUNS_PAGE
from masktune.runs import index, jobs, parcel, trash
from masktune.runs.parcel import pack, unpack
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
    words = [each.value for each in at.markdown] + [each.proto.body for each in at.get("html")]
    return " ".join(words).replace("\N{NO-BREAK SPACE}", " ")


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


def test_a_run_that_has_no_curve_is_named(two, home, open_page):
    for name in ("events.jsonl", "predictions.npz"):
        (home / "runs" / two[1] / name).unlink()

    at = open_page("runs", ticked=",".join(two))

    assert len(at.get("plotly_chart")) == 1
    assert "Not there: MaskTune, k = 2, of which no step of training is recorded." in said(at)
    at = open_page("runs", ticked=",".join(two), runs_curve="risk")
    assert said(at).count("Not there: MaskTune, k = 2, which have no answers on it.") == 2


def test_a_point_of_the_risk_of_ticked_runs_opens_the_pictures_of_its_own_run(two, open_page):
    at = open_page("runs", ticked=",".join(two), runs_curve="risk")
    figure = json.loads(next(one.proto.spec for one in at.get("plotly_chart")))
    points = {point for line in figure["data"] for point in line["customdata"] if point}
    assert {point.split(":")[-1] for point in points} == {*two}

    # Without a pointer, what is answered at the target of Abstain.
    links = re.findall(r'shown=(answered%3A\S+)">(MaskTune, k = \d), \S+ answered', said(at))
    assert [name for _, name in links] == ["MaskTune, k = 1", "MaskTune, k = 2"]
    assert {unquote(mark) for mark, _ in links} <= points
    for number, run in enumerate(two, start=1):
        own = [point for point in points if point.endswith(f":{run}")]
        assert f"answered:biased:after:1000:-1:{run}" in own  # all of them
        mark = next(p for p in own if p.startswith("answered:biased:after:") and ":1000:" not in p)
        at = open_page("runs", ticked=",".join(two), runs_curve="risk", shown=mark)

        assert not at.exception
        assert not at.error
        (dialog,) = at.get("dialog")
        title = dialog.proto.dialog.title
        assert title.startswith(f"Answered by the after score, MaskTune, k = {number}, ")
        assert title.endswith(f": {mark.split(':')[3]} pictures")


@pytest.mark.parametrize("mark", ["answered:original:after:9:-1:../x", "group:original:1", "x"])
def test_a_mark_that_names_no_run_of_this_home_opens_no_pictures(mark, two, open_page):
    at = open_page("runs", shown=mark)

    assert not at.exception
    assert len(at.error) == 1


def test_the_risk_of_ticked_runs_is_saved_point_by_point(two, open_page, files):
    open_page("runs", ticked=",".join(two), runs_curve="risk")

    rows = [*DictReader(files["runs-risk.csv"]().decode().splitlines())]

    assert {row["run, score"] for row in rows} >= {"MaskTune, k = 1", "MaskTune, k = 2"}


@pytest.fixture
def files(monkeypatch):
    """Collect what can be saved, by the name of the file, in place of the buttons."""
    found = {}

    def download(_, data, name, **__):
        found[name] = data

    monkeypatch.setattr(pieces, "download", download)  # for the page, which is read anew
    monkeypatch.setattr(actions, "download", download)
    monkeypatch.setattr(together, "download", download)
    return found


def test_the_list_is_saved_with_the_runs_that_were_asked_for(two, open_page, files):
    open_page("runs", runs_sort="k", runs_order="up")
    rows = [*DictReader(files["runs.csv"]().decode().splitlines())]
    assert [(row["run"], row["k"]) for row in rows] == [(two[0], "1.0"), (two[1], "2.0")]

    files.clear()
    jobs.describe(jobs.path_of(two[1]), note="mine")
    open_page("runs", runs_search="mine")

    assert [row["run"] for row in DictReader(files["runs.csv"]().decode().splitlines())] == [two[1]]


def test_a_ticked_run_is_exported_as_a_zip_that_can_be_imported(two, open_page, files):
    at = open_page("runs", ticked=two[0])
    assert not at.exception
    name = f"{two[0]}.zip"
    held = zipfile.ZipFile(io.BytesIO(files[name]()))
    assert f"{two[0]}/result.json" in held.namelist()
    zipped = jobs.runs_home() / "packed.zip"
    zipped.write_bytes(files[name]())
    shutil.rmtree(jobs.path_of(two[0]))

    assert unpack(zipped) == [jobs.path_of(two[0])]


def test_ticked_runs_are_exported_as_one_zip_also_one_that_failed(two, open_page, files):
    (jobs.path_of(two[1]) / "result.json").unlink()
    (jobs.path_of(two[1]) / "status.json").write_text('{"state": "failed"}')

    open_page("runs", ticked=",".join(two))

    held = zipfile.ZipFile(io.BytesIO(files["runs.zip"]())).namelist()
    assert {f"{two[0]}/result.json", f"{two[1]}/status.json"} <= {*held}


def test_more_than_an_import_takes_is_not_packed(two, open_page, files, monkeypatch):
    monkeypatch.setattr(parcel, "MOST_BYTES", 1000)

    at = open_page("runs", ticked=",".join(two))

    assert not at.exception
    assert "untick some" in said(at)
    assert "runs.zip" not in files


def test_a_run_that_is_being_written_is_not_exported(two, open_page, files):
    path = jobs.path_of(two[1])
    (path / "result.json").unlink()
    process = psutil.Process()
    me = {"state": "running", "pid": process.pid, "started": process.create_time()}
    (path / "status.json").write_text(json.dumps(me))

    open_page("runs", ticked=",".join(two))

    assert {*files} >= {f"{two[0]}.zip"}
    assert "runs.zip" not in files


def test_the_folder_of_a_run_elsewhere_is_imported_by_its_path(two, open_page, tmp_path):
    there = shutil.move(jobs.path_of(two[0]), tmp_path / "elsewhere")
    at = open_page("runs")

    at.text_input(key="runs_folder").set_value(f" {there} ").run()

    assert not at.exception
    assert not at.error
    assert at.session_state.ticked == "elsewhere"
    assert {job.id for job in jobs.every()} == {"elsewhere", two[1]}

    at.text_input(key="runs_folder").set_value(f"{tmp_path}/none").run()

    assert "is no folder" in at.error[0].value


def test_the_command_of_a_ticked_run_spells_out_every_setting(two, open_page):
    at = open_page("runs", ticked=",".join(two))

    commands = [code.value for code in at.code]

    assert commands == [f"{jobs.repeat_command(jobs.find(run).config)} --out DIR" for run in two]
    assert ["--k 1.0 " in command for command in commands] == [True, False]


def test_name_and_note_of_a_ticked_run_are_saved_and_shown(two, open_page):
    at = open_page("runs", ticked=two[0])
    next(one for one in at.text_input if one.label == "Name").set_value(" Mine ")
    at.text_area[0].set_value("too slow")
    next(one for one in at.text_input if one.label == "Tags").set_value("paper  old")

    at.button(key=f"save_{two[0]}").click().run()

    assert not at.exception
    job = jobs.find(two[0])
    assert (job.name, job.note, job.tags) == ("Mine", "too slow", ("paper", "old"))
    assert "Mine" in said(at)
    assert "too slow" in said(at)


def test_ticked_runs_of_a_study_stand_on_compare_and_of_others_it_says_why_not(two, open_page):
    alone, twin = jobs.path_of(two[0]), "studies/a-grid/seed-0/heat-k-2"
    shutil.copytree(jobs.path_of(two[1]), jobs.path_of(twin))
    seed = "studies/a-grid/seed-1/heat-k-2"
    other = shutil.copytree(alone, jobs.path_of(seed))
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps({**config, "seed": 1}))
    data = json.loads((other / "data.json").read_text())
    (other / "data.json").write_text(json.dumps({**data, "fingerprint": "of another split"}))
    ids = [two[0], twin, seed]
    at = open_page("runs", ticked=",".join(ids))

    next(button for button in at.button if button.label == "Open on Compare").click().run()

    assert not at.exception
    assert (at.session_state.run, at.session_state.compared) == (two[0], ids)

    at = open_page("compare", dataset="biased-mnist-5k", run=two[0], compared=json.dumps(ids))

    assert not at.exception
    beside = next(one for one in at.multiselect if one.label == "Beside this run")
    assert beside.value == [twin]
    assert "MaskTune, k = 1, on another split of these pictures (seed 1)." in said(at)


def test_an_archived_run_is_offered_nowhere_unless_it_is_asked_for(two, open_page):
    jobs.describe(jobs.path_of(two[1]), archived=True)

    assert two[1] not in open_page("compare", run=two[0]).selectbox(key="run_of_Run").options
    assert [job.id for job in finished_runs()] == [two[0]]
    assert {job.id for job in finished_runs(two[1])} == {*two}
    assert {job.id for job in finished_runs(named=[two[1]])} == {*two}
    assert f"open_{two[1]}" not in {one.key for one in open_page("finetune", run=two[0]).button}


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


def test_undo_brings_ticks_back_in_their_order_beside_those_made_meanwhile(two, open_page):
    third = "20261103-080000-biased-mnist-5k-00000003"
    shutil.copytree(jobs.path_of(two[0]), jobs.path_of(third))
    at = open_page("runs", ticked=",".join([two[1], two[0]]), compared=json.dumps([*two]))

    next(button for button in at.button if button.label == "Delete").click().run()
    assert (at.session_state.ticked, at.session_state.compared) == ("", [])
    at.checkbox(key=f"tick_{third}").check().run()
    next(button for button in at.button if button.label == "Undo").click().run()

    assert not at.exception
    assert at.session_state.ticked == ",".join([two[1], two[0], third])
    assert at.session_state.compared == [*two]
    assert "3 runs ticked" in said(at)


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
    next(one for one in at.text_input if one.label == "Add tags").set_value("new, best")
    next(button for button in at.button if button.label == "Save").click().run()

    assert not at.exception
    assert [jobs.find(run).tags for run in two] == [("mine", "new", "best"), ("new", "best")]


def test_a_comma_separates_the_tags_of_one_run(two, open_page):
    at = open_page("runs", ticked=two[0])

    next(one for one in at.text_input if one.label == "Tags").set_value("best, a")
    next(button for button in at.button if button.label == "Save").click().run()

    assert not at.exception
    assert jobs.find(two[0]).tags == ("best", "a")


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

    upload = next(each for each in at.file_uploader if each.label == "Runs as a ZIP")
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


def test_a_run_of_a_dataset_that_is_unknown_here_takes_no_list_down(two, open_page, home):
    path = home / "runs" / two[0] / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "dataset": "of-tomorrow"}))

    at = open_page("runs")

    assert not at.exception
    assert "1 run." in said(at)


def test_another_search_begins_with_its_first_page(home, open_page):
    for number in range(45):
        put_small(home / "runs", f"20261101-0800{number:02}-biased-mnist-5k-{number:08}")
    at = open_page("runs", runs_list_page="2")
    assert address(at)["runs_list_page"] == "2"

    at.text_input(key="runs_search").set_value("mnist").run()

    assert not at.exception
    assert "runs_list_page" not in address(at)


@pytest.mark.parametrize("label", ["Pin", "Archive"])
def test_what_is_said_of_a_run_that_was_deleted_meanwhile_is_a_problem(label, two, home, open_page):
    at = open_page("runs", ticked=two[0])
    shutil.rmtree(home / "runs" / two[0])

    next(button for button in at.button if button.label == label).click().run()

    assert not at.exception
    assert "is not here any more" in at.error[0].value
    assert not (home / "runs" / two[0]).exists()
