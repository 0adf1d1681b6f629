"""The job card: a run in every state, on the page and piece by piece."""

from app.finetune import jobcard
from app.finetune.jobcard import stages_html, where, working_words
from app.finetune.time import widths
from masktune.runs import jobs
from masktune.runs.folder import RunFolder
from tests.app.conftest import DEMO, demo_config
from tests.app.finetune.test_page import button, labels, texts
from tests.app.finetune.test_time import PACE, at_stage


def test_a_running_run_shows_stage_step_speed_and_both_charts(a_run, open_page):
    a_run(state="running", stage="finetune", step=28, total=55, eta=4.2, events=28)

    at = open_page("finetune", dataset=DEMO, run="a-run")

    assert not at.exception
    said = texts(at)
    assert "Running: MaskTune, k = 2" in said
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
    assert "Done: MaskTune, k = 2" in said
    assert "Tuning helped the worst group of “biased”" in said
    assert "5–9,</span> square: 95% interval" in said
    assert "n = 511" in said
    assert "Compare before and after" in labels(at)
    assert len(at.get("plotly_chart")) == 2
    assert "**About" in said  # the run has shown how long one takes


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
    assert "PyTorch and the pictures are being read" in working_words(at_stage(""), None, None)


def test_the_fragment_rests_when_a_run_has_ended(a_run, monkeypatch):
    asked = []

    def fragment(_, *, run_every):
        asked.append(run_every)
        return lambda *_: None

    monkeypatch.setattr(jobcard.st, "fragment", fragment)
    path = a_run(state="running")

    jobcard.follow(jobs.look(path), {})
    RunFolder(path).write_json("status.json", {"state": "cancelled"})
    jobcard.follow(jobs.look(path), {})

    assert asked == [jobcard.POLL, None]
