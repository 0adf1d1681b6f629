"""The index of run folders: read once, true to the folders, never in the way."""

import gc
import json
import os
import shutil
from pathlib import Path

import pytest

from masktune.errors import RunFolderError
from masktune.runs import index, jobs
from masktune.runs.folder import RunFolder
from masktune.scores.result import RunResult
from masktune.scores.trained import TrainResult
from tests.old_runs import DEMO, RUNS

SMALL = ("config.json", "status.json", "data.json", "result.json")


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("MASKTUNE_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def opened(monkeypatch):
    """Count the files of runs that are opened, by name."""
    found = []
    for name in ("read_text", "read_bytes"):
        plain = getattr(Path, name)

        def counted(path, *given, plain=plain, **named):
            found.append(path.name)
            return plain(path, *given, **named)

        monkeypatch.setattr(Path, name, counted)
    return found


def put(home, way):
    """Put a finished run into a home, without its models."""
    (home / way).mkdir(parents=True)
    for name in SMALL:
        shutil.copy(RUNS / DEMO / name, home / way / name)
    return home / way


def put_training(home, way):
    """Put a training into a home: what a run says of the model before, and nothing of after."""
    path = put(home, way)
    result, config = (
        json.loads((path / name).read_text()) for name in ("result.json", "config.json")
    )
    for split in (*result["test"].values(), result["validation"]):
        for name in split.keys() - {"before"}:
            del split[name]
    (path / "result.json").write_text(json.dumps(result))
    (path / "config.json").write_text(json.dumps({**config, "model": None, "only_before": True}))
    (path / "before.safetensors").write_bytes(b"weights")
    return path


def stored(home):
    """Return what the index on the disk says of runs, which its last line does."""
    return json.loads((home / "index.jsonl").read_text().splitlines()[-1])


def forget():
    """Do as a server that was started anew."""
    index._known.clear()


def test_a_training_has_the_numbers_of_the_model_before(home):
    whole = index.Numbers.of(RunResult.read(put(home, "runs/one")).test["original"])
    put_training(home, "runs/two")

    for _ in range(2):  # as read, and as indexed
        test = index.entries()["runs/two"].digest.tests["original"]
        assert (test.pictures, test.before) == (1000, whole.before)
        assert (test.after, test.fixed, test.aurc) == (None, None, {})
        forget()


def test_an_entry_has_the_numbers_of_the_result(home):
    path = put(home, "runs/one")

    found = index.entries()["runs/one"]

    result = RunResult.read(path)
    assert found.digest == index.Digest.of(result)
    assert found.digest.took == result.took
    assert list(found.digest.tests) == list(result.test)
    test = found.digest.tests["original"]
    assert test.after.metrics["worst_group"] == result.test["original"].after.worst.accuracy
    assert test.after.metrics["average"] == result.accuracy("original")
    assert test.pictures == 1000


def test_runs_of_experiments_are_listed_by_what_they_are_of(home):
    put(home, "reproductions/digits-short/seed-1/k-2")
    put(home, "reproductions/erm/biased-mnist-5k-1a2b/seed-0")
    named = put(home, "reproductions/digits-short/seed-0/k-2")
    jobs.describe(named, name="Mine")

    found = {job.id: job.name for job in jobs.every()}

    assert found == {
        "reproductions/digits-short/seed-1/k-2": "digits-short: k-2, seed 1",
        "reproductions/erm/biased-mnist-5k-1a2b/seed-0": "erm: biased-mnist-5k-1a2b, seed 0",
        "reproductions/digits-short/seed-0/k-2": "Mine",
    }
    assert {jobs.find(run).path for run in found} == {job.path for job in jobs.every()}
    for rude in ("reproductions/digits-short", "reproductions/../runs/x", "other/a/b/c"):
        assert jobs.find(rude) is None


def test_a_training_and_a_damaged_result_do_not_make_an_index_useless(home, opened):
    put_training(home, "runs/one")
    (put(home, "runs/two") / "result.json").write_text("{}")
    index.entries()
    forget()
    opened.clear()

    found = index.entries()

    assert opened == ["index.jsonl"]
    assert found["runs/one"].digest.tests["original"].after is None


def test_what_is_read_back_from_the_disk_is_the_same(home):
    put(home, "runs/one")
    put(home, "studies/grid/seed-0/heat-k-1")
    first = index.entries()
    forget()

    again = index.entries()

    assert again == first
    assert {*again} == {"runs/one", "studies/grid/seed-0/heat-k-1"}


def test_settings_of_many_runs_stay_with_their_runs(home):
    for number in range(3):
        path = put(home, f"runs/run-{number}")
        config = json.loads((path / "config.json").read_text())
        config["masking"]["k"] = config["seed"] = number
        (path / "config.json").write_text(json.dumps(config))
    first = index.entries()
    forget()

    again = index.entries()

    assert again == first
    told = [again[f"runs/run-{n}"] for n in range(3)]
    assert [(one.config.seed, one.config.masking.k) for one in told] == [(0, 0), (1, 1), (2, 2)]


def test_an_unchanged_folder_is_opened_once_also_by_a_server_started_anew(home, opened):
    for number in range(5):
        put(home, f"runs/run-{number}")

    index.entries()
    assert opened.count("result.json") == opened.count("config.json") == 5

    opened.clear()
    index.entries()
    jobs.history()
    assert opened == []

    forget()
    index.entries()
    assert opened == ["index.jsonl"]


def test_only_what_changed_is_read_again(home, opened):
    for number in range(5):
        put(home, f"runs/run-{number}")
    index.entries()
    forget()
    put(home, "runs/new")
    jobs.describe(home / "runs" / "run-2", name="mine", note="")
    shutil.rmtree(home / "runs" / "run-4")
    opened.clear()

    found = index.entries()

    assert opened.count("result.json") == 2  # of the new one and of the one that has a name now
    assert found["runs/run-2"].about["name"] == "mine"
    assert "runs/run-4" not in found
    forget()
    opened.clear()
    index.entries()
    assert opened == ["index.jsonl"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda told: told[:0],
        lambda told: told and "[]",
        lambda told: told[:-20],
        lambda told: told.partition("\n")[0],
        lambda told: told.partition("\n")[2],
        lambda told: told.replace('"masking":0', '"masking":9'),
        lambda told: told.replace('"seed":0', '"sown":0'),
        lambda told: told.replace('"runs/one":[', '"runs/one":[[],'),
        lambda told: told.replace('"runs":{', '"walks":{'),
        lambda told: told.replace('"pictures":1000', '"pictures":1001'),
        lambda told: "{}\n" + told.partition("\n")[2],
    ],
)
def test_a_damaged_index_is_made_again(home, damage):
    put(home, "runs/one")
    first = index.entries()
    told = (home / "index.jsonl").read_text()
    assert damage(told) != told
    (home / "index.jsonl").write_text(damage(told))
    forget()

    assert index.entries() == first
    assert (home / "index.jsonl").read_text() == told


def test_garbage_is_collected_again_once_the_index_is_read(home):
    put(home, "runs/one")
    index.entries()
    forget()

    index.entries()

    assert gc.isenabled()


def test_an_index_of_another_version_is_made_again(home):
    put(home, "runs/one")
    first = index.entries()
    told, fingerprint = (home / "index.jsonl").read_text(), first["runs/one"].fingerprint
    changed = told.replace(fingerprint, "of another version")
    (home / "index.jsonl").write_text(changed)
    forget()
    assert index.entries()["runs/one"].fingerprint == "of another version"
    former = changed.replace(f'"format":{index.FORMAT}', f'"format":{index.FORMAT - 1}')
    (home / "index.jsonl").write_text(former)
    forget()

    assert index.entries() == first


def test_what_was_listed_stays_as_it_was_when_others_look(home):
    put(home, "runs/one")
    listed = index.entries()

    jobs.look(put(home, "runs/two"))

    assert [*listed] == ["runs/one"]


def test_a_folder_that_is_still_being_unpacked_is_no_run(home):
    put(home, "runs/.import.part")

    assert index.entries() == {}


def test_a_result_of_the_same_length_and_time_in_another_file_is_another_one(home):
    path = put(home, "runs/one")
    before = index.entries()["runs/one"]
    text = (path / "result.json").read_text()
    stat = (path / "result.json").stat()
    (path / "new").write_text(text.replace('"seed": 0', '"seed": 1', 1))
    os.utime(path / "new", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    (path / "new").replace(path / "result.json")

    assert index.entries()["runs/one"] is not before


@pytest.mark.parametrize("state", ["queued", "running"])
def test_a_run_at_work_is_not_written_down_and_its_end_is(home, state):
    path = put(home, "runs/one")
    (path / "result.json").unlink()
    (path / "status.json").write_text(json.dumps({"state": state}))

    assert index.entries()["runs/one"].status["state"] == state
    assert not (home / "index.jsonl").exists()

    shutil.copy(RUNS / DEMO / "result.json", path)
    jobs.look(path)  # somebody else looks first
    index.entries()
    assert [*stored(home)["runs"]] == ["runs/one"]


def test_how_far_a_run_was_is_forgotten_with_its_result_but_not_when_it_began(home, opened):
    path = put(home, "runs/one")
    (path / "status.json").write_text('{"state": "running", "stage": "report", "began": 5.0}')

    assert index.entries()["runs/one"].status == {"began": 5.0}
    (path / "status.json").write_text('{"state": "done", "began": 5.0}')
    opened.clear()
    index.entries()
    assert opened == []

    (path / "result.json").unlink()  # it is made again
    assert index.entries()["runs/one"].status == {"state": "done", "began": 5.0}


def test_numbers_of_many_runs_stay_with_their_runs(home):
    for number in range(3):
        path = put(home, f"runs/run-{number}") / "result.json"
        told = json.loads(path.read_text())
        told["seconds"] = {"train": float(number)}
        told["test"] = {f"set {number}": told["test"]["original"]}
        path.write_text(json.dumps(told))
    (put(home, "runs/none") / "result.json").write_text("{}")
    index.entries()
    forget()

    found = index.entries()

    assert found["runs/none"].digest is None
    for number in range(3):
        digest = found[f"runs/run-{number}"].digest
        assert (digest.took, [*digest.tests]) == (number, [f"set {number}"])
        assert digest.tests[f"set {number}"].pictures == 1000


def test_a_result_that_cannot_be_read_leaves_a_run_without_numbers(home, opened):
    path = put(home, "runs/one")
    (path / "result.json").write_text("{}")

    (job,) = jobs.history()
    assert (job.state, job.digest) == ("done", None)

    opened.clear()
    forget()
    assert jobs.history() == [job]
    assert opened == ["index.jsonl"]


def test_a_home_that_cannot_be_written_is_only_slower(home, monkeypatch):
    put(home, "runs/one")
    (home / "index.jsonl").mkdir()  # nothing can be put in its place

    assert [*index.entries()] == ["runs/one"]


def test_what_an_address_made_up_is_not_kept(home):
    put(home, "runs/one")

    assert jobs.find("no-such-run") is None
    assert [*index._known[home].entries] == []


@pytest.mark.parametrize(("part", "value"), [("format", 99), ("test", {}), ("test", [])])
def test_a_training_whose_result_cannot_be_read_is_one_without_numbers(home, part, value):
    path = put_training(home, "runs/one")
    result = json.loads((path / "result.json").read_text())
    (path / "result.json").write_text(json.dumps({**result, part: value}))

    assert index.entries()["runs/one"].digest is None
    with pytest.raises(RunFolderError, match="newer version" if part == "format" else "damaged"):
        TrainResult.read(path)


def test_what_one_version_could_not_read_is_read_by_the_next(home, monkeypatch):
    def refuse(folder):
        raise RunFolderError("It is of a newer version.")

    put(home, "runs/one")
    with monkeypatch.context() as patch:
        patch.setattr(RunResult, "read", refuse)
        assert index.entries()["runs/one"].digest is None

    forget()
    monkeypatch.setattr(index, "__version__", "99.0")

    assert index.entries()["runs/one"].digest is not None


@pytest.mark.parametrize(
    "about",
    [
        *({"created": odd} for odd in ("yesterday", float("nan"), 1e300, -1e15, 10**400, True)),
        *({"tags": 5}, {"name": ["a"]}),
    ],
)
def test_odd_words_about_a_run_take_no_list_down(home, about):
    path = put(home, "runs/one")
    (path / "about.json").write_text(json.dumps({"note": "Mine", **about}))

    (job,) = jobs.every()

    assert (job.note, job.name, job.tags) == ("Mine", "", ())
    assert job.created == pytest.approx((path / "config.json").stat().st_mtime)


@pytest.mark.parametrize("began", ["yesterday", [1], 1e300, 10**400])
@pytest.mark.parametrize("finished", [True, False])
def test_a_run_that_began_at_no_moment_has_none(home, began, finished):
    path = put(home, "runs/one")
    (path / "status.json").write_text(json.dumps({"state": "failed", "began": began}))
    if not finished:
        (path / "result.json").unlink()

    assert jobs.every()[0].began is None


@pytest.mark.parametrize("name", ["about.json", "data.json", "status.json", "config.json"])
def test_json_that_never_ends_takes_no_list_down(home, name):
    put(home, "runs/one")
    path = put(home, "runs/two")
    (path / "result.json").unlink()
    (path / name).write_text("[" * 100_000)

    assert "one" in [job.id for job in jobs.every()]
    with pytest.raises(RunFolderError, match=f"{name} cannot be read"):
        RunFolder(path).read_json(name)


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("config.json", ("masking", "k")),
        ("config.json", ("training", "lr")),
        ("result.json", ("seconds", "train")),
        ("result.json", ("test", "biased", "after", "groups", 0, "count")),
    ],
)
def test_numbers_that_no_machine_can_hold_take_no_list_down(home, name, where):
    put(home, "runs/one")
    path = put(home, "runs/two")
    document = json.loads((path / name).read_text())
    holder = document
    for part in where[:-1]:
        holder = holder[part]
    holder[where[-1]] = 10**400
    (path / name).write_text(json.dumps(document))

    known = {job.id: job.digest for job in jobs.every()}

    assert known["one"] is not None
    assert known.get("two") is None
