"""What can be done with several runs: tick, tag, pin, archive, delete, import, export."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import streamlit as st

from app.shared.pages import page_file
from app.shared.pieces import confirm_delete, download
from app.shared.problems import explained_errors, plain
from app.shared.run_menu import bring_back, draw_about, throw, thrown_words
from app.shared.run_rows import clock, run_title, runs_words, tags_of
from app.shared.sheets import say
from app.state import open_run, ticked_ids
from app.uploads import keep_upload
from masktune.files import written_path
from masktune.runs import jobs, trash
from masktune.runs.jobs import Job
from masktune.runs.trash import Thrown

MOST = 12
"""Ticked runs whose commands are shown, and runs in the trash."""


def ticked(runs: Sequence[Job]) -> list[Job]:
    """Return the runs that are ticked, in the order of ticking."""
    ids = ticked_ids()
    known = {job.id: job for job in runs} if ids else {}
    return [known[run] for run in ids if run in known]


def tick(*ids: str, on: bool) -> None:
    """Tick some runs, or take their ticks away."""
    now = [run for run in ticked_ids() if run not in ids]
    st.session_state.ticked = ",".join([*now, *ids] if on else now)


def draw_tick(job: Job) -> None:
    """Draw the box of a run."""
    key = f"tick_{job.id}"
    st.session_state[key] = job.id in ticked_ids()
    st.checkbox(
        # It is read aloud as it stands: so no backslashes, and without brackets it is no link.
        "Tick " + run_title(job).translate({ord("["): "(", ord("]"): ")"}),
        key=key,
        on_change=lambda: tick(job.id, on=st.session_state[key]),
        label_visibility="collapsed",
        width="content",
        disabled="," in job.id,  # such a name could not be in an address
    )


def draw_tick_all(shown: Sequence[Job]) -> None:
    """Draw the box that ticks all runs on this page of the list."""
    ids = [job.id for job in shown if "," not in job.id]
    st.session_state.tick_all = {*ids} <= {*ticked_ids()}
    st.checkbox(
        "Tick all on this page",
        key="tick_all",
        on_change=lambda: tick(*ids, on=st.session_state.tick_all),
        label_visibility="collapsed",
        width="content",
    )


def draw_ticked(runs: Sequence[Job]) -> None:
    """Draw what can be done with the ticked runs."""
    with st.container(key="runs_ticked", horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{runs_words(len(runs))} ticked**", width="content")
        _draw_about(runs)
        every = all(job.pinned for job in runs)
        _button("Unpin" if every else "Pin", "keep", partial(_say, runs, pinned=not every))
        every = all(job.archived for job in runs)
        words = "Take out of the archive" if every else "Archive"
        _button(words, "archive", partial(_say, runs, archived=not every))
        _draw_files(runs)
        _draw_commands(runs)
        _draw_delete(runs)
        tuned = [job for job in runs if job.state == "done" and not job.config.only_before]
        if len(tuned) > 1 and st.button(
            "Open on Compare",
            icon=":material/stacked_line_chart:",
            on_click=partial(_compare, tuned[0], runs),
            type="tertiary",
        ):
            st.switch_page(page_file("compare"))
        _button("Untick all", "close", partial(tick, *ticked_ids(), on=False))


def _button(label: str, icon: str, do: partial[None]) -> None:
    st.button(label, icon=f":material/{icon}:", on_click=do, type="tertiary")


def _compare(shown: Job, runs: Sequence[Job]) -> None:
    open_run(shown)
    # All that were ticked: of those that cannot stand there the page says why.
    st.session_state.compared = [job.id for job in runs]


def _say(runs: Sequence[Job], **said: bool) -> None:
    with explained_errors():
        for job in runs:
            jobs.describe(job.path, **said)


def _draw_about(runs: Sequence[Job]) -> None:
    if len(runs) == 1:
        with st.popover("Name, note, tags", icon=":material/sell:", type="tertiary"):
            draw_about(runs[0])
        return
    # By the runs: what was typed for some must not be saved for others.
    ids = "_".join(job.id for job in runs)
    with (
        st.popover("Tags", icon=":material/sell:", type="tertiary"),
        st.form(f"tags_{ids}", border=False),
    ):
        more = tags_of(st.text_input("Add tags", placeholder="with spaces or commas between"))
        less = st.multiselect("Take tags off", sorted({tag for job in runs for tag in job.tags}))
        if st.form_submit_button("Save", key=f"save_{ids}"):
            with explained_errors():
                for job in runs:
                    kept = [tag for tag in (*job.tags, *more) if tag not in less]
                    jobs.describe(job.path, tags=[*dict.fromkeys(kept)])
                st.rerun()


def _draw_files(runs: Sequence[Job]) -> None:
    from masktune.runs.parcel import MOST_BYTES, size  # with PyTorch, which the list does not need

    there = [job for job in runs if not job.active]  # others are being written
    with st.popover("Export", icon=":material/folder_zip:", type="tertiary", disabled=not there):
        st.markdown("A ZIP with everything but the reports, which can be made again from it.")
        if any(job.state != "done" for job in there):
            say("Import takes finished runs only: others are for a look elsewhere.", kind="muted")
        if size(*(job.path for job in there)) > MOST_BYTES:
            say(f"They are more than {MOST_BYTES / 1e9:.0f} GB together; untick some.")
        elif there:
            name = f"{there[0].id.replace('/', '-')}.zip" if len(there) == 1 else "runs.zip"
            label = plain(run_title(there[0])) if len(there) == 1 else runs_words(len(there))
            download(label, partial(_packed, there), name)


def _packed(runs: Sequence[Job]) -> bytes:
    from masktune.runs.parcel import pack

    return pack(*(job.path for job in runs))


def _draw_commands(runs: Sequence[Job]) -> None:
    with st.popover("Command", icon=":material/terminal:", type="tertiary"):
        st.markdown("What repeats a run on the command line, with every setting spelled out.")
        for job in runs[:MOST]:
            st.code(
                f"{jobs.repeat_command(job.config)} --out DIR", language="bash", wrap_lines=True
            )
        if len(runs) > MOST:
            say(f"The first {MOST} of {len(runs)}; untick some to see others.", kind="muted")


def _draw_delete(runs: Sequence[Job]) -> None:
    active = sum(job.active for job in runs)
    label = "Delete" if not active else f"Delete, and stop {runs_words(active)}"
    _button(label, "delete", partial(throw, runs))


def draw_trash() -> None:
    """Offer all that was deleted, to bring it back or to delete it for good."""
    gone = trash.thrown()
    if not gone:
        return
    with st.popover(f"Trash ({len(gone)})", icon=":material/delete:"):
        for one in gone[:MOST]:
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(plain(f"{one.id}, {clock(one.moment)}"), width="stretch")
                key = f"back_{one.path}"
                st.button("Bring back", key=key, on_click=bring_back, args=([one],))
        if len(gone) > MOST:
            say(f"The newest {MOST} of {len(gone)}.", kind="muted")
        words = f"Delete {thrown_words(gone)} in the trash with their models and results"
        confirm_delete("trash", words, partial(_delete_all, gone))


def _delete_all(gone: Sequence[Thrown]) -> None:
    for one in gone:
        trash.delete_for_good(one)


def draw_import() -> None:
    """Offer to take in runs that were made elsewhere."""
    with st.popover("Import", icon=":material/upload:"):
        st.file_uploader(
            "Runs as a ZIP",
            type=["zip"],
            key="runs_upload",
            on_change=_import_zip,
            help="Run folders that this page has exported, or one packed as it is. They are read "
            "before they are taken, and overwrite nothing.",
        )
        st.text_input(
            "Or the folder of a run",
            key="runs_folder",
            on_change=_import_folder,
            placeholder="/path/of/out",
            help="Such as one that a command has written with --out. It is copied as a ZIP is.",
        )


def _import_zip() -> None:
    given = st.session_state.runs_upload
    if given is not None:
        from masktune.runs.parcel import unpack

        _import(lambda: unpack(keep_upload(given.name, given), name=given.name))


def _import_folder() -> None:
    if text := st.session_state.runs_folder.strip():
        from masktune.runs.parcel import copy

        _import(lambda: copy(written_path(text).absolute()))


def _import(take: Callable[[], list[Path]]) -> None:
    with explained_errors():
        paths = take()
        hides = ("runs_search", "runs_dataset", "runs_method", "runs_state")
        st.session_state.update(dict.fromkeys(hides, ""))
        tick(*(path.name for path in paths), on=True)
