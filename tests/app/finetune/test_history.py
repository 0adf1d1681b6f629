"""The list of runs on the Finetune page: opened, named, deleted, compared and saved."""

import csv
import io
import json
import shutil
from dataclasses import replace

from app.finetune import history as finetune_history
from app.finetune.history import history_table, rate_words, standing
from app.finetune.jobcard import working_words
from app.opened import result_of
from app.shared.run_rows import clock
from masktune.runs import jobs
from masktune.runs.folder import RunFolder
from masktune.show.tables import csv as csv_of
from tests.app.conftest import DEMO, TRAINS, address, demo_config
from tests.app.finetune.test_page import button, texts


def test_the_list_holds_the_runs_on_these_pictures_only(a_run, open_page):
    a_run("here", state="failed", problem="It broke.")
    a_run("other-pictures", config=demo_config(dataset="two-squares-mnist-5k"), state="failed")
    a_run("other-split", config=demo_config(seed=1), state="failed")

    at = open_page("finetune", dataset=DEMO)

    assert [b.key for b in at.button if b.label == "Open"] == ["open_here"]
    assert "It broke." in texts(at)


def test_the_list_says_how_many_runs_on_these_pictures_are_of_studies(
    home_with_run, finished_run, home, open_page
):
    def link():
        at = open_page("finetune", dataset=DEMO)
        assert not at.exception
        return [one.proto.label for one in at.get("page_link") if "grids" in one.proto.label]

    assert link() == []
    shutil.copytree(finished_run, home / "studies" / "a-grid" / "seed-0" / "heat-k-1")
    assert link() == ["1 more run of grids and tournaments on Runs"]
    shutil.rmtree(home / "runs")
    assert link() == ["1 run of grids and tournaments on Runs"]


def test_opening_a_run_shows_it(home_with_run, finished_run, open_page):
    at = open_page("finetune", dataset=DEMO)

    at.button(key=f"open_{finished_run.name}").click().run()

    assert not at.exception
    assert address(at)["run"] == finished_run.name
    assert "Done: MaskTune" in texts(at)


def test_a_run_gets_a_name_and_a_note(home_with_run, finished_run, open_page):
    at = open_page("finetune", dataset=DEMO)
    next(t for t in at.text_input if t.label == "Name").set_value("As <published>")
    at.text_area[0].set_value("Seed <0>")

    at.button(key=f"save_{finished_run.name}").click().run()

    assert not at.exception
    job = jobs.find(finished_run.name)
    assert (job.name, job.note) == ("As <published>", "Seed <0>")
    assert "As &lt;published&gt;" in texts(at)  # never read as HTML
    assert "Seed &lt;0&gt;</small>" in texts(at)


def test_a_deleted_run_is_brought_back_by_undo(home_with_run, finished_run, open_page):
    columns = f'["model:{finished_run.name}/after", "layer:features.3"]'
    at = open_page("finetune", dataset=DEMO, run=finished_run.name, columns=columns)

    delete(at, finished_run.name)
    assert jobs.history() == []
    assert at.session_state["columns"] == ["layer:features.3"]
    assert at.session_state["run"] is None
    assert "No run is open" in texts(at)

    next(button for button in at.button if button.label == "Undo").click().run()
    assert not at.exception
    assert [job.id for job in jobs.history()] == [finished_run.name]


def delete(at, run):
    at.button(key=f"delete_{run}").click().run()
    assert not at.exception


def test_the_model_of_a_deleted_run_is_let_go_and_how_it_was_trained_stays(
    a_run, open_page, finished_run
):
    config = replace(TRAINS, training=replace(TRAINS.training, epochs=2, lr=0.05))
    path = a_run(config=config, state="cancelled")
    shutil.copy(finished_run / "before.safetensors", path)
    model = str(path / "before.safetensors")
    at = open_page("finetune", dataset=DEMO, run="a-run", model=model, finetune_lr="0.5")

    delete(at, "a-run")

    plan = {"dataset": DEMO, "model": "train", "epochs": "2", "lr": "0.05", "finetune_lr": "0.5"}
    assert address(at) == plan


def test_a_control_outlives_the_run_that_trained_its_model(
    a_run, open_page, finished_run, slow_looks
):
    trainer = a_run("trainer", config=TRAINS, state="cancelled")
    shutil.copy(finished_run / "before.safetensors", trainer)
    model = str(trainer / "before.safetensors")
    control = a_run("control", config=demo_config(model=model, arch="auto"), state="cancelled")
    at = open_page("finetune", run="control")
    assert at.session_state["model"] == model

    delete(at, "trainer")

    copy = str(control / "before.safetensors")
    assert (at.session_state["run"], at.session_state["model"]) == ("control", copy)
    at.switch_page("mask/page.py").run()
    assert not at.exception
    assert not at.error
    at.switch_page("finetune/page.py").run()
    delete(at, "control")
    assert address(at) == {"dataset": DEMO}


def test_two_chosen_runs_go_to_the_compare_page(home_with_run, finished_run, open_page):
    shutil.copytree(finished_run, home_with_run / "runs" / "second")
    at = open_page("finetune", dataset=DEMO)
    at.checkbox(key=f"choose_{finished_run.name}").check().run()
    assert button(at, "Compare the chosen runs").disabled
    assert "Tick one more" in texts(at)

    at.checkbox(key="choose_second").check().run()

    assert not button(at, "Compare the chosen runs").disabled
    assert set(at.session_state["compared"]) == {finished_run.name, "second"}


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
    assert at.session_state["compared"] == [finished_run.name]


def test_the_outcome_of_a_run_is_what_its_result_says(home_with_run, finished_run):
    job = jobs.find(finished_run.name)
    scores = json.loads((job.path / "result.json").read_text())["test"]["biased"]

    result = result_of(job).first

    assert result.name == "biased"
    assert result.after.to_json() == scores["after"]
    assert result.before.to_json() == scores["before"]


def test_the_list_is_saved_as_csv_with_all_numbers(home_with_run, finished_run, a_run):
    a_run("failed", state="failed", problem="It broke, twice.")
    worst = result_of(jobs.find(finished_run.name)).first.after.worst

    rows = list(csv.DictReader(io.StringIO(csv_of(history_table(jobs.history())).decode())))

    done = next(row for row in rows if row["state"] == "done")
    failed = next(row for row in rows if row["state"] == "failed")
    assert float(done["worst after"]) == worst.accuracy
    assert (float(done["worst after, low"]), float(done["worst after, high"])) == worst.interval
    assert done["worst after, n"] == "511"
    assert (failed["problem"], failed["worst after"]) == ("It broke, twice.", "")


def test_a_run_waits_since_it_was_queued_and_runs_since_it_began(a_run):
    a_run("waits", state="queued")
    a_run("runs", state="running", began=5000.0)
    waiting, running = replace(jobs.find("waits"), created=1000.0), jobs.find("runs")

    assert standing(replace(waiting, ahead=2), None) == (
        f"waiting since {clock(1000.0)}, 2 runs are ahead"
    )
    assert standing(replace(running, created=1000.0), None) == f"since {clock(5000.0)}"
    card = working_words(replace(running, created=1000.0), None, None)
    assert f"Started {clock(5000.0)}." in card


def test_the_rate_of_given_weights_is_the_one_that_was_taken(home_with_run, finished_run):
    job = jobs.find(finished_run.name)
    given = replace(job, config=replace(job.config, model="weights.pth"))

    assert rate_words(given, result_of(job)) == "0.01"
    assert rate_words(given, None) == "usual"  # only a run has looked into the file
    asked = replace(given, config=replace(given.config, finetune_lr=0.5))
    assert rate_words(asked, None) == "0.5"
