"""The Abstain page's downloads: CSV and JSON, fractions in [0, 1] at full precision."""

import json
import math
from collections.abc import Sequence

import numpy as np

from app.abstain.numbers import Reading, scores_of
from masktune.files import Value, csv_bytes
from masktune.runs.open import OpenSplit
from masktune.scores.result import Names, Pair
from masktune.scores.selective import Ranked
from masktune.show.abstained import Rankings


def name(test: OpenSplit, what: str) -> str:
    """Name a download."""
    return f"{test.run.id}-{test.name}-{what}"


def curves_csv(rankings: Rankings) -> bytes:
    """Give every point of every curve."""
    rows: list[Sequence[Value]] = []
    for score in scores_of(rankings):
        curve = rankings.curves[score]
        points = np.stack([curve.coverage, curve.risk, curve.generalized_risk], axis=1)
        rows += [(score, *point) for point in points.tolist()]
    return csv_bytes(("score", "coverage", "risk", "generalized risk"), rows)


def pictures_csv(pair: Pair, ranked: Ranked, reading: Reading, *, names: Names) -> bytes:
    """Give every test picture: what it is, what both models say, whether it gets an answer."""
    columns = zip(
        pair.before.labels.tolist(),
        pair.before.attributes.tolist(),
        pair.before.answers().tolist(),
        pair.after.answers().tolist(),
        ranked.confidence.tolist(),
        (ranked.confidence > reading.point.gamma).tolist(),
        ranked.correct.tolist(),
        strict=True,
    )
    rows = (
        (
            place,
            names.classes[label],
            names.attributes[attribute] if attribute >= 0 else None,
            names.classes[before],
            names.classes[after],
            score,
            "answered" if answered else "held back",
            "right" if right else "wrong",
        )
        for place, (label, attribute, before, after, score, answered, right) in enumerate(columns)
    )
    heads = (
        "position", "label", "attribute", "before", "after", f"{reading.score} score", "answer",
        "would be",
    )  # fmt: skip
    return csv_bytes(heads, rows)


def point_json(rankings: Rankings, reading: Reading, *, run: str, test: str) -> bytes:
    """Give the operating point, to use the same threshold elsewhere; no gamma answers all."""
    gamma = reading.point.gamma
    curve = rankings.curves[reading.score]
    document = {
        "run": run,
        "test": test,
        "score": reading.score,
        "target": reading.target,
        "gamma": gamma if math.isfinite(gamma) else None,
        "validation": {
            "count": len(rankings.validation[reading.score]),
            "coverage": reading.on_validation,
        },
        "coverage": reading.point.coverage,
        "count": reading.total,
        "answered": reading.point.accepted,
        "error": reading.point.risk,
        "wrong": reading.wrong,
        "error_interval": reading.interval,
        "aurc": curve.aurc,
        "augrc": curve.augrc,
    }
    return json.dumps(document, indent=2, ensure_ascii=False).encode()
