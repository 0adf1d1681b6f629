"""The downloads of the Abstain page, read back."""

import csv
import io
import json

import pytest

from app.abstain import files, words
from app.abstain.numbers import read_off
from masktune.scores.result import Pair
from masktune.show.abstained import rank
from masktune.show.tables import csv as csv_of
from tests.app.abstain.test_numbers import card, says


def pair_of_three() -> Pair:
    """Both models are sure of the first; they disagree on the second; the third they get wrong."""
    labels = [0, 1, 0]
    before = says([[0.9, 0.1], [0.8, 0.2], [0.2, 0.8]], labels)
    after = says([[0.9, 0.1], [0.1, 0.9], [0.4, 0.6]], labels)
    return Pair(before, after)


def rows(content: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(content.decode())))


def test_the_table_has_the_papers_columns_and_targets():
    ours = rank(pair_of_three(), pair_of_three())

    table = rows(csv_of(words.paper_table(ours.table())))

    assert table[0] == [
        "target", "SR before Cov.", "SR before Err.", "SR after Cov.", "SR after Err.",
        "Joint Cov.", "Joint Err.",
    ]  # fmt: skip
    assert [row[0] for row in table[1:]] == ["1.0", "0.95", "0.9", "0.85", "0.8"]
    # All answered: before errs on the second and third, after on the third, and so does joint
    # (0.8 * 0.1 < 0.2 * 0.9).
    assert [float(v) for v in table[1][1:]] == pytest.approx([1, 2 / 3, 1, 1 / 3, 1, 1 / 3])


def test_curves_name_their_score_at_every_point():
    ours = rank(pair_of_three(), pair_of_three())

    saved = rows(files.curves_csv(ours))

    assert saved[0] == ["score", "coverage", "risk", "generalized risk"]
    assert [row[0] for row in saved[1:]] == ["joint"] * 4 + ["after"] * 3 + ["before"] * 3
    assert [float(v) for v in saved[1][1:]] == pytest.approx([1, 1 / 3, 1 / 3])


def test_every_picture_is_listed_with_both_answers_and_what_becomes_of_it():
    ours = rank(pair_of_three(), pair_of_three())
    reading = read_off(ours, "joint", target=0.6)  # two of three: scores 0.81 and 0.48

    saved = rows(files.pictures_csv(pair_of_three(), ours.test["joint"], reading, names=card()))

    assert [row[:5] for row in saved[1:]] == [
        ["0", "cat", "", "cat", "cat"],
        ["1", "dog", "", "cat", "dog"],
        ["2", "cat", "", "dog", "dog"],
    ]
    assert [float(row[5]) for row in saved[1:]] == pytest.approx([0.81, 0.18, 0.48])
    assert [row[6:] for row in saved[1:]] == [
        ["answered", "right"],
        ["held back", "right"],
        ["answered", "wrong"],
    ]


def test_the_operating_point_says_all_that_is_needed_to_use_it():
    ours = rank(pair_of_three(), pair_of_three())

    at_60 = json.loads(
        files.point_json(ours, read_off(ours, "joint", target=0.6), run="r", test="t")
    )
    at_all = json.loads(
        files.point_json(ours, read_off(ours, "joint", target=1.0), run="r", test="t")
    )

    assert at_60["gamma"] == pytest.approx(0.18)
    assert at_60["validation"] == {"count": 3, "coverage": pytest.approx(2 / 3)}
    assert (at_60["answered"], at_60["wrong"], at_60["error"]) == (2, 1, 0.5)
    assert at_all["gamma"] is None
