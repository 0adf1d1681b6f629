"""What was made once is shared, bounded, and made by one thread only."""

import threading

import pytest

from masktune.cache import Cache


def test_three_threads_that_want_one_entry_make_it_once():
    kept, made, together = Cache(most=2), [], threading.Barrier(3)
    hold = threading.Event()

    def make():
        made.append(1)
        hold.wait(0.2)  # long enough for the others to come
        return "value"

    found = []

    def session():
        together.wait()
        found.append(kept.get("key", make))

    threads = [threading.Thread(target=session) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert found == ["value"] * 3
    assert made == [1]


def test_while_one_entry_is_made_another_can_be():
    kept = Cache(most=2)

    assert kept.get("outer", lambda: kept.get("inner", lambda: 1) + 1) == 2


def test_the_entry_used_least_lately_goes_first():
    kept = Cache(most=2)
    for key in "abac":
        kept.get(key, lambda key=key: key)

    assert ["a" in kept, "b" in kept, "c" in kept] == [True, False, True]


def test_what_could_not_be_made_is_tried_again():
    kept = Cache(most=2)

    with pytest.raises(ZeroDivisionError):
        kept.get("key", lambda: 1 / 0)

    assert "key" not in kept
    assert kept.get("key", lambda: 7) == 7
