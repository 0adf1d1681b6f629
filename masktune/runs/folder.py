"""A run folder is the truth: what the command line writes, the page reads, and the reverse."""

import contextlib
import errno
import hashlib
import json
import os
import time
import traceback
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from masktune.checkpoints.trained import BEFORE as BEFORE
from masktune.checkpoints.trained import CONFIG
from masktune.config import RunConfig
from masktune.data.augment import NONE
from masktune.errors import Cancelled, ConfigError, MaskTuneError, RunFolderError
from masktune.files import home, replace_file, stamp
from masktune.progress import Clock, Progress
from masktune.runs.queue import alive, standing

State = Literal["queued", "running", "done", "failed", "cancelled", "interrupted"]

STATUS_EVERY = 0.25
"""Seconds between two writes of status.json; a step of a small network takes milliseconds."""

DATA = "data.json"
_EARLY = ("log.txt", DATA, "events.jsonl")
"""What a run writes before it has made anything that could be used again."""


def new_run_path(config: RunConfig, *, under: str = "runs") -> Path:
    """Give the folder of a new run, $MASKTUNE_HOME/runs/<time>-<dataset>-<hash>."""
    text = json.dumps(config.to_json(), sort_keys=True)
    digest = hashlib.sha256(f"{text}/{time.time_ns()}".encode()).hexdigest()[:8]
    moment = datetime.now().strftime("%Y%m%d-%H%M%S")
    return home() / under / f"{moment}-{config.dataset}-{digest}"


@dataclass(slots=True)
class RunFolder:
    """The files of one run.

    Every file is written under a temporary name and renamed, so a reader never sees half of one;
    ``events.jsonl`` and ``log.txt`` only grow by whole lines.
    """

    path: Path
    writes: bool = True  # False in all but one process of a distributed run: its writes do nothing
    began: float = field(default_factory=time.time)  # of a job, when its turn came
    _clock: Clock = field(default_factory=Clock)
    _stage: str = ""
    _written: float = 0.0

    @classmethod
    def claim(cls, path: Path, config: RunConfig, *, writes: bool = True) -> "RunFolder":
        """Make the folder of a run, or take up one that this configuration left unfinished.

        A folder whose run failed before it made anything, as by a mistake in the command, is as
        good as new: the corrected command may name it again.

        Raises:
            RunFolderError: something else lives there; nothing of it is touched.
        """
        folder = cls(path, writes)
        wanted = config.to_json()
        if not path.exists() or (path.is_dir() and not any(path.iterdir())):
            folder.write_json(CONFIG, wanted)
            return folder
        if not folder.has(CONFIG):
            raise RunFolderError(
                f"{path} exists and is not a run folder.", "Choose another --out, or an empty one."
            )
        stored = _completed(folder.read_json(CONFIG))
        # Pictures that are called otherwise by now are the same: so is the run.
        renamed = stored.get("title") != config.title
        stored["title"] = config.title
        if stored != wanted and folder._came_to_nothing():
            for name in (*_EARLY, "status.json"):
                folder.remove(name)
            folder.write_json(CONFIG, wanted)
            return folder
        if stored != wanted:
            others = sorted(k for k in {*stored, *wanted} if stored.get(k) != wanted.get(k))
            if others == ["only_before"]:
                made = "a run" if config.only_before else "a model that was trained only"
                raise RunFolderError(
                    f"{path} holds {made}, with these settings.",
                    f"Choose another --out, and start from its model by --model {path}.",
                )
            # What the same command made before its recipe augmented pictures.
            plain = {**wanted, "training": {**wanted["training"], "augment": NONE}}
            raise RunFolderError(
                f"{path} holds a run with other settings ({', '.join(others)}).",
                "Choose another --out; the stored run was left as it is."
                + (" To go on with it, add --augment none." if plain == stored else ""),
            )
        status = folder.status()
        if status.get("state") in ("queued", "running") and alive(status):
            if status["pid"] != os.getpid():
                raise RunFolderError(
                    f"{path} is being written by a running process ({status['pid']}).",
                    "Wait until it ends, or choose another --out.",
                )
            folder.began = float(status.get("began") or folder.began)  # of a job whose turn came
        if renamed:
            folder.write_json(CONFIG, wanted)
        return folder

    def _came_to_nothing(self) -> bool:
        held = {path.name for path in self.path.iterdir()} - {CONFIG, "status.json"}
        return self.status().get("state") == "failed" and held <= set(_EARLY)

    def finished(self) -> bool:
        """Tell whether the run has its result, which is written last."""
        return self.has("result.json")

    def has(self, name: str) -> bool:
        """Tell whether a file of the run is there."""
        return (self.path / name).is_file()

    def stamp(self, *names: str) -> tuple[Hashable, ...]:
        """Return what tells the run's files from what they were before: a key to keep them by."""
        own = str(self.path)
        return own, *((name, stamp(f"{own}/{name}")) for name in names)

    def read_json(self, name: str) -> dict[str, Any]:
        """Read a JSON file of the run."""
        try:
            content: dict[str, Any] = json.loads((self.path / name).read_text("utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise RunFolderError(
                f"{self.path / name} cannot be read: {error}.",
                "Choose another run folder, or run again.",
            ) from error
        return content

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        """Write a JSON file of the run whole or not at all."""
        text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
        self.write(name, text.encode())

    def write(self, name: str, content: bytes) -> None:
        """Write a file of the run whole or not at all.

        Raises:
            RunFolderError: the folder cannot be written or the disk is full; what the file held
                before is still there.
        """
        if not self.writes:
            return
        with self._explained():
            self.path.mkdir(parents=True, exist_ok=True)
            with replace_file(self.path / name) as file:
                file.write(content)

    def append(self, name: str, line: str) -> None:
        """Add one line to a file of the run."""
        if self.writes:
            with self._explained(), (self.path / name).open("a", encoding="utf-8") as file:
                file.write(line + "\n")

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
            raise RunFolderError(
                f"{self.path} cannot be written: {error.strerror or error}.",
                "Free some space, then run the same command again to go on."
                if full
                else "Choose a folder you may write to with --out.",
            ) from error

    def log(self, text: str) -> None:
        """Add a line with the time to ``log.txt``."""
        self.append("log.txt", f"{datetime.now():%H:%M:%S} {text}")

    def remove(self, name: str) -> None:
        """Delete a file of the run that is no longer needed."""
        if self.writes:
            (self.path / name).unlink(missing_ok=True)

    def status(self) -> dict[str, Any]:
        """Read where the run stands; empty before it has said anything."""
        return self.read_json("status.json") if self.has("status.json") else {}

    def say(
        self,
        state: State,
        *,
        progress: Progress | None = None,
        problem: str | None = None,
        remedy: str | None = None,
    ) -> None:
        """Write where the run stands to ``status.json``."""
        said: dict[str, object] = {"stage": self._stage, "problem": problem, "remedy": remedy}
        if progress is not None:
            said |= {"stage": progress.stage, "step": progress.done, "total": progress.total}
            said["eta"] = self._clock.seconds_left(progress)
        self.write_json("status.json", standing(state, os.getpid(), began=self.began, **said))

    def watch(self, progress: Progress) -> None:
        """Record a step: status now and then, every training step as an event."""
        if progress.stage != self._stage:
            self._stage = progress.stage
            self.log(progress.stage)
        if progress.loss is not None:
            event = {
                "time": time.time(),
                "stage": progress.stage,
                "step": progress.done,
                "total": progress.total,
                "loss": progress.loss,
                "accuracy": progress.accuracy,
            }
            self.append("events.jsonl", json.dumps(event))
        moment = time.monotonic()
        if moment - self._written >= STATUS_EVERY or progress.done == progress.total:
            self._written = moment
            self.say("running", progress=progress)

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Mark the run as running, and at the end as done or as how it ended otherwise."""
        self.say("running")
        try:
            yield
        except KeyboardInterrupt:
            self._end("interrupted", "Interrupted; the same command goes on from here.")
            raise
        except Cancelled:
            self._end("cancelled", "Cancelled; the same command goes on from here.")
            raise
        except MaskTuneError as error:
            self._end("failed", str(error), problem=error.problem, remedy=error.remedy)
            raise
        except BaseException as error:
            self._end(
                "failed",
                traceback.format_exc(),
                problem=f"{type(error).__name__}: {error}",
                remedy="This is a bug in MaskTune Studio; log.txt says where.",
            )
            raise
        self.log("done")
        self.say("done")

    def _end(
        self, state: State, text: str, *, problem: str | None = None, remedy: str | None = None
    ) -> None:
        # The disk may be what failed: then the first error counts, not this one.
        with contextlib.suppress(RunFolderError):
            self.log(text)
            self.say(state, problem=problem, remedy=remedy)


def _completed(stored: dict[str, Any]) -> dict[str, Any]:
    """Give stored settings with those that an earlier version did not know at their usual value."""
    try:
        return RunConfig.from_json(stored).to_json()
    except ConfigError:
        return stored
