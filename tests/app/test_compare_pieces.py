import csv
import io
import json
from dataclasses import replace

import cv2
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from app import jobs
from app.components import compare_cached, compare_files
from app.components.compare_beside import at_first, how_to_sweep
from app.components.compare_charts import accuracy_against_k
from app.components.compare_confusion import confusion, matrix_html, mistakes, mistakes_html
from app.components.compare_metrics import verdict_html
from app.components.compare_numbers import harm_words
from app.components.compare_outcome import outcomes
from app.components.compare_pictures import ACROSS, mixed, view_tiles
from app.components.compare_runs import (
    RunRow,
    beside_words,
    comparable,
    row_of,
    run_labels,
    runs_html,
    sweep,
)
from app.components.run_needed import standing
from masktune import answers
from masktune.config import RunConfig
from masktune.errors import RunFolderError
from masktune.flips import Change
from masktune.groups import wilson
from masktune.masking import keep_masks
from masktune.predictions import Predictions
from masktune.recipes import recipe
from masktune.view import view

DEMO = "biased-mnist-5k"
pytestmark = pytest.mark.usefixtures("pictures_read_once")
CONFIG = RunConfig(
    dataset=DEMO,
    recipe=DEMO,
    arch=recipe(DEMO).arch,
    training=recipe(DEMO).training,
    model="bundled",
)


def job(name, tmp_path, *, created=0.0, state="done", config=CONFIG, **masking):
    config = replace(config, masking=replace(config.masking, **masking))
    return jobs.Job(path=tmp_path / name, config=config, state=state, created=created)


def row(job, *, worst=(0.3, 0.9), interval=(0.85, 0.94), **changes):
    values = {
        "title": job.name or job.config.masking.strategy,
        "count": 1000,
        "worst": worst,
        "worst_interval": interval,
        "worst_count": 256,
        "average": (0.5, 0.95),
        "group_mean": (0.4, 0.92),
        "fixed": 10,
        "broken": 3,
        "seconds": 8.2,
    }
    return RunRow(job=job, **{**values, **changes})


def says(answers, labels, classes=3):
    probabilities = np.full((len(answers), classes), 0.1)
    probabilities[np.arange(len(answers)), answers] = 0.8
    return Predictions(probabilities, np.array(labels), np.full(len(labels), -1))


def lines(content: bytes):
    return list(csv.DictReader(io.StringIO(content.decode())))


# --- confusion


def test_rows_of_the_confusion_are_what_it_is_and_columns_what_was_answered():
    # Class 0 twice right and once taken for 2; class 1 once taken for 0; no picture of class 2.
    matrix = confusion(says([0, 0, 2, 0], [0, 0, 0, 1]))

    assert matrix.tolist() == [[2, 0, 1], [1, 0, 0], [0, 0, 0]]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40))
def test_the_confusion_counts_every_picture_once(pairs):
    answers, labels = zip(*pairs, strict=True)

    matrix = confusion(says(list(answers), list(labels), classes=4))

    assert matrix.sum() == len(pairs)
    assert np.trace(matrix) == sum(a == b for a, b in pairs)
    assert matrix.sum(axis=1).tolist() == [labels.count(k) for k in range(4)]


def test_a_matrix_shows_counts_and_shares_of_the_row_and_escapes_names():
    html = matrix_html(np.array([[3, 1], [0, 0]]), ("<cow>", "camel"), name="before")

    assert "&lt;cow&gt;<small>n = 4</small>" in html
    assert "3<small>75.0%</small>" in html
    assert "1<small>25.0%</small>" in html
    assert "0<small>–</small>" in html  # no camel: a share of nothing is not 0
    assert "<cow>" not in html


def test_the_commonest_mistakes_of_either_model_come_first_without_right_answers():
    before = np.array([[90, 2, 0], [5, 10, 0], [0, 0, 70]])
    after = np.array([[80, 0, 7], [0, 15, 0], [0, 0, 70]])

    assert mistakes(before, after) == [(0, 2), (1, 0), (0, 1)]
    assert mistakes(before, after, most=1) == [(0, 2)]
    assert before[0, 0] == 90  # what was given is not changed


def test_a_mistake_is_shown_with_both_counts_and_shares():
    before, after = np.array([[6, 2], [0, 1]]), np.array([[8, 0], [0, 1]])

    html = mistakes_html(before, after, ("a", "b"))

    assert "a → b<small>n = 8</small>" in html
    assert "<td>2<small>25.0%</small></td><td>0<small>0.0%</small></td>" in html
    assert "Neither model" in mistakes_html(np.eye(2, dtype=int), np.eye(2, dtype=int), ("a", "b"))


# --- words


def change(label, points, interval):
    return Change(label, 100, 0, 0, 0.5, 0.5 + points, points, interval)


def test_classes_that_clearly_got_worse_or_better_are_named():
    changes = [
        change("cat", -0.061, (-0.09, -0.04)),
        change("dog", 0.3, (0.2, 0.4)),
        change("cow", -0.01, (-0.03, 0.01)),
        Change("owl", 0, 0, 0, None, None, None, None),
    ]

    assert harm_words(changes) == (
        "1 of 3 clearly got worse: cat (−6.1 points). "
        "1 of 3 clearly got better: dog (+30.0 points)."
    )
    assert harm_words(changes[1:]).startswith("No class clearly got worse. 1 of 2 clearly")
    assert harm_words(changes[2:]) == "No class clearly got worse. No class clearly got better."


def test_many_harmed_classes_are_counted_after_five():
    changes = [change(f"c{n}", -0.1, (-0.2, -0.05)) for n in range(7)]
    changes[6] = change("c6", -0.3, (-0.4, -0.2))  # the largest change comes first

    assert "worse: c6 (−30.0 points), c0 (−10.0 points)" in harm_words(changes)
    assert "c3 (−10.0 points) and 2 more." in harm_words(changes)
    assert "c4" not in harm_words(changes)


@pytest.mark.parametrize(
    ("interval", "words"),
    [
        ((0.20, 0.40), "That is clearly more than a control reaches."),
        ((0.80, 0.90), "not clearly more than a control reaches: the intervals overlap."),
        ((0.96, 0.99), "A control did clearly better: hiding these pixels did not help."),
    ],
)
def test_a_run_is_weighed_against_its_controls(tmp_path, interval, words):
    shown = row(job("a", tmp_path), worst=(0.3, 0.9), interval=(0.85, 0.94))
    control = row(
        job("b", tmp_path, strategy="random"),
        worst=(0.3, 0.31),
        interval=interval,
        title="Control: one random window hidden",
    )

    text = beside_words(shown, [control])

    assert "worst group to 90.0%" in text
    assert "31.0% (one random window hidden)" in text
    assert text.endswith(words)


def test_one_control_that_comes_close_is_enough_for_doubt(tmp_path):
    shown = row(job("a", tmp_path))
    far = row(job("b", tmp_path, strategy="random"), interval=(0.2, 0.3))
    near = row(job("c", tmp_path, strategy="none"), interval=(0.8, 0.9))

    assert "overlap" in beside_words(shown, [far, near])


def test_without_a_control_of_the_same_model_nothing_is_claimed(tmp_path):
    shown = row(job("a", tmp_path))
    other_k = row(job("b", tmp_path, k=1.0), interval=(0.1, 0.2))
    other_seed = job("c", tmp_path, config=replace(CONFIG, seed=1), strategy="none")

    assert beside_words(shown, [other_k, row(other_seed, interval=(0.1, 0.2))]) == ""
    assert "is a control" in beside_words(row(job("d", tmp_path, strategy="none")), [shown])


def test_how_to_get_a_curve_over_k_depends_on_the_run(tmp_path):
    assert "Only k = 2 so far" in how_to_sweep(job("a", tmp_path))
    assert "such as 1.0 and 3.0" in how_to_sweep(job("a", tmp_path))
    assert "such as 2.0 and 3.0" in how_to_sweep(job("a", tmp_path, k=1.0))
    assert "has no k" in how_to_sweep(job("a", tmp_path, strategy="random"))


def test_a_run_that_waits_says_how_many_go_first(tmp_path):
    queued = job("a", tmp_path, state="queued")

    assert standing(queued) == "This run is about to start"
    assert standing(replace(queued, ahead=1)) == "This run waits: one run goes first"
    assert standing(replace(queued, ahead=3)) == "This run waits: 3 runs go first"


# --- several runs


def test_a_sweep_holds_one_run_for_each_k_ascending(tmp_path):
    shown = job("a", tmp_path, k=2.0)
    newer = job("b", tmp_path, k=2.0)
    low, lower = job("c", tmp_path, k=1.0), job("d", tmp_path, k=0.5)
    older = job("e", tmp_path, k=1.0)

    assert sweep(shown, [newer, low, lower, older]) == [lower, low, shown]


@pytest.mark.parametrize(
    "other",
    [
        {"strategy": "topk"},
        {"rounds": 2},
        {"statistics": "all"},
        {"config": replace(CONFIG, seed=1)},
        {"config": replace(CONFIG, model=None)},
        {"config": replace(CONFIG, finetune_lr=0.5)},
    ],
)
def test_a_sweep_leaves_out_what_differs_in_more_than_k(tmp_path, other):
    shown = job("a", tmp_path)

    assert sweep(shown, [job("b", tmp_path, k=1.0, **other)]) == [shown]


def test_the_device_makes_no_difference_to_a_sweep_and_controls_have_none(tmp_path):
    shown = job("a", tmp_path)
    elsewhere = job("b", tmp_path, k=1.0, config=replace(CONFIG, device="cpu"))
    control = job("c", tmp_path, strategy="none")

    assert sweep(shown, [elsewhere]) == [elsewhere, shown]
    assert sweep(control, [replace(control, path=tmp_path / "d")]) == []


def test_only_other_runs_on_the_same_pictures_are_comparable(tmp_path):
    shown, same = job("a", tmp_path), job("b", tmp_path, k=1.0)
    other = job("c", tmp_path, config=replace(CONFIG, dataset="two-squares-mnist-5k"))
    elsewhere = job("d", tmp_path, config=replace(CONFIG, root="/data"))

    assert comparable(shown, [shown, same, other, elsewhere]) == [same]


def test_runs_of_the_same_model_stand_beside_it_at_first_controls_leading(tmp_path):
    shown = job("a", tmp_path)
    other_k, control = job("b", tmp_path, k=1.0), job("c", tmp_path, strategy="none")
    other_seed = job("d", tmp_path, config=replace(CONFIG, seed=1))

    assert at_first(shown, [other_k, other_seed, control]) == ("c", "b")


def test_two_runs_alike_have_labels_that_differ(tmp_path):
    alike = [job("x-1", tmp_path), job("x-2", tmp_path)]

    labels = run_labels(alike)

    assert list(labels) == ["x-1", "x-2"]
    assert len(set(labels.values())) == 2
    assert all("Biased MNIST, MaskTune, k = 2.0" in label for label in labels.values())


def test_the_table_of_runs_shows_no_k_where_there_is_none(tmp_path):
    shown = row(job("a", tmp_path), title="<mine>")
    control = row(job("b", tmp_path, strategy="random"))

    html = runs_html(shown, [control])

    assert html.count("<tr>") == 3
    assert "<b>&lt;mine&gt;</b><small>this run</small></th><td>2</td>" in html
    assert "random</th><td>–</td>" in html
    assert "85.0 to 94.0%, n = 256" in html


def test_accuracy_against_k_says_every_number_and_draws_the_interval(tmp_path):
    rows = [
        row(job("a", tmp_path, k=1.0), worst=(0.3, 0.5), interval=(0.4, 0.65)),
        row(job("b", tmp_path, k=2.0), worst=(0.3, 0.9), interval=(0.85, 0.94)),
    ]

    figure = accuracy_against_k(rows, k=2.0)

    after = next(trace for trace in figure.data if trace.name == "worst group after")
    assert list(after.x) == [1.0, 2.0]
    assert list(after.y) == [0.5, 0.9]
    assert after.error_y.array == pytest.approx([0.15, 0.04])
    assert after.error_y.arrayminus == pytest.approx([0.1, 0.05])
    before = next(trace for trace in figure.data if trace.name == "worst group before")
    assert list(before.y) == [0.3, 0.3]
    assert "k = 1: worst group 50.0%, 95% interval 40.0 to 65.0%, n = 256." in figure.layout.meta
    assert "k = 2: test average 95.0%, n = 1,000." in figure.layout.meta


def test_a_run_that_was_not_tested_on_this_set_has_no_row(finished_run):
    done = jobs.look(finished_run)

    assert row_of(done, "original") is not None
    assert row_of(done, "elsewhere") is None


def test_a_row_holds_what_the_result_file_says(finished_run):
    document = json.loads((finished_run / "result.json").read_text())
    scores = document["test"]["original"]

    found = row_of(jobs.look(finished_run), "original")

    assert found.count == 1000
    assert found.worst == (scores["before"]["worst_group"], scores["after"]["worst_group"])
    assert found.average == (scores["before"]["average"], scores["after"]["average"])
    right = round(found.worst[1] * found.worst_count)
    assert found.worst_interval == pytest.approx(wilson(right, found.worst_count))
    assert found.fixed - found.broken == round(1000 * (found.average[1] - found.average[0]))


# --- one run, picture by picture


def test_pictures_are_found_by_state_and_group_in_the_order_of_the_test_set(outcome):
    before, after = outcome.test.pair.before, outcome.test.pair.after
    want = [
        i
        for i in range(len(outcome.test))
        if before.labels[i] == 1 and before.correct()[i] and not after.correct()[i]
    ]

    assert outcome.group_names() == {0: "0–4, no square", 2: "5–9, no square"}
    assert outcome.positions(state="broken", group=2) == want
    assert outcome.positions() == list(range(1000))
    assert want != outcome.positions(state="broken", group=0)


def test_states_share_out_all_pictures(outcome):
    counts = [outcome.count(state) for state in ("fixed", "broken", "still wrong", "still right")]

    assert sum(counts) == len(outcome.test)
    assert min(counts) > 0


def test_an_answer_names_both_answers_and_how_sure_they_are(outcome):
    position = outcome.positions(state="fixed", group=0)[0]
    was = outcome.test.pair.before.probabilities[position]

    answer = outcome.answer(position)

    assert (answer.truth, answer.before, answer.after) == ("0–4", "5–9", "0–4")
    assert answer.before_sure == was[1] > 0.5
    assert "<b>5–9 → 0–4</b>" in answer.html()
    assert "fixed" in answer.html()
    assert "fixed" not in answer.html(with_state=False)
    assert answer.words().startswith(f"position {position}, 0–4, no square, fixed: 5–9 before (")


def test_groups_without_pictures_are_not_drawn_and_of_many_the_worst_stay_in_order(outcome):
    before, after = outcome.served_worst(12)
    (alone,), _ = outcome.served_worst(1)

    assert [score.label for score in before] == ["0–4", "5–9"]
    assert [score.count for score in before] == [score.count for score in after]
    assert alone == outcome.test.before.worst


def test_the_verdict_tells_harm_as_plainly_as_help(outcome):
    # The model after and the model before change places: what was fixed is broken.
    test = outcome.test
    turned = replace(
        outcome,
        test=replace(test, before=test.after, after=test.before),
        states=np.select(
            [outcome.states == "fixed", outcome.states == "broken"],
            ["broken", "fixed"],
            outcome.states,
        ),
    )
    fixed, broken = outcome.count("fixed"), outcome.count("broken")

    assert 'class="verdict up"' in verdict_html(outcome)
    assert f"It fixed {fixed} answers and broke {broken}, of 1,000." in verdict_html(outcome)
    assert 'class="verdict down">Tuning harmed the worst group' in verdict_html(turned)
    assert f"broke {fixed}, of 1,000." in verdict_html(turned)


def test_the_mix_fills_a_row_with_every_group(outcome):
    chosen = mixed(outcome)

    assert len(chosen) == ACROSS
    assert {outcome.answer(position).group for position in chosen} == set(
        outcome.group_names().values()
    )
    assert len({outcome.answer(position).state for position in chosen}) == 4


def test_the_hidden_view_hatches_what_is_hotter_than_the_threshold(outcome):
    positions = outcome.positions(state="fixed")[:2]
    found = compare_cached.looks(outcome.view, outcome.test.split, positions)
    keep = keep_masks(torch.from_numpy(found.before), 2.0).numpy()

    tiles = view_tiles_without_cache(outcome, positions, "Hidden", found)
    plain = view_tiles(outcome, positions, "Picture")

    for tile, picture, kept in zip(tiles, plain, keep, strict=True):
        factor = tile.shape[0] // kept.shape[0]
        far = cv2.erode(kept.astype(np.uint8), np.ones((3, 3))).astype(bool)
        far = far.repeat(factor, axis=0).repeat(factor, axis=1)
        assert (tile[far] == picture[far]).all()
        assert (tile != picture).any() == (not kept.all())


def view_tiles_without_cache(outcome, positions, which, found):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("app.components.compare_pictures.looks_of", lambda *_: found)
        return view_tiles(outcome, positions, which)


def test_pictures_that_were_exchanged_are_refused(finished_run):
    read = view(finished_run)
    split = read.bundle.tests["biased"]
    other = replace(split, labels=1 - split.labels)
    tests = {**read.bundle.tests, "biased": other}

    with pytest.raises(RunFolderError, match="'biased' are not those"):
        outcomes(replace(read, bundle=replace(read.bundle, tests=tests)), "x")
    with pytest.raises(RunFolderError, match="'biased' are not those"):
        outcomes(replace(read, bundle=replace(read.bundle, tests={})), "x")


# --- files


def test_the_numbers_file_says_what_the_result_file_says(every, finished_run):
    document = json.loads((finished_run / "result.json").read_text())

    rows = lines(compare_files.groups_csv(every))

    for name in ("biased", "original"):
        stored = zip(
            document["test"][name]["before"]["groups"],
            document["test"][name]["after"]["groups"],
            [r for r in rows if r["test set"] == name],
            strict=True,
        )
        for was, now, written in stored:
            assert written["label"] == was["label"]
            assert int(written["n"]) == was["count"]
            for key, value in (("before", was["accuracy"]), ("after", now["accuracy"])):
                assert written[key] == ("" if value is None else str(value))
            if was["count"]:
                net = (int(written["fixed"]) - int(written["broken"])) / was["count"]
                assert float(written["change"]) == pytest.approx(net)


def test_the_averages_file_names_all_three_and_the_worst_group(every):
    rows = lines(compare_files.averages_csv(every))

    names = ["worst group", "test average", "train-weighted average", "group mean"]
    assert [r["what"] for r in rows] == 2 * names
    weighted = next(r for r in rows if r["what"] == "train-weighted average")
    want = every["biased"].test.after.averages.train_weighted
    assert float(weighted["after"]) == want


def test_the_answers_file_holds_every_picture_with_its_probabilities(outcome):
    rows = lines(answers.answers_csv(outcome.view, tests=[outcome.test.name]))

    assert [int(r["position"]) for r in rows] == list(range(1000))
    assert sum(r["state"] == "fixed" for r in rows) == outcome.count("fixed")
    assert float(rows[7]["after: 5–9"]) == outcome.test.pair.after.probabilities[7, 1]
    assert all((r["after"] == r["label"]) == (r["state"] in ("fixed", "still right")) for r in rows)


def test_with_very_many_classes_only_the_probability_of_each_answer_is_written(
    outcome, monkeypatch
):
    monkeypatch.setattr(answers, "MOST_CLASSES", 1)

    rows = lines(answers.answers_csv(outcome.view, tests=[outcome.test.name]))

    assert list(rows[0])[-2:] == ["before sure", "after sure"]
    assert float(rows[7]["after sure"]) == outcome.test.pair.after.probabilities[7].max()


def test_the_confusion_file_adds_up_to_all_pictures(outcome):
    rows = lines(compare_files.confusion_csv(outcome))

    assert [(r["is"], r["answered"]) for r in rows] == [
        ("0–4", "0–4"), ("0–4", "5–9"), ("5–9", "0–4"), ("5–9", "5–9"),
    ]  # fmt: skip
    for moment, said in (("before", outcome.test.pair.before), ("after", outcome.test.pair.after)):
        assert sum(int(r[moment]) for r in rows) == 1000
        right = sum(int(r[moment]) for r in rows if r["is"] == r["answered"])
        assert right == said.correct().sum()


def test_the_file_of_changes_by_class_ends_with_all_pictures(outcome):
    rows = lines(compare_files.classes_csv(outcome))

    assert [r["class"] for r in rows] == ["0–4", "5–9", "all"]
    assert int(rows[2]["n"]) == 1000
    assert float(rows[2]["low"]) <= float(rows[2]["change"]) <= float(rows[2]["high"])


def test_the_files_of_runs_and_rounds_have_a_line_for_each(tmp_path):
    rows = lines(compare_files.runs_csv([row(job("a", tmp_path)), row(job("b", tmp_path, k=1.0))]))
    rounds = lines(compare_files.rounds_csv({"worst group": [0.3, 0.5, 0.9]}, [0.04, 0.07]))

    assert [(r["run"], r["k"], r["worst after"]) for r in rows] == [
        ("a", "2.0", "0.9"), ("b", "1.0", "0.9"),
    ]  # fmt: skip
    assert [(r["round"], r["hidden"], r["worst group"]) for r in rounds] == [
        ("0", "0.0", "0.3"), ("1", "0.04", "0.5"), ("2", "0.07", "0.9"),
    ]  # fmt: skip


def test_a_sheet_of_pictures_is_a_png_of_its_tiles():
    tiles = [np.full((4, 4, 3), value, dtype=np.uint8) for value in (10, 20, 30)]

    picture = cv2.imdecode(
        np.frombuffer(compare_files.sheet_png(tiles, 2), np.uint8), cv2.IMREAD_COLOR
    )

    assert picture.shape == (8, 8, 3)
    assert picture[:4, 4:].min() == picture[:4, 4:].max() == 20
