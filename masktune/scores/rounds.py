"""Which of a run's rounds its result comes from."""

from collections.abc import Mapping, Sequence
from typing import Any


def kept_round(rounds: Sequence[Mapping[str, Any]]) -> int:
    """Return the number of the round whose model is the result, 1 for the first.

    A round that does not fit its masked pictures is dropped, unless it is the first. Older
    results do not say which were kept.

    >>> kept_round([{"fitted": True}, {"fitted": False}]), kept_round([{"fitted": False}])
    (1, 1)
    """
    kept = [
        number
        for number, record in enumerate(rounds, start=1)
        if record.get("kept", record["fitted"] or number == 1)
    ]
    return kept[-1]
