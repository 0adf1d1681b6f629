"""PyTorch takes seconds to import: done in a thread, once the first screen is out."""

import gc
from functools import cache
from importlib import import_module
from threading import Thread

NEEDED = (
    *("torch", "app.loaded", "masktune.runs.open", "masktune.show.contact_sheets"),
    *("masktune.show.methods", "masktune.studies.tournament.table"),
    "masktune.training.rivals.dfr",  # asked whether the pictures meet its needs
)
"""What the pages after the first one import. PyTorch first: who else wants it waits for its end."""


@cache
def warm() -> Thread:
    """Begin to import what pages need; once for the server. The thread draws nothing."""
    thread = Thread(target=_import, name="warm", daemon=True)
    thread.start()
    return thread


def _import() -> None:
    for name in NEEDED:
        import_module(name)
    # Streamlit collects garbage after every rerun. Modules are none: without them among what is
    # looked through, a rerun takes 120 ms less.
    gc.collect()
    gc.freeze()
