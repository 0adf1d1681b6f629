"""The one atomic writer, the one CSV writer, home."""

import re
import threading
from pathlib import Path

import pytest

from masktune.errors import MaskTuneError
from masktune.files import csv_bytes, home, replace_file


def test_a_text_that_a_spreadsheet_would_run_is_written_as_text():
    names = ("=1+1", "+1", "-cat", "@sum", "\tcat", "\r=cat", "cat=1", "a\r=b", "a,b")

    saved = csv_bytes(("=head",), [(name,) for name in names])

    assert saved.decode() == (
        "'=head\n'=1+1\n'+1\n'-cat\n'@sum\n'\tcat\n' =cat\ncat=1\na =b\n\"a,b\"\n"
    )


def test_numbers_stay_numbers_also_negative_ones():
    assert csv_bytes(("n", "x"), [(-3, -0.25), (None, 1.0)]) == b"n,x\n-3,-0.25\n,1.0\n"


def test_nothing_else_writes_csv():
    root = Path(__file__).parents[2]

    writers = [
        path.relative_to(root).as_posix()
        for part in ("masktune", "app")
        for path in sorted((root / part).rglob("*.py"))
        if re.search(r"csv\.(writer|DictWriter)", path.read_text("utf-8"))
    ]

    assert writers == ["masktune/files.py"]


def test_two_writers_of_one_file_do_not_mix_their_bytes(tmp_path):
    path = tmp_path / "a.txt"

    with replace_file(path) as first:
        first.write(b"AAAAAAAAAA")
        with replace_file(path) as second:
            second.write(b"BBBB")
        assert path.read_bytes() == b"BBBB"

    assert path.read_bytes() == b"AAAAAAAAAA"
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr("os.fsync", lambda _: synced.append((tmp_path / "a.txt").exists()))

    with replace_file(tmp_path / "a.txt") as file:
        file.write(b"x")

    assert synced == [False]


def test_a_failed_write_leaves_what_was_there(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"before")

    with pytest.raises(TypeError), replace_file(tmp_path / "a.txt") as file:
        file.writelines([b"half", None])

    assert (tmp_path / "a.txt").read_bytes() == b"before"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_name_as_long_as_a_disk_takes_can_be_written(tmp_path):
    path = tmp_path / ("ä" * 120)  # 240 bytes; most disks take 255

    with replace_file(path) as file:
        file.write(b"x")

    assert path.read_bytes() == b"x"


def test_many_threads_that_write_one_file_leave_one_of_theirs(tmp_path):
    path = tmp_path / "a.bin"

    def write(letter):
        for _ in range(20):
            with replace_file(path) as file:
                file.write(letter * 1000)
                file.flush()
                file.write(letter * 1000)

    threads = [threading.Thread(target=write, args=(letter,)) for letter in (b"A", b"B", b"C")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert path.read_bytes() in [letter * 2000 for letter in (b"A", b"B", b"C")]
    assert len(list(tmp_path.iterdir())) == 1


def test_without_a_home_the_remedy_names_masktune_home(monkeypatch):
    monkeypatch.delenv("MASKTUNE_HOME", raising=False)
    monkeypatch.setattr("pathlib.Path.home", no_home)

    with pytest.raises(MaskTuneError) as caught:
        home()

    assert "MASKTUNE_HOME" in caught.value.remedy


def no_home():
    raise RuntimeError("Could not determine home directory.")
