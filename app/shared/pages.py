"""The frame of every page: the stepper that is also the summary, and the look."""

from pathlib import Path
from urllib.parse import parse_qsl

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from app.opened import result_of
from app.shared.problems import plain
from app.shared.scrubber import rounded
from app.state import address, show_pictures, subject
from masktune.config import BUNDLED
from masktune.files import is_file
from masktune.runs import jobs
from masktune.runs.load import title_of
from masktune.show.wording import duration, percent

PAGES = Path(__file__).resolve().parents[1]
LOOK = Path(__file__).with_name("look.css")
NAME = "MaskTune Studio"


def _beside(name: str) -> str:
    return Path(__file__).with_name(name).read_text("utf-8")


_tab = st.components.v2.component("tab", js=_beside("tab.js"))
_copy_link = st.components.v2.component(
    "copy_link",
    html=_beside("copy_link.html"),
    css=_beside("copy_link.css"),
    js=_beside("copy_link.js"),
)


STEPS = {
    "load": "model and images",
    "mask": "hide what it leans on",
    "finetune": "one more epoch",
    "compare": "before and after",
    "abstain": "when to say nothing",
}
"""The steps of the work by their folder and address, and what each is for until it has a result."""

BESIDE = {"picture": ("One picture", "center_focus_strong"), "runs": ("Runs", "view_list")}
"""Pages beside the steps, by their folder and address: title and icon."""


def pages() -> list[StreamlitPage]:
    """Give the pages of the app, the first screen first."""
    start = st.Page(page_file("start"), title=NAME, default=True)
    steps = (st.Page(page_file(step), title=step.title(), url_path=step) for step in STEPS)
    beside = (
        st.Page(page_file(name), title=title, url_path=name) for name, (title, _) in BESIDE.items()
    )
    # Streamlit gives the first page the address "/" only; old links and habits say /start.
    again = st.Page(lambda: st.switch_page(start), title="Start", url_path="start")
    return [start, *steps, *beside, again]


def page_file(name: str) -> Path:
    """Give the file of a page, which links and switches name it by."""
    return PAGES / name / "page.py"


def open_picture(split: str, number: int) -> None:
    """Go to the page of one picture, a row of a split: "train", "validation" or a test set."""
    _open(f"{split}/{number}")


def _open(picture: str) -> None:
    """Go to the page of a picture by its address.

    Call it where a page is drawn: Streamlit changes no page in a callback.
    """
    # With another query than the tab has, Streamlit makes an entry of its own in the history: Back
    # would first go there, and not to the drawer that the picture was in.
    here = dict(parse_qsl(address()))
    st.session_state.update(picture=picture, went=True)
    st.switch_page(page_file("picture"), query_params=here)


def open_clicked() -> None:
    """Go to the page of a picture that was clicked, before a page is drawn."""
    if asked := st.session_state.pop("clicked", None):
        _open(asked)


def tab_title(page: str) -> str:
    """Name a browser's tab by its page and pictures, so that several can be told apart."""
    loaded = subject()
    return " · ".join(
        [*([] if page == NAME else [page]), *([] if loaded is None else [title_of(loaded)]), NAME]
    )


def copy_link(key: str, *, without: str = "") -> None:
    """Draw a button that copies the address of this view; ``without`` says what stays behind."""
    _copy_link(key=f"copy_link_{key}", data={"without": without}, width="content")


def frame(current: str) -> None:
    """Draw what stands above every page, on the page of this title."""
    st.html(f"<style>{LOOK.read_text('utf-8')}</style>")
    results = _results(current)
    with st.container(horizontal=True, key="stepper", vertical_alignment="center"):
        with st.container(key="brand", width="content"):
            st.page_link(page_file("start"), label=NAME, icon=":material/texture:")
        for number, (step, promise) in enumerate(STEPS.items(), start=1):
            result, done = results.get(step, ("", False))
            state = "now" if step.title() == current else "done" if done else "todo"
            icon = "check_circle" if state == "done" else f"counter_{number}"
            with st.container(key=f"step_{state}_{step}"):
                st.page_link(
                    page_file(step),
                    label=f"{step.title()} :small[{plain(result or promise)}]",
                    icon=f":material/{icon}:",
                    width="stretch",
                )
        with st.container(key="beside", width="content", horizontal=True, gap=None):
            for name, (title, icon) in BESIDE.items():
                st.page_link(page_file(name), label=title, icon=f":material/{icon}:", help=title)
        painting = current == BESIDE["picture"][0]
        copy_link("page", without="what you painted" if painting else "")
    if unread := st.session_state.unread:
        st.info(
            f"Not understood in the link, and left out: {plain(', '.join(unread))}.",
            icon=":material/link_off:",
        )


def write_address() -> None:
    """Write the state into the address, after the page: a reload or a link shows the same."""
    # A link to another page clears the address, so that the same words may have to be written anew.
    state = st.session_state
    state.written, state.rewritten = state.get("written", 0) + 1, 0
    known = {"query": address(), "pages": ["", *STEPS, *BESIDE]}
    _tab(
        key="tab",
        data={**known, "turn": [state.written, 0]},
        on_shown_change=lambda: show_pictures(state.tab["shown"]),
        on_picture_change=lambda: state.update(clicked=state.tab["picture"]),
        on_k_change=lambda: state.update(k=rounded(state.tab["k"])),
    )


def write_address_again(fragment: str) -> None:
    """Write the address between two runs of the page, from a fragment of this name."""
    state = st.session_state
    state.rewritten = state.get("rewritten", 0) + 1
    turn = [state.get("written", 0), state.rewritten]
    _tab(key=f"tab_{fragment}", data={"query": address(), "turn": turn})


def _results(current: str) -> dict[str, tuple[str, bool]]:
    """Return what each step has come to and whether it is done, by step name.

    Pictures are hidden once a run has hidden them at this very k; a result has been compared and
    weighed once somebody has looked at it.
    """
    state, loaded = st.session_state, subject()
    job = jobs.find(state.run) if state.run else None
    results: dict[str, tuple[str, bool]] = {}
    if loaded is not None:
        there = loaded.model in (None, BUNDLED) or is_file(loaded.model)
        results["load"] = title_of(loaded), there
        same = job is not None and job.config.masking.k == state.k
        results["mask"] = f"k = {state.k:g}", same
    if job is None:
        return results
    results["finetune"] = _standing(job), job.state == "done"
    if (result := result_of(job)) is not None:
        state.looked |= {(current, job.id)}
        test = result.test.get(state.test, result.first)
        was, now = test.before.worst, test.after.worst
        results["finetune"] = f"done in {duration(result.took)}", True
        said = f"{percent(was.accuracy)} → {percent(now.accuracy)}"
        results["compare"] = said, ("Compare", job.id) in state.looked
        results["abstain"] = f"aims at {state.coverage}%", ("Abstain", job.id) in state.looked
    return results


def _standing(job: jobs.Job) -> str:
    if job.state == "running" and job.seconds_left is not None:
        return f"{job.stage}, {duration(job.seconds_left)} left"
    return job.state


def heading(title: str, sentence: str) -> None:
    """Say where the reader is and what is done here."""
    st.title(title, anchor=False)
    st.markdown(f":gray[{sentence}]")
