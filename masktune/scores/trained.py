"""The numbers of a model that was trained and not yet finetuned, kept in ``result.json``."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from masktune.config import RunConfig
from masktune.scores.groups import Summary
from masktune.scores.json_types import as_json, as_type
from masktune.scores.predictions import Predictions
from masktune.scores.result import (
    NEWEST,
    RESULT,
    VALIDATION,
    DataNotes,
    damaged,
    format_of,
    notes_on,
    packages,
    scorer,
    summary_fields,
    test_sets,
)

if TYPE_CHECKING:  # numbers are read without PyTorch
    from masktune.data.types import DatasetBundle


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainResult:
    """A finished training: as ``RunResult``, of the model before only."""

    folder: Path
    dataset: str
    seed: int
    config: Mapping[str, Any]
    device: str
    test: Mapping[str, Summary]
    validation: Summary
    best_epoch: int | None = None
    data: DataNotes = field(default_factory=DataNotes)
    seconds: Mapping[str, float]
    cpu_seconds: float | None = None
    versions: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Give the content of ``result.json``: that of a run without what needs a model after."""
        document: dict[str, Any] = as_json(
            {
                "run": str(self.folder),
                "format": NEWEST,  # which older versions say that they cannot read
                "dataset": self.dataset,
                "seed": self.seed,
                "config": self.config,
                "device": self.device,
                "test": {name: {"before": found.to_json()} for name, found in self.test.items()},
                VALIDATION: {"before": self.validation.to_json()},
                **({} if self.best_epoch is None else {"best_epoch": self.best_epoch}),
                "data": self.data,
                "seconds": {part: round(value, 3) for part, value in self.seconds.items()},
                "cpu_seconds": self.cpu_seconds,
                "versions": self.versions,
            }
        )
        return document

    @classmethod
    def read(cls, folder: Path) -> "TrainResult":
        """Read the result of a finished training.

        Raises:
            RunFolderError: there is none, a newer version wrote it, or it is damaged.
        """
        try:
            document = json.loads((folder / RESULT).read_text("utf-8"))
            format_of(document, folder=folder)
            read: TrainResult = as_type(
                cls,
                {
                    **document,
                    "folder": folder,
                    "test": {
                        name: summary_fields(found["before"])
                        for name, found in test_sets(document).items()
                    },
                    VALIDATION: summary_fields(document[VALIDATION]["before"]),
                },
            )
        except (OSError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise damaged(folder, str(error)) from error
        return read


def score_before(
    said: Mapping[str, Predictions],
    bundle: "DatasetBundle",
    *,
    config: RunConfig,
    folder: Path,
    device: str,
    seconds: Mapping[str, float],
    cpu_seconds: float,
    best_epoch: int | None,
) -> TrainResult:
    """Compute every number of a training; ``said`` is by split, validation or a test set's name."""
    found = {name: scorer(bundle)(answers) for name, answers in said.items()}
    return TrainResult(
        folder=folder,
        dataset=config.dataset,
        seed=config.seed,
        config=config.to_json(),
        device=device,
        validation=found.pop(VALIDATION),
        test=found,
        best_epoch=best_epoch,
        data=notes_on(bundle),
        seconds=seconds,
        cpu_seconds=cpu_seconds,
        versions=packages(),
    )
