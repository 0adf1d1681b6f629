"""Mean and standard deviation of the pixels a network was trained on, by name."""

import math
import re
from collections.abc import Sequence

from masktune.errors import ConfigError

Channels = tuple[float, float, float]

FROM_CHECKPOINT = "checkpoint"
"""On the command line and on the page: take what the checkpoint file states."""

IMAGENET = "imagenet"
"""What nearly all weights that are fetched by their name are used to."""

NORMALISATIONS: dict[str, tuple[Channels, Channels]] = {
    "none": ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),  # pixels in [0, 1]
    IMAGENET: ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "in9": ((0.4717, 0.4499, 0.3837), (0.2600, 0.2516, 0.2575)),
    "half": ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),  # pixels in [-1, 1]
}
"""(mean, std) of [0, 1] pixels by name."""


def normalisation(text: str) -> tuple[Channels, Channels]:
    """Give mean and standard deviation by name, or as "mean / std" with one or three numbers each.

    >>> normalisation("imagenet")[0]
    (0.485, 0.456, 0.406)
    >>> normalisation("0.1307 / 0.3081")
    ((0.1307, 0.1307, 0.1307), (0.3081, 0.3081, 0.3081))
    """
    if text in NORMALISATIONS:
        return NORMALISATIONS[text]
    halves = [_channels(half) for half in text.split("/")]
    if len(halves) != 2 or halves[0] is None or halves[1] is None or min(halves[1]) <= 0:
        raise ConfigError(
            f"The normalisation '{text}' cannot be read.",
            f"Choose {', '.join(NORMALISATIONS)}, or write mean / std, such as "
            "0.485 0.456 0.406 / 0.229 0.224 0.225.",
        )
    return halves[0], halves[1]


def spelled(mean: Sequence[float], std: Sequence[float]) -> str:
    """Give the text that ``normalisation`` reads; three numbers each, or one for all channels.

    >>> spelled((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
    'half'
    >>> spelled((0.1, 0.2, 0.3), (1.0, 1.0, 1.0))
    '0.1 0.2 0.3 / 1.0 1.0 1.0'
    """
    both = tuple(tuple(values) * (3 // len(values)) for values in (mean, std))
    for name, known in NORMALISATIONS.items():
        if known == both:
            return name
    return " / ".join(" ".join(str(value) for value in values) for values in both)


def _channels(text: str) -> Channels | None:
    try:
        values = [float(word) for word in re.split(r"[\s,;]+", text.strip("[]() \t"))]
    except ValueError:
        return None
    if len(values) not in (1, 3) or not all(map(math.isfinite, values)):
        return None
    first, second, third = values * 3 if len(values) == 1 else values
    return first, second, third
