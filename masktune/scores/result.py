"""The numbers of a run: computed once from its predictions, kept in ``result.json``."""

import io
import json
import math
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from masktune import __version__
from masktune.config import RunConfig
from masktune.data.card import DatasetCard, Skipped
from masktune.errors import RunFolderError
from masktune.scores.evidence import Evidence, judge
from masktune.scores.flips import Change, group_flips
from masktune.scores.groups import ANY, Summary, group_counts, summary
from masktune.scores.hiding import Hiding
from masktune.scores.json_types import as_json, as_type
from masktune.scores.predictions import Predictions
from masktune.scores.selective import Floats, Ranked, alone, joint, risk_coverage, selective_table

if TYPE_CHECKING:  # numbers are read without PyTorch
    from masktune.data.types import DatasetBundle, Split

FORMAT = 2
"""Version of a run's ``result.json``; the first one had no number."""

NEWEST = 3
"""Version of a training's, which knows the model before only; others are newer than this one."""

RESULT = "result.json"
VALIDATION = "validation"
_OWN = "after-score"


@dataclass(frozen=True, slots=True)
class Pair:
    """The same examples as seen by the model before and the model after."""

    before: Predictions
    after: Predictions
    own: Floats | None = None  # (N,) how sure the model after is by a score that it learnt

    def ranked(self) -> dict[str, Ranked]:
        """Rank the answers by each score of selective classification."""
        found = {
            "joint": joint(self.before, self.after),
            "before": alone(self.before),
            "after": alone(self.after),
        }
        if self.own is not None:
            found["own"] = Ranked(self.own, self.after.correct())
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPredictions:
    """Everything the two models of a run said, on validation and on each test set by name."""

    validation: Pair
    tests: Mapping[str, Pair]

    def to_bytes(self) -> bytes:
        """Give the content of ``predictions.npz``.

        Arrays are named "<split>/labels", "<split>/attributes", "<split>/before" and
        "<split>/after", where <split> is "validation" or "test/<name>"; "<split>/after-score" is
        a score of the model's own, where it has one.
        """
        arrays: dict[str, Any] = {}
        named = {VALIDATION: self.validation, **{f"test/{n}": p for n, p in self.tests.items()}}
        for name, pair in named.items():
            arrays[f"{name}/labels"] = pair.before.labels
            arrays[f"{name}/attributes"] = pair.before.attributes
            arrays[f"{name}/before"] = pair.before.probabilities
            arrays[f"{name}/after"] = pair.after.probabilities
            if pair.own is not None:
                arrays[f"{name}/{_OWN}"] = pair.own
        file = io.BytesIO()
        np.savez_compressed(file, **arrays)
        return file.getvalue()

    @classmethod
    def read(cls, path: Path) -> "RunPredictions":
        """Read ``predictions.npz``."""
        with np.load(path) as file:

            def pair(name: str) -> Pair:
                labels, attributes = file[f"{name}/labels"], file[f"{name}/attributes"]
                return Pair(
                    Predictions(file[f"{name}/before"], labels, attributes),
                    Predictions(file[f"{name}/after"], labels, attributes),
                    file[f"{name}/{_OWN}"] if f"{name}/{_OWN}" in file.files else None,
                )

            # A test set's own name may hold slashes.
            splits = dict.fromkeys(name.rpartition("/")[0] for name in file.files)
            tests = {n.removeprefix("test/"): pair(n) for n in splits if n != VALIDATION}
            return cls(validation=pair(VALIDATION), tests=tests)


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectiveScore:
    """What one score does at one target coverage; ``gamma`` None answers everything."""

    score: str
    target: float
    coverage: float
    error: float | None
    gamma: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Areas:
    """Areas under a risk-coverage curve; see ``RiskCoverage``."""

    aurc: float
    augrc: float
    e_aurc: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FlipCounts:
    """Answers of some pictures that were wrong before and right after, and the reverse.

    Those of a test set also by group, in the order of its scores; the first format has no groups.
    """

    fixed: int
    broken: int
    groups: tuple["FlipCounts", ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitResult:
    """What both models come to on one split: a test set by its name, or "validation".

    Attributes:
        selective: every score at every target coverage; of test sets only, as is what follows.
        areas: by score.
        flips: answers that changed.
    """

    name: str
    before: Summary
    after: Summary
    selective: tuple[SelectiveScore, ...] = ()
    areas: Mapping[str, Areas] = field(default_factory=dict)
    flips: FlipCounts | None = None

    def __len__(self) -> int:
        """Count the pictures."""
        return len(self.after)

    @property
    def kind(self) -> Literal["groups", "classes"]:
        """What the pictures are sorted into."""
        return "classes" if self.after.worst_is == "class" else "groups"

    @property
    def evidence(self) -> Evidence | None:
        """What the change is worth, by the counts alone.

        None where an older version did not count fixed and broken answers by group: accuracies
        before and after do not tell which answers they share.
        """
        if self.flips is None or not self.flips.groups:
            return None
        return judge(
            [
                Change(
                    group.label,
                    attribute=group.attribute,
                    count=group.count,
                    right_before=round((group.accuracy or 0.0) * group.count),
                    fixed=flip.fixed,
                    broken=flip.broken,
                )
                for group, flip in zip(self.before.scores, self.flips.groups, strict=True)
            ]
        )

    @property
    def classes(self) -> tuple[str, ...]:
        """The class names, by label."""
        return tuple(dict.fromkeys(score.label for score in self.after.scores))

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attribute names by number; none where no attribute is recorded."""
        names = dict.fromkeys(score.attribute for score in self.after.scores)
        return () if list(names) == [ANY] else tuple(names)


class Names(Protocol):
    """What classes and attributes are called, in order; of a dataset or of a split."""

    @property
    def classes(self) -> tuple[str, ...]:
        """The class names, by label."""

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attribute names, by number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundScore:
    """How the model of one round does on a test set."""

    average: float
    worst_group: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundResult:
    """What happened in one round.

    Attributes:
        k: the threshold.
        hidden_fraction: mean share of a training picture's pixels that was hidden.
        empty_fraction: share of the training pictures in which nothing was.
        fitted: whether its model could learn from what was left.
        train_accuracy: on the pictures as they were hidden; None where an older version ran.
        lr: the finetuning rate; likewise.
        test: by test set, of runs of several rounds.
        kept: whether its model was kept; None where an older version ran.
        hiding: what hiding took away from the model before, of the first round; None where an
            older version ran or a control did.
    """

    k: float
    hidden_fraction: float
    empty_fraction: float
    fitted: bool = True
    train_accuracy: float | None = None
    test: Mapping[str, RoundScore] | None = None
    lr: float | None = None
    kept: bool | None = None
    hiding: Hiding | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskingResult:
    """What was hidden, in one round or more; of ``stopped_early`` the last could not be fitted.

    ``layer`` is where heat was read, None where the network has no feature map.
    """

    rounds: tuple[RoundResult, ...]
    layer: str | None
    stopped_early: bool = False

    @property
    def result(self) -> int:
        """The number, from 1, of the round whose model is the run's model after."""
        numbered = list(enumerate(self.rounds, start=1))
        # A round that does not fit its masked pictures is dropped, unless it is the first.
        kept = [n for n, each in numbered if each.kept or (each.kept is None and each.fitted)]
        return kept[-1] if kept else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DataNotes:
    """What was found out about the files: a sentence each, and those left out.

    ``train`` counts the training pictures; None in the first format.
    """

    findings: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    train: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """The BG-gap of both models."""

    before: float
    after: float


class OnlyBeforeError(RunFolderError):
    """A folder that holds a trained model which nobody has finetuned yet."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            f"{folder} holds a trained model and no finetune: there is nothing after to look at.",
            "Finetune it first: choose it as the model on the Load page, or give its folder as the "
            "model of masktune run.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A run or training: ``config`` as in ``config.json``, ``seconds`` by part of the work.

    ``cpu_seconds`` are this process's, of the last try: others' work on the machine does not count.
    ``best_epoch`` is the one whose model the ERM gave, None where it was the last or a given one.
    """

    folder: Path
    dataset: str
    seed: int
    config: Mapping[str, Any]
    device: str
    best_epoch: int | None = None
    data: DataNotes = field(default_factory=DataNotes)
    seconds: Mapping[str, float]
    cpu_seconds: float | None = None
    versions: Mapping[str, str] = field(default_factory=dict)

    def document(self, version: int, **scores: object) -> dict[str, Any]:
        """Give the content of ``result.json``; scores that are None are left out."""
        told: dict[str, Any] = as_json(
            {
                "run": str(self.folder),
                "format": version,
                "dataset": self.dataset,
                "seed": self.seed,
                "config": self.config,
                "device": self.device,
                **{name: one for name, one in scores.items() if one is not None},
                "data": self.data,
                "seconds": {part: round(value, 3) for part, value in self.seconds.items()},
                "cpu_seconds": self.cpu_seconds,
                "versions": self.versions,
            }
        )
        return told


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult(Finished):
    """A finished run; ``rival`` is what a rival found out on the way, nothing of MaskTune."""

    test: Mapping[str, SplitResult]
    validation: SplitResult
    masking: MaskingResult
    rival: Mapping[str, Any] = field(default_factory=dict)

    @property
    def bg_gap(self) -> Gaps | None:
        """For the Backgrounds Challenge, accuracy on mixed_same minus mixed_rand; else None."""
        if not {"mixed_same", "mixed_rand"} <= self.test.keys():
            return None
        before, after = (
            self.accuracy("mixed_same", moment) - self.accuracy("mixed_rand", moment)
            for moment in ("before", "after")
        )
        return Gaps(before=before, after=after)

    @property
    def first(self) -> SplitResult:
        """The first test set."""
        return next(iter(self.test.values()))

    @property
    def took(self) -> float:
        """Seconds that the work took in all."""
        return sum(self.seconds.values())

    def accuracy(self, test: str, moment: str = "after") -> float:
        """Give the plain accuracy on a test set, before or after."""
        scores: Summary = getattr(self.test[test], moment)
        return scores.average

    def to_json(self) -> dict[str, Any]:
        """Give the content of ``result.json``; its shape is the contract of ``run --json``."""
        tests = self.test.items()
        return self.document(
            FORMAT,
            test={name: _both(test) for name, test in tests},
            validation=_both(self.validation),
            selective={name: test.selective for name, test in tests},
            risk_coverage={name: test.areas for name, test in tests},
            flips={name: test.flips for name, test in tests if test.flips is not None},
            bg_gap=self.bg_gap,
            best_epoch=self.best_epoch,
            masking=self.masking,
            rival=self.rival or None,
        )

    @classmethod
    def from_json(cls, document: Mapping[str, Any], *, folder: Path) -> "RunResult":
        """Read what ``to_json`` gave, of this version or an older one.

        Raises:
            RunFolderError: a newer version wrote it, it is damaged, or of a training only.
        """
        if format_of(document, folder=folder) == NEWEST:
            raise OnlyBeforeError(folder)
        try:
            return cls._of(document, folder)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            reason = f"there is no {error}" if isinstance(error, KeyError) else str(error)
            raise damaged(folder, reason) from error

    @classmethod
    def _of(cls, document: Mapping[str, Any], folder: Path) -> "RunResult":
        parts = {"selective": "selective", "risk_coverage": "areas", "flips": "flips"}

        def split(name: str, scores: Mapping[str, Any]) -> dict[str, Any]:
            known = {
                ours: document[part][name]
                for part, ours in parts.items()
                if name in document.get(part, {})
            }
            both = {moment: summary_fields(scores[moment]) for moment in ("before", "after")}
            return {"name": name, **both, **known}

        tests = test_sets(document)
        found: RunResult = as_type(
            cls,
            {
                **document,
                "folder": folder,
                "test": {name: split(name, scores) for name, scores in tests.items()},
                VALIDATION: split(VALIDATION, document[VALIDATION]),
            },
        )
        return found

    @classmethod
    def read(cls, folder: Path) -> "RunResult":
        """Read the result of a finished run.

        Raises:
            RunFolderError: as ``from_json``, or there is none.
        """
        try:
            document = json.loads((folder / RESULT).read_text("utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise damaged(folder, getattr(error, "strerror", None) or str(error)) from error
        return cls.from_json(document, folder=folder)


def format_of(document: object, *, folder: Path) -> object:
    """Return the version of a result, one that this version of MaskTune can read.

    Raises:
        RunFolderError: a newer version wrote it.
    """
    written = document.get("format", 1) if isinstance(document, Mapping) else None
    if isinstance(written, int) and written > NEWEST:
        raise RunFolderError(
            f"{folder / RESULT} was written by a newer version: it has format {written}, and "
            f"this one reads up to {NEWEST}.",
            "Update MaskTune Studio, or open another run.",
        )
    return written


def test_sets(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a result has of its test sets, by name, at least one."""
    if not document["test"]:
        raise ValueError("it has no test set")
    found: Mapping[str, Any] = document["test"]
    return found


def damaged(folder: Path, reason: str) -> RunFolderError:
    """Return what says that a result cannot be read, and why."""
    return RunFolderError(
        f"{folder / RESULT} is missing or damaged: {reason}.",
        "Open another run, or run this one again into another folder.",
    )


def _both(result: SplitResult) -> dict[str, Any]:
    return {"before": result.before.to_json(), "after": result.after.to_json()}


def summary_fields(values: Mapping[str, Any]) -> dict[str, Any]:
    """Give the fields of a ``Summary``."""
    lowest = as_type(float, values["worst_group"])
    if all(group["accuracy"] != lowest for group in values["groups"]):
        raise ValueError(f"no group has the lowest accuracy, {lowest}")
    return {**values, "scores": values["groups"]}


def scorer(bundle: "DatasetBundle") -> Callable[[Predictions], Summary]:
    """Give what sums up predictions on a dataset."""
    return partial(
        summary,
        classes=bundle.card.classes,
        attributes=bundle.card.attributes,
        train_counts=training_groups(bundle.card, bundle.train),
    )


def training_groups(card: DatasetCard, train: "Split") -> np.ndarray[Any, np.dtype[np.int64]]:
    """Count the training examples of every group, (K, A) int64."""
    return group_counts(
        train.labels.numpy(),
        train.attributes.numpy(),
        classes=len(card.classes),
        attributes_count=len(card.attributes),
    )


def score_split(name: str, pair: Pair, bundle: "DatasetBundle") -> SplitResult:
    """Sum up the accuracies of both models on a split."""
    sum_up = scorer(bundle)
    return SplitResult(name=name, before=sum_up(pair.before), after=sum_up(pair.after))


def score_tests(said: RunPredictions, bundle: "DatasetBundle") -> dict[str, SplitResult]:
    """Sum up both models on every test set; gamma comes from validation."""
    validation = said.validation.ranked()
    return {n: _score_test(n, pair, bundle, validation) for n, pair in said.tests.items()}


def _score_test(
    name: str, pair: Pair, bundle: "DatasetBundle", validation: Mapping[str, Ranked]
) -> SplitResult:
    ranked, names = pair.ranked(), bundle.card
    groups = group_flips(
        pair.before, pair.after, classes=names.classes, attributes=names.attributes
    )
    curves = {which: risk_coverage(answers) for which, answers in ranked.items()}
    return replace(
        score_split(name, pair, bundle),
        selective=tuple(
            SelectiveScore(
                score=which,
                target=row.target,
                coverage=row.coverage,
                error=row.error,
                gamma=row.gamma if math.isfinite(row.gamma) else None,
            )
            for which, answers in ranked.items()
            for row in selective_table(validation[which], answers)
        ),
        areas={
            which: Areas(aurc=curve.aurc, augrc=curve.augrc, e_aurc=curve.e_aurc)
            for which, curve in curves.items()
        },
        flips=FlipCounts(
            fixed=sum(group.fixed for group in groups),
            broken=sum(group.broken for group in groups),
            groups=tuple(FlipCounts(fixed=g.fixed, broken=g.broken) for g in groups),
        ),
    )


def score(
    said: RunPredictions,
    bundle: "DatasetBundle",
    *,
    config: RunConfig,
    folder: Path,
    masking: MaskingResult,
    device: str,
    seconds: Mapping[str, float],
    best_epoch: int | None = None,
    rival: Mapping[str, Any] | None = None,
) -> RunResult:
    """Compute every number of a run, once; ``seconds`` are by part of the work."""
    return RunResult(
        **facts(config, bundle),
        folder=folder,
        device=device,
        test=score_tests(said, bundle),
        validation=score_split(VALIDATION, said.validation, bundle),
        masking=masking,
        best_epoch=best_epoch,
        rival=rival or {},
        seconds=seconds,
    )


def facts(config: RunConfig, bundle: "DatasetBundle") -> dict[str, Any]:
    """Return what a result tells of its settings, its files and the packages."""
    found = (*bundle.findings, *filter(None, [bundle.left_out]))
    return {
        "dataset": config.dataset,
        "seed": config.seed,
        "config": config.to_json(),
        "data": DataNotes(findings=found, skipped=bundle.skipped, train=len(bundle.train)),
        "versions": packages(),
    }


def packages() -> dict[str, str]:
    """Return the versions of what computes the numbers."""
    # Asked for by name: importing torchvision takes seconds, and few networks need it.
    others = {name: metadata.version(name) for name in ("torch", "torchvision")}
    return {"masktune": __version__, "python": platform.python_version(), **others}
