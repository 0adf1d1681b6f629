"""From predictions to the numbers of a run: pure functions, shaped like ``result.json``."""

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from masktune.data.card import DatasetCard
from masktune.data.types import DatasetBundle, Split
from masktune.scores.flips import group_flips
from masktune.scores.groups import Summary, group_counts, summary
from masktune.scores.predictions import Predictions
from masktune.scores.selective import Ranked, alone, joint, risk_coverage, selective_table


@dataclass(frozen=True, slots=True)
class Pair:
    """The same examples as seen by the model before and the model after."""

    before: Predictions
    after: Predictions

    def ranked(self) -> dict[str, Ranked]:
        """Rank the answers by each score of selective classification."""
        return {
            "joint": joint(self.before, self.after),
            "before": alone(self.before),
            "after": alone(self.after),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPredictions:
    """Everything the two models of a run said.

    Attributes:
        validation: on the validation split.
        tests: on each test set, by name.
    """

    validation: Pair
    tests: Mapping[str, Pair]

    def to_bytes(self) -> bytes:
        """Give the content of ``predictions.npz``.

        Arrays are named "<split>/labels", "<split>/attributes", "<split>/before" and
        "<split>/after", where <split> is "validation" or "test/<name>".
        """
        arrays: dict[str, Any] = {}
        for name, pair in self._named().items():
            arrays[f"{name}/labels"] = pair.before.labels
            arrays[f"{name}/attributes"] = pair.before.attributes
            arrays[f"{name}/before"] = pair.before.probabilities
            arrays[f"{name}/after"] = pair.after.probabilities
        file = io.BytesIO()
        np.savez_compressed(file, **arrays)
        return file.getvalue()

    def _named(self) -> dict[str, Pair]:
        return {
            "validation": self.validation,
            **{f"test/{name}": pair for name, pair in self.tests.items()},
        }

    @classmethod
    def read(cls, path: Path) -> "RunPredictions":
        """Read ``predictions.npz``."""
        with np.load(path) as file:

            def pair(name: str) -> Pair:
                labels, attributes = file[f"{name}/labels"], file[f"{name}/attributes"]
                return Pair(
                    Predictions(file[f"{name}/before"], labels, attributes),
                    Predictions(file[f"{name}/after"], labels, attributes),
                )

            # A test set's own name may hold slashes (A14).
            names = [n.rpartition("/")[0] for n in file.files if n.startswith("test/")]
            return cls(
                validation=pair("validation"),
                tests={n.removeprefix("test/"): pair(n) for n in dict.fromkeys(names)},
            )


def scorer(bundle: DatasetBundle) -> "Scorer":
    """Give what sums up predictions on a dataset."""
    return Scorer(bundle.card, training_groups(bundle.card, bundle.train))


def training_groups(card: DatasetCard, train: Split) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Count the training examples of every group, (K, A) int64."""
    return group_counts(
        train.labels.numpy(),
        train.attributes.numpy(),
        classes=len(card.classes),
        attributes_count=len(card.attributes),
    )


@dataclass(frozen=True, slots=True)
class Scorer:
    """Sums up predictions with a dataset's names and its training group counts (K, A)."""

    card: DatasetCard
    train_counts: np.ndarray[Any, np.dtype[np.int64]]

    def __call__(self, predictions: Predictions) -> Summary:
        """Give the group scores and averages."""
        return summary(
            predictions,
            classes=self.card.classes,
            attributes=self.card.attributes,
            train_counts=self.train_counts,
        )

    def pair(self, pair: Pair) -> dict[str, Any]:
        """Sum up before and after."""
        return {"before": self(pair.before).to_json(), "after": self(pair.after).to_json()}


def score_document(predictions: RunPredictions, *, score: Scorer) -> dict[str, Any]:
    """Give the part of ``result.json`` that follows from the predictions."""
    validation = predictions.validation.ranked()
    return {
        "test": {name: score.pair(pair) for name, pair in predictions.tests.items()},
        "validation": score.pair(predictions.validation),
        "selective": {
            name: [
                {"score": which, **row.to_json()}
                for which, ranked in pair.ranked().items()
                for row in selective_table(validation[which], ranked)
            ]
            for name, pair in predictions.tests.items()
        },
        "risk_coverage": {
            name: {which: _areas(ranked) for which, ranked in pair.ranked().items()}
            for name, pair in predictions.tests.items()
        },
        "flips": {name: _flip_counts(pair, score.card) for name, pair in predictions.tests.items()},
    }


def _areas(ranked: Ranked) -> dict[str, float]:
    curve = risk_coverage(ranked)
    return {"aurc": curve.aurc, "augrc": curve.augrc, "e_aurc": curve.e_aurc}


def _flip_counts(pair: Pair, card: DatasetCard) -> dict[str, Any]:
    groups = group_flips(pair.before, pair.after, classes=card.classes, attributes=card.attributes)
    return {
        "fixed": sum(group.fixed for group in groups),
        "broken": sum(group.broken for group in groups),
        # In the order of test.<name>.before.groups: with those, what evidence.py needs.
        "groups": [{"fixed": group.fixed, "broken": group.broken} for group in groups],
    }


@dataclass(frozen=True, slots=True)
class RunResult:
    """A finished run.

    Attributes:
        folder: the run folder.
        document: the content of ``result.json``; its shape is the contract of ``run --json``.
    """

    folder: Path
    document: Mapping[str, Any]

    def accuracy(self, test: str, moment: str = "after") -> float:
        """Give the plain accuracy on a test set, before or after."""
        return float(self.document["test"][test][moment]["average"])
