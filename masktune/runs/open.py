"""A finished run, read back: numbers at once, pictures and models when somebody asks for them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from masktune.cache import Cache
from masktune.checkpoints.checkpoint import Checkpoint, load_checkpoint, read_origin, read_tensors
from masktune.checkpoints.origin import Origin
from masktune.checkpoints.read import DAMAGED
from masktune.config import RunConfig
from masktune.data.fingerprint import is_of
from masktune.data.preprocess import Keeper, Preprocess
from masktune.data.types import DatasetBundle, Split
from masktune.errors import ConfigError, DataError, RunFolderError
from masktune.heat.store import HeatStore
from masktune.heat.strategies import Round, keeper
from masktune.runs.folder import BEFORE, DATA, RunFolder
from masktune.runs.load import load_for
from masktune.runs.queue import STUDY
from masktune.runs.resume import AFTER, HEAT, REGIONS
from masktune.scores.evidence import Evidence, weigh
from masktune.scores.groups import group_examples
from masktune.scores.result import (
    VALIDATION,
    OnlyBeforeError,
    Pair,
    RunPredictions,
    RunResult,
    SplitResult,
)

Loader = Callable[[RunConfig], DatasetBundle]

PREDICTIONS = "predictions.npz"


class OpenRun:
    """A finished run whose parts are read when they are first asked for, once.

    Settings and numbers need ``config.json`` and ``result.json``, every answer
    ``predictions.npz``, pictures the dataset, heat the models.
    """

    def __init__(
        self, path: str | Path, *, arch: str | None = None, load: Loader = load_for, **known: object
    ) -> None:
        """Name the run; nothing is read yet.

        ``arch`` is for a model class of the user's own, which no folder may name by itself, and
        ``known`` are parts that are in memory already, by name.
        """
        self.path = Path(path)
        self._arch = arch
        self._load = load
        self._parts = Cache(most=len(type(self).__dict__))
        for name, value in known.items():
            self._parts.put(name, value)

    @property
    def id(self) -> str:
        """The folder's name; of a study's run with those of the study and the seed."""
        own, seed, study = self.path.name, self.path.parent, self.path.parent.parent
        return f"{study.name}-{seed.name}-{own}" if (study / STUDY).is_file() else own

    @property
    def config(self) -> RunConfig:
        """Its settings."""

        def read() -> RunConfig:
            return RunConfig.from_json(_finished(self.path).read_json("config.json"))

        return self._parts.get("config", read)

    @property
    def title(self) -> str:
        """What its pictures are called."""
        return self.config.title or self.bundle.card.title

    @property
    def result(self) -> RunResult:
        """Every number."""
        return self._parts.get("result", lambda: RunResult.read(_finished(self.path).path))

    @property
    def predictions(self) -> RunPredictions:
        """What both models said about validation and test sets."""

        def read() -> RunPredictions:
            with self._reading(PREDICTIONS) as path:
                found = RunPredictions.read(path)
            if [*found.tests] != [*self.result.test] or any(
                len(pair.before.labels) != len(self.result.test[name])
                for name, pair in found.tests.items()
            ):
                raise self._damaged(PREDICTIONS)
            return found

        return self._parts.get("predictions", read)

    @property
    def bundle(self) -> DatasetBundle:
        """Its pictures.

        Raises:
            RunFolderError: they are gone, or no longer those it saw.
        """
        return self._parts.get("bundle", self._same_data)

    @property
    def before(self) -> Checkpoint:
        """The ERM model."""
        return self._parts.get("before", lambda: self._checkpoint(BEFORE))

    @property
    def after(self) -> Checkpoint:
        """The tuned model."""
        return self._parts.get("after", lambda: self._checkpoint(AFTER))

    @property
    def origin(self) -> Origin | None:
        """Where the weights came from, without their tensors; None where they were made here."""

        def read() -> Origin | None:
            with self._reading(AFTER) as path:
                return read_origin(path)

        return self._parts.get("origin", read)

    @property
    def store(self) -> HeatStore | None:
        """Heat of the training set, None for strategies without heat."""

        def read() -> HeatStore | None:
            if not (self.path / HEAT).is_file():
                return None
            with self._reading(HEAT) as path:
                return HeatStore.from_tensors(*read_tensors(path))

        return self._parts.get("store", read)

    @property
    def tests(self) -> dict[str, "OpenSplit"]:
        """Its test sets by name."""
        return {name: OpenSplit.of(self, found) for name, found in self.result.test.items()}

    @property
    def validation(self) -> "OpenSplit":
        """The validation split."""
        return OpenSplit.of(self, self.result.validation)

    @property
    def preprocess(self) -> Preprocess:
        """From the dataset's bytes to the network's input."""
        return Preprocess(mean=self.bundle.card.mean, std=self.bundle.card.std)

    @property
    def layer(self) -> str | None:
        """Name of the layer that heat is read at; None where the network has no feature map."""
        return self.result.masking.layer

    def keeper(self, round_number: int) -> Keeper | None:
        """Give what survived of the training pictures in a round; None where nothing was hidden."""
        masking = self.config.masking
        if masking.regions is not None:  # as they were: the file may have changed since
            masking = replace(masking, regions=str(self.path / REGIONS))
        now = Round(
            masking=masking,
            store=self.store,
            size=self.bundle.card.size,
            count=len(self.bundle.train),
            number=round_number,
            seed=self.config.seed,
            split=self.bundle.train,
        )
        return keeper(now)

    def _checkpoint(self, name: str) -> Checkpoint:
        with self._reading(name) as path:
            return load_checkpoint(path, arch=self._arch)

    @contextmanager
    def _reading(self, name: str) -> Iterator[Path]:
        """Say which file is at fault when somebody has changed the folder."""
        path = _finished(self.path).path / name
        if not path.is_file() and self.config.only_before:
            raise OnlyBeforeError(self.path)
        try:
            yield path
        except DAMAGED as error:
            raise self._damaged(name) from error

    def _damaged(self, name: str) -> RunFolderError:
        return RunFolderError(
            f"{name} of run '{self.id}' is missing or damaged.",
            "Open another run, or run this one again into another folder.",
        )

    def _same_data(self) -> DatasetBundle:
        config = self.config
        try:
            bundle = self._load(config)
        except (DataError, ConfigError) as error:
            raise RunFolderError(
                f"The pictures of this run cannot be read again: {error.problem}",
                f"Put them back as they were, at {config.root}." if config.root else error.remedy,
            ) from error
        folder = RunFolder(self.path)
        if folder.has(DATA) and not is_of(bundle, folder.read_json(DATA).get("fingerprint")):
            raise RunFolderError(
                f"The pictures of '{config.dataset}' are no longer those of this run: some were "
                "added, removed, renamed or labelled anew.",
                "Put them back as they were, or run again with another --out.",
            )
        for name, pair in self.predictions.tests.items():
            split = bundle.tests.get(name)
            if split is None or not np.array_equal(split.labels.numpy(), pair.before.labels):
                raise RunFolderError(
                    f"The pictures of test set '{name}' are not those that this run was tested on.",
                    "Put the dataset's files back as they were, or finetune again.",
                )
        return bundle


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSplit(SplitResult):
    """One split of an open run: its numbers, and answers and pictures when asked for."""

    run: OpenRun

    @classmethod
    def of(cls, run: OpenRun, result: SplitResult) -> "OpenSplit":
        """Return the split of a run that has these numbers."""
        return cls(run=run, **{each.name: getattr(result, each.name) for each in fields(result)})

    @property
    def groups(self) -> npt.NDArray[np.int64]:
        """The group of every picture, (N,) int64."""
        before = self.pair.before
        return group_examples(before, classes=self.classes, attributes=self.attributes).ids

    @property
    def evidence(self) -> Evidence:
        """What the two models' answers tell about the change."""
        pair = self.pair
        return weigh(pair.before, pair.after, classes=self.classes, attributes=self.attributes)

    @property
    def pair(self) -> Pair:
        """What both models say about every picture."""
        said = self.run.predictions
        return said.validation if self.name == VALIDATION else said.tests[self.name]

    @property
    def split(self) -> Split:
        """The pictures."""
        bundle = self.run.bundle
        return bundle.validation if self.name == VALIDATION else bundle.tests[self.name]


def _finished(path: Path) -> RunFolder:
    folder = RunFolder(path)
    if not folder.has("config.json"):
        raise RunFolderError(f"{path} is not a run folder.", "Give a folder that a run wrote.")
    if not folder.finished():
        state = folder.status().get("state", "unfinished")
        raise RunFolderError(
            f"The run in {path} has no result: it is {state}.",
            "Let it finish; the command that started it goes on where it stopped.",
        )
    return folder
