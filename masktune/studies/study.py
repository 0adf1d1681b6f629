"""A study is a folder of ordinary run folders with ``study.json``: its plan, state and table."""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from masktune.config import RunConfig
from masktune.errors import Cancelled, MaskTuneError, RunFolderError
from masktune.runs.folder import RunFolder, State
from masktune.runs.queue import STUDY, alive, standing

if TYPE_CHECKING:  # what is planned is read without PyTorch
    from accelerate import Accelerator


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyRun(ABC):
    """One run of a study: runs of one ``method`` take about as long."""

    method: str
    seed: int
    config: RunConfig
    path: Path

    @property
    def words(self) -> str:
        """Its settings without the seed."""
        return self.method

    @property
    def title(self) -> str:
        """Its settings and the seed."""
        return f"{self.words}, seed {self.seed}"

    @abstractmethod
    def to_json(self, *, out: Path) -> dict[str, Any]:
        """Give it as a JSON object; its folder from that of the study."""


Step = TypeVar("Step", bound=StudyRun)


@dataclass(slots=True, kw_only=True)
class Study(Generic[Step]):
    """A study under way; of several processes the first writes.

    Attributes:
        folder: of the study.
        kind: of study, such as "tournament".
        about: what all of its runs share, JSON values by name: another study must not go on here.
        runs: what is to be done.
        plan: the same, a JSON object for each run.
        compute: where it is computed.
        table: what came out so far, a JSON object.
        done: runs that are finished.
        eta: seconds that all others take, None where nobody can tell yet.
        stage: the run under way.
    """

    folder: RunFolder
    kind: str
    about: Mapping[str, Any]
    runs: Sequence[Step]
    plan: Sequence[Mapping[str, Any]]
    compute: "Accelerator"
    table: Mapping[str, Any] = field(default_factory=dict)
    done: int = 0
    eta: float | None = None
    stage: str = ""

    @classmethod
    def claim(
        cls,
        path: Path,
        runs: Sequence[Step],
        *,
        kind: str,
        about: Mapping[str, Any],
        compute: "Accelerator",
    ) -> "Study[Step]":
        """Take a new folder, or one that the same study left; it may plan more runs than before.

        Raises:
            RunFolderError: something else lives there, or another process is at it.
        """
        folder = RunFolder(path, writes=compute.is_main_process)
        with compute.main_process_first():
            _check(folder, kind, about)
        compute.wait_for_everyone()  # the first writes when all have looked
        plan = [one.to_json(out=path) for one in runs]
        return cls(folder=folder, kind=kind, about=about, runs=runs, plan=plan, compute=compute)

    def say(self, state: State, *, problem: str | None = None, remedy: str | None = None) -> None:
        """Write where the study stands."""
        told = standing(
            state,
            os.getpid(),
            began=self.folder.began,
            stage=self.stage,
            step=self.done,
            total=len(self.plan),
            eta=self.eta,
            problem=problem,
            remedy=remedy,
        )
        parts = {"about": self.about, "plan": list(self.plan), "table": self.table}
        self.folder.write_json(STUDY, {"kind": self.kind, **told, **parts})

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Mark the study as running, and at the end as done or as how it ended otherwise."""
        self.say("running")
        try:
            yield
        except KeyboardInterrupt:
            self._end("interrupted")
            raise
        except Cancelled:
            self._end("cancelled")
            raise
        except MaskTuneError as error:
            self._end("failed", problem=error.problem, remedy=error.remedy)
            raise
        except BaseException as error:
            said = "This is a bug in MaskTune Studio; log.txt of the run says where."
            self._end("failed", problem=f"{type(error).__name__}: {error}", remedy=said)
            raise
        self.say("done")

    def _end(self, state: State, *, problem: str | None = None, remedy: str | None = None) -> None:
        with suppress(RunFolderError):  # the disk may be what failed: the first error counts
            self.say(state, problem=problem, remedy=remedy)


def _check(folder: RunFolder, kind: str, about: Mapping[str, Any]) -> None:
    path = folder.path
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    if not folder.has(STUDY):
        if any(path.glob("seed-*/*/config.json")):
            return  # of a version whose repetitions had runs only; each of them is checked
        raise RunFolderError(
            f"{path} exists and is not the folder of a {kind}.",
            "Choose another --out, or an empty one.",
        )
    stored = folder.read_json(STUDY)
    was = stored.get("about") or {}
    if stored.get("kind") != kind or was != about:
        others = sorted(name for name in {*was, *about} if was.get(name) != about.get(name))
        raise RunFolderError(
            f"{path} holds another {stored.get('kind', 'study')} ({', '.join(others)}).",
            "Choose another --out; what is stored was left as it is.",
        )
    active = stored.get("state") in ("queued", "running")
    if active and stored.get("pid") != os.getpid() and alive(stored):
        # Several processes of one study look before the first of them writes.
        raise RunFolderError(
            f"{path} is being written by a running process ({stored['pid']}).",
            "Wait until it ends, or choose another --out.",
        )
