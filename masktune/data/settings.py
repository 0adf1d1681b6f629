"""What a dataset is asked for beside its name and place. Without PyTorch."""

from dataclasses import dataclass
from typing import Literal

Validation = Literal["own", "test"]
"""What validates: the dataset's own part (drawn from training where it has none), or test half."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSettings:
    """What every dataset is read with.

    Attributes:
        seed: decides the parts that are not given, and where clues are planted.
    """

    seed: int = 0
