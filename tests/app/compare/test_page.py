import json
import re
import shutil
import threading
import time
from dataclasses import replace
from html import unescape
from urllib.parse import parse_qs

import numpy as np
import psutil
import pytest

from app import opened
from app.compare import numbers
from app.compare.numbers import round_series
from app.compare.pictures import ACROSS, mixed, pictures_of
from app.kept import DRAWN
from masktune.runs import jobs
from masktune.runs.folder import RunFolder
from masktune.scores.result import RunResult
from masktune.show import contact_sheets
from masktune.show.contact_sheets import most_changed
from masktune.show.wording import count
from tests.app.conftest import DEMO, address, demo_config

pytestmark = pytest.mark.usefixtures("pictures_read_once")
CONFIG = demo_config()
SHEET = '<div class="sheet'


def test_three_sessions_ask_a_model_about_the_same_pictures_once(home_with_run, monkeypatch):
    run = next((home_with_run / "runs").iterdir()).name
    asked, together = [], threading.Barrier(3)
    monkeypatch.setattr(
        contact_sheets, "looks", lambda *given: asked.append(given[2]) or time.sleep(0.1)
    )
    test = opened.opened(run).tests["biased"]

    def session():
        together.wait()
        opened.looks_of(test, [900, 901])

    threads = [threading.Thread(target=session) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    opened._LOOKS.clear()  # what was put there are no looks
    assert asked == [[900, 901]]


def test_going_to_another_page_and_back_asks_no_model_twice(home_with_run, open_page, monkeypatch):
    run = next((home_with_run / "runs").iterdir()).name
    opened._LOOKS.clear()
    asked = []
    really = contact_sheets.looks
    monkeypatch.setattr(
        contact_sheets, "looks", lambda *given: asked.append(given[2]) or really(*given)
    )

    at = open_page("compare", dataset=DEMO, run=run)
    first = list(asked)
    at.switch_page("start/page.py").run()
    at.switch_page("compare/page.py").run()

    assert len(first) >= 2  # the mix, and the pictures of at least one gallery
    assert asked == first


def page_text(at):
    return unescape(" ".join(element.value for element in at.get("html")))


@pytest.fixture
def run_id(home_with_run):
    return next((home_with_run / "runs").iterdir()).name


@pytest.fixture
def copied(home_with_run, run_id):
    """Give what copies the finished run with other settings and another result."""

    def copy(name, *, masking=None, edit=None):
        source, target = home_with_run / "runs" / run_id, home_with_run / "runs" / name
        shutil.copytree(source, target)
        config = json.loads((target / "config.json").read_text())
        config["masking"] |= masking or {}
        (target / "config.json").write_text(json.dumps(config))
        document = json.loads((target / "result.json").read_text())
        if edit is not None:
            edit(document)
        (target / "result.json").write_text(json.dumps(document))
        return name

    return copy


def test_with_nothing_loaded_the_page_leads_to_pictures_and_model(home, open_page):
    at = open_page("compare")

    assert not at.exception
    assert at.title[0].value == "Compare"
    assert "No finished run yet" in page_text(at)
    assert [button.label for button in at.button] == ["Choose pictures and model"]


def test_before_the_first_run_the_page_leads_to_finetune(home, open_page):
    at = open_page("compare", dataset=DEMO)

    assert not at.exception
    assert [button.label for button in at.button] == ["Finetune for one epoch"]
    assert not at.selectbox  # there is no run to open


def test_a_finished_run_can_be_opened_from_the_empty_page(run_id, open_page):
    at = open_page("compare", dataset=DEMO)
    assert "No run is open" in page_text(at)

    at.selectbox[0].set_value(run_id).run()

    assert not at.exception
    assert at.metric[0].label == "Worst group"


def test_a_run_that_is_gone_is_said_to_be_gone(home, open_page):
    at = open_page("compare", dataset=DEMO, run="20990101-000000-nothing-*")

    assert not at.exception
    assert "There is no run" in at.error[0].value
    assert "No finished run yet" in page_text(at)


def unfinished(home, status):
    path = home / "runs" / "20990101-000000-x"
    path.mkdir(parents=True)
    (path / "config.json").write_text(json.dumps(CONFIG.to_json()))
    (path / "status.json").write_text(json.dumps(status))
    return path.name


def test_a_run_at_work_shows_how_far_it_is(home, open_page):
    process = psutil.Process()
    alive = {"pid": process.pid, "started": process.create_time()}
    status = {"state": "running", "stage": "finetune", "step": 11, "total": 55, "eta": 4.2}
    run = unfinished(home, {**status, **alive})

    at = open_page("compare", dataset=DEMO, run=run)

    assert not at.exception
    assert "This run is still at work: finetune, 4.2 s left" in page_text(at)
    assert not at.metric


def test_a_failed_run_shows_its_problem_and_its_remedy(home, open_page):
    run = unfinished(
        home, {"state": "failed", "problem": "The disk is full.", "remedy": "Free some space."}
    )

    at = open_page("compare", dataset=DEMO, run=run)

    assert not at.exception
    assert "The disk is full." in at.error[0].value
    assert "Free some space." in at.error[0].value


@pytest.mark.parametrize("harm", ["missing", "damaged"])
def test_a_damaged_run_is_explained_and_another_can_be_opened(copied, open_page, home, harm):
    name = copied(f"20990101-000000-{harm}")
    file = home / "runs" / name / "predictions.npz"
    file.unlink() if harm == "missing" else file.write_bytes(b"nonsense")

    at = open_page("compare", dataset=DEMO, run=name)

    assert not at.exception
    assert "is missing or damaged" in at.error[0].value
    assert "Open another run" in at.error[0].value
    assert at.selectbox[0].options


def test_a_missing_file_is_named(copied, open_page, home):
    name = copied("20990101-000000-nofile")
    (home / "runs" / name / "predictions.npz").unlink()

    at = open_page("compare", dataset=DEMO, run=name)

    assert "predictions.npz of run" in at.error[0].value


def test_a_run_on_pictures_that_nobody_knows_here_is_explained_and_not_offered(
    copied, open_page, home, run_id
):
    name = copied("20990101-000000-elsewhere")
    config = json.loads((home / "runs" / name / "config.json").read_text())
    (home / "runs" / name / "config.json").write_text(json.dumps({**config, "dataset": "moon"}))

    at = open_page("compare", run=name)

    assert not at.exception
    assert "moon" in at.error[0].value
    assert len(at.selectbox[0].options) == 1  # the other run


def test_a_run_that_did_harm_says_so_in_words_and_arrows(copied, open_page, home):
    name = copied("20990101-000000-harm")
    file = home / "runs" / name / "predictions.npz"
    with np.load(file) as stored:
        turned = dict(stored)
    for key in [key for key in turned if key.endswith("/before")]:
        other = key.replace("/before", "/after")
        turned[key], turned[other] = turned[other], turned[key]
    np.savez(file, **turned)
    result = file.with_name("result.json")
    document = json.loads(result.read_text())
    for scores in document["test"].values():
        scores["before"], scores["after"] = scores["after"], scores["before"]
    result.write_text(json.dumps(document))

    at = open_page("compare", dataset=DEMO, run=name)

    assert not at.exception
    assert "Tuning harmed the worst group of “biased”" in page_text(at)
    for metric in at.metric:
        assert metric.proto.color == metric.proto.MetricColor.RED
        assert metric.proto.direction == metric.proto.MetricDirection.DOWN
    assert at.metric[0].delta.startswith("−")
    assert at.metric[3].delta.startswith("net −")
    assert 'clearly got worse: <span class="held">0–4</span>' in page_text(at)


def test_a_group_of_one_test_set_does_not_linger_on_another(run_id, open_page):
    at = open_page("compare", dataset=DEMO, run=run_id)
    at.selectbox(key="compare_flips_group").set_value(3).run()

    at.get("button_group")[0].set_value("original").run()

    assert not at.exception
    group = at.selectbox(key="compare_flips_group")
    assert group.value == -1
    assert group.options == ["All groups", "0–4, no square", "5–9, no square"]  # no square here


def test_a_finished_run_shows_its_numbers_with_their_change(run_id, open_page, every):
    test = every["biased"]

    at = open_page("compare", dataset=DEMO, run=run_id)

    assert not at.exception
    assert [metric.label for metric in at.metric] == [
        "Worst group", "Test average", "Group mean", "Answers that changed",
    ]  # fmt: skip
    worst = at.metric[0]
    assert worst.value == f"{test.after.worst.accuracy:.1%}"
    gained = 100 * (test.after.worst.accuracy - test.before.worst.accuracy)
    assert worst.delta == f"+{gained:.1f} points"
    text = page_text(at)
    assert f"n = {test.after.worst.count}" in text
    assert "Train-weighted average" in text
    assert "Tuning helped the worst group of “biased”" in text
    assert [header.value for header in at.header] == [
        "Accuracy by group", "Where it looks", "Answers that changed", "Confusion matrix",
        "Change by class", "Runs side by side", "Accuracy against k",
    ]  # fmt: skip
    labels = {button.label for button in at.get("download_button")}
    assert labels >= {"Report", "Numbers (CSV)", "Result (JSON)", "Weights after (safetensors)"}


def test_a_link_to_pictures_is_a_whole_address_of_this_run(run_id, open_page):
    at = open_page("compare", dataset=DEMO, run=run_id, shown="flip:biased:fixed")

    links = re.findall(r'<a class="mark" href="([^"]*)"', " ".join(h.body for h in at.get("html")))

    assert len(links) > 4
    for link in links:
        query = parse_qs(unescape(link).removeprefix("?"))
        assert (query["dataset"], query["run"]) == ([DEMO], [run_id])
        assert len(query["shown"]) == 1  # its own, not what lies open now


def test_the_numbers_of_cards_and_averages_lead_to_their_pictures(run_id, open_page, every):
    test, behind = every["biased"], "shown=answered%3Abiased%3Aafter%3A1000"
    was, now = (said.scores.index(said.worst) for said in (test.before, test.after))

    at = open_page("compare", dataset=DEMO, run=run_id)

    text = page_text(at)
    assert f'{behind}%3A{now}">n = {test.after.worst.count}</a>' in text
    assert text.count(f'{behind}">n = 1,000</a>') == 2  # of the test average and the group mean
    averages = next(one.value for one in at.get("html") if 'aria-label="all averages"' in one.value)
    assert f'{behind}%3A{was}">{test.before.worst.accuracy:.1%}</a>' in averages
    assert averages.count('<a class="mark"') == 8
    assert f'aria-label="{test.after.average:.1%}, n = 1,000"' in averages


def test_the_matrix_of_some_classes_has_the_commonest_mistakes_folded_and_of_many_only_these(
    run_id, open_page, monkeypatch
):
    shown = {"dataset": DEMO, "run": run_id, "test": "original"}
    folded = "The commonest mistakes of either model"
    monkeypatch.setattr(numbers, "FEW_CLASSES", 1)
    some = open_page("compare", **shown)
    monkeypatch.setattr(numbers, "MOST_CLASSES", 1)
    many = open_page("compare", **shown)

    assert [each.label for each in some.expander] == [folded]
    assert 'class="confusion' in page_text(some)
    assert not many.expander
    assert 'class="confusion' not in page_text(many)
    assert any("mistakes of either model, of 2 classes" in each.value for each in many.caption)


def test_what_charts_of_many_rows_leave_out_is_said(run_id, open_page, monkeypatch):
    monkeypatch.setattr(numbers, "MOST_ROWS", 1)
    DRAWN.clear()

    at = open_page("compare", dataset=DEMO, run=run_id)

    DRAWN.clear()
    text = page_text(at)
    assert "1 more group, served better, is in the CSV." in text
    assert "1 more class, which changed less, is in the CSV." in text


def test_every_chart_says_in_words_what_it_shows(run_id, open_page):
    at = open_page("compare", dataset=DEMO, run=run_id)

    told = [chart.proto.alt for chart in at.get("plotly_chart")]
    assert any(words.startswith("Accuracy by group. 0–4, no square before:") for words in told)
    assert any(words.startswith("Change of accuracy by class.") for words in told)


def test_another_test_set_is_kept_when_coming_back(run_id, open_page, every):
    at = open_page("compare", dataset=DEMO, run=run_id)

    at.get("button_group")[0].set_value("original").run()
    shown = at.metric[1].value
    at.switch_page("start/page.py").run()
    at.switch_page("compare/page.py").run()

    assert not at.exception
    assert shown == f"{every['original'].after.average:.1%}"
    assert at.metric[1].value == shown != f"{every['biased'].after.average:.1%}"


def test_the_navigation_shows_the_test_set_that_the_page_shows(run_id, open_page, every):
    at = open_page("compare", dataset=DEMO, run=run_id, test="original")

    now = every["original"].after.worst.accuracy
    assert now != every["biased"].after.worst.accuracy
    line = next(link.value for link in at.get("page_link") if link.value.startswith("Compare"))
    assert f"{now:.1%}" in line.replace("\\", "")


def looks_positions(at):
    """Give the positions in "Where it looks", as its pictures say them."""
    sheet = next(e.value for e in at.get("html") if 'aria-label="Difference, position' in e.value)
    return [int(part.split(",")[0]) for part in sheet.split('aria-label="Picture, position ')[1:]]


def test_any_picture_can_be_looked_at_by_kind_group_page_and_position(run_id, open_page, every):
    original = every["original"]
    at = open_page("compare", dataset=DEMO, run=run_id)
    at.get("button_group")[0].set_value("original").run()
    assert looks_positions(at) == most_changed(original.pair)[:ACROSS]
    assert "gained or lost most" in " ".join(caption.value for caption in at.caption)

    at.selectbox(key="compare_looks_kind").set_value("A mix").run()
    assert looks_positions(at) == mixed(original)

    at.selectbox(key="compare_looks_kind").set_value("Fixed").run()
    fixed = pictures_of(original, state="fixed")
    assert looks_positions(at) == fixed[:ACROSS]

    at.get("pagination")[0].set_value(2).run()
    assert looks_positions(at) == fixed[ACROSS : 2 * ACROSS]

    at.selectbox(key="compare_looks_group").set_value(0).run()
    assert looks_positions(at) == pictures_of(original, state="fixed", group=0)[:ACROSS]

    at.selectbox(key="compare_looks_kind").set_value("From a position").run()
    at.number_input[0].set_value(997).run()
    assert not at.exception
    assert looks_positions(at) == [997, 998, 999]


def test_galleries_can_be_narrowed_to_a_group_and_seen_in_other_views(run_id, open_page, every):
    original = every["original"]
    at = open_page("compare", dataset=DEMO, run=run_id)
    at.get("button_group")[0].set_value("original").run()
    assert "what the model before leaned on: hotter than mean + 2 sigma" in page_text(at)

    at.selectbox(key="compare_flips_group").set_value(2).run()
    for which in ("Picture", "Heat before", "Heat after"):
        at.get("button_group")[1].set_value(which).run()
        assert not at.exception

    text = page_text(at)
    for state, before in (("fixed", "wrong"), ("broken", "right")):
        number = len(pictures_of(original, state=state, group=2))
        link = f'shown=flip%3Aoriginal%3A{state}%3A2">{number} {state}</a>'
        assert f"{link if number else f'{number} {state}'}</b> {before} before" in text
    assert "leaned on" not in text


def test_a_gallery_without_pictures_says_so(copied, open_page, every):
    # On 'biased' the square of 5–9 is fixed; a group that nothing broke has an empty gallery.
    name = copied("20990101-000000-same")
    empty = [
        (test, group)
        for test in ("biased", "original")
        for group in set(every[test].groups.tolist())
        if not pictures_of(every[test], state="broken", group=group)
        or not pictures_of(every[test], state="fixed", group=group)
    ]
    test, group = empty[0]

    at = open_page("compare", dataset=DEMO, run=name)
    at.get("button_group")[0].set_value(test).run()
    at.selectbox(key="compare_flips_group").set_value(group).run()

    assert not at.exception
    assert "No answer was" in page_text(at)


def test_one_run_alone_says_how_to_get_controls_and_a_curve(run_id, open_page):
    at = open_page("compare", dataset=DEMO, run=run_id)

    text = page_text(at)
    assert "No control of this model is beside it" in text
    assert "Only k = 2 so far" in text
    assert "Run the controls" in [button.label for button in at.button]
    links = [link.value for link in at.get("page_link")]
    assert "Choose another k" in links
    assert any(link.startswith("Next: ") for link in links)


def test_run_the_controls_starts_both_and_the_page_says_that_they_run(
    home, run_id, open_page, monkeypatch
):
    started = []

    def start(config):
        started.append(config)
        return RunFolder.claim(home / "runs" / f"control-{len(started)}", config).path

    monkeypatch.setattr(jobs, "start", start)
    at = open_page("compare", dataset=DEMO, run=run_id)
    shown = jobs.find(run_id).config

    next(b for b in at.button if b.label == "Run the controls").click().run()

    assert not at.exception
    assert [config.masking.strategy for config in started] == ["random", "none"]
    assert all(replace(config, masking=shown.masking) == shown for config in started)
    assert at.session_state.run == run_id
    assert "The controls are under way" in page_text(at)
    assert "Run the controls" not in [button.label for button in at.button]


def test_controls_put_aside_are_not_run_again(copied, run_id, open_page):
    for strategy in ("random", "none"):
        copied(f"20990101-000000-{strategy}", masking={"strategy": strategy}, edit=worse)
    at = open_page("compare", dataset=DEMO, run=run_id)

    at.multiselect[0].set_value([]).run()

    assert "Choose them under “Beside this run”" in page_text(at)
    assert "Run the controls" not in [button.label for button in at.button]


def worse(document):
    for scores in document["test"].values():
        for group in scores["after"]["groups"]:
            if group["count"]:
                group["accuracy"], group["interval"] = 0.1, [0.05, 0.15]
        scores["after"]["worst_group"] = 0.1


def test_controls_and_other_k_stand_beside_the_run(copied, run_id, open_page, home):
    control = copied("20990101-000000-r", masking={"strategy": "random"}, edit=worse)
    file = home / "runs" / control / "predictions.npz"
    with np.load(file) as stored:  # this control changed no answer
        still = {key: stored[key.replace("/after", "/before")] for key in stored.files}
    np.savez(file, **still)
    copied("20990101-000000-k", masking={"k": 1.0}, edit=worse)

    at = open_page("compare", dataset=DEMO, run=run_id)

    assert not at.exception
    text = page_text(at)
    assert "with one random window hidden. Beside the control “one random window hidden”" in text
    assert "this run is, on “biased”, clearly better in " in text
    assert "did not help" not in text
    told = [chart.proto.alt for chart in at.get("plotly_chart")]
    swept = next(words for words in told if words.startswith("Accuracy against k."))
    assert "k = 1: worst group 10.0%, 95% interval 5.0 to 15.0%" in swept
    assert "k = 2: worst group" in swept
    lines = next(one.value for one in at.get("html") if "k = 1, worst group</a>" in one.value)
    assert lines.count("after%3A1000") == 4
    assert lines.count("20990101-000000-k") == 2  # whoever clicks these sees what that run says
    table = next(one.value for one in at.get("html") if 'class="runs"' in one.value)
    fixed = RunResult.read(home / "runs" / run_id).test["biased"].flips.fixed
    assert f'shown=flip%3Abiased%3Afixed">{fixed}</a>' in table
    assert f'shown=flip%3Abiased%3Afixed%3A-1%3A20990101-000000-k">{fixed}</a>' in table


def test_the_headline_owns_up_to_a_control_that_came_as_far(copied, run_id, open_page):
    copied("20990101-000000-none", masking={"strategy": "none"})  # with the very same answers

    at = open_page("compare", dataset=DEMO, run=run_id)
    at.multiselect[0].set_value([]).run()  # put aside in the table, true all the same

    assert "not clearly better in any group: hiding these pixels did not clearly" in page_text(at)


def test_runs_beside_are_set_side_by_side_picture_by_picture_when_asked(
    copied, run_id, open_page, home
):
    control = copied("20990101-000000-r", masking={"strategy": "random"}, edit=worse)
    file = home / "runs" / control / "predictions.npz"
    with np.load(file) as stored:  # this control changed no answer
        still = {key: stored[key.replace("/after", "/before")] for key in stored.files}
    np.savez(file, **still)
    at = open_page("compare", dataset=DEMO, run=run_id)
    assert "Where each method looks" not in [header.value for header in at.header]

    at.toggle(key="together").set_value(True).run()

    assert not at.exception
    heads = [header.value for header in at.header]
    assert heads.index("Where each method looks") < heads.index("Answers of two runs")
    told = [chart.proto.alt for chart in at.get("plotly_chart")]
    risk = next(words for words in told if words.startswith("Risk against coverage of several"))
    assert risk.count("AURC") == 5  # before; after and joint of this run and of the control
    (line,) = (one.value for one in at.get("html") if "% answered</a>" in one.value)
    assert line.count("% answered</a>") == 2  # what either answers, also without a pointer
    # The control answers as the model before, so what this run fixed it alone has right.
    shown = jobs.look(home / "runs" / run_id)
    flips = RunResult.read(shown.path).test["biased"].flips
    table = next(one.value for one in at.get("html") if "Only this right" in one.value)
    row = table[table.index(">All<") :]
    assert f">{flips.fixed}<" in row
    assert f">{flips.broken}<" in row
    assert "0–4, square" not in table  # of which “biased” has no picture
    assert "captions: the other run's answer → this run's" in page_text(at)
    assert f'shown=only%3Abiased%3Athis%3A{control}">{flips.fixed}</a>' in row
    saved = [button.label for button in at.get("download_button")]
    galleries = sum(number > 0 for number in (flips.fixed, flips.broken))
    assert saved.count("Files and answers (CSV)") == galleries >= 1

    shown = f"only:biased:this:{control}"
    at = open_page("compare", dataset=DEMO, run=run_id, shown=shown)

    (title,) = [block.proto.dialog.title for block in at.get("dialog")]
    assert title.startswith("Only this run is right, against Control")
    assert title.endswith(f": {count(flips.fixed)} pictures")
    choices = {box.label for box in at.selectbox}
    assert "Answers" not in choices  # all of them were fixed: there is nothing to choose
    assert "Order" in choices


def test_every_picture_leads_to_a_page_of_its_own(copied, run_id, open_page):
    copied("20990101-000000-r", masking={"strategy": "random"}, edit=worse)

    at = open_page("compare", dataset=DEMO, run=run_id, test="original", together="True")

    sheets = [sheet for sheet in map(str, (e.value for e in at.get("html"))) if SHEET in sheet]
    assert len(sheets) >= 4  # both galleries, where it looks, where each method looks
    for sheet in sheets:
        links = re.findall(r'<a class="picture" href="picture\?picture=original%2F(\d+)"', sheet)
        shown = re.findall(r'class="tile"[^>]*aria-label="[^"]*position (\d+),', sheet)
        assert links == shown
    rows = next(sheet for sheet in sheets if "Difference, position" in sheet)
    stops = re.findall(r'<a class="picture" href="[^"]*">', rows)
    assert len(stops) == ACROSS  # Tab goes to each of them once, not to its heat too


def test_a_point_of_another_runs_curve_opens_the_pictures_that_it_answers(
    copied, run_id, open_page, home
):
    other = copied("20990101-000000-r", masking={"strategy": "random"}, edit=worse)
    at = open_page("compare", dataset=DEMO, run=run_id, test="original", together="True")
    spec = next(
        json.loads(chart.proto.spec)
        for chart in at.get("plotly_chart")
        if chart.proto.alt.startswith("Risk against coverage of several")
    )
    marks = [next(filter(None, trace["customdata"])) for trace in spec["data"]]
    theirs = next(mark for mark in marks if mark.endswith(other))
    assert sum(mark.endswith(other) for mark in marks) == 2  # after and joint
    assert sum(mark.count(":") == 3 for mark in marks) == 3  # before, and of the run on the page
    number = int(theirs.split(":")[3])

    at = open_page("compare", dataset=DEMO, run=run_id, test="original", shown=theirs)

    assert not at.exception
    (title,) = [block.proto.dialog.title for block in at.get("dialog")]
    assert title.startswith("All pictures, ")  # of a point that answers all
    assert title.endswith(f": {count(number)} picture{'' if number == 1 else 's'}")


def test_pictures_that_another_run_was_not_asked_about_are_not_shown(copied, run_id, open_page):
    shown = "answered:original:after:10:-1:nobody"

    at = open_page("compare", dataset=DEMO, run=run_id, test="original", shown=shown)

    assert not at.exception
    assert any("“nobody” was not asked about these" in error.value for error in at.error)


def test_a_link_carries_group_page_position_and_whom_a_run_is_set_against(
    copied, run_id, open_page, every
):
    copied("20990101-000000-r", masking={"strategy": "random"}, edit=worse)
    second = copied("20990101-000000-k", masking={"k": 1.0}, edit=worse)
    carried = {"dataset": DEMO, "run": run_id, "test": "original", "together": "True"}
    carried |= {"compare_looks_kind": "Fixed", "compare_looks_group": "0"}
    carried |= {"compare_looks_page": "2", "compare_flips_group": "0"}
    carried |= {"compare_flips_fixed_page": "2", "compare_methods_page": "3"}
    carried |= {"compare_between": second}

    at = open_page("compare", **carried)

    assert not at.exception
    assert address(at) == carried
    fixed = pictures_of(every["original"], state="fixed", group=0)
    assert looks_positions(at) == fixed[ACROSS : 2 * ACROSS]
    assert at.selectbox(key="compare_between").value == second
    at.selectbox(key="compare_between").select_index(0).run()
    assert "compare_between" not in address(at)  # as nobody had chosen

    at.selectbox(key="compare_looks_kind").set_value("From a position").run()
    at.number_input(key="compare_looks_position").set_value(997).run()
    again = open_page("compare", **address(at))

    assert looks_positions(again) == [997, 998, 999]


def test_a_page_that_somebody_turns_is_in_the_address_and_another_group_begins_anew(
    run_id, open_page
):
    at = open_page("compare", dataset=DEMO, run=run_id, test="original")
    at.get("pagination")[0].set_value(2).run()
    assert address(at)["compare_looks_page"] == "2"

    at.selectbox(key="compare_looks_group").set_value(0).run()

    assert address(at)["compare_looks_group"] == "0"
    assert "compare_looks_page" not in address(at)


def test_what_a_link_asks_of_compare_in_vain_is_as_usual(run_id, open_page):
    usual = {"dataset": DEMO, "run": run_id, "test": "original"}
    odd = {"compare_looks_group": "99", "compare_looks_page": "999999999999", "together": "x"}
    odd |= {"compare_flips_group": "-7", "compare_flips_fixed_page": "0"}
    odd |= {"compare_flips_broken_page": "-1", "compare_flips_view": "x"}

    at = open_page("compare", **usual, **odd)
    other = open_page(
        "compare", **usual, compare_looks_kind="From a position", compare_looks_position="-5"
    )

    assert not at.exception
    assert not other.exception
    assert address(at) == usual
    assert looks_positions(other)[0] == 0


def test_runs_put_aside_stay_aside(copied, run_id, open_page):
    control = copied("20990101-000000-r", masking={"strategy": "random"}, edit=worse)
    other = copied("20990101-000000-k", masking={"k": 1.0}, edit=worse)
    at = open_page("compare", dataset=DEMO, run=run_id)
    assert set(at.multiselect[0].value) == {control, other}

    at.multiselect[0].set_value([other]).run()
    at.switch_page("start/page.py").run()
    at.switch_page("compare/page.py").run()

    assert not at.exception
    assert at.multiselect[0].value == [other]
    assert "No control of this model" in page_text(at)


def test_several_rounds_have_a_chart_of_their_own(copied, open_page, original):
    scores = {name: {"average": 0.5, "worst_group": 0.4} for name in ("biased", "original")}

    def edit(document):
        first = document["masking"]["rounds"][0]
        document["masking"]["rounds"] = [{**first, "test": scores}, {**first, "test": scores}]

    name = copied("20990101-000000-rounds", edit=edit)

    at = open_page("compare", dataset=DEMO, run=name)

    assert not at.exception
    assert "Accuracy by round" in [header.value for header in at.header]
    told = [chart.proto.alt for chart in at.get("plotly_chart")]
    assert any("worst group: 31.3%, 40.0%, 40.0%" in words for words in told)
    assert round_series(original) == {}  # the run itself has one


def test_a_link_with_only_a_run_finds_its_pictures(run_id, open_page):
    at = open_page("compare", run=run_id)

    assert not at.exception
    assert at.metric[0].label == "Worst group"
    assert address(at)["dataset"] == DEMO
