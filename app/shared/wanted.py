"""Long work that somebody asks for: wanted until it is done or stopped, whatever they click."""

from collections.abc import Callable, Hashable

import streamlit as st


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


def _key(name: str) -> str:
    return f"wanted_{name}"
