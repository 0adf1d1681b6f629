"""What runs came to, read off their folders and saved as a list."""

import csv
import io
import json

from app.finetune.results import runs_csv
from app.opened import result_of
from masktune.runs import jobs


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

    rows = list(csv.DictReader(io.StringIO(runs_csv(jobs.history()).decode())))

    done = next(row for row in rows if row["state"] == "done")
    failed = next(row for row in rows if row["state"] == "failed")
    assert float(done["worst after"]) == worst.accuracy
    assert (float(done["worst after, low"]), float(done["worst after, high"])) == worst.interval
    assert done["worst after, n"] == "511"
    assert (failed["problem"], failed["worst after"]) == ("It broke, twice.", "")
