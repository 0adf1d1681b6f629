"""The one CSV writer."""

import re
from pathlib import Path

from masktune.files import csv_bytes


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
