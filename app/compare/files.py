"""The Compare page's downloads: CSV with fractions in [0, 1] at full precision, and PNG sheets."""

from collections.abc import Mapping, Sequence

from masktune.files import csv_bytes
from masktune.show.painting import Picture, png_bytes, sheet


def rounds_csv(series: Mapping[str, Sequence[float | None]], hidden: Sequence[float]) -> bytes:
    """Give accuracies and the hidden share of every round; round 0 is before."""
    rows = zip((0.0, *hidden), *series.values(), strict=True)
    return csv_bytes(
        ("round", "hidden", *series), ((number, *row) for number, row in enumerate(rows))
    )


def sheet_png(tiles: Sequence[Picture], across: int) -> bytes:
    """Give a contact sheet as a PNG file."""
    return png_bytes(sheet(tiles, across))
