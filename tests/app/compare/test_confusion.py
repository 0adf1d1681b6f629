"""Which class is taken for which: counts, shares and the commonest mistakes."""

import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from app.compare.confusion import confusion, matrix_table, mistakes, pairs_table
from masktune.scores.predictions import Predictions
from masktune.show.tables import csv, html


def says(answers, labels, classes=3):
    probabilities = np.full((len(answers), classes), 0.1)
    probabilities[np.arange(len(answers)), answers] = 0.8
    return Predictions(probabilities, np.array(labels), np.full(len(labels), -1))


def test_rows_of_the_confusion_are_what_it_is_and_columns_what_was_answered():
    # Class 0 twice right and once taken for 2; class 1 once taken for 0; no picture of class 2.
    matrix = confusion(says([0, 0, 2, 0], [0, 0, 0, 1]))

    assert matrix.tolist() == [[2, 0, 1], [1, 0, 0], [0, 0, 0]]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40))
def test_the_confusion_counts_every_picture_once(pairs):
    answers, labels = zip(*pairs, strict=True)

    matrix = confusion(says(list(answers), list(labels), classes=4))

    assert matrix.sum() == len(pairs)
    assert np.trace(matrix) == sum(a == b for a, b in pairs)
    assert matrix.sum(axis=1).tolist() == [labels.count(k) for k in range(4)]


def test_a_matrix_shows_counts_and_shares_of_the_row_and_escapes_names():
    matrix = np.array([[3, 1], [0, 0]])
    shown = html(matrix_table(matrix, ("<cow>", "camel"), name="before", split="test"))

    assert '&lt;cow&gt;<small><span class="held">n = 4</span></small>' in shown
    assert '?shown=cell%3Atest%3Abefore%3A0%3A0">3</a><small>75.0%</small>' in shown
    assert '?shown=cell%3Atest%3Abefore%3A0%3A1">1</a><small>25.0%</small>' in shown
    assert ">0<small>–</small>" in shown  # no camel: a share of nothing is not 0, nor a link
    assert "<cow>" not in shown


def test_every_cell_of_many_classes_is_a_link_that_says_whose_pictures_it_opens():
    # Ten classes: two right of each, and one of each taken for the next.
    matrix = 2 * np.eye(10, dtype=np.int64) + np.roll(np.eye(10, dtype=np.int64), 1, axis=1)
    names = [f"<class {n}>" for n in range(10)]

    shown = html(matrix_table(matrix, names, name="after", split="test"))

    assert 'class="confusion many"' in shown
    cells = re.findall(
        r'<a class="mark" title="([^"]*)" aria-label="([^"]*)" href="([^"]*)">', shown
    )
    assert len(cells) == 20
    said = "&lt;class 9&gt;, answered &lt;class 0&gt; after: 1, 33.3% of the class"
    assert (said, said, "?shown=cell%3Atest%3Aafter%3A9%3A0") in cells
    assert "<small>33.3%" not in shown  # there is no room for it
    assert shown.count(">0</td>") == 80


def test_the_commonest_mistakes_of_either_model_come_first_without_right_answers():
    before = np.array([[90, 2, 0], [5, 10, 0], [0, 0, 70]])
    after = np.array([[80, 0, 7], [0, 15, 0], [0, 0, 70]])

    assert mistakes(before, after) == [(0, 2), (1, 0), (0, 1)]
    assert mistakes(before, after, most=1) == [(0, 2)]
    assert before[0, 0] == 90  # what was given is not changed


def test_a_mistake_is_shown_with_both_counts_and_shares():
    before, after = np.array([[6, 2], [0, 1]]), np.array([[8, 0], [0, 1]])

    table = pairs_table(before, after, ("a", "b"), mistakes(before, after))

    shown = html(table)
    assert 'a → b<small><span class="held">n = 8</span></small>' in shown
    assert "<td>2<small>25.0%</small></td><td>0<small>0.0%</small></td>" in shown
    assert csv(table) == b"is,answered,n,before,after\na,b,8,2,0\n"
    assert mistakes(np.eye(2, dtype=int), np.eye(2, dtype=int)) == []
