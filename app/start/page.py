"""Start: say what this is, show it, let people in."""

import json
from datetime import datetime
from html import escape

import streamlit as st

from app.shared.pages import page_file
from app.shared.problems import explained_errors
from app.shared.sheets import show
from app.state import open_demo, open_run
from masktune.datasets.catalogue import CATALOGUE
from masktune.files import ASSETS
from masktune.runs import jobs
from masktune.show.markup import strip
from masktune.show.painting import data_uri
from masktune.show.wording import duration, method_words, percent

RECENT = 6
"""Runs listed on the first screen."""


def render() -> None:
    """Draw the page."""
    words, pictures = st.columns([1, 1.9], gap="large", vertical_alignment="center")
    with words:
        _invitation()
    with pictures, st.container(key="card_story"):
        show(story_html(json.loads((ASSETS / "start.json").read_text("utf-8"))))
    with explained_errors():
        _recent([job for job in jobs.history() if job.state == "done"][:RECENT])


def _invitation() -> None:
    st.title("See what your model leans on. Then hide it.", anchor=False)
    st.markdown(
        ":gray[MaskTune Studio shows where a trained image classifier looks, covers that spot in "
        "the training pictures, and trains for one more epoch. Then it tells you, group by group, "
        "whether that helped.]"
    )
    with st.container(horizontal=True):
        if st.button("Open the demo", type="primary", icon=":material/play_arrow:"):
            open_demo()
            st.switch_page(page_file("mask"))
        if st.button("Choose pictures and model", icon=":material/folder_open:"):
            st.switch_page(page_file("load"))
    st.caption("The demo needs no download and no GPU. Your files are read, never changed.")


def story_html(facts: dict[str, float | str]) -> str:
    """Give the four pictures of the first screen with their captions."""
    hidden = percent(float(facts["hidden_fraction"]))
    before, after = percent(float(facts["before_sure"])), percent(float(facts["after_sure"]))
    steps = (
        (
            "picture",
            "1. The picture",
            f"In training, a blue square came with 0–4. The model says {facts['before']}, "
            f"{before} sure.",
        ),
        ("heat", "2. Where it looks", "At the square. It never needed to read the digit."),
        (
            "hidden",
            "3. Hide that",
            f"Pixels hotter than mean + 2 sigma are covered: {hidden} of this picture.",
        ),
        (
            "after",
            "4. After one epoch",
            f"It looks at the digit and says {facts['after']}, {after} sure.",
        ),
    )
    figures = "".join(
        f'<figure><img alt="{escape(title)}" style="width:100%;border-radius:4px;display:block" '
        f'src="{data_uri((ASSETS / f"start-{name}.png").read_bytes())}">'
        f"<figcaption><b>{escape(title)}</b><br>{escape(text)}</figcaption></figure>"
        for name, title, text in steps
    )
    key = (
        '<div class="key"><span>looks least <i class="heat"></i> most</span>'
        '<span><i class="hatch"></i> hidden from the model</span></div>'
    )
    return f'<div class="sheet" style="--across:4">{figures}</div>{key}'


def _recent(done: list[jobs.Job]) -> None:
    if not done:
        return
    st.header("Continue a run", anchor=False)
    with st.container(key="card_recent"):
        show(recent_html(done))
        chosen = st.selectbox(
            "Open a run",
            done,
            index=None,
            format_func=lambda job: (
                f"{_title(job)}, {method_words(job.config.masking)}, {_when(job)}"
            ),
            placeholder="Choose one of these runs",
        )
        if chosen is not None:
            open_run(chosen)
            st.switch_page(page_file("compare"))


def recent_html(done: list[jobs.Job]) -> str:
    """Give a table of finished runs with their worst group before and after."""
    rows = []
    for job in done:
        result = jobs.result(job.path)
        scores = next(iter(result["test"].values()))
        before, after = scores["before"]["worst_group"], scores["after"]["worst_group"]
        rows.append(
            f"<tr><td><b>{escape(_title(job))}</b></td>"
            f'<td class="left">{escape(method_words(job.config.masking))}</td>'
            f"<td>{percent(before)}</td><td>{strip(before, after)}</td>"
            f"<td><b>{percent(after)}</b></td>"
            f"<td>{duration(sum(result['seconds'].values()))}</td><td>{_when(job)}</td></tr>"
        )
    head = (
        '<tr><th>Pictures</th><th class="left">What was hidden</th><th>Worst group before</th>'
        '<th class="left">0 to 100%</th><th>after</th><th>Took</th><th>When</th></tr>'
    )
    return f"<table><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"


def _title(job: jobs.Job) -> str:
    return job.name or CATALOGUE[job.config.dataset].card.title


def _when(job: jobs.Job) -> str:
    moment = datetime.fromtimestamp(job.created)
    today = moment.date() == datetime.now().date()
    return f"today, {moment:%H:%M}" if today else f"{moment:%d %b, %H:%M}"


render()
