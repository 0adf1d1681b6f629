"""What runs came to, read off their folders and saved as a list."""

import csv
import io
import json
from dataclasses import replace

from app.finetune.results import clock, rate_words, runs_table, standing
from app.opened import result_of
from masktune.runs import jobs
from masktune.show.tables import csv as csv_of


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

    rows = list(csv.DictReader(io.StringIO(csv_of(runs_table(jobs.history())).decode())))

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


def test_the_rate_of_given_weights_is_the_one_that_was_taken(home_with_run, finished_run):
    job = jobs.find(finished_run.name)
    given = replace(job, config=replace(job.config, model="weights.pth"))

    assert rate_words(given, result_of(job)) == "0.01"
    assert rate_words(given, None) == "usual"  # only a run has looked into the file
    asked = replace(given, config=replace(given.config, finetune_lr=0.5))
    assert rate_words(asked, None) == "0.5"
