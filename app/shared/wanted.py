"""Long work that somebody asks for: wanted until it is done or stopped, whatever they click."""

from collections.abc import Callable, Hashable
from functools import partial

import streamlit as st

from app.joined import Work, joined, leave
from app.shared.progress import shown_progress
from masktune.cache import Made


def want(name: str, what: Hashable) -> None:
    """Note that work is wanted from now on; ``what`` tells it from other work of the name."""
    st.session_state[_key(name)] = what


def wanted(
    name: str,
    what: Hashable,
    label: str,
    *,
    icon: str,
    give_up: Callable[[], None],
    hint: str | None = None,
) -> bool:
    """Offer long work by a button, or to stop it where it was asked for; tell whether it was.

    Args:
        name: of the work; the keys of the buttons are ``ask_NAME`` and ``stop_NAME``.
        what: tells it from other work of the name, such as that on another model.
        label: of the button that asks for it.
        icon: of that button.
        give_up: called when it is stopped.
        hint: stands behind a question mark.
    """

    def stop() -> None:
        st.session_state.pop(_key(name), None)
        give_up()

    if st.session_state.get(_key(name)) != what:
        st.button(label, icon=icon, help=hint, key=f"ask_{name}", on_click=want, args=(name, what))
        return False
    st.button("Stop", icon=":material/stop_circle:", key=f"stop_{name}", on_click=stop)
    return True


def when_wanted(
    name: str,
    work: Work[Made],
    label: str,
    *,
    icon: str,
    quick: bool,
    doing: str,
    unit: str = "",
    words: str = "",
    hint: str | None = None,
) -> Made | None:
    """Do long work once somebody wants it, or unasked where it is quick; None until then.

    Args:
        name: as of ``wanted``; label, icon and hint likewise.
        work: what is to be done, or joined.
        label: of the button.
        icon: of the button.
        quick: whether it needs no asking; what is done already never does.
        doing: what the progress says, counted in a unit or, without one, in percent.
        unit: of the progress.
        words: stand above the button.
        hint: stands behind a question mark.
    """
    offer = st.empty()
    if not quick and not work.done:
        with offer.container():
            if words:
                st.caption(words)
            give_up = partial(leave, work.kept, work.key)
            if not wanted(name, work.key, label, icon=icon, give_up=give_up, hint=hint):
                return None
    with shown_progress(doing, unit=unit) as watcher:
        found = joined(*work, watcher=watcher)
    offer.empty()
    return found


def _key(name: str) -> str:
    return f"wanted_{name}"
