"""The classes that clearly got worse or better, in words."""

from app.compare.numbers import harm_words
from masktune.scores.flips import Change


def change(label, points, interval):
    return Change(label, 100, 0, 0, 0.5, 0.5 + points, points, interval)


def test_classes_that_clearly_got_worse_or_better_are_named():
    changes = [
        change("cat", -0.061, (-0.09, -0.04)),
        change("dog", 0.3, (0.2, 0.4)),
        change("cow", -0.01, (-0.03, 0.01)),
        Change("owl", 0, 0, 0, None, None, None, None),
    ]

    assert harm_words(changes) == (
        "1 of 3 clearly got worse: cat (−6.1 points). "
        "1 of 3 clearly got better: dog (+30.0 points)."
    )
    assert harm_words(changes[1:]).startswith("No class clearly got worse. 1 of 2 clearly")
    assert harm_words(changes[2:]) == "No class clearly got worse. No class clearly got better."


def test_many_harmed_classes_are_counted_after_five():
    changes = [change(f"c{n}", -0.1, (-0.2, -0.05)) for n in range(7)]
    changes[6] = change("c6", -0.3, (-0.4, -0.2))  # the largest change comes first

    assert "worse: c6 (−30.0 points), c0 (−10.0 points)" in harm_words(changes)
    assert "c3 (−10.0 points) and 2 more." in harm_words(changes)
    assert "c4" not in harm_words(changes)
