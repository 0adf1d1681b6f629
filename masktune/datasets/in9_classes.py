"""Which of ImageNet's 1000 classes belongs to which class of ImageNet-9.

The table was derived, not copied: torchvision's class names stand in the order of their WordNet 3.0
noun offsets, which settles almost every name's synset; a class belongs to the one of the nine
synsets it descends from, dog before carnivore. WordNet gives 386 classes. ImageNet-9 has 370,
116 + 52 + 42 + 36 + 35 + 27 + 26 + 20 + 16 (Xiao et al. 2020, table 4), because its hierarchy knows
one parent a synset: greyhounds went to the racers, game birds to the game, house cats to the
domestic animals. These 14 follow from the counts. Two vehicles are missing too; the counts do not
say which two of the four with a parent that has no wheels, and ``UNCERTAIN`` names them. The table
leaves out the golf cart (golf equipment) and the mobile home (housing).
"""

import json
from pathlib import Path

from masktune.errors import DataError

NONE = -1
"""A class of ImageNet that is none of the nine; predicting it counts as wrong."""

UNCERTAIN = (575, 586, 660, 847)
"""Golf cart, half-track, mobile home, tank: two of these are wheeled vehicles in ImageNet-9."""

FILE = "in_to_in9.json"
"""The challenge's file, {"0": 8, "1": 8, ...}; the derived table beside this module is alike."""


def imagenet_to_in9(folder: Path | None = None) -> tuple[int, ...]:
    """Give the ImageNet-9 class of each of ImageNet's 1000, ``NONE`` where there is none.

    Args:
        folder: where the challenge's own ``in_to_in9.json`` may lie, which is taken when it is
            there; otherwise the derived table, whose ``UNCERTAIN`` classes may differ from it.

    Returns:
        1000 numbers from -1 to 8.
    """
    own = None if folder is None else folder / FILE
    path = own if own is not None and own.is_file() else Path(__file__).with_name(FILE)
    try:
        content = json.loads(path.read_text("utf-8"))
        table = tuple(content[str(number)] for number in range(1000))
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise DataError(
            f"{path} is not the table from ImageNet to ImageNet-9: {error}.",
            "Take it from the Backgrounds Challenge again, or remove it to use the one built in.",
        ) from error
    if wrong := [value for value in table if type(value) is not int or not NONE <= value <= 8]:
        raise DataError(
            f"{path} maps a class to {wrong[0]!r}.", "Give numbers from -1 to 8, as released."
        )
    return table
