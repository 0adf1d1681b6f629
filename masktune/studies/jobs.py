"""Start, find, follow, pause and cancel studies in processes of their own. Knows no Streamlit.

A study is a tournament or a grid. As for a run the folder,
``$MASKTUNE_HOME/studies/<time>-<dataset>-<hash>``, is all that links it to the page, and it waits
in one line with runs.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from masktune.cache import Cache
from masktune.checkpoints.settings import settings
from masktune.config import RunConfig
from masktune.errors import MaskTuneError, RunFolderError
from masktune.runs.folder import RunFolder, State, new_run_path
from masktune.runs.index import STUDIES
from masktune.runs.jobs import Job, judge, launch, stop, studies_home
from masktune.runs.jobs import find as find_run
from masktune.runs.queue import STUDY, waiting_for
from masktune.studies import grid as grids
from masktune.studies.grid import Grid
from masktune.studies.tournament.plan import NONE, Request, plan

KINDS = ("tournament", grids.KIND)

REQUEST = "request.json"
"""What was asked for on the page; a study of the command line has none."""

ODD = (AttributeError, KeyError, OSError, TypeError, ValueError)
"""What reading a file raises that no version of a study wrote."""

_READ = Cache(most=256)  # tables of a few ten kilobytes


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyJob:
    """Where a study stands, as its folder says."""

    path: Path
    kind: str = "tournament"  # one of KINDS
    state: State  # one whose process died without a word is "failed"
    config: RunConfig  # pictures, model and training that its runs share
    plan: Sequence[Mapping[str, Any]]  # a JSON object for each run
    table: Mapping[str, Any]  # the JSON document of what is finished; empty before the first run is
    stage: str = ""  # the run under way
    done: int = 0  # runs that are finished
    seconds_left: float | None = None  # of all runs
    ahead: int = 0  # how many runs come before it, while it is queued
    problem: str = ""
    remedy: str = ""
    created: float = 0.0  # seconds since the epoch
    request: Mapping[str, Any] | None = None  # as the page asked for it

    @property
    def id(self) -> str:
        """The folder's name."""
        return self.path.name

    @property
    def active(self) -> bool:
        """Whether it still works or waits."""
        return self.state in ("queued", "running")

    @property
    def under_way(self) -> Path | None:
        """The folder of the run under way; None while there is none."""
        if self.state != "running" or not self.stage or self.done >= len(self.plan):
            return None
        return self.path / str(self.plan[self.done]["run"])


def start(request: Request | Grid) -> Path:
    """Start a study in a process of its own, which waits if its device is busy."""
    first = request.first if isinstance(request, Grid) else request.configs[NONE]
    path = new_run_path(first, under=STUDIES)
    if isinstance(request, Grid):
        kind, tried = grids.KIND, "strategies"
        runs = [one.to_json(out=path) for one in grids.plan(request, out=path)]
    else:
        kind, tried = "tournament", "methods"
        runs = [one.to_json(out=path) for one in plan(request, out=path)]
    folder, words = RunFolder(path), request.arguments(path)
    asked = {name: getattr(request, name) for name in (tried, "ks", "rates", "seeds")}
    about = {"arguments": words, "arch": first.arch, "created": time.time()}
    folder.write_json(REQUEST, {**asked, **about})
    told = {"kind": kind, "about": {**request.given}, "plan": runs, "table": {}}
    folder.write_json(STUDY, told)
    launch(path, words, arch=first.arch)
    return path


def resume(path: Path) -> None:
    """Start the process of an unfinished study again; finished runs are not done again."""
    job = look(path)
    if job.active or job.state == "done":
        return
    if job.request is None:
        raise RunFolderError(
            f"The {job.kind} in {path} was not started here.",
            "Go on with it by the command that began it.",
        )
    asked = job.request
    if "arguments" in asked:
        launch(path, asked["arguments"], arch=asked["arch"])
        return
    request = Request(  # of a version that did not write down the words
        given=RunFolder(path).read_json(STUDY)["about"],
        methods=tuple(asked["methods"]),
        ks=tuple(asked["ks"]),
        rates=tuple(asked["rates"]),
        seeds=asked["seeds"],
    )
    launch(path, request.arguments(path), arch=request.configs[NONE].arch)


def find(study_id: str) -> StudyJob | None:
    """Give a study by its id; None when there is none that can be read."""
    path = studies_home() / study_id
    if path.parent != studies_home() or study_id in ("", ".", ".."):
        return None
    try:
        return look(path)
    except (MaskTuneError, *ODD):  # of another version, or being deleted
        return None


def history(*kinds: str) -> list[StudyJob]:
    """Give all studies of some kinds, else of all, the newest first.

    Folders that cannot be read are left out.
    """
    folder = studies_home()
    paths = folder.iterdir() if folder.is_dir() else ()
    every = (job for path in paths if (job := find(path.name)) is not None)
    found = [job for job in every if job.kind in (kinds or KINDS)]
    return sorted(found, key=lambda job: (job.created, job.id), reverse=True)


def look(path: Path) -> StudyJob:
    """Read where a study stands; files that did not change are read once."""
    folder = RunFolder(path)
    told, asked, config = _READ.get(folder.stamp(STUDY, REQUEST), lambda: _read(folder))
    if told["kind"] not in KINDS:
        raise RunFolderError(f"{path} holds a {told['kind']}.", "Open it by its own page.")
    created = float((asked or told).get("created") or told.get("began") or 0.0)
    state, problem, remedy = judge(told if "state" in told else {}, created, of=told["kind"])
    left = told.get("eta")
    if left is not None:  # as of when it was written, which is at the beginning of a run
        left = max(0.0, left - (time.time() - told["updated"]))
    return StudyJob(
        path=path,
        kind=told["kind"],
        state=state,
        config=config,
        plan=told["plan"],
        table=told["table"],
        stage=told.get("stage") or "",
        done=told.get("step") or 0,
        seconds_left=left,
        ahead=waiting_for(path) if state == "queued" else 0,
        problem=problem,
        remedy=remedy,
        created=created,
        request=asked,
    )


def _read(folder: RunFolder) -> tuple[dict[str, Any], dict[str, Any] | None, RunConfig]:
    told = folder.read_json(STUDY)
    asked = folder.read_json(REQUEST) if folder.has(REQUEST) else None
    return told, asked, settings(told["about"], without_effect="left out")


def finished_runs(study: StudyJob) -> dict[str, Job]:
    """Give the runs of a study that are finished, by their folder as the plan names it."""
    found = {one["run"]: find_run(f"{STUDIES}/{study.id}/{one['run']}") for one in study.plan}
    return {run: job for run, job in found.items() if job is not None and job.state == "done"}


def cancel(path: Path) -> None:
    """Ask a study to stop, and kill it with the run under way if it does not."""
    folder = RunFolder(path)
    if look(path).active:
        stop(folder, STUDY)


def pause(path: Path) -> None:
    """Stop a study for now; it goes on where it stopped."""
    folder = RunFolder(path)
    if not look(path).active:
        return
    stop(folder, STUDY)
    told = folder.read_json(STUDY)
    if told.get("state") not in ("done", "failed"):  # it may have ended by itself meanwhile
        folder.write_json(STUDY, {**told, "state": "interrupted"})
