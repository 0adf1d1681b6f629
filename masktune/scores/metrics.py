"""Numbers of a run that are more than accuracy."""

from collections.abc import Mapping


def bg_gap(accuracies: Mapping[str, float]) -> float | None:
    """Give the BG-gap, accuracy on mixed_same minus mixed_rand; None when one is missing.

    >>> round(bg_gap({"mixed_same": 0.898, "mixed_rand": 0.756}), 3)
    0.142
    """
    if "mixed_same" not in accuracies or "mixed_rand" not in accuracies:
        return None
    return accuracies["mixed_same"] - accuracies["mixed_rand"]
