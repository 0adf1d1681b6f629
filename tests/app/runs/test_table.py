"""The list of runs: which ones, in which order, with which columns."""

from csv import DictReader
from dataclasses import replace
from datetime import datetime

import pytest

from app.runs.seeds import alike_but_seed, seeds_table
from app.runs.table import (
    Wanted,
    differing,
    matching,
    numbers,
    ordered,
    pictures_titles,
    runs_table,
    setting_cell,
    settings_table,
    told_value,
)
from app.runs.together import names_of
from masktune.config import AUTO
from masktune.runs.folder import RunFolder
from masktune.runs.index import Digest, Numbers, Scored
from masktune.runs.jobs import Job
from masktune.runs.load import title_of
from masktune.scores.groups import GroupScore, wilson
from masktune.scores.metrics import METRICS
from masktune.show.tables import csv, html
from tests.app.conftest import demo_config


def numbers_of(worst, average):
    """Give 1,000 pictures, 100 of them in the worst group; before, 10 % of that was right."""

    def scored(share, mean):
        score = GroupScore("0–4", "square", 100, share, wilson(round(100 * share), 100))
        values = dict.fromkeys((metric.key for metric in METRICS), mean)
        metrics = {**values, "worst_group": share}
        return Scored(metrics=metrics, worst=score, worst_is="group")

    areas = {"joint": 0.1, "after": 0.2, "before": 0.3}
    return Numbers(
        pictures=1000,
        before=scored(0.1, 0.5),
        after=scored(worst, average),
        aurc=areas,
        fixed=30,
        broken=4,
    )


def job(tmp_path, own, /, *, worst=None, average=0.9, state="done", k=2.0, seed=0, **said):
    config = said.pop("config", demo_config())
    masking = replace(config.masking, k=k, strategy=said.pop("strategy", "heat"))
    digest = None
    if worst is not None:
        digest = Digest(tests={"original": numbers_of(worst, average)}, took=8.5)
    return Job(
        path=tmp_path / own,
        config=replace(config, masking=masking, seed=seed),
        state=state,
        digest=digest,
        **said,
    )


@pytest.fixture
def runs(tmp_path):
    return [
        job(tmp_path, "a", worst=0.6, k=1.0, created=1, name="First try", tags=("paper",)),
        job(tmp_path, "b", worst=0.9, k=2.0, created=2, note="too slow"),
        job(tmp_path, "c", worst=0.3, created=3, strategy="none"),
        job(tmp_path, "d", state="failed", created=4, config=demo_config(dataset="svhn")),
        job(tmp_path, "e", state="interrupted", created=5, archived=True),
        job(tmp_path, "f", state="queued", created=6),
    ]


def ids(runs):
    return "".join(job.id for job in runs)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({}, "abcdf"),
        ({"search": "FIRST"}, "a"),
        ({"search": "paper try"}, "a"),
        ({"search": "slow"}, "b"),
        ({"search": "svhn"}, "d"),
        ({"search": "nothing hidden"}, "c"),
        ({"search": "no such words"}, ""),
        ({"dataset": "svhn"}, "d"),
        ({"method": "none"}, "c"),
        ({"method": "heat", "state": "finished"}, "ab"),
        ({"state": "failed"}, "d"),
        ({"state": "waiting"}, "f"),
        ({"state": "cancelled"}, ""),
        ({"state": "archived"}, "e"),
    ],
)
def test_a_run_is_found_by_words_pictures_method_and_state(runs, wanted, found):
    assert ids(matching(runs, Wanted(**wanted))) == found


def test_an_interrupted_run_counts_as_cancelled(tmp_path):
    stopped = [job(tmp_path, "e", state="interrupted"), job(tmp_path, "f", state="cancelled")]

    assert ids(matching(stopped, Wanted(state="cancelled"))) == "ef"


@pytest.mark.parametrize(
    ("sort", "order", "found"),
    [
        ("created", "down", "dcba"),
        ("created", "up", "abcd"),
        ("worst_group after", "down", "bacd"),  # d has no number and stays last
        ("worst_group after", "up", "cabd"),
        ("k", "up", "abdc"),  # nothing hidden has no k
        ("name", "up", "cabd"),
        ("no such thing", "up", "cabd"),
    ],
)
def test_runs_are_sorted_by_any_number_or_setting(runs, sort, order, found):
    assert ids(ordered(runs[:4], Wanted(sort=sort, order=order))) == found


def test_pinned_runs_come_first_in_either_order(runs):
    pinned = [*runs[:2], replace(runs[2], pinned=True)]

    assert ids(ordered(pinned, Wanted(order="down"))) == "cba"
    assert ids(ordered(pinned, Wanted(order="up"))) == "cab"


def test_a_test_set_that_a_run_was_not_asked_about_has_no_numbers(runs):
    wanted = Wanted(sort="worst_group after", test="biased")

    assert ids(ordered(runs[:3], wanted)) == "abc"
    row = DictReader(csv(runs_table(runs[:1], settings=[], test="biased")).decode().splitlines())
    assert next(row)["worst after"] == ""


def test_only_settings_that_somebody_chose_otherwise_have_a_column(runs):
    assert differing(runs[:3]) == ["strategy", "k"]  # a run without a k differs in its strategy
    assert differing(runs[:2]) == ["k"]
    assert differing(runs[:1]) == []
    assert differing([]) == []


def own(tmp_path, name, *roots):
    config = demo_config(dataset="folder", root="/pictures/birds")
    return [
        job(tmp_path, f"{name}-{n}", config=replace(config, root=root))
        for n, root in enumerate(roots)
    ]


def test_two_own_folders_are_two_choices_named_by_their_newest_run(tmp_path):
    birds, dogs = own(tmp_path, "a", "/pictures/birds", "/pictures/dogs")
    renamed = replace(birds, config=replace(birds.config, title="Birds of mine"))
    runs = [renamed, dogs, birds]

    titles = pictures_titles(runs)

    assert [*titles.values()] == ["Birds of mine", title_of(dogs.config)]
    found = [matching(runs, Wanted(dataset=pictures)) for pictures in titles]
    assert found == [[renamed, birds], [dogs]]


def test_folders_of_one_name_are_told_apart_by_where_they_lie(tmp_path):
    titles = pictures_titles(own(tmp_path, "a", "/old/birds", "/new/birds"))

    assert [title.partition(" (")[2] for title in titles.values()] == ["/old/birds)", "/new/birds)"]


def test_runs_that_differ_in_nothing_but_their_folder_are_told_to(tmp_path):
    birds, dogs = own(tmp_path, "a", "/pictures/birds", "/pictures/dogs")

    rows = [*DictReader(csv(settings_table({"one": birds, "two": dogs})).decode().splitlines())]

    assert [row["setting"] for row in rows] == ["dataset", "root"]
    assert (rows[1]["one"], rows[1]["two"]) == ("/pictures/birds", "/pictures/dogs")
    assert not settings_table({"one": birds, "two": birds}).rows


def test_a_model_that_a_run_here_trained_is_told_by_how_it_was_trained(tmp_path, monkeypatch):
    monkeypatch.setenv("MASKTUNE_HOME", str(tmp_path))
    trains = replace(demo_config(), model=None)
    path = tmp_path / "runs" / "trainer"
    RunFolder.claim(path, trains)
    given = replace(trains, model=str(path / "before.safetensors"), arch=AUTO)
    trainer = Job(path=path, config=trains, state="done")
    other = Job(path=tmp_path / "runs" / "other", config=given, state="done")

    assert differing([trainer, other]) == []
    assert told_value("epochs", other) == trains.training.epochs
    longer = replace(trains, training=replace(trains.training, epochs=77))
    assert differing([other, Job(path=path, config=longer, state="done")]) == ["epochs"]


def test_the_file_of_the_list_has_every_setting_and_number(runs):
    settings = ["strategy", "k"]
    table = runs_table(runs[:4], settings=settings, test="", whole=True)

    rows = [*DictReader(csv(table).decode().splitlines())]

    assert [row["run"] for row in rows] == ["a", "b", "c", "d"]
    first = rows[0]
    assert (first["name"], first["tags"], first["k"], first["strategy"]) == (
        "First try",
        "paper",
        "1.0",
        "heat",
    )
    assert (first["worst before"], first["worst after"], first["n"]) == ("0.1", "0.6", "1000")
    assert (first["test set"], first["worst name"]) == ("original", "0–4, square")
    assert (first["AURC joint"], first["Fixed"], first["seconds"]) == ("0.1", "30", "8.5")
    told = {"When", "Took"}  # by "created" and "seconds"
    assert {title for title, _ in numbers().values()} - {*first} == told
    assert datetime.fromisoformat(first["created"]).timestamp() == 1
    assert (rows[2]["k"], rows[3]["worst after"]) == ("", "")
    assert "Fixed" not in html(table)
    drawn = runs_table(runs[:4], settings=settings, test="")
    assert html(drawn) == html(table)
    assert all(column.shown for column in drawn.columns)


def test_a_setting_differs_if_a_run_heeds_another_value_wherever_it_stands(runs):
    several = [runs[0], runs[2], *[runs[1]] * 3]
    heeded = [{told_value(name, job) for job in several} - {None} for name in differing(several)]

    assert all(len(values) > 1 for values in heeded)
    assert differing([]) == differing(runs[:1]) == []


def test_a_failed_run_says_why_beside_its_name(tmp_path):
    failed = job(tmp_path, "a", state="failed", problem="The loss became <nan>.")

    table = runs_table([failed], settings=[], test="")

    assert "<br>The loss became &lt;nan&gt;.</small>" in html(table)
    assert next(DictReader(csv(table).decode().splitlines()))["problem"] == failed.problem


def test_a_training_has_numbers_before_and_no_method_of_finetuning(tmp_path):
    config = replace(demo_config(model=None), only_before=True)
    before = replace(numbers_of(0.6, 0.9), after=None, aurc={}, fixed=None, broken=None)
    trained = replace(
        job(tmp_path, "a", config=config), digest=Digest(tests={"original": before}, took=2.0)
    )
    tuned = job(tmp_path, "b", worst=0.6)

    (row,) = DictReader(csv(runs_table([trained], settings=["k"], test="")).decode().splitlines())
    assert [row[name] for name in ("k", "worst before", "worst after", "average before")] == [
        "",
        "0.1",
        "",
        "0.5",
    ]
    assert [told_value(name, trained) for name in ("rival", "strategy", "epochs")] == [
        None,
        None,
        12,
    ]
    assert ids(matching([trained, tuned], Wanted(method="heat"))) == "b"
    assert ids(matching([trained, tuned], Wanted(method="training"))) == "a"
    assert alike_but_seed([trained, replace(trained, config=replace(config, seed=1))]) == []


def test_what_somebody_wrote_about_a_run_is_text(tmp_path):
    mean = job(tmp_path, "a", name="<b>x</b>", note="<script>", tags=("<i>",))

    drawn = html(runs_table([mean], settings=[], test=""))

    assert "<script>" not in drawn
    assert "&lt;b&gt;x" in drawn
    assert "&lt;i&gt;" in drawn


def test_ticked_runs_are_told_apart_by_what_differs(tmp_path):
    one, two = (job(tmp_path, f"run-{n}", k=1.0, seed=n) for n in (0, 1))
    same = job(tmp_path, "run-2", k=1.0, seed=1)

    assert [*names_of([one, two])] == ["MaskTune, k = 1, seed 0", "MaskTune, k = 1, seed 1"]
    assert [*names_of([one])] == ["MaskTune, k = 1"]
    assert len(names_of([one, two, same])) == 3


def test_settings_that_differ_are_set_side_by_side(runs):
    table = settings_table({"one": runs[0], "two": runs[2]})

    rows = [*DictReader(csv(table).decode().splitlines())]

    assert [(row["setting"], row["one"], row["two"]) for row in rows] == [
        ("strategy", "heat", "none")
    ]


def test_runs_alike_but_for_the_seed_have_a_mean_with_an_interval(tmp_path):
    alike = [
        job(tmp_path, f"k1-{seed}", worst=worst, k=1.0, seed=seed, created=seed)
        for seed, worst in enumerate((0.90, 0.92, 0.94))
    ]
    alone = job(tmp_path, "k2", worst=0.5, k=2.0)

    assert [ids(group) for group in alike_but_seed([*alike, alone])] == ["k1-0k1-1k1-2"]
    rows = [*DictReader(csv(seeds_table([*alike, alone], "original")).decode().splitlines())]

    assert [(row["what"], row["n"], row["seeds"]) for row in rows] == [
        ("MaskTune, k = 1", "3", "0, 1, 2")
    ]
    # Student's interval of 0.90, 0.92, 0.94: 0.92 ± 4.303 * 0.02 / sqrt(3)
    assert float(rows[0]["worst_group mean"]) == pytest.approx(0.92)
    assert float(rows[0]["worst_group low"]) == pytest.approx(0.8703, abs=1e-4)
    assert float(rows[0]["worst_group high"]) == pytest.approx(0.9697, abs=1e-4)
    assert (
        seeds_table([*alike, alone], "original").rows[0][-3].small == "87.0 to 97.0%, n = 3 seeds"
    )
    assert seeds_table([alone], "original").rows == []


def test_over_two_seeds_the_interval_of_a_share_stays_one_in_the_file_too(tmp_path):
    runs = [job(tmp_path, f"s{n}", worst=w, seed=n) for n, w in enumerate((0.2, 0.9))]

    (row,) = DictReader(csv(seeds_table(runs, "original")).decode().splitlines())

    assert (row["worst_group low"], row["worst_group high"]) == ("0.0", "1.0")


def test_two_runs_of_one_seed_count_once_by_the_newest(tmp_path):
    old, new = (job(tmp_path, n, worst=0.5, created=at) for n, at in (("old", 1), ("new", 2)))
    other = job(tmp_path, "other", worst=0.7, seed=1)

    assert [ids(group) for group in alike_but_seed([new, old, other])] == ["newother"]


def test_a_narrow_column_breaks_a_path_or_a_list_between_its_parts_and_no_k(tmp_path):
    given = {"class_names": "round,pointed", "attributes": "/tmp/own_<b>.csv"}
    one = job(tmp_path, "one", config=demo_config(**given))

    names, path = (setting_cell(name, one).text for name in ("class_names", "attributes"))
    table = runs_table([one], settings=(), test="original")

    assert names == "round,<wbr>pointed"
    assert path == "/<wbr>tmp/<wbr>own_&lt;b&gt;.csv"
    assert setting_cell("class_names", one).values == ("round,pointed",)
    assert table.rows[0][1].text == "MaskTune, k\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}2"
