import io
import stat
import zipfile
from concurrent.futures import ThreadPoolExecutor

import pytest

from masktune.data import archive as archives
from masktune.data.archive import unpack
from masktune.errors import DataError


def zipped(files: dict[str, bytes]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return content.getvalue()


def given(tmp_path, files):
    path = tmp_path / "mine.zip"
    path.write_bytes(zipped(files))
    return path


def found(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_pictures_lists_and_notes_are_unpacked_and_nothing_else(tmp_path):
    path = given(
        tmp_path,
        {
            "data/cat/1.JPG": b"one",
            "data/labels.csv": b"list",
            "data/readme.txt": b"note",
            "data/run.py": b"import os",
            "data/model.pt": b"weights",
            "__MACOSX/data/cat/._1.jpg": b"junk",
            "data/cat/.DS_Store": b"junk",
            "data/cat/Thumbs.db": b"junk",
            "data/.hidden/1.jpg": b"junk",
        },
    )

    folder = unpack(path, into=tmp_path / "uploads" / "abc")

    assert folder == tmp_path / "uploads" / "abc"
    assert found(folder) == {
        "data/cat/1.JPG": b"one",
        "data/labels.csv": b"list",
        "data/readme.txt": b"note",
    }
    assert [p.name for p in folder.parent.iterdir()] == ["abc"]
    assert not (folder / "data/cat/1.JPG").stat().st_mode & stat.S_IXUSR


def test_what_is_unpacked_already_is_left_alone(tmp_path):
    path = given(tmp_path, {"1.jpg": b"one"})
    unpack(path, into=tmp_path / "out")
    path.write_bytes(b"no longer a zip")

    assert found(unpack(path, into=tmp_path / "out")) == {"1.jpg": b"one"}


def test_a_zip_inside_is_unpacked_under_its_name(tmp_path):
    inner = {"images.zip": zipped({"1.jpg": b"one"}), "train.zip": zipped({"train/2.jpg": b"two"})}

    folder = unpack(given(tmp_path, inner), into=tmp_path / "out")

    assert found(folder) == {"images/1.jpg": b"one", "train/2.jpg": b"two"}


def test_what_is_in_a_zip_inside_counts_for_the_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MOST_FILES", 4)
    twice = {f"{n}.zip": zipped({f"{n}{m}.jpg": b"x" for m in range(2)}) for n in range(2)}

    with pytest.raises(DataError, match="more than 4 files"):
        unpack(given(tmp_path, twice), into=tmp_path / "out")


@pytest.mark.parametrize(("count", "refused"), [(3, False), (4, True)])
def test_the_number_of_files_is_bounded(count, refused, tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MOST_FILES", 3)
    path = given(tmp_path, {f"{n}.jpg": b"x" for n in range(count)})

    if refused:
        with pytest.raises(DataError, match="more than 3 files"):
            unpack(path, into=tmp_path / "out")
        assert [p.name for p in tmp_path.iterdir()] == ["mine.zip"]
    else:
        assert len(found(unpack(path, into=tmp_path / "out"))) == 3


def test_the_bytes_are_bounded_by_what_comes_out_and_not_by_what_is_claimed(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MOST_BYTES", 1000)
    monkeypatch.setattr(archives, "_refuse_claims", lambda *_, **__: None)
    path = given(tmp_path, {"1.jpg": b"x" * 600, "2.jpg": b"y" * 600})

    with pytest.raises(DataError, match="more than"):
        unpack(path, into=tmp_path / "out")
    assert [p.name for p in tmp_path.iterdir()] == ["mine.zip"]


def test_a_long_list_may_shrink_well_but_not_without_end(tmp_path, monkeypatch):
    path = given(tmp_path, {"1.csv": bytes(200_000)})
    assert path.stat().st_size * archives.MOST_RATIO < 200_000
    assert found(unpack(path, into=tmp_path / "free"))

    monkeypatch.setattr(archives, "FREE_BYTES", 100_000)
    with pytest.raises(DataError, match="100 times its own size"):
        unpack(path, into=tmp_path / "out")


def test_too_little_disk_is_told_before_the_work(tmp_path, monkeypatch):
    class Usage:
        free = 5

    monkeypatch.setattr(archives.shutil, "disk_usage", lambda _: Usage)

    with pytest.raises(DataError, match="the disk has 0 MB left"):
        unpack(given(tmp_path, {"1.jpg": b"x" * 10}), into=tmp_path / "out")


def test_a_disk_that_fills_up_leaves_nothing(tmp_path, full_disk):
    path = given(tmp_path, {"1.jpg": bytes(range(256)) * 100})

    with full_disk(), pytest.raises(DataError, match="cannot be unpacked: File too large"):
        unpack(path, into=tmp_path / "out")

    assert [p.name for p in tmp_path.iterdir()] == ["mine.zip"]


def test_a_watcher_that_stops_the_work_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "_STEP", 2)
    path = given(tmp_path, {f"{n}.jpg": b"x" for n in range(5)})
    steps = []

    def stop(progress):
        steps.append((progress.stage, progress.done, progress.total))
        if progress.done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        unpack(path, into=tmp_path / "out", watcher=stop)

    assert steps == [("unpack", 2, 5), ("unpack", 4, 5)]
    assert [p.name for p in tmp_path.iterdir()] == ["mine.zip"]

    unpack(path, into=tmp_path / "out", watcher=lambda p: steps.append((p.done, p.total)))
    assert steps[-1] == (5, 5)


def test_several_that_unpack_the_same_zip_at_once_unpack_it_once(tmp_path):
    path = given(tmp_path, {f"{n}.jpg": b"one" for n in range(100)})
    heard = []

    with ThreadPoolExecutor(4) as pool:
        folders = list(
            pool.map(lambda _: unpack(path, into=tmp_path / "out", watcher=heard.append), range(4))
        )

    assert folders == [tmp_path / "out"] * 4
    assert len(found(tmp_path / "out")) == 100
    assert [step.done for step in heard] == [64, 100]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mine.zip", "out"]


def test_a_table_of_contents_in_the_long_form_is_measured(tmp_path, monkeypatch):
    path = tmp_path / "mine.zip"
    with monkeypatch.context() as many:
        many.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 0)  # one file counts as too many for the short
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("1.jpg", b"one")
    content = bytearray(path.read_bytes())
    end = content.rindex(b"PK\x05\x06")
    content[end + 12 : end + 16] = b"\xff" * 4  # the length is found in the long form only
    path.write_bytes(content)

    assert found(unpack(path, into=tmp_path / "out")) == {"1.jpg": b"one"}

    monkeypatch.setattr(archives, "_DIRECTORY_BYTES", 10)
    with pytest.raises(DataError, match="files"):
        unpack(path, into=tmp_path / "other")
