"""What people do with one run wherever it is listed: name it, delete it, bring it back."""

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from app.shared.problems import explained_errors
from app.shared.run_rows import runs_words, tags_of
from app.state import let_go, ticked_ids
from masktune.runs import jobs, trash
from masktune.runs.jobs import Job
from masktune.runs.trash import Thrown
from masktune.show.wording import method_words


def draw_about(job: Job) -> None:
    """Draw the form of a run's name, note and tags."""
    with st.form(f"about_{job.id}", border=False):
        name = st.text_input("Name", value=job.name, placeholder=method_words(job.config))
        note = st.text_area("Note", value=job.note, height=80)
        typed = st.text_input(
            "Tags", value=" ".join(job.tags), placeholder="with spaces or commas between"
        )
        if st.form_submit_button("Save", key=f"save_{job.id}"):
            with explained_errors():
                said = {"name": name.strip(), "note": note.strip()}
                jobs.describe(job.path, **said, tags=tags_of(typed))
                st.rerun()


def draw_delete(job: Job) -> None:
    """Draw the button that puts a run into the trash."""
    label = "Delete, and stop it" if job.active else "Delete"
    st.button(
        label,
        icon=":material/delete:",
        key=f"delete_{job.id}",
        on_click=throw,
        args=([job],),
        help="It goes into the trash on Runs, from where it can be brought back. Runs that "
        "started from its model keep a copy.",
    )


def throw(runs: Sequence[Job]) -> None:
    """Put runs into the trash, and let go of them wherever they are shown."""
    gone: list[Thrown] = []
    _remember()
    with explained_errors():
        for job in runs:
            gone.append(trash.throw(job.path))
            let_go(job)
    st.session_state.thrown = gone


def draw_undo() -> None:
    """Offer to bring back what was deleted last."""
    here = {one.path for one in trash.thrown()}
    gone = [one for one in st.session_state.get("thrown", []) if one.path in here]
    if not gone:
        return
    with st.container(key="undo", horizontal=True, vertical_alignment="center"):
        said = "was" if len(gone) == 1 else "were"
        st.markdown(f"{thrown_words(gone)} {said} deleted.", width="content")
        st.button("Undo", icon=":material/undo:", on_click=bring_back, args=(gone,))


def thrown_words(gone: Sequence[Thrown]) -> str:
    """Count deleted runs and studies.

    >>> from pathlib import Path
    >>> run, study = (Thrown(path=Path(), way=w, moment=0.0) for w in ("runs/a", "studies/b"))
    >>> thrown_words([run]), thrown_words([study]), thrown_words([run, run, study])
    ('1 run', '1 study with its runs', '2 runs and 1 study with its runs')
    """
    studies = sum(one.is_study for one in gone)
    said = [runs_words(len(gone) - studies)] if len(gone) > studies else []
    if studies:
        said.append("1 study with its runs" if studies == 1 else f"{studies} studies with theirs")
    return " and ".join(said)


def throw_study(path: Path, runs: Sequence[Job]) -> None:
    """Put a study into the trash, and let go of its runs wherever they are shown."""
    _remember()
    with explained_errors():
        st.session_state.thrown = [trash.throw(path)]
        for job in runs:
            let_go(job)


def bring_back(gone: Sequence[Thrown]) -> None:
    """Put runs back from the trash to where they were, ticked as they were when last deleted."""
    with explained_errors():
        for one in gone:
            trash.bring_back(one)
            _tick_again(one)


def _remember() -> None:
    """Remember which runs are ticked, on Runs and on Finetune, before some are deleted."""
    state = st.session_state
    state.ticked_before = {"ticked": ticked_ids(), "compared": state.compared or []}


def _tick_again(back: Thrown) -> None:
    state = st.session_state
    before: dict[str, list[str]] = state.get("ticked_before", {})
    for name, now in (("ticked", ticked_ids()), ("compared", state.compared or [])):
        mine = [run for run in before.get(name, []) if f"{run}/".startswith(f"{back.id}/")]
        if mine:
            # In the order of ticking, in which curves have their colours.
            was = [run for run in before[name] if run in {*mine, *now}]
            ids = [*was, *(run for run in now if run not in was)]
            state[name] = ",".join(ids) if name == "ticked" else ids
