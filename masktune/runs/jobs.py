"""Start, find, follow and cancel runs in processes of their own. Knows nothing of Streamlit.

A job is ``python -m masktune run``, or ``train``, in its own process group; its run folder is all
that links it to the page. Reloading, a second tab, a second user or a restarted server read the
same folder.
"""

import contextlib
import json
import os
import shlex
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import psutil

from masktune.checkpoints.settings import arguments, given_by, same, settings
from masktune.config import (
    AUTO,
    BUNDLED,
    MASKTUNE,
    MaskingConfig,
    RunConfig,
    names_code,
    order_listed,
)
from masktune.datasets.catalogue import card
from masktune.errors import ConfigError, MaskTuneError, RunFolderError
from masktune.files import home
from masktune.heat.strategies import CONTROLS, STRATEGIES, fill_of, strategy_of
from masktune.recipes import RECIPES
from masktune.runs import index
from masktune.runs.folder import BEFORE, RunFolder, State, new_run_path
from masktune.runs.index import OF_STUDIES, REPRODUCTIONS, RUNS, STUDIES, Digest, Entry
from masktune.runs.load import same_start
from masktune.runs.queue import STUDY, alive, at_work, line_up, waiting_for

REPOSITORY = Path(__file__).resolve().parents[2]
GRACE = 5.0
"""Seconds a job has to end by itself after it was asked to, before it is killed."""

STARTING = 20.0
"""Seconds between making a run folder and starting its process, at most."""

MOST_EVENTS = 5000
"""Steps that are read back; the newest ones of a longer training."""

_OF_STUDIES = tuple(f"{name}/" for name in OF_STUDIES)

EVENT_BYTES = 160
"""About the length of a line of ``events.jsonl``, rounded up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Where a run stands, as its folder says."""

    path: Path
    config: RunConfig
    state: State  # as in ``status.json``; a job whose process died without a word is "failed"
    stage: str = ""
    step: int = 0  # steps done in this stage
    total: int = 0  # steps of this stage
    seconds_left: float | None = None  # of this stage
    ahead: int = 0  # how many runs come before it, while it is queued
    problem: str = ""
    remedy: str = ""
    name: str = ""  # that somebody gave it; at first that of the experiment it belongs to
    note: str = ""
    tags: tuple[str, ...] = ()
    pinned: bool = False  # it comes before others in lists
    archived: bool = False  # lists leave it out unless asked
    created: float = 0.0  # seconds since the epoch
    began: float | None = None  # when it began to work, likewise; None while it waits
    fingerprint: str | None = None  # what tells its pictures from others; None before it read them
    digest: Digest | None = None  # its numbers; None where it has none that can be read

    @property
    def id(self) -> str:
        """What the address of a page carries: the folder's name, of a study's run the way to it."""
        # Pages ask for it of every run in the home, and pathlib takes twice as long.
        path, root = str(self.path), f"{home()}{os.sep}"
        way = path.removeprefix(root).replace(os.sep, "/")
        return way if way != path and way.startswith(_OF_STUDIES) else self.path.name

    @property
    def of_study(self) -> bool:
        """Whether it is one of a study or an experiment."""
        return "/" in self.id

    @property
    def active(self) -> bool:
        """Whether it still works or waits."""
        return self.state in ("queued", "running")


def runs_home() -> Path:
    """Give the folder that holds all runs but those of studies."""
    return home() / RUNS


def studies_home() -> Path:
    """Give the folder that holds all studies of the page, each with its runs."""
    return home() / STUDIES


def path_of(run_id: str) -> Path:
    """Give the folder of a run by its id."""
    return (home() if run_id.startswith(_OF_STUDIES) else runs_home()) / run_id


def start(config: RunConfig, *, name: str = "", note: str = "") -> Path:
    """Start a run in a process of its own, which waits if its device is busy; return its folder."""
    # What would do nothing is not said: the folder's settings are those of the process.
    config = replace(settings(given_by(config)), only_before=config.only_before)
    path = new_run_path(config)
    folder = RunFolder.claim(path, config)
    folder.write_json("about.json", {"name": name, "note": note, "created": time.time()})
    _launch(path, config)
    return path


def find(run_id: str) -> Job | None:
    """Give the job of a run by its id; None when there is no such run that can be read."""
    # The id comes from the address bar: it must name a folder directly in the home of runs, or
    # studies/STUDY/seed-N/RUN, and likewise of an experiment.
    parts = run_id.split("/")
    way = run_id.startswith(_OF_STUDIES) and len(parts) == 4 if len(parts) > 1 else True
    if not way or {"", ".", ".."} & {*parts}:
        return None
    return _looked(path_of(run_id))


def _looked(path: Path) -> Job | None:
    try:
        return look(path)
    except (MaskTuneError, ValueError, OSError):  # of another version, or just being deleted
        return None


def history() -> list[Job]:
    """Give all runs but those of studies, the newest first; what cannot be read is left out."""
    return [job for job in alone() if not job.config.only_before]


def alone() -> list[Job]:
    """Give what ``history`` gives, with what only trained a model."""
    folder = runs_home()
    return [job for job in every() if job.path.parent == folder]


def every() -> list[Job]:
    """Give all runs of the home, those of studies too, the newest first.

    Folders that cannot be read are left out; those that did not change are not read again.
    """
    root = home()
    found = {
        way: _job(root / way, way, entry) for way, entry in index.entries().items() if entry.config
    }
    # By the ways: ids say the same, and take a while to make.
    ways = sorted(found, key=lambda way: (found[way].created, way), reverse=True)
    return [found[way] for way in ways]


def look(path: Path) -> Job:
    """Read where a run stands; files that did not change are read once."""
    entry = index.entry(path)
    if entry.config is None:  # say why, unless they have been written since
        entry = replace(entry, config=RunConfig.from_json(RunFolder(path).read_json("config.json")))
    way = path.relative_to(home()).as_posix() if path.is_relative_to(home()) else ""
    return _job(path, way, entry)


def _job(path: Path, way: str, entry: Entry) -> Job:
    about, status = entry.about, entry.status
    created = float(about.get("created") or entry.made)
    done: tuple[State, str, str] = ("done", "", "")
    state, problem, remedy = done if entry.finished else judge(status, created)
    return Job(
        path=path,
        config=cast(RunConfig, entry.config),
        state=state,
        stage=status.get("stage") or "",
        step=status.get("step") or 0,
        total=status.get("total") or 0,
        seconds_left=status.get("eta"),
        ahead=waiting_for(path) if state == "queued" else 0,
        problem=problem,
        remedy=remedy,
        name=str(about.get("name") or _called(way)),
        note=str(about.get("note") or ""),
        tags=tuple(map(str, about.get("tags") or ())),
        pinned=bool(about.get("pinned")),
        archived=bool(about.get("archived")),
        created=created,
        began=status.get("began"),
        fingerprint=entry.fingerprint,
        digest=entry.digest,
    )


def _called(way: str) -> str:
    """Name a run of an experiment by that, its arm and its seed; other runs have no name at first.

    >>> _called("reproductions/mnist-two-squares-short/seed-1/masktune")
    'mnist-two-squares-short: masktune, seed 1'
    >>> _called("reproductions/erm/biased-mnist-5k-1a2b3c4d/seed-0")
    'erm: biased-mnist-5k-1a2b3c4d, seed 0'
    >>> _called("runs/one")
    ''
    """
    if not way.startswith(f"{REPRODUCTIONS}/"):
        return ""
    _, experiment, *parts = way.split("/")
    # What arms share lies in ERM/WHICH/seed-N, an arm in EXPERIMENT/seed-N/ARM.
    parts.sort(key=lambda part: part.startswith("seed-"))
    return f"{experiment}: {', '.join(parts).replace('seed-', 'seed ')}"


def judge(status: Mapping[str, Any], created: float, *, of: str = "run") -> tuple[State, str, str]:
    """Give state, problem and remedy; a process that is gone cannot say that it failed."""
    state: State = status.get("state", "queued")
    if state in ("queued", "running"):
        starting = not status and time.time() - created < STARTING
        if not starting and not alive(status):
            return (
                "failed",
                f"The process of this {of} ended without a word; it was killed or ran out of "
                "memory.",
                "Start it again: it goes on from the last finished part.",
            )
    return state, status.get("problem") or "", status.get("remedy") or ""


def _made(path: Path) -> float:
    """Give when a run that says nothing about it was made."""
    return (path / "config.json").stat().st_mtime


def resume(path: Path) -> None:
    """Start the process of an unfinished run again; one that works or waits is left alone."""
    job = look(path)
    if not job.active and job.state != "done":
        _launch(path, job.config)


def _launch(path: Path, config: RunConfig) -> None:
    launch(path, [*arguments(config), "--out", str(path)], arch=config.arch)


def launch(path: Path, words: Sequence[str], *, arch: str) -> None:
    """Start a command in a process of its own, which waits for its turn.

    Args:
        path: the folder of the job, which the command names with ``--out``.
        words: after ``python -m masktune``.
        arch: the architecture that it names.
    """
    if names_code(arch):
        raise ConfigError(
            f"The model of this run is built by code of its own, {arch}.",
            "Start it on the command line: the page runs no code that a file or an address names.",
        )
    command = [sys.executable, "-m", "masktune", *words]

    def begin() -> int:
        with (path / "log.txt").open("ab") as output:
            process = subprocess.Popen(
                [*command, "--queue", "--json"],
                cwd=REPOSITORY,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=output,
                start_new_session=True,
            )
        # Somebody must wait for a child, or its number stays taken after its end.
        threading.Thread(target=process.wait, name=f"wait {path.name}", daemon=True).start()
        return process.pid

    try:
        line_up(path, begin)
    except OSError as error:
        raise RunFolderError(
            f"The run in {path} cannot be started: {error.strerror or error}.",
            "Free some memory and disk space, then start it again.",
        ) from error


def cancel(path: Path, *, grace: float = GRACE) -> None:
    """Ask a run to stop, and kill it with all its processes if it does not."""
    folder = RunFolder(path)
    if not folder.finished():
        stop(folder, "status.json", grace=grace)


def stop(folder: RunFolder, told: str, *, grace: float = GRACE) -> None:
    """Stop the process of a job, which says where it stands in the file ``told``."""
    path = folder.path
    try:
        status = folder.read_json(told) if folder.has(told) else {}
    except RunFolderError:  # what cannot be read names no process
        return
    if not alive(status):
        return
    try:
        process = psutil.Process(status["pid"])
        family = (process, *process.children(recursive=True))
        process.terminate()  # it ends those it has started; had they ended first, it would fail
        if not _all_ended(family, grace):
            for part in family:
                with contextlib.suppress(psutil.NoSuchProcess):
                    part.kill()
            _all_ended(family, grace)
    except psutil.NoSuchProcess:
        pass  # it ended by itself in the meantime
    except psutil.AccessDenied as error:
        raise RunFolderError(
            f"The run in {path} belongs to another user of this computer.", "Ask them to stop it."
        ) from error
    now = folder.read_json(told)
    if now.get("state") in ("queued", "running"):  # it had no time to say so itself
        folder.write_json(told, {**now, "state": "cancelled"})


def _all_ended(family: Sequence[psutil.Process], seconds: float) -> bool:
    end = time.monotonic() + seconds
    for part in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            while part.is_running() and part.status() != psutil.STATUS_ZOMBIE:
                if time.monotonic() > end:
                    return False
                time.sleep(0.05)
    return True


def describe(path: Path, **said: str | bool | Sequence[str]) -> None:
    """Say something about a run: its ``name``, ``note``, ``tags``, or whether it is ``pinned``.

    One that is ``archived`` is left out of lists. What is not named stays as it is.

    Raises:
        RunFolderError: there is no such run.
    """
    folder = RunFolder(path)
    if not folder.has("config.json"):
        raise RunFolderError(
            f"The run {path.name} is not here any more.",
            "It was deleted meanwhile. What Runs has in its trash can be brought back there.",
        )
    about = folder.read_json("about.json") if folder.has("about.json") else {}
    folder.write_json("about.json", {"created": _made(path), **about, **said})


def hand_over(path: Path) -> None:
    """Let other runs do without a folder: those that start from a model within it get a copy.

    Raises:
        RunFolderError: a run is under way that trains on from weights within it, of which it would
            find no copy; or a study is whose next runs need what lies there.
    """
    for study in _studies_at_work():
        about = RunFolder(study).read_json(STUDY).get("about") or {}
        _refuse_needed(path, "study", study.name, about.get("model"), about.get("weights"))
    for job in every():
        if job.active and not (job.path / BEFORE).is_file():
            _refuse_needed(path, "run", job.name or job.id, job.config.weights)
    for job in every():
        model = Path(job.config.model or "")
        inside = job.path.is_relative_to(path)  # it goes where the model goes
        if inside or not model.is_relative_to(path) or not model.is_file():
            continue
        if not (job.path / BEFORE).is_file():
            RunFolder(job.path).write(BEFORE, _copy_for(job.config, model))


def _copy_for(config: RunConfig, model: Path) -> bytes:
    """Return a model as the run that starts from it keeps it: its file says all by itself."""
    if config.class_order is None:
        return model.read_bytes()
    from masktune.checkpoints.checkpoint import checkpoint_bytes, load_checkpoint  # with PyTorch

    return checkpoint_bytes(load_checkpoint(model, order=order_listed(config.class_order)))


def _studies_at_work() -> list[Path]:
    return [file.parent for file in studies_home().glob(f"*/{STUDY}") if at_work(file.parent)]


def _refuse_needed(path: Path, what: str, name: str, *files: str | None) -> None:
    """Refuse to take a folder away from what is still to begin with a file of it."""
    if any(Path(file).is_relative_to(path) for file in files if file is not None):
        raise RunFolderError(
            f"The {what} {name} is under way and begins with the model in {path}.",
            "Wait until it has ended, or cancel it first.",
        )


def last_lines(path: Path, count: int = 12) -> str:
    """Give the end of a run's log."""
    log = path / "log.txt"
    if not log.is_file():
        return ""
    with log.open(encoding="utf-8", errors="replace") as file:
        return "".join(deque(file, maxlen=count))


def events(path: Path, *, most: int = MOST_EVENTS) -> list[dict[str, Any]]:
    """Return the training steps a run has recorded, in order; of a long training the newest.

    A line that is still being written is left out, and so is what a run that was started again
    did over.
    """
    file = path / "events.jsonl"
    if not file.is_file():
        return []
    # A training of hours has records of many megabytes, and the page looks every second.
    room = most * EVENT_BYTES
    with file.open("rb") as records:
        size = records.seek(0, os.SEEK_END)
        records.seek(max(0, size - room))
        lines = records.read().split(b"\n")[:-1]
    steps: list[dict[str, Any]] = []
    for event in filter(None, map(_event, lines)):
        while steps and steps[-1]["stage"] == event["stage"] and steps[-1]["step"] >= event["step"]:
            steps.pop()  # a run that was started again went back to here
        steps.append(event)
    return steps[-most:]


def _event(line: bytes) -> dict[str, Any] | None:
    """Read a step; None for half a line, as a process leaves it that is killed while writing."""
    try:
        event: dict[str, Any] = json.loads(line)
        return {key: event[key] for key in ("time", "stage", "step", "total", "loss", "accuracy")}
    except (ValueError, TypeError, KeyError):
        return None


def opened(job: Job) -> RunConfig:
    """Return the settings of a run, to go on from; a model that it has trained is not trained anew.

    How the model was trained stays said, for those who want to train it again. Where the file that
    it started from is gone, its own copy counts.
    """
    config, own = replace(job.config, only_before=False), job.path / BEFORE
    if config.recipe not in RECIPES:  # of another version: its settings over the dataset's own
        config = replace(config, recipe=card(config.dataset).recipe)
    there = config.model == BUNDLED or Path(config.model or "").is_file()
    if there or not own.is_file():
        return config
    # Its own copy says the order of its classes itself.
    return replace(config, model=str(own), arch=AUTO, class_order=None)


def repeat_command(config: RunConfig) -> str:
    """Give the command that repeats a run, with every setting spelled out."""
    if config.recipe not in RECIPES:  # of another version: its settings over the dataset's own
        config = replace(config, recipe=card(config.dataset).recipe)
    return shlex.join(["python", "-m", "masktune", *arguments(config)])


def tuned_alike(one: Job, other: Job) -> bool:
    """Tell whether two runs tuned the same model before.

    Either it was made by the same settings, or one of them took the model that the other trained.
    """
    return same_start(one.config, other.config) or same_start(opened(one), opened(other))


def control_settings(config: RunConfig) -> tuple[RunConfig, ...]:
    """Return the controls of a run: they differ in nothing but what is hidden.

    What only the threshold needs is left at its usual value, so that runs at several k share
    their controls.
    """
    if config.rival != MASKTUNE:  # beside it stand other methods
        return ()
    masking = config.masking
    rounds = MaskingConfig(rounds=masking.rounds, accumulate=masking.accumulate)
    filled = replace(rounds, fill=fill_of(masking).name)
    return tuple(
        replace(
            config,
            masking=replace(filled if STRATEGIES[strategy].hides else rounds, strategy=strategy),
        )
        for strategy in CONTROLS
        if strategy != masking.strategy
    )


def is_control(config: RunConfig) -> bool:
    """Tell whether a run is one of MaskTune's controls; a rival, which hides nothing, is none."""
    return config.rival == MASKTUNE and strategy_of(config.masking).is_control


def controls_of(shown: Job, listed: Iterable[Job]) -> list[Job]:
    """Return those of some runs that are controls of one, which is none itself."""
    if is_control(shown.config):
        return []
    wanted = [*control_settings(shown.config), *control_settings(opened(shown))]
    return [
        job
        for job in listed
        if is_control(job.config)
        and any(
            same(config, one, but={"device"})
            for config in (job.config, opened(job))
            for one in wanted
        )
    ]
