"""Progress of work that the page itself does, with the time that is left."""

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from masktune.progress import Clock, Progress, Watcher
from masktune.show.wording import duration


@contextmanager
def shown_progress(words: str, *, unit: str = "batches") -> Iterator[Watcher]:
    """Give a watcher that draws a bar; it goes away when the work is done.

    Steps that are no thing to be counted have no unit: they are told in percent.

    Whatever somebody chooses or clicks meanwhile stops the work: drawing is where Streamlit ends a
    script that is to run again.
    """
    place, clock = st.empty(), Clock()

    def watch(progress: Progress) -> None:
        left = clock.seconds_left(progress)
        share = min(progress.done / max(progress.total, 1), 1.0)
        text = f"{words}: {progress.done:,} of {progress.total:,} {unit}"
        if not unit:
            text = f"{words}: {share:.0%}"
        if left is not None:
            text += f", {duration(left)} left. Leave the page to stop."
        place.progress(share, text=text)

    try:
        yield watch
    finally:
        place.empty()
