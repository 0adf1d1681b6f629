"""A finished run, read back: everything a report or a page shows."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from masktune.checkpoints.checkpoint import Checkpoint, load_checkpoint, read_tensors
from masktune.config import RunConfig
from masktune.data.fingerprint import is_of
from masktune.data.preprocess import Keeper, Preprocess
from masktune.data.types import DatasetBundle
from masktune.errors import DataError, RunFolderError
from masktune.heat.store import HeatStore
from masktune.heat.strategies import keeper
from masktune.runs.folder import RunFolder
from masktune.runs.load import load_for
from masktune.runs.resume import AFTER, BEFORE, DATA, HEAT
from masktune.scores.result import RunPredictions


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """A run's settings, data, models, heat and numbers.

    Attributes:
        path: its folder.
        config: its settings.
        document: the content of ``result.json``.
        bundle: its dataset.
        predictions: what both models said about validation and test sets.
        before: the ERM model.
        after: the tuned model.
        store: heat of the training set, None for strategies without heat.
    """

    path: Path
    config: RunConfig
    document: dict[str, Any]
    bundle: DatasetBundle
    predictions: RunPredictions
    before: Checkpoint
    after: Checkpoint
    store: HeatStore | None

    @property
    def preprocess(self) -> Preprocess:
        """From the dataset's bytes to the network's input."""
        return Preprocess(mean=self.bundle.card.mean, std=self.bundle.card.std)

    def keeper(self, round_number: int) -> Keeper | None:
        """Give what survived of the training pictures in a round; None where nothing was hidden."""
        return keeper(
            self.config.masking,
            self.store,
            size=self.bundle.card.size,
            count=len(self.bundle.train),
            round_number=round_number,
            seed=self.config.seed,
        )

    @property
    def layer(self) -> str | None:
        """Name of the layer that heat is read at; None where the network has no feature map."""
        layer: str | None = self.document["masking"]["layer"]
        return layer


def view(path: str | Path, *, arch: str | None = None) -> RunView:
    """Read a finished run.

    Args:
        path: the run folder.
        arch: for a model class of the user's own, which no folder may name by itself.

    Raises:
        RunFolderError: there is no finished run, or its pictures are no longer those it saw.
    """
    folder = _finished(path)
    config = RunConfig.from_json(folder.read_json("config.json"))
    return RunView(
        path=folder.path,
        config=config,
        document=folder.read_json("result.json"),
        bundle=_same_data(folder, config),
        predictions=RunPredictions.read(folder.path / "predictions.npz"),
        before=load_checkpoint(folder.path / BEFORE, arch=arch),
        after=load_checkpoint(folder.path / AFTER, arch=arch),
        store=HeatStore.from_tensors(*read_tensors(folder.path / HEAT))
        if folder.has(HEAT)
        else None,
    )


def tuned(path: str | Path, *, arch: str | None = None) -> Checkpoint:
    """Read the tuned model of a finished run, which needs none of its pictures.

    Args:
        path: the run folder.
        arch: for a model class of the user's own, which no folder may name by itself.
    """
    return load_checkpoint(_finished(path).path / AFTER, arch=arch)


def _finished(path: str | Path) -> RunFolder:
    folder = RunFolder(Path(path))
    if not folder.has("config.json"):
        raise RunFolderError(f"{path} is not a run folder.", "Give a folder that a run wrote.")
    if not folder.finished():
        state = folder.status().get("state", "unfinished")
        raise RunFolderError(
            f"The run in {path} has no result: it is {state}.",
            "Let it finish; the command that started it goes on where it stopped.",
        )
    return folder


def _same_data(folder: RunFolder, config: RunConfig) -> DatasetBundle:
    try:
        bundle = load_for(config)
    except DataError as error:
        raise RunFolderError(
            f"The pictures of this run cannot be read again: {error.problem}",
            f"Put them back as they were, at {config.root}." if config.root else error.remedy,
        ) from error
    if folder.has(DATA) and not is_of(bundle, folder.read_json(DATA).get("fingerprint")):
        raise RunFolderError(
            f"The pictures of '{config.dataset}' are no longer those of this run: some were "
            "added, removed, renamed or labelled anew.",
            "Put them back as they were, or run again with another --out.",
        )
    return bundle
