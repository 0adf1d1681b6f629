"""Several runs side by side: which can be compared, and what they say of each other."""

import json
from csv import DictReader
from dataclasses import replace

import pytest

from app.shared.run_rows import (
    MOST_OF_STUDIES,
    RunRow,
    about,
    beside_words,
    comparable,
    few_of_studies,
    finished_runs,
    row_of,
    run_labels,
    runs_table,
    sweep,
    worst_head,
)
from masktune.runs import jobs
from masktune.runs.folder import RunFolder
from masktune.scores.evidence import judge
from masktune.scores.flips import Change
from masktune.scores.groups import ANY, GroupScore, Summary, wilson
from masktune.scores.result import FlipCounts, SplitResult
from masktune.show.tables import csv, html
from tests.app.conftest import demo_config
from tests.masktune.runs.test_index import put, put_training

CONFIG = demo_config()


def job(name, tmp_path, *, created=0.0, state="done", config=CONFIG, **masking):
    config = replace(config, masking=replace(config.masking, **masking))
    return jobs.Job(path=tmp_path / name, config=config, state=state, created=created)


def row(job, *, worst=(0.3, 0.9), interval=(0.85, 0.94)):
    """Give a run on 1,000 pictures, of which 256 are of the worst group."""
    before, after = (
        Summary(
            average=average,
            train_weighted=None,
            group_mean=mean,
            scores=(
                GroupScore("cow", "grass", 256, accuracy, bounds),
                GroupScore("cow", "sea", 744, 1.0, None),
            ),
        )
        for accuracy, bounds, average, mean in (
            (worst[0], None, 0.5, 0.4),
            (worst[1], interval, 0.95, 0.92),
        )
    )
    flips = FlipCounts(fixed=10, broken=3)
    test = SplitResult(name="test", before=before, after=after, flips=flips)
    return RunRow(job=job, test=test, flips=flips, seconds=8.2)


def of_classes(found):
    """Give a row as it is where no attribute is recorded."""
    scores = tuple(replace(score, attribute=ANY) for score in found.test.after.scores)
    return replace(found, test=replace(found.test, after=replace(found.test.after, scores=scores)))


def beyond(fixed, broken):
    """What a run fixed and broke, of the 100 pictures of a group, that a control did not."""
    return judge([Change("cow", count=100, right_before=50, fixed=fixed, broken=broken)])


WINDOW = "Beside the control “one random window hidden” this run is, on “test”, "


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (beyond(30, 2), f"{WINDOW}clearly better in cow (78.0% against 50.0%)."),
        (beyond(6, 4), f"{WINDOW}not clearly better in any class."),
        (beyond(2, 30), f"{WINDOW}clearly worse in cow (22.0% against 50.0%)."),
        (None, "31.0% (cow, grass) with one random window hidden."),
    ],
)
def test_a_run_is_weighed_against_its_controls_on_the_same_pictures(tmp_path, found, words):
    shown = row(job("a", tmp_path), worst=(0.3, 0.9))
    control = row(
        job("b", tmp_path, strategy="random"),
        worst=(0.3, 0.31),
    )

    text = beside_words(shown, [control], against={control.job: found}.__getitem__)

    assert "worst group to 90.0% (cow, grass)" in text
    assert "31.0% (cow, grass) with one random window hidden" in text
    assert text.endswith(words)


def test_every_control_is_weighed_for_itself(tmp_path):
    shown = row(job("a", tmp_path))
    far, near = job("b", tmp_path, strategy="random"), job("c", tmp_path, strategy="none")
    found = {far: beyond(30, 2), near: beyond(6, 4)}

    text = beside_words(shown, [row(far), row(near)], against=found.get)

    assert f"{WINDOW}clearly better in cow" in text
    assert text.endswith(
        "“one more epoch, nothing hidden” this run is, on “test”, not clearly better in any "
        "class: hiding these pixels did not clearly help."
    )


def test_without_a_control_of_the_same_model_nothing_is_claimed(tmp_path):
    shown = row(job("a", tmp_path))
    other_k = row(job("b", tmp_path, k=1.0), interval=(0.1, 0.2))
    other_seed = job("c", tmp_path, config=replace(CONFIG, seed=1), strategy="none")

    others = [other_k, row(other_seed, interval=(0.1, 0.2))]
    control = row(job("d", tmp_path, strategy="none"))
    assert beside_words(shown, others, against=lambda _: beyond(30, 2)) == ""
    assert "is a control" in beside_words(control, [shown], against=lambda _: None)


def test_a_rival_is_no_control_though_it_hides_nothing(tmp_path):
    rival = row(job("a", tmp_path, config=replace(CONFIG, rival="dfr"), strategy="none"))
    shown = row(job("b", tmp_path))

    assert beside_words(rival, [shown], against=lambda _: beyond(30, 2)) == ""
    assert beside_words(shown, [rival], against=lambda _: beyond(30, 2)) == ""


@pytest.mark.parametrize(
    "other",
    [
        {"masking": replace(CONFIG.masking, strategy="none", rounds=2)},
        {"masking": replace(CONFIG.masking, strategy="random", fill="mean")},
        {"finetune_lr": 0.1},
        {"batch_norm": "frozen"},
    ],
    ids=["rounds", "fill", "rate", "batch norm"],
)
def test_what_was_tuned_otherwise_is_no_control(tmp_path, other):
    shown = job("a", tmp_path)
    controls = [job("b", tmp_path, strategy="none"), job("c", tmp_path, strategy="random")]
    elsewhere = replace(controls[0], config=replace(controls[0].config, device="cuda"))
    otherwise = replace(controls[0], config=replace(controls[0].config, **other))

    found = jobs.controls_of(shown, [*controls, elsewhere, otherwise, shown])

    assert found == [*controls, elsewhere]
    assert jobs.controls_of(controls[0], [controls[1]]) == []


def test_without_groups_a_run_is_set_beside_its_controls_by_the_worst_class(tmp_path):
    shown, control = (of_classes(row(job(s, tmp_path, strategy=s))) for s in ("heat", "none"))

    said = beside_words(shown, [control], against=lambda _: None)

    assert said.startswith("This run brings the worst class to 90.0% (cow); it is at 90.0% (cow)")


def test_a_control_of_the_model_that_a_run_trained_started_alike(tmp_path):
    shown = job("a", tmp_path, config=replace(CONFIG, model=None))
    shown.path.mkdir()
    (shown.path / "before.safetensors").touch()
    settings = jobs.control_settings(jobs.opened(shown))[0]
    control = replace(job("b", tmp_path), config=settings)

    assert settings.model == str(shown.path / "before.safetensors")
    assert beside_words(row(shown), [row(control)], against=lambda _: None) != ""
    other = replace(control, config=replace(settings, seed=1))
    assert beside_words(row(shown), [row(other)], against=lambda _: None) == ""


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


def test_a_sweep_holds_runs_that_took_the_model_which_another_trained_as_in_a_grid(a_run):
    first = a_run("a", config=replace(CONFIG, model=None), state="done")
    (first / "before.safetensors").touch()
    trained = jobs.look(first)
    masking = replace(CONFIG.masking, k=1.0)
    second = a_run("b", config=replace(jobs.opened(trained), masking=masking), state="done")
    took = jobs.look(second)

    assert sweep(trained, [trained, took]) == [took, trained]
    assert sweep(took, [trained, took]) == [took, trained]


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


def test_runs_of_two_seeds_are_comparable_where_their_pictures_have_one_fingerprint(tmp_path):
    shown, alike, unlike = (
        replace(job(name, tmp_path, config=replace(CONFIG, seed=seed)), fingerprint=found)
        for name, seed, found in (("a", 0, "same"), ("b", 1, "same"), ("c", 2, "other"))
    )

    assert comparable(shown, [shown, alike, unlike]) == [alike]


def test_two_runs_alike_have_labels_that_differ(tmp_path):
    alike = [job("x-1", tmp_path), job("x-2", tmp_path)]

    labels = run_labels(alike)

    assert list(labels) == ["x-1", "x-2"]
    assert len(set(labels.values())) == 2
    assert all("Biased MNIST, MaskTune, k = 2" in label for label in labels.values())


def test_a_run_is_listed_and_swept_by_whatever_name_its_pictures_have(tmp_path):
    named = job("a", tmp_path, config=replace(CONFIG, title="Digits of mine"), k=1.0)
    other = job("b", tmp_path)

    assert run_labels([named])["a"].startswith("Digits of mine, MaskTune")
    assert sweep(named, [named, other]) == [named, other]


def test_the_table_of_runs_shows_no_k_where_there_is_none(tmp_path):
    shown = row(replace(job("a", tmp_path), name="<mine>"))
    control = row(job("b", tmp_path, strategy="random"))

    shown_html = html(runs_table(shown, [shown, control]))

    assert shown_html.count("<tr>") == 3
    assert "<b>&lt;mine&gt;</b><small>this run</small></th><td>2</td>" in shown_html
    assert "one random window hidden</th><td>–</td>" in shown_html
    assert "85.0 to 94.0%, n = 256" in shown_html.striptags()


def test_answers_that_runs_changed_lead_to_their_pictures_and_no_file_changes(tmp_path):
    shown, other = row(job("a", tmp_path)), row(job("b", tmp_path, k=1.0))

    linked, plain = (runs_table(each, [shown, other]) for each in (shown, None))

    assert '?shown=flip%3Atest%3Afixed">10</a>' in html(linked)
    assert '?shown=flip%3Atest%3Abroken%3A-1%3Ab">3</a>' in html(linked)
    assert 'class="mark"' not in html(plain)
    assert csv(linked) == csv(plain)


def test_a_model_that_a_run_trained_has_one_name_in_the_table(a_run, tmp_path):
    trained = a_run("a", config=replace(CONFIG, model=None), state="done")
    (trained / "before.safetensors").touch()
    shown = jobs.look(trained)
    control = replace(job("b", tmp_path), config=jobs.control_settings(jobs.opened(shown))[0])

    table = html(runs_table(row(shown), [row(shown), row(control)]))

    assert table.count(f"{CONFIG.arch}, trained by a run") == 2
    assert "before.safetensors" not in table


def test_the_column_of_lowest_accuracies_says_whose_they_are(tmp_path):
    groups = row(job("a", tmp_path)).test
    classes = of_classes(row(job("a", tmp_path))).test

    assert worst_head([groups]) == worst_head([]) == "Worst group"
    assert worst_head([classes]) == "Worst class"
    assert worst_head([classes, groups]) == "Worst group or class"


def test_a_run_that_was_not_tested_on_this_set_has_no_row(finished_run):
    done = jobs.look(finished_run)

    assert row_of(done, "original") is not None
    assert row_of(done, "elsewhere") is None


def test_a_row_holds_what_the_result_file_says(finished_run):
    document = json.loads((finished_run / "result.json").read_text())
    scores = document["test"]["original"]

    found = row_of(jobs.look(finished_run), "original")

    assert len(found.test) == 1000
    assert found.test.before.to_json() == scores["before"]
    assert found.test.after.to_json() == scores["after"]
    worst = found.test.after.worst
    right = round(worst.accuracy * worst.count)
    assert worst.interval == pytest.approx(wilson(right, worst.count))
    gained = found.test.after.average - found.test.before.average
    assert found.flips.fixed - found.flips.broken == round(1000 * gained)


def test_a_file_of_runs_names_the_rival_that_made_the_model(tmp_path):
    rival = replace(CONFIG, rival="jtt", masking=replace(CONFIG.masking, strategy="none"))

    lines = csv(runs_table(None, [row(job("a", tmp_path, config=rival))])).decode().splitlines()

    (line,) = DictReader(lines)
    assert (line["strategy"], line["rounds"]) == ("jtt", "")


def test_estimates_know_no_tenths():
    assert [about(seconds) for seconds in (0.2, 24.7, 840.0)] == ["1 s", "25 s", "14 min"]


def test_a_list_offers_every_run_of_its_own_and_of_studies_the_first_few_and_those_named(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("MASKTUNE_HOME", str(tmp_path))
    own = [job(f"runs/{number}", tmp_path) for number in range(30)]
    grid = [job(f"studies/g/seed-0/heat-k-{number}", tmp_path) for number in range(30)]

    found = few_of_studies([*grid, *own], named={grid[29].id})

    assert found == [*grid[:MOST_OF_STUDIES], grid[29], *own]


def test_runs_of_two_seeds_that_do_the_same_have_labels_that_differ(tmp_path, monkeypatch):
    monkeypatch.setenv("MASKTUNE_HOME", str(tmp_path))
    seeds = [job(f"studies/{g}/seed-{n}/heat-k-1", tmp_path) for g in "ab" for n in range(3)]

    labels = run_labels(seeds)

    assert len({*labels.values()}) == 6
    assert labels[seeds[1].id].endswith("(seed-1/heat-k-1)")


def test_finished_runs_are_those_of_studies_too_and_the_shown_ones_seed_comes_first(home):
    ways = ("runs/one", "studies/g/seed-0/a", "studies/g/seed-1/a", "studies/g/seed-1/b")
    for created, way in enumerate(ways, start=1):
        RunFolder(put(home, way)).write_json("about.json", {"created": created})
    put_training(home, "runs/trained")
    (put(home, "runs/unfinished") / "result.json").unlink()

    assert [job.id for job in finished_runs()] == [*reversed(ways[1:]), "one"]
    assert [job.id for job in finished_runs("studies/g/seed-0/a")] == [
        "studies/g/seed-0/a", "studies/g/seed-1/b", "studies/g/seed-1/a", "one",
    ]  # fmt: skip
