"""What an unfinished run folder already holds, so that work done is not done again."""

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
from accelerate import Accelerator
from safetensors.torch import save

from masktune.checkpoints.checkpoint import (
    Checkpoint,
    checkpoint_bytes,
    load_checkpoint,
    read_tensors,
)
from masktune.checkpoints.read import DAMAGED
from masktune.config import RunConfig
from masktune.data.fingerprint import fingerprint, is_of
from masktune.data.types import DatasetBundle
from masktune.errors import ConfigError, RunFolderError
from masktune.files import written_path
from masktune.heat.store import HeatStore
from masktune.runs.folder import BEFORE, DATA, RunFolder, new_run_path
from masktune.training.context import Known, Tuned
from masktune.training.fit import Resume, TrainingState

TRAINING = "training.pt"
TUNING = "tuning-{}.pt"  # of a rival, by the name of its training
AFTER = "after.safetensors"
HEAT = "heat.safetensors"
REGIONS = "regions.csv"


def claimed(config: RunConfig, out: str | Path | None, compute: Accelerator) -> RunFolder:
    """Return the folder of a run, one for all of its processes; the first of them writes.

    ``out`` None makes a new one under $MASKTUNE_HOME/runs.
    """
    if out is None and compute.num_processes > 1:
        raise ConfigError("A run of several processes needs one folder.", "Name it with --out.")
    path = Path(out) if out is not None else new_run_path(config)
    with compute.main_process_first():
        folder = RunFolder.claim(path, config, writes=compute.is_main_process)
    # The first goes no further before the others have looked: they would find a running run.
    compute.wait_for_everyone()
    return folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """The parts of a run that are finished."""

    training: TrainingState | None = None  # after the last whole epoch of an unfinished training
    before: Checkpoint | None = None
    tuned: Tuned | None = None  # what the finished rounds made of it
    tuning: bool = False  # whether a rival has trained for an epoch

    def follows_from_data(self, config: RunConfig) -> bool:
        """Tell whether anything here was learned from the pictures of the run."""
        trained = self.before is not None and config.model is None
        learnt = self.training is not None or self.tuned is not None
        return trained or learnt or self.tuning

    @classmethod
    def read(cls, folder: RunFolder, *, arch: str | None = None) -> "Saved":
        """Read what is there; nothing in a new folder.

        ``arch`` is for a model class of the user's own, which no folder may name by itself.
        """
        training = None
        if folder.has(TRAINING):
            training = _state(folder, TRAINING)
        tuning = any(folder.path.glob(TUNING.format("*")))
        if not folder.has(BEFORE):
            return cls(training=training)
        before = load_checkpoint(folder.path / BEFORE, arch=arch)
        if not folder.has(AFTER):
            return cls(before=before, tuning=tuning)
        with _reading(folder, AFTER) as path:
            rounds = tuple(json.loads(read_tensors(path)[1]["rounds"]))
        store = None
        if folder.has(HEAT):
            with _reading(folder, HEAT) as path:
                found = HeatStore.from_tensors(*read_tensors(path))
            # An interrupted round may have left its heat.
            store = replace(found, rounds=found.rounds[: len(rounds)])
        after = load_checkpoint(folder.path / AFTER, arch=arch)
        tuned = Tuned(after=after, records=rounds, store=store)
        return cls(before=before, tuned=tuned, tuning=tuning)


def _state(folder: RunFolder, name: str) -> TrainingState:
    with _reading(folder, name) as path:
        state: TrainingState = torch.load(path, map_location="cpu", weights_only=True)
        return state


@contextmanager
def _reading(folder: RunFolder, name: str) -> Iterator[Path]:
    try:
        yield folder.path / name
    except DAMAGED as error:
        raise RunFolderError(
            f"{name} of the unfinished run {folder.path} is damaged.",
            "Run it again into another folder, named by --out.",
        ) from error


def save_data(folder: RunFolder, bundle: DatasetBundle, config: RunConfig, saved: Saved) -> None:
    """Note which pictures the run is about; refuse to go on with others than it began with."""
    if not (folder.has(DATA) and saved.follows_from_data(config)):
        folder.write_json(DATA, {"fingerprint": fingerprint(bundle)})
    elif not is_of(bundle, folder.read_json(DATA).get("fingerprint")):
        raise RunFolderError(
            f"The pictures of '{config.dataset}' are no longer those this run began with: some "
            "were added, removed, renamed or labelled anew.",
            "Put them back as they were, or start again with another --out.",
        )


def check_known(bundle: DatasetBundle, known: Known | None) -> None:
    """Refuse what another run found out about other pictures."""
    if known is not None and not is_of(bundle, known.fingerprint):
        raise RunFolderError(
            f"The pictures of '{bundle.card.key}' are no longer those that the model before was "
            "asked about: some were added, removed, renamed or labelled anew.",
            "Put them back as they were, or start again with another --out.",
        )


def save_regions(folder: RunFolder, config: RunConfig) -> None:
    """Keep the boxes that somebody gave; refuse to go on with others than the run began with."""
    if config.masking.regions is None:
        return
    given = written_path(config.masking.regions).read_bytes()
    if not folder.has(REGIONS):
        folder.write(REGIONS, given)
    elif (folder.path / REGIONS).read_bytes() != given:
        raise RunFolderError(
            f"{config.masking.regions} no longer holds the boxes this run began with.",
            "Put it back as it was, or start again with another --out.",
        )


def save_training(folder: RunFolder, state: TrainingState, name: str = TRAINING) -> None:
    """Keep the state of a training that may be interrupted."""
    file = io.BytesIO()
    torch.save(state, file)
    folder.write(name, file.getvalue())


def resume_tuning(folder: RunFolder, part: str) -> Resume:
    """Let a rival's training of some name go on where it was.

    Its last state stays until the run is finished: who asks again gets the trained model at once.
    """
    name = TUNING.format(part)
    state = _state(folder, name) if folder.has(name) else None
    return Resume(state=state, save=partial(save_training, folder, name=name))


def forget_tuning(folder: RunFolder) -> None:
    """Remove the states of a rival's trainings."""
    for path in folder.path.glob(TUNING.format("*")):
        folder.remove(path.name)


def save_before(folder: RunFolder, before: Checkpoint, config: RunConfig) -> None:
    """Keep the model before; its training state is no longer needed."""
    if not folder.has(BEFORE):
        folder.write(BEFORE, _noted(before, config))
    folder.remove(TRAINING)


def save_tuned(folder: RunFolder, config: RunConfig, tuned: Tuned) -> None:
    """Keep a finished round: its heat first, then the model that says the round is finished."""
    if tuned.store is not None:
        folder.write(HEAT, save(*tuned.store.to_tensors()))
    folder.write(AFTER, _noted(tuned.after, config, rounds=json.dumps(tuned.records)))


def _noted(checkpoint: Checkpoint, config: RunConfig, **notes: str) -> bytes:
    return checkpoint_bytes(
        checkpoint, dataset=config.dataset, recipe=config.recipe, seed=str(config.seed), **notes
    )
