"""A run as a ZIP: what comes back is what left, and nothing else comes in."""

import io
import shutil
import zipfile
from pathlib import Path

import pytest

from masktune.errors import RunFolderError
from masktune.runs import jobs
from masktune.runs.open import OpenRun
from masktune.runs.parcel import copy, pack, unpack
from tests.masktune.runs.test_index import put_training
from tests.old_runs import DEMO, put


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("MASKTUNE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def parcel(tmp_path):
    path = tmp_path / "run.zip"
    path.write_bytes(pack(put(DEMO, tmp_path / "elsewhere")))
    return path


def changed(parcel, **files):
    """Give a ZIP with some files replaced by a text, or left out for None; _ stands for a dot."""
    new = {name.replace("_", "."): text for name, text in files.items()}
    with zipfile.ZipFile(parcel) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    for name, text in new.items():
        held.pop(f"{DEMO}/{name}", None)
        if text is not None:
            held[f"{DEMO}/{name}"] = text.encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in held.items():
            archive.writestr(name, content)
    parcel.write_bytes(out.getvalue())
    return parcel


def test_a_run_made_elsewhere_opens_as_it_was(home, parcel, tmp_path):
    (path,) = unpack(parcel)

    assert path == home / "runs" / DEMO
    there = tmp_path / "elsewhere" / DEMO
    for each in path.iterdir():
        assert each.read_bytes() == (there / each.name).read_bytes()
    assert {each.name for each in there.iterdir()} == {each.name for each in path.iterdir()}
    assert OpenRun(path).result == OpenRun(path).result.read(path)
    (job,) = jobs.history()
    assert (job.id, job.state) == (DEMO, "done")
    assert job.digest is not None


def test_a_run_that_is_here_already_is_left_as_it_is(home, parcel):
    (path,) = unpack(parcel)
    (path / "about.json").write_text('{"name": "mine"}')

    with pytest.raises(RunFolderError, match="is here already"):
        unpack(parcel)

    assert jobs.history()[0].name == "mine"
    assert [each.name for each in (home / "runs").iterdir()] == [DEMO]


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({"config_json": None}, "holds no run folder"),
        ({"other/config_json": "{}"}, "holds a run folder in another"),
        ({"after_safetensors": None}, "has no after.safetensors"),
        ({"result_json": None}, "has no result"),
        ({"result_json": "{}"}, "result.json is missing or damaged"),
        ({"config_json": "[]"}, "configuration cannot be read"),
        ({"config_json": '{"only_before": true}'}, "configuration cannot be read"),
        ({"predictions_npz": "no array"}, "predictions.npz"),
        ({"about_json": '{"name": "\\ud800"}'}, "about.json"),
        ({"about_json": "[]"}, "about.json"),
        ({"status_json": "[" * 100_000}, "status.json"),
        ({"../escape_json": "{}"}, "leads out of it"),
    ],
)
def test_what_is_no_whole_run_is_refused_and_nothing_is_left(home, parcel, files, problem):
    with pytest.raises(RunFolderError, match=problem):
        unpack(changed(parcel, **files))

    assert [*(home / "runs").iterdir()] == []


def test_a_file_that_is_no_zip_is_refused(home, tmp_path):
    (tmp_path / "run.zip").write_text("plain")

    with pytest.raises(RunFolderError, match="no zip file"):
        unpack(tmp_path / "run.zip")


def test_a_folder_packed_without_its_name_is_called_by_the_file(home, tmp_path):
    there = put(DEMO, tmp_path / "elsewhere")
    shutil.make_archive(str(tmp_path / "packed"), "zip", there)

    (path,) = unpack(tmp_path / "packed.zip", name="my run (1).zip")

    assert path.name == "my_run__1_"


@pytest.mark.parametrize(("file", "called"), [("....zip", "imported"), (".hidden.zip", "hidden")])
def test_no_name_of_a_file_hides_the_run(home, tmp_path, file, called):
    there = put(DEMO, tmp_path / "elsewhere")
    shutil.make_archive(str(tmp_path / "packed"), "zip", there)

    (path,) = unpack(tmp_path / "packed.zip", name=file)

    assert path.name == called


def test_a_report_neither_leaves_nor_comes_in(home, parcel, tmp_path):
    report = tmp_path / "elsewhere" / DEMO / "report.html"
    report.write_text("<script></script>")

    assert b"report.html" not in pack(report.parent)
    (path,) = unpack(changed(parcel, report_html="<script></script>"))
    assert not (path / "report.html").exists()


def test_a_training_travels_as_a_run_does(home, tmp_path):
    there = put_training(tmp_path / "elsewhere", "trained")
    (tmp_path / "trained.zip").write_bytes(pack(there))

    (path,) = unpack(tmp_path / "trained.zip")

    assert {each.name for each in path.iterdir()} == {each.name for each in there.iterdir()}
    assert [(job.id, job.state) for job in jobs.alone()] == [("trained", "done")]


def test_a_training_without_its_model_stays_outside(home, tmp_path):
    there = put_training(tmp_path / "elsewhere", "trained")
    (there / "before.safetensors").unlink()
    (tmp_path / "trained.zip").write_bytes(pack(there))

    with pytest.raises(RunFolderError, match=r"has no before\.safetensors"):
        unpack(tmp_path / "trained.zip")


@pytest.fixture
def several(tmp_path):
    """Give the folders of two finished runs and of one that failed."""
    first = put(DEMO, tmp_path / "elsewhere")
    second, failed = (shutil.copytree(first, first.with_name(name)) for name in ("two", "failed"))
    (failed / "result.json").unlink()
    (failed / "status.json").write_text('{"state": "failed"}')
    return first, second, failed


def test_several_runs_travel_in_one_zip_and_the_finished_ones_come_in(home, several, tmp_path):
    zipped = tmp_path / "runs.zip"
    zipped.write_bytes(pack(*several))
    assert "failed/status.json" in zipfile.ZipFile(zipped).namelist()

    assert [path.name for path in unpack(zipped)] == [DEMO, "two"]
    assert {(job.id, job.state) for job in jobs.history()} == {(DEMO, "done"), ("two", "done")}


def test_of_several_runs_none_comes_in_where_one_is_here_or_cannot_be_read(home, several, tmp_path):
    zipped = tmp_path / "runs.zip"
    zipped.write_bytes(pack(*several))
    (home / "runs" / "two").mkdir(parents=True)
    with pytest.raises(RunFolderError, match="A run two is here already"):
        unpack(zipped)

    (home / "runs" / "two").rmdir()
    (several[1] / "predictions.npz").write_text("no array")
    zipped.write_bytes(pack(*several))
    with pytest.raises(RunFolderError, match=r"predictions\.npz"):
        unpack(zipped)

    assert [*(home / "runs").iterdir()] == []


def test_two_runs_that_would_be_called_alike_stay_outside(home, several, tmp_path):
    first, second, _ = several
    for path, name in ((first, "my run"), (second, "my_run")):
        path.rename(path.with_name(name))
    zipped = Path(shutil.make_archive(str(tmp_path / "runs"), "zip", first.parent))

    with pytest.raises(RunFolderError, match="Two runs would be called my_run"):
        unpack(zipped)

    assert [*(home / "runs").iterdir()] == []


def test_answers_that_would_fill_the_memory_are_not_read(home, parcel, monkeypatch):
    monkeypatch.setattr("masktune.runs.parcel.MOST_BYTES", 10_000)

    with pytest.raises(RunFolderError, match=r"predictions\.npz unpacks to"):
        unpack(parcel)

    assert [*(home / "runs").iterdir()] == []


def test_a_disk_that_is_full_while_a_run_is_copied_is_said(home, several, full_disk):
    with full_disk(), pytest.raises(RunFolderError, match="cannot be copied"):
        copy(several[0])

    assert [*(home / "runs").iterdir()] == []


def test_the_folder_of_a_run_elsewhere_is_copied(home, several):
    first, _, failed = several
    (first / "report.html").write_text("<script></script>")

    (path,) = copy(first)

    assert path == home / "runs" / DEMO
    assert {each.name for each in first.iterdir()} - {each.name for each in path.iterdir()} == {
        "report.html"
    }
    with pytest.raises(RunFolderError, match="is here already"):
        copy(first)
    with pytest.raises(RunFolderError, match="has no result"):
        copy(failed)
    with pytest.raises(RunFolderError, match="holds no run folder"):
        copy(first.parent)
    with pytest.raises(RunFolderError, match="is no folder"):
        copy(first / "config.json")
    assert [*(home / "runs").iterdir()] == [path]
