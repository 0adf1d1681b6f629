"""The classes that clearly got worse or better, in words."""

from app.compare.numbers import harm_words
from masktune.scores.evidence import judge
from masktune.scores.flips import Change
from masktune.show.results import weigh_classes


def change(label, *, fixed=0, broken=0, count=1000):
    right = count // 2
    return Change(label, count=count, right_before=right, fixed=fixed, broken=broken)


def test_classes_that_clearly_got_worse_or_better_are_named():
    changes = [
        change("cat", broken=61),
        change("dog", fixed=300),
        change("cow", fixed=20, broken=30),
        change("owl", count=0),
    ]

    assert harm_words(judge(changes)) == (
        "1 of 3 clearly got worse: cat (−6.1 points). "
        "1 of 3 clearly got better: dog (+30.0 points)."
    )
    assert harm_words(judge(changes[1:])).startswith("No class clearly got worse. 1 of 2 clearly")
    assert (
        harm_words(judge(changes[2:])) == "No class clearly got worse. No class clearly got better."
    )


def test_many_harmed_classes_are_counted_after_five():
    changes = [change(f"c{n}", broken=100) for n in range(7)]
    changes[6] = change("c6", broken=300)  # the largest change comes first

    assert "worse: c6 (−30.0 points), c0 (−10.0 points)" in harm_words(judge(changes))
    assert "c3 (−10.0 points) and 2 more." in harm_words(judge(changes))
    assert "c4" not in harm_words(judge(changes))


def test_classes_are_judged_by_the_standard_of_the_groups(original):
    assert weigh_classes(original).among == len(original.evidence.groups)
