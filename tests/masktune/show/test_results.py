"""What figures leave out is counted in words."""

from types import SimpleNamespace

import pytest

from masktune.show import results
from masktune.show.results import classes_words, groups_words


@pytest.mark.parametrize(
    ("counts", "kind", "words"),
    [
        ((5, 0, 5), "groups", "1 group has no picture in “test”."),
        ((5, 0, 0), "classes", "2 classes have no picture in “test”."),
        ((5, 5, 5), "classes", "1 more class, served better, is in the CSV."),
        ((5, 5, 5, 5), "groups", "2 more groups, served better, are in the CSV."),
        ((5, 5), "groups", ""),
    ],
)
def test_one_group_or_class_that_a_figure_leaves_out_is_said_in_the_singular(counts, kind, words):
    scores = [SimpleNamespace(count=count) for count in counts]
    test = SimpleNamespace(before=SimpleNamespace(scores=scores), kind=kind, name="test")

    assert groups_words(test, most=2, where="CSV") == words


@pytest.mark.parametrize(
    ("most", "words"),
    [
        (3, ""),
        (2, "1 more class, which changed less, is in the CSV."),
        (1, "2 more classes, which changed less, are in the CSV."),
    ],
)
def test_classes_that_changed_less_are_counted(most, words, monkeypatch):
    monkeypatch.setattr(results, "changes_by_class", lambda _: [None] * 3)

    assert classes_words(None, most=most) == words
