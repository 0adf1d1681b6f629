"""Work that a rerun joins instead of beginning again (C4)."""

import threading

import pytest

from app.joined import joined, leave
from masktune.cache import Cache
from masktune.progress import Progress, unwatched


class Rerun(BaseException):
    """As Streamlit ends a script: where it draws."""


def test_an_interaction_does_not_throw_away_the_work_under_way():
    kept, made, go_on = Cache(most=2), [], threading.Event()

    def make(watch):
        made.append(1)
        watch(Progress(stage="heat", done=1, total=2))
        go_on.wait(10)
        return "heat"

    def interrupted(_):
        raise Rerun

    with pytest.raises(Rerun):
        joined(kept, "set", make, watcher=interrupted)
    go_on.set()

    assert joined(kept, "set", make, watcher=unwatched) == "heat"
    assert made == [1]


def test_what_goes_wrong_is_raised_where_somebody_waits_and_tried_again():
    kept, made = Cache(most=2), []

    def make(watch):
        made.append(1)
        raise ValueError("no maps")

    for _ in range(2):
        with pytest.raises(ValueError, match="no maps"):
            joined(kept, "set", make, watcher=unwatched)

    assert made == [1, 1]


def test_work_that_one_leaves_goes_on_for_another_who_waits_for_it_too():
    kept, made, go_on, here = Cache(most=2), [], threading.Event(), threading.Event()
    found = []

    def make(watch):
        made.append(1)
        while not go_on.is_set():
            watch(Progress(stage="heat", done=1, total=2))
        return "heat"

    def wait():
        found.append(joined(kept, "set", make, watcher=lambda _: here.set()))

    another = threading.Thread(target=wait)
    another.start()
    assert here.wait(10)

    leave(kept, "set")
    here.clear()
    assert here.wait(10)  # it was looked at again, so it goes on
    go_on.set()
    another.join(10)

    assert found == ["heat"]
    assert made == [1]


def test_work_that_was_left_ends_at_its_next_step_and_is_begun_anew_for_who_comes_then():
    kept, begun, ended = Cache(most=2), [], threading.Event()

    def make(watch):
        begun.append(1)
        try:
            while len(begun) == 1:
                watch(Progress(stage="heat", done=1, total=2))
        finally:
            ended.set()
        return "heat"

    def interrupted(_):
        raise Rerun

    with pytest.raises(Rerun):
        joined(kept, "set", make, watcher=interrupted)
    assert not ended.is_set()
    leave(kept, "set")
    leave(kept, "another")  # which nobody makes

    assert ended.wait(10)
    assert "set" not in kept
    assert joined(kept, "set", make, watcher=unwatched) == "heat"
