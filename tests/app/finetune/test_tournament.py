"""The card that sets methods side by side: asked for, refused, under way, done and failed."""

import json
import os
import re
import shutil
import time

import psutil
import pytest

from app.finetune.tournament import FILES, tries_example
from masktune.datasets.catalogue import load
from masktune.runs.queue import STUDY
from masktune.studies import jobs as studies
from masktune.studies.tournament.page import ABSTAINING
from masktune.studies.tournament.plan import METHODS, Request
from masktune.studies.tournament.tries import tries_of
from tests.app.conftest import DEMO
from tests.app.finetune.test_page import button, labels, texts

RULE = "Where several settings of a method were run, the best is taken."


@pytest.fixture
def started(home, monkeypatch):
    """Collect the words of every command that the card starts, instead of starting it."""
    found = []
    monkeypatch.setattr(studies, "launch", lambda path, words, **_: found.append((path, [*words])))
    return found


def score(mean):
    values = {"values": [mean], "mean": mean, "std": None, "n": 1, "interval": None}
    return {**values, "interval_over": "pictures"}


def row(method, title, worst, settings=""):
    test = {"original": {"worst_group": score(worst), "average": score(0.9)}}
    known = {"method": method, "title": title, "settings": settings, "test": test}
    return {**known, "supervision": [], "cpu_seconds": 1.0}


PLAN = [
    {"method": "masktune", "title": "MaskTune", "seed": 0, "settings": "k = 2",
     "run": "seed-0/masktune-k-2"},
    {"method": "none", "title": "One more epoch", "seed": 0, "settings": "", "run": "seed-0/none"},
]  # fmt: skip


def document(*rows):
    return {
        "title": "Biased MNIST", "dataset": DEMO, "given": {"dataset": DEMO, "model": "bundled"},
        "methods": ["masktune", "none"], "ks": [], "rates": [1.0], "seeds": [0], "rule": RULE,
        "worst_is": {"original": "group"}, "rows": list(rows),
        "runs": [{**one, "state": "waiting"} for one in PLAN], "command": "python -m masktune",
    }  # fmt: skip


@pytest.fixture
def a_study(home):
    """Make a tournament in some state; this process stands in for one that works or waits."""

    def make(name="a-study", *, table=None, created=None, log="", **status):
        path = home / "studies" / name
        path.mkdir(parents=True)
        if status["state"] in ("queued", "running"):
            status |= {"pid": os.getpid(), "started": psutil.Process().create_time()}
        asked = {"methods": ["masktune", "none"], "ks": [], "rates": [1.0], "seeds": 1}
        created = time.time() if created is None else created
        (path / "request.json").write_text(json.dumps({**asked, "created": created}))
        told = {"kind": "tournament", "about": {"dataset": DEMO, "model": "bundled"}, "plan": PLAN}
        told |= {"table": table or {}, "updated": time.time(), **status}
        (path / STUDY).write_text(json.dumps(told))
        (path / "log.txt").write_text(log)
        return path

    return make


def ask(at, *methods, **fields):
    at.multiselect(key="tournament_pick").set_value(list(methods)).run()
    for name, value in fields.items():
        widget = at.number_input if name == "seeds" else at.text_input
        widget(key=f"tournament_{name}").set_value(value).run()
    assert not at.exception
    return at


def test_at_first_the_paper_s_controls_and_rivals_that_the_pictures_allow_stand_beside_masktune(
    home, open_page, monkeypatch
):
    def offered():
        at = open_page("finetune", dataset=DEMO)
        assert not at.exception
        return at.multiselect(key="tournament_pick").value

    assert offered() == ["masktune", "random", "none", "groupdro", "jtt", "dfr"]

    monkeypatch.setattr(type(load(DEMO)), "knows_groups", lambda _, __: False)

    assert offered() == ["masktune", "random", "none", "jtt"]


def test_the_fields_become_the_words_of_a_command_in_a_folder_of_its_own(home, open_page, started):
    at = ask(open_page("finetune", dataset=DEMO), "masktune", "none", ks="1, 2.5", rates="1,3")

    assert "6 runs" in texts(at)  # two thresholds and one more epoch, at two rates
    button(at, "Start").click().run()

    assert not at.exception
    [(path, words)] = started
    assert path.parent == home / "studies"
    assert words == [
        "tournament", "--dataset", DEMO, "--model", "bundled", "--methods", "masktune,none",
        "--ks", "1,2.5", "--rates", "1,3", "--seeds", "1", "--out", str(path),
    ]  # fmt: skip
    assert "Waiting: 0 of 6 runs" in texts(at)
    assert button(at, "Start").disabled


def test_settings_to_try_go_along_in_the_words_of_the_command_line(home, open_page, started):
    at = ask(open_page("finetune", dataset=DEMO), "afr", tries="focus=1,10 penalty=0,0.5")

    assert "4 runs" in texts(at)
    button(at, "Start").click().run()

    [(_, words)] = started
    assert words[5:-4] == ["--methods", "afr", "--try", "focus=1,10", "--try", "penalty=0,0.5"]


def test_settings_of_load_go_along_where_a_method_looks_at_them(home, open_page, started):
    at = open_page("finetune", dataset=DEMO, model="train", epochs="3", device="cpu")

    button(ask(at, "none"), "Start").click().run()

    [(_, words)] = started
    assert words[1:-6] == ["--dataset", DEMO, "--epochs", "3", "--device", "cpu"]


def test_with_several_seeds_the_bundled_model_is_left_out_and_the_card_says_so(
    home, open_page, started
):
    at = ask(open_page("finetune", dataset=DEMO), "none", seeds=2)

    assert "a model is trained for every seed" in texts(at)
    button(at, "Start").click().run()

    [(_, words)] = started
    assert "--model" not in words
    assert words[words.index("--seeds") + 1] == "2"


@pytest.mark.parametrize(
    ("methods", "fields", "said"),
    [
        ([], {}, "No method is chosen."),
        (["masktune"], {"ks": "one"}, "The thresholds k are given as 'one'."),
        (["masktune"], {"ks": "1,1"}, "The k 1.0 is named twice."),
        (["masktune"], {"ks": "-1"}, "-1"),
        (["none"], {"rates": "0"}, "The rates are 0.0."),
        (["jtt"], {"tries": "error-weight"}, "'error-weight' names no setting with values"),
        (["none"], {"tries": "focus=1,2"}, "add a method that does: afr"),
    ],
)
def test_what_cannot_be_done_is_refused_in_words_before_it_starts(
    methods, fields, said, home, open_page
):
    at = ask(open_page("finetune", dataset=DEMO), *methods, **fields)

    assert said in texts(at)
    assert button(at, "Start").disabled


def test_a_method_whose_needs_are_not_met_is_refused(home, open_page, monkeypatch):
    monkeypatch.setattr(type(load(DEMO)), "knows_groups", lambda _, __: False)

    at = ask(open_page("finetune", dataset=DEMO), "masktune", "dfr")

    assert "DFR needs validation groups" in texts(at)
    assert button(at, "Start").disabled


def test_rates_are_said_before_the_start_with_a_warning_of_one_that_is_too_small(home, open_page):
    enough = ask(open_page("finetune", dataset=DEMO), "masktune", "jtt", "dfr")

    said = "in the finetune of MaskTune (the last one that the model before was trained with)"
    assert said in texts(enough)
    assert "at the start of 12 epochs of JTT; the method's own in the last layer of DFR" in texts(
        enough
    )
    assert not enough.warning

    cows = open_page("finetune", dataset="cows-and-camels")

    [warning] = ask(cows, "masktune").warning
    assert "The finetune's rate, 0.01, times 19 steps is 0.19" in warning.value.replace("\\", "")
    assert not ask(cows, "masktune", rates="1,3").warning


def test_the_rates_of_a_tournament_stand_above_its_table(a_study, open_page):
    table = document(row("before", "ERM", 0.25), row("masktune", "MaskTune", 0.75))
    words = "Learning rates: 0.01 in the finetune of MaskTune (as given)."
    a_study(state="done", step=2, table=table | {"learning": {"words": [words]}})

    at = open_page("finetune", dataset=DEMO)

    assert texts(at).count(words) == 1


def test_choices_are_kept_on_other_pages(home, open_page):
    at = ask(open_page("finetune", dataset=DEMO), "masktune", "afr", ks="1", seeds=3)

    at.switch_page("mask/page.py").run()
    at.switch_page("finetune/page.py").run()

    assert at.multiselect(key="tournament_pick").value == ["masktune", "afr"]
    assert at.text_input(key="tournament_ks").value == "1"
    assert at.number_input(key="tournament_seeds").value == 3


def test_a_running_tournament_shows_the_run_under_way_and_the_table_so_far(
    a_study, open_page, monkeypatch
):
    table = document(row("before", "ERM", 0.25), row("masktune", "MaskTune", 0.75))
    path = a_study(
        state="running", stage="One more epoch, seed 0", step=1, total=2, eta=90.0, table=table
    )
    run = path / "seed-0" / "none"
    run.mkdir(parents=True)
    (run / "status.json").write_text(json.dumps({"stage": "finetune", "step": 10, "total": 55}))
    stopped = []
    monkeypatch.setattr(studies, "stop", lambda folder, told: stopped.append((folder.path, told)))

    at = open_page("finetune", dataset=DEMO)

    assert not at.exception
    said = texts(at)
    assert "Running: 1 of 2 runs" in said
    assert "When it may abstain" not in said  # its table is an older version's
    assert "75.0%" in said
    assert RULE in said
    shown = at.get("progress")[0].proto
    assert shown.value == 50
    words = shown.text.replace("\\", "")
    assert "One more epoch, seed 0: finetune, step 10 of 55." in words
    assert re.search(r"About \d+ s left\.", words)  # fewer than 90 where the machine is busy
    assert button(at, "Start").disabled

    button(at, "Stop the tournament").click().run()
    button(at, "Pause").click().run()

    assert stopped == [(path, STUDY)] * 2
    assert "Paused: 1 of 2 runs, 2 settings × 1 seed" in texts(at)
    assert "Go on with this tournament" in labels(at)


def test_a_finished_tournament_has_tables_rule_and_files(a_study, open_page):
    error = {**score(0.125), "target": 0.9, "coverage": 0.875}
    test = {"original": {"error": [error], "aurc": score(0.0625)}}
    abstaining = {"abstaining": [{"score": "before", "test": test}]}
    erm = {**row("before", "ERM", 0.25), **abstaining}
    table = document(erm, row("masktune", "MaskTune", 0.75))
    path = a_study(state="done", stage="", step=2, total=2, table=table)
    for name in (*FILES.values(), ABSTAINING):
        (path / name).write_text(name)

    at = open_page("finetune", dataset=DEMO)

    assert not at.exception
    said = texts(at)
    assert "Done: 2 of 2 runs" in said
    assert RULE in said
    for words in ("When it may abstain, test set “original”", "12.5%", "87.5% answered", "0.0625"):
        assert words in said
    assert [e.proto.label for e in at.get("download_button")][-6:] == [
        "CSV", "Markdown", "LaTeX", "Report", "JSON", "CSV, abstaining",
    ]  # fmt: skip
    assert not button(at, "Start").disabled


def test_a_tournament_that_died_says_so_with_its_log_and_goes_on(a_study, open_page, started):
    path = a_study(state="running", step=1, total=2, log="line 1\nline 2\n")
    told = json.loads((path / STUDY).read_text())
    (path / STUDY).write_text(json.dumps({**told, "started": 0.0}))  # another process, long ago

    at = open_page("finetune", dataset=DEMO)

    assert not at.exception
    assert "The process of this tournament ended without a word" in texts(at)
    assert "line 2" in at.code[-1].value

    button(at, "Start again").click().run()

    [(where, words)] = started
    assert where == path
    assert words == Request(given=told["about"], methods=("masktune", "none")).arguments(path)


def test_a_failed_tournament_shows_problem_and_remedy(a_study, open_page):
    a_study(state="failed", step=0, problem="The disk is full.", remedy="Free some space.")

    at = open_page("finetune", dataset=DEMO)

    said = at.error[0].value.replace("\\", "")
    assert "The disk is full." in said
    assert "Free some space." in said


def test_of_several_tournaments_the_newest_is_shown_first_and_any_can_be_chosen_and_deleted(
    a_study, open_page
):
    old = a_study("old", state="cancelled", step=0, created=100.0)
    new = a_study("new", state="done", step=2, created=200.0)

    at = open_page("finetune", dataset=DEMO)

    assert "Done: 2 of 2 runs" in texts(at)
    picker = at.selectbox(key="tournament_shown")
    assert picker.value == "new"
    picker.set_value("old").run()
    assert "This tournament was cancelled." in texts(at)

    at.button(key="delete_old").click().run()

    assert not at.exception
    assert new.is_dir()
    assert not old.exists()
    assert "Done: 2 of 2 runs" in texts(at)
    assert "Go on with this tournament" not in labels(at)
    assert "1 study with its runs was deleted." in texts(at)

    button(at, "Undo").click().run()

    assert not at.exception
    assert old.is_dir()


def test_tournaments_on_other_pictures_are_not_shown(a_study, open_page):
    a_study(state="done", step=2)

    at = open_page("finetune", dataset="two-squares-mnist-5k")

    assert not at.exception
    assert "Done: 2 of 2 runs" not in texts(at)


def test_chosen_runs_open_on_compare_beside_one_another(a_study, finished_run, open_page):
    table = document(row("before", "ERM", 0.25), row("masktune", "MaskTune", 0.75))
    table["runs"] = [{**one, "state": "done", "chosen": True} for one in reversed(PLAN)]
    path = a_study(state="done", step=2, table=table)
    for name in FILES.values():
        (path / name).write_text(name)
    ids = [f"studies/a-study/{one['run']}" for one in PLAN]
    for one in PLAN:
        shutil.copytree(finished_run, path / one["run"])

    at = open_page("finetune", dataset=DEMO)
    at.button(key="compare_a-study").click().run()

    assert not at.exception
    assert at.session_state.run == ids[0]  # MaskTune's
    assert at.session_state.compared == ids

    at = open_page("compare", dataset=DEMO, run=ids[0])

    assert not at.exception
    assert at.selectbox(key="run_of_Run").value == ids[0]
    assert len(at.multiselect[0].options) == 1
    assert at.multiselect[0].value == [ids[1]]  # the same model tuned

    at = open_page("finetune", dataset=DEMO, run=ids[0])

    assert "Done: MaskTune, k = 2" in texts(at)
    at.button(key="delete_a-study").click().run()

    assert not at.exception
    assert at.session_state.run is None


@pytest.mark.parametrize("methods", [["masktune", "random", "none"], *([name] for name in METHODS)])
def test_the_example_of_settings_to_try_is_taken_by_the_methods_beside_it(methods):
    tries = tries_of(tries_example(methods))

    assert Request(given={"dataset": DEMO}, methods=tuple(methods), tries=tries).tries == tries
    assert tries or methods == ["dfr"]


@pytest.mark.parametrize("seeds", [99, 0, -1])
def test_seeds_out_of_bounds_are_refused_in_words_and_nothing_can_start(seeds, home, open_page):
    at = open_page("finetune", dataset=DEMO)

    ask(at, "masktune", seeds=seeds)

    assert not at.exception
    assert any(f"There are {seeds} seeds." in error.value for error in at.error)
    assert any("from 1 to 20" in error.value for error in at.error)
    assert at.button(key="tournament_start").disabled
