"""An index of run folders: what lists need of each is read once, and kept true by the files.

``$MASKTUNE_HOME/index.json`` is a copy and never the truth: what it says of a folder counts as long
as the folder's files are those that were read, by time, size and inode. Damaged, deleted or written
by two processes at once, it is made again from the folders.
"""

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
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

INDEX = "index.json"
FORMAT = 3
"""Version of the index; one of another version is made again."""

FILES = ("config.json", "about.json", "status.json", DATA, RESULT)
"""What an entry is made of."""

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

    __slots__ = ("_names", "_tests", "text")

    def __init__(self, names: Sequence[str], text: str) -> None:
        self._names, self.text = names, text
        self._tests: dict[str, Numbers] | None = None

    def __getitem__(self, name: str) -> Numbers:
        if self._tests is None:
            self._tests = _numbers(json.loads(self.text))
        return self._tests[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """What lists show of a result: test sets by name in their order, and the seconds it took.

    ``lr`` is the rate of its first round, None where there is none or an older version ran.
    """

    tests: Mapping[str, Numbers]
    took: float
    lr: float | None = None

    @classmethod
    def of(cls, result: RunResult | TrainResult) -> "Digest":
        """Sum up a result."""
        rounds = result.masking.rounds if isinstance(result, RunResult) else ()
        return cls(
            tests={name: Numbers.of(test) for name, test in result.test.items()},
            took=sum(result.seconds.values()),
            lr=next((one.lr for one in rounds), None),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What a run folder says.

    Attributes:
        stamps: of ``FILES``; None for one that is not there.
        config: its settings, None where they cannot be read.
        about: the content of ``about.json``.
        status: that of ``status.json``.
        fingerprint: of its pictures, None before they were read.
        digest: None where it has no result, or none that can be read.
    """

    stamps: tuple[tuple[int, int, int] | None, ...]
    config: RunConfig | None
    about: Mapping[str, Any] = field(default_factory=dict)
    status: Mapping[str, Any] = field(default_factory=dict)
    fingerprint: str | None = None
    digest: Digest | None = None

    @property
    def finished(self) -> bool:
        """Whether it has a result, also one that cannot be read."""
        return self.stamps[FILES.index(RESULT)] is not None

    @property
    def made(self) -> float:
        """When its settings were written, in seconds since the epoch; 0 where they are missing."""
        return (self.stamps[0] or (0, 0, 0))[0] / 1e9

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
    with _lock:
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


def _stamps(path: str) -> tuple[tuple[int, int, int] | None, ...]:
    return tuple(stamp(f"{path}/{name}") for name in FILES)


def _read(path: Path, stamps: tuple[tuple[int, int, int] | None, ...]) -> Entry:
    """Read a folder after its stamps were taken: what changes meanwhile is read again."""
    folder = RunFolder(path)

    def part(name: str) -> dict[str, Any]:
        try:
            content = folder.read_json(name) if stamps[FILES.index(name)] else {}
        except RunFolderError:
            return {}
        return content if isinstance(content, dict) else {}

    config, digest, found = None, None, part(DATA).get("fingerprint")
    with suppress(MaskTuneError, ValueError, TypeError, KeyError, AttributeError):
        config = RunConfig.from_json(part("config.json"))
    if stamps[FILES.index(RESULT)]:
        with suppress(RunFolderError):  # damaged, or of a newer version: a run without numbers
            trained = config is not None and config.only_before
            digest = Digest.of((TrainResult if trained else RunResult).read(path))
    return Entry(
        stamps=stamps,
        config=config,
        about=_about(part("about.json")),
        status=part("status.json"),
        fingerprint=None if found is None else str(found),
        digest=digest,
    )


def _about(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return what somebody said of a run, without what is of another kind than we write."""
    kinds: dict[str, type | tuple[type, ...]]
    kinds = {"created": (int, float), "tags": list, "name": str, "note": str}
    return {
        name: value
        for name, value in said.items()
        if isinstance(value, kinds.get(name, object))
        and (not isinstance(value, float) or math.isfinite(value))
    }


def _stored(path: Path) -> dict[str, Entry]:
    try:
        document = json.loads(path.read_bytes())
        # What one version cannot read of a run another one may.
        if (document["format"], document["version"]) != (FORMAT, __version__):
            return {}
        parts = {
            name: [part_from_json(name, one) for one in document["parts"][name]] for name in PARTS
        }
        return {way: _from_json(one, parts) for way, one in document["runs"].items()}
    except (OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return {}
    except MaskTuneError:  # settings that were fine once and are not to this version
        return {}


def _from_json(one: Mapping[str, Any], parts: Mapping[str, Sequence[object]]) -> Entry:
    config, digest = one["config"], one["digest"]
    if config is not None:
        config = RunConfig.from_json(config | {name: parts[name][config[name]] for name in PARTS})
    if digest is not None:
        tests = _Told(digest["names"], digest["tests"])
        digest = Digest(tests=tests, took=digest["took"], lr=digest["lr"])
    return Entry(
        stamps=tuple(each and tuple(each) for each in one["stamps"]),
        config=config,
        about=one["about"],
        status=one["status"],
        fingerprint=one["fingerprint"],
        digest=digest,
    )


def _numbers(tests: Mapping[str, Any]) -> dict[str, Numbers]:
    # By hand: ``as_type`` checks every value and takes ten times as long, and this file is ours.
    return {
        name: Numbers(**{**one, **{m: _scored(one[m]) for m in ("before", "after") if m in one}})
        for name, one in tests.items()
    }


def _told(digest: Digest) -> dict[str, Any]:
    """Give a digest for the index, with its numbers as one text: see ``_Told``."""
    tests = digest.tests
    text = tests.text if isinstance(tests, _Told) else _compact(as_json(tests))
    return {"names": [*tests], "took": digest.took, "lr": digest.lr, "tests": text}


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _scored(told: Mapping[str, Any]) -> Scored:
    worst = told["worst"]
    bounds = worst["interval"] and tuple(worst["interval"])
    return Scored(**{**told, "worst": GroupScore(**{**worst, "interval": bounds})})


def _write(path: Path, kept: Mapping[str, Entry]) -> None:
    parts: dict[str, dict[object, int]] = {name: {} for name in PARTS}

    def settings(config: RunConfig) -> dict[str, Any]:
        """Give settings with the number of each part, which many runs have in common."""
        own = {name: getattr(config, name) for name in PARTS}
        numbers = {n: parts[n].setdefault(part, len(parts[n])) for n, part in own.items()}
        return config.to_json() | numbers

    runs = {
        way: {
            "stamps": one.stamps,
            "config": None if one.config is None else settings(one.config),
            "about": one.about,
            "status": one.status,
            "fingerprint": one.fingerprint,
            "digest": None if one.digest is None else _told(one.digest),
        }
        for way, one in kept.items()
    }
    told = {name: [as_json(part) for part in found] for name, found in parts.items()}
    text = _compact({"format": FORMAT, "version": __version__, "parts": told, "runs": runs})
    # A home that cannot be written is only slower.
    with suppress(OSError), replace_file(path) as file:
        file.write(text.encode())
