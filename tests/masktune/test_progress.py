import dataclasses

import pytest

from masktune.progress import Clock, Progress, unwatched


class Hand:
    """A clock moved by hand."""

    def __init__(self):
        self.time = 100.0

    def __call__(self):
        return self.time


def test_progress_cannot_be_changed_by_a_watcher():
    step = Progress(stage="train", done=1, total=2)

    with pytest.raises(dataclasses.FrozenInstanceError):
        step.done = 2

    assert (step.loss, step.accuracy) == (None, None)


def test_nobody_watching_is_fine():
    assert unwatched(Progress(stage="train", done=1, total=2)) is None


def test_time_left_follows_from_the_speed_since_the_first_step():
    # Two steps in 6 seconds, five to go: 15 seconds.
    hand = Hand()
    clock = Clock(now=hand)

    first = clock.seconds_left(Progress(stage="train", done=3, total=10))
    hand.time += 6.0
    later = clock.seconds_left(Progress(stage="train", done=5, total=10))

    assert first is None
    assert later == 15.0


def test_a_new_stage_starts_its_own_estimate():
    hand = Hand()
    clock = Clock(now=hand)
    clock.seconds_left(Progress(stage="train", done=1, total=10))
    hand.time += 50.0
    clock.seconds_left(Progress(stage="train", done=10, total=10))

    first = clock.seconds_left(Progress(stage="heat", done=1, total=4))
    hand.time += 1.0
    second = clock.seconds_left(Progress(stage="heat", done=2, total=4))

    assert first is None
    assert second == 2.0


def test_a_step_told_twice_has_no_speed():
    clock = Clock(now=Hand())
    clock.seconds_left(Progress(stage="train", done=1, total=10))

    assert clock.seconds_left(Progress(stage="train", done=1, total=10)) is None


def test_nothing_is_left_after_the_last_step():
    hand = Hand()
    clock = Clock(now=hand)
    clock.seconds_left(Progress(stage="train", done=1, total=3))
    hand.time += 4.0

    assert clock.seconds_left(Progress(stage="train", done=3, total=3)) == 0.0
