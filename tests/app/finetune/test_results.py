"""What runs came to, read off their folders and saved as a list."""

import csv
import io

from app.finetune.results import on_same_pictures, outcome, runs_csv
from masktune.checkpoints.settings import settings
from masktune.runs import jobs
from masktune.runs.folder import RunFolder
from tests.app.conftest import DEMO, demo_config


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

    assert on_same_pictures(jobs.look(path), settings({"dataset": DEMO, "root": "data/"}))
    assert not on_same_pictures(jobs.look(path), settings({"dataset": DEMO}))
