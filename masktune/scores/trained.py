"""The numbers of a model that was trained and not yet finetuned, kept in ``result.json``."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from masktune.config import RunConfig
from masktune.scores.groups import Summary
from masktune.scores.json_types import as_type
from masktune.scores.predictions import Predictions
from masktune.scores.result import (
    NEWEST,
    RESULT,
    VALIDATION,
    Finished,
    damaged,
    facts,
    format_of,
    scorer,
    summary_fields,
    test_sets,
)

if TYPE_CHECKING:  # numbers are read without PyTorch
    from masktune.data.types import DatasetBundle


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainResult(Finished):
    """A finished training: as ``RunResult``, of the model before only."""

    test: Mapping[str, Summary]
    validation: Summary

    def to_json(self) -> dict[str, Any]:
        """Give the content of ``result.json``: that of a run without what needs a model after."""
        return self.document(
            NEWEST,  # which older versions say that they cannot read
            test={name: {"before": found.to_json()} for name, found in self.test.items()},
            validation={"before": self.validation.to_json()},
            best_epoch=self.best_epoch,
        )

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
        **facts(config, bundle),
        folder=folder,
        device=device,
        validation=found.pop(VALIDATION),
        test=found,
        best_epoch=best_epoch,
        seconds=seconds,
        cpu_seconds=cpu_seconds,
    )
