"""The frame of every page: the stepper that is also the summary, and the look."""

from dataclasses import dataclass
from pathlib import Path

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from app.shared.problems import plain
from app.state import keep_address, session
from masktune.datasets.catalogue import CATALOGUE
from masktune.runs import jobs
from masktune.show.wording import duration, percent

PAGES = Path(__file__).resolve().parents[1]
LOOK = Path(__file__).with_name("look.css")


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the work.

    Attributes:
        name: of its folder under app and its address.
        title: on the page.
        promise: what it is for, shown until it has a result.
    """

    name: str
    title: str
    promise: str


STEPS = (
    Step("load", "Load", "pick a model and images"),
    Step("mask", "Mask", "hide what it leans on"),
    Step("finetune", "Finetune", "one epoch, seconds"),
    Step("compare", "Compare", "before and after"),
    Step("abstain", "Abstain", "when to say nothing"),
)


def pages() -> list[StreamlitPage]:
    """Give the pages of the app, the first screen first."""
    start = st.Page(page_file("start"), title="MaskTune Studio", url_path="start", default=True)
    return [start, *(st.Page(page_file(s.name), title=s.title, url_path=s.name) for s in STEPS)]


def page_file(name: str) -> Path:
    """Give the file of a page, which links and switches name it by."""
    return PAGES / name / "page.py"


def frame(current: str) -> None:
    """Draw what stands above every page.

    Args:
        current: title of the page being shown.
    """
    st.html(f"<style>{LOOK.read_text('utf-8')}</style>")
    results = _results()
    with st.container(horizontal=True, key="stepper", vertical_alignment="center"):
        with st.container(key="brand", width="content"):
            st.page_link(page_file("start"), label="MaskTune Studio", icon=":material/texture:")
        for number, step in enumerate(STEPS, start=1):
            result = results.get(step.name)
            state = "now" if step.title == current else "done" if result else "todo"
            icon = "check_circle" if result and state == "done" else f"counter_{number}"
            with st.container(key=f"step_{state}_{step.name}"):
                st.page_link(
                    page_file(step.name),
                    label=f"{step.title} :small[{plain(result or step.promise)}]",
                    icon=f":material/{icon}:",
                    width="stretch",
                )
    keep_address()


def _results() -> dict[str, str]:
    """Give what each step has come to so far, by step name."""
    chosen = session()
    results: dict[str, str] = {}
    if chosen.subject is not None:
        results["load"] = CATALOGUE[chosen.subject.dataset].card.title
        results["mask"] = f"k = {chosen.masking.k:.2f}"
    job = jobs.find(chosen.run) if chosen.run else None
    if job is None:
        return results
    results["finetune"] = _standing(job)
    if job.state == "done":
        worst = _worst(job)
        results["compare"] = f"worst group {percent(worst[0])} → {percent(worst[1])}"
        results["abstain"] = f"{chosen.coverage:.0%} coverage"
    return results


def _standing(job: jobs.Job) -> str:
    if job.state == "done":
        return f"done in {duration(sum(jobs.result(job.path)['seconds'].values()))}"
    if job.state == "running" and job.seconds_left is not None:
        return f"{job.stage}, {duration(job.seconds_left)} left"
    return job.state


def _worst(job: jobs.Job) -> tuple[float | None, float | None]:
    """Give the worst group's accuracy before and after on the first test set."""
    scores = next(iter(jobs.result(job.path)["test"].values()))
    return scores["before"]["worst_group"], scores["after"]["worst_group"]


def heading(title: str, sentence: str) -> None:
    """Say where the reader is and what is done here."""
    st.title(title, anchor=False)
    st.markdown(f":gray[{sentence}]")
