"""How sure a mean over a few seeds is."""

import math
import statistics
from collections.abc import Sequence

CONFIDENCE = 0.95


def student_interval(values: Sequence[float]) -> list[float] | None:
    """Give Student's 95 % interval of the mean; None from fewer than two values.

    >>> [round(bound, 3) for bound in student_interval([0.90, 0.92, 0.94])]
    [0.87, 0.97]
    """
    if len(values) < 2:
        return None
    middle = statistics.fmean(values)
    spread = statistics.stdev(values) / math.sqrt(len(values))
    from scipy.special import stdtrit  # a run that asks for no interval does not import it

    reach = float(stdtrit(len(values) - 1, (1 + CONFIDENCE) / 2)) * spread
    return [middle - reach, middle + reach]
