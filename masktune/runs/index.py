"""An index of run folders: what lists need of each is read once, and kept true by the files.

``$MASKTUNE_HOME/index.jsonl`` is a copy and never the truth: what it says of a folder counts as
long as the folder's files are those that were read, by time, size and inode. Damaged, deleted or
written by two processes at once, it is made again from the folders. Its last line says everything
but the numbers on test sets, which have a line a run before it: a list shows those of few runs.
"""

import gc
import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from threading import RLock
from typing import Any

from masktune import __version__
from masktune.config import PARTS, RunConfig, part_from_json
from masktune.errors import MaskTuneError, RunFolderError
from masktune.files import home, replace_file, stamp
from masktune.runs.folder import DATA, RunFolder
from masktune.scores.groups import GroupScore, Summary
from masktune.scores.json_types import as_json
from masktune.scores.metrics import METRICS
from masktune.scores.result import RESULT, RunResult, SplitResult
from masktune.scores.trained import TrainResult

INDEX = "index.jsonl"
FORMAT = 5
"""Version of the index; one of another version is made again."""

STATUS = "status.json"
FILES = ("config.json", "about.json", RESULT)
EARLIER = (DATA, STATUS)
"""What an entry is made of; where there is a result, which comes last, EARLIER stays as it is."""

LATEST = 1e11
"""Seconds since the epoch that no run was made after: a clock cannot show every number."""

_MISSING = (None, None, None)
_OF_FINISHED = len(FILES) * len(_MISSING)

RUNS, STUDIES, REPRODUCTIONS = "runs", "studies", "reproductions"
"""Folders in the home: of runs, of studies of the pages, and of what ``reproduce`` makes."""

OF_STUDIES: tuple[str, ...] = (STUDIES, REPRODUCTIONS)
"""Those with a folder a study, in there one a seed, and in there the runs.

Models that several experiments start from lie as deep: in ``reproductions/erm/WHICH/seed-N``.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """What one model comes to on a test set: every metric by its key, and the worst group."""

    metrics: Mapping[str, float | None]
    worst: GroupScore
    worst_is: str  # "group", or "class" where no attribute is recorded

    @classmethod
    def of(cls, summary: Summary) -> "Scored":
        """Sum up accuracies."""
        metrics = {metric.key: metric.of(summary) for metric in METRICS}
        return cls(metrics=metrics, worst=summary.worst, worst_is=summary.worst_is)


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """The numbers of a test set that lists show; ``aurc`` by score.

    ``after`` is None of a model that was only trained; ``fixed`` and ``broken`` are None then, and
    where an older version did not count them.
    """

    pictures: int
    before: Scored
    after: Scored | None = None
    aurc: Mapping[str, float] = field(default_factory=dict)
    fixed: int | None = None
    broken: int | None = None

    @classmethod
    def of(cls, test: SplitResult | Summary) -> "Numbers":
        """Sum up a test set, of a training what the model before comes to on it."""
        if isinstance(test, Summary):
            return cls(pictures=len(test), before=Scored.of(test))
        flips = test.flips
        return cls(
            pictures=len(test),
            before=Scored.of(test.before),
            after=Scored.of(test.after),
            aurc={score: areas.aurc for score, areas in test.areas.items()},
            fixed=None if flips is None else flips.fixed,
            broken=None if flips is None else flips.broken,
        )


class _Told(Mapping[str, Numbers]):
    """Test sets of the index, read when somebody asks: a list shows those of few runs."""

    __slots__ = ("_names", "_tests", "line")

    def __init__(self, names: Sequence[str], line: bytes) -> None:
        self._names, self.line = names, line
        self._tests: dict[str, Numbers] | None = None

    def __getitem__(self, name: str) -> Numbers:
        if self._tests is None:
            self._tests = _numbers(json.loads(self.line))
        return self._tests[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """What lists show of a result: test sets by name in their order, and the seconds it took."""

    tests: Mapping[str, Numbers]
    took: float

    @classmethod
    def of(cls, result: RunResult | TrainResult) -> "Digest":
        """Sum up a result."""
        return cls(
            tests={name: Numbers.of(test) for name, test in result.test.items()},
            took=sum(result.seconds.values()),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What a run folder says.

    Attributes:
        stamps: of ``FILES``, three numbers each, None for one that is not there; then those of
            ``EARLIER``, unless it is finished.
        config: its settings, None where they cannot be read.
        about: the content of ``about.json``.
        status: that of ``status.json``; of a finished run only when it began.
        fingerprint: of its pictures, None before they were read.
        digest: None where it has no result, or none that can be read.
    """

    stamps: Sequence[int | None]
    config: RunConfig | None
    about: Mapping[str, Any] = field(default_factory=dict)
    status: Mapping[str, Any] = field(default_factory=dict)
    fingerprint: str | None = None
    digest: Digest | None = None

    @property
    def finished(self) -> bool:
        """Whether it has a result, also one that cannot be read."""
        return len(self.stamps) == _OF_FINISHED

    @property
    def made(self) -> float:
        """When its settings were written, in seconds since the epoch; 0 where they are missing."""
        return (self.stamps[0] or 0) / 1e9

    @property
    def settled(self) -> bool:
        """Whether it is worth keeping: what a run at work says is another thing in a moment."""
        return self.finished or self.status.get("state") not in ("queued", "running")


@dataclass(slots=True)
class _Kept:
    """What is known of a home: by this process, and by its index on the disk."""

    entries: dict[str, Entry]
    stored: dict[str, Entry]


_lock = RLock()
_known: dict[Path, _Kept] = {}  # of the home that was asked for last


def entries() -> dict[str, Entry]:
    """Return what every run folder of the home says, by its way from there, such as "runs/NAME".

    Only what is new or has changed since it was indexed is read.
    """
    root = home()
    with _lock, _all_kept():
        kept = _of(root)
        now = {way: _entry(root, way, kept.entries) for way in _ways(root)}
        settled = {way: entry for way, entry in now.items() if entry.settled}
        if settled.keys() != kept.stored.keys() or any(
            entry is not kept.stored[way] for way, entry in settled.items()
        ):
            _write(root / INDEX, settled)
        _known[root] = _Kept(now, settled)
        return dict(now)  # ``entry`` adds to what is kept while others go through this


def entry(path: Path) -> Entry:
    """Return what a run folder says; read only if it is not known or has changed."""
    root = home()
    if not path.is_relative_to(root):
        return _read(path, _stamps(str(path)))
    with _lock:
        way, known = path.relative_to(root).as_posix(), _of(root).entries
        found = _entry(root, way, known)
        if found.config is not None:  # an address may name what never was
            known[way] = found
    return found


def _of(root: Path) -> _Kept:
    if root not in _known:
        stored = _stored(root / INDEX)
        _known.clear()
        _known[root] = _Kept({**stored}, stored)
    return _known[root]


@contextmanager
def _all_kept() -> Iterator[None]:
    """Keep Python from looking for garbage among what is just being made: there is none."""
    # It would look 20 times in an index of 1,000 runs, a twelfth of what its page takes.
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _ways(root: Path) -> Iterator[str]:
    for name in _folders(f"{root}/{RUNS}"):
        yield f"{RUNS}/{name}"
    for kind in OF_STUDIES:
        for study in _folders(f"{root}/{kind}"):
            for seed in _folders(f"{root}/{kind}/{study}"):
                for name in _folders(f"{root}/{kind}/{study}/{seed}"):
                    yield f"{kind}/{study}/{seed}/{name}"


def _folders(path: str) -> list[str]:
    # Pages ask for every run in the home: pathlib takes several times as long.
    try:
        with os.scandir(path) as found:
            return [one.name for one in found if one.is_dir() and not one.name.startswith(".")]
    except OSError:
        return []


def _entry(root: Path, way: str, kept: Mapping[str, Entry]) -> Entry:
    known, now = kept.get(way), _stamps(f"{root}/{way}")
    return known if known is not None and known.stamps == now else _read(root / way, now)


def _stamps(path: str) -> list[int | None]:
    found: list[int | None] = []  # flat, which takes half as long to read back
    for name in FILES:
        found += stamp(f"{path}/{name}") or _MISSING
    if found[-1] is None:  # no result
        for name in EARLIER:
            found += stamp(f"{path}/{name}") or _MISSING
    return found


def _read(path: Path, stamps: Sequence[int | None]) -> Entry:
    """Read a folder after its stamps were taken: what changes meanwhile is read again."""
    folder = RunFolder(path)

    def part(name: str) -> dict[str, Any]:
        try:
            content = folder.read_json(name) if folder.has(name) else {}
        except RunFolderError:
            return {}
        return content if isinstance(content, dict) else {}

    config, digest, found = None, None, part(DATA).get("fingerprint")
    finished = len(stamps) == _OF_FINISHED
    with suppress(MaskTuneError, ValueError, TypeError, KeyError, AttributeError):
        config = RunConfig.from_json(part("config.json"))
    if finished:
        with suppress(RunFolderError):  # damaged, or of a newer version: a run without numbers
            trained = config is not None and config.only_before
            digest = Digest.of((TrainResult if trained else RunResult).read(path))
    status = {
        name: value
        for name, value in part(STATUS).items()
        if (_is_moment(value) if name == "began" else not finished)
    }
    return Entry(
        stamps=stamps,
        config=config,
        about=_about(part("about.json")),
        status=status,
        fingerprint=None if found is None else str(found),
        digest=digest,
    )


def _about(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return what somebody said of a run, without what is of another kind than we write."""
    kinds = {"tags": list, "name": str, "note": str}
    return {
        name: value
        for name, value in said.items()
        if isinstance(value, kinds.get(name, object)) and (name != "created" or _is_moment(value))
    }


def _is_moment(value: object) -> bool:
    return type(value) in (int, float) and 0 <= value < LATEST  # type: ignore[operator]


def _stored(path: Path) -> dict[str, Entry]:
    try:
        tests, _, told = path.read_bytes().rpartition(b"\n")
        document, numbers = json.loads(told), tests.splitlines()
        # What one version cannot read of a run another one may.
        if (document["format"], document["version"]) != (FORMAT, __version__):
            return {}
        if document["check"] != zlib.crc32(tests):  # they are not read before somebody asks
            return {}
        # By the fields' own names: Python finds these faster than those that it has just read.
        usual = {each.name: document["usual"][each.name] for each in fields(RunConfig)}
        parts = document["parts"]
        made = {name: [part_from_json(name, one) for one in parts[name]] for name in PARTS}
        return {way: _from_json(one, numbers, usual, made) for way, one in document["runs"].items()}
    except (OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return {}
    except MaskTuneError:  # settings that were fine once and are not to this version
        return {}


def _from_json(
    one: Sequence[Any],
    numbers: Sequence[bytes],
    usual: Mapping[str, Any],
    parts: Mapping[str, Sequence[object]],
) -> Entry:
    stamps, config, about, status, fingerprint, digest = one
    if config is not None:
        own = {**usual, **config}
        for name in PARTS:
            own[name] = parts[name][own[name]]
        config = RunConfig(**own)
    if digest is not None:
        names, line, took = digest
        digest = Digest(tests=_Told(names, numbers[line]), took=took)
    return Entry(
        stamps=stamps,
        config=config,
        about=about,
        status=status,
        fingerprint=fingerprint,
        digest=digest,
    )


def _numbers(tests: Mapping[str, Any]) -> dict[str, Numbers]:
    # By hand: ``as_type`` checks every value and takes ten times as long, and this file is ours.
    return {
        name: Numbers(**{**one, **{m: _scored(one[m]) for m in ("before", "after") if m in one}})
        for name, one in tests.items()
    }


def _compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _scored(told: Mapping[str, Any]) -> Scored:
    worst = told["worst"]
    bounds = worst["interval"] and tuple(worst["interval"])
    return Scored(**{**told, "worst": GroupScore(**{**worst, "interval": bounds})})


def _write(path: Path, kept: Mapping[str, Entry]) -> None:
    lines: list[bytes] = []
    usual: dict[str, object] = {}  # settings of the first run: of others is said what differs
    parts: dict[str, dict[object, int]] = {name: {} for name in PARTS}

    def settings(config: RunConfig) -> dict[str, object]:
        own = {each.name: getattr(config, each.name) for each in fields(config)}
        for name in PARTS:  # many runs have them in common
            own[name] = parts[name].setdefault(own[name], len(parts[name]))
        usual.update(own if not usual else {})
        return {name: value for name, value in own.items() if value != usual[name]}

    def told(digest: Digest) -> tuple[object, ...]:
        tests = digest.tests
        lines.append(tests.line if isinstance(tests, _Told) else _compact(as_json(tests)))
        return [*tests], len(lines) - 1, digest.took

    runs = {
        way: (
            one.stamps,
            None if one.config is None else settings(one.config),
            one.about,
            one.status,
            one.fingerprint,
            None if one.digest is None else told(one.digest),
        )
        for way, one in kept.items()
    }
    common = {name: [as_json(part) for part in found] for name, found in parts.items()}
    tests = b"\n".join(lines)
    document = {"format": FORMAT, "version": __version__, "check": zlib.crc32(tests)}
    last = _compact(document | {"usual": usual, "parts": common, "runs": runs})
    # A home that cannot be written is only slower.
    with suppress(OSError), replace_file(path) as file:
        # It comes last, so that nothing is taken of a file that was cut off.
        file.write(tests + b"\n" + last)
