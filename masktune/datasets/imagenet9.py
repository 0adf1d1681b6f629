"""ImageNet-9, the Backgrounds Challenge: does the model look at the thing or at what is behind?"""

import json
import re
from dataclasses import replace
from pathlib import Path

from masktune.data.assemble import shuffled_classes
from masktune.data.card import DataSettings
from masktune.data.frame import Frame
from masktune.data.listing import (
    TRAIN,
    VALIDATION,
    Listing,
    Row,
    first_folder,
    first_names,
    pictures_in,
)
from masktune.errors import DataError
from masktune.progress import Watcher

FRAME = Frame(resize=(224, 224))
VARIANTS = (
    *("original", "mixed_same", "mixed_rand", "mixed_next"),
    *("only_fg", "no_fg", "only_bg_b", "only_bg_t"),
)
TRAINED = 0.8  # share of "original" that trains when there is no training part
NONE = -1
"""A class of ImageNet that is none of the nine; predicting it counts as wrong."""

UNCERTAIN = (575, 586, 660, 847)
"""Golf cart, half-track, mobile home, tank: two of these are wheeled vehicles in ImageNet-9."""

FILE = "in_to_in9.json"
"""The challenge's file, {"0": 8, "1": 8, ...}; the derived table beside this module is alike."""

KINDS = 9  # classes; what is none of them counts as one more


def read(root: Path, settings: DataSettings, _watcher: Watcher) -> Listing:
    """Read every variant that is there as a test set of its name, and the training part.

    Without a training part four fifths of "original", chosen by the seed, train, and a finding
    says so.
    """
    variants = _variants(root)
    rows, findings = _training(root)
    tests = [row for name, folder in variants.items() for row in _rows(folder, name)]
    if not rows:
        if "original" not in variants:
            raise DataError(
                f"{root} has no pictures to train on: neither {root / 'in9l' / 'train'} nor "
                f"{root / 'train'} nor the variant 'original' exists.",
                "Unpack in9l.tar.gz beside the variants.",
            )
        tests, findings = _with_training(tests, settings.seed)
    rows += tests
    absent = [name for name in VARIANTS if name not in variants]
    findings = [
        f"Read as: the variants {', '.join(variants)}"
        + (f"; not there: {', '.join(absent)}." if absent else "."),
        *findings,
        "No attribute is recorded: the variants and the BG-gap show what the background is worth.",
    ]
    return Listing(rows=tuple(rows), findings=tuple(findings), frame=FRAME)


def read_1000(root: Path, settings: DataSettings, watcher: Watcher) -> Listing:
    """Read the same pictures for models of ImageNet's 1000 classes."""
    listing = read(root, settings, watcher)
    finding = (
        f"ImageNet's classes are mapped by {FILE}."
        if (root / FILE).is_file()
        else f"ImageNet's classes are mapped by a table derived from WordNet. Two of its 370 are "
        f"uncertain (of golf cart, half-track, mobile home and tank); put {FILE} of the challenge "
        "into the folder to be sure."
    )
    return replace(
        listing,
        pool=tuple(KINDS if label == NONE else label for label in imagenet_to_in9(root)),
        findings=(*listing.findings, finding),
    )


def _variants(root: Path) -> dict[str, Path]:
    """Give the variants that are there, by name, each with the folder of its classes."""
    held = first_folder(
        (root, root / "bg_challenge", root / "test"), holding=[f"{name}/val" for name in VARIANTS]
    )
    if held is None:
        raise DataError(
            f"{root} holds no variant of ImageNet-9 such as {root / 'original' / 'val'}; it holds "
            f"{first_names(root)}.",
            "Give the folder that holds original, mixed_same and mixed_rand, usually bg_challenge.",
        )
    return {name: held / name / "val" for name in VARIANTS if (held / name / "val").is_dir()}


def _training(root: Path) -> tuple[list[Row], list[str]]:
    folders = (root / "in9l", root / "bg_challenge" / "in9l", root, root / "original")
    folder = first_folder(folders, holding=("train",))
    if folder is None:
        return [], []
    rows = _rows(folder / "train", TRAIN)
    # The "val" of the variant "original" is a test set.
    if (folder / "val").is_dir() and folder != root / "original":
        rows += _rows(folder / "val", VALIDATION)
    return rows, [f"Training pictures come from {folder / 'train'}."]


def _with_training(tests: list[Row], seed: int) -> tuple[list[Row], list[str]]:
    """Let four fifths of each class of "original" train."""
    of_class = shuffled_classes(tests, "original", seed=seed, name="imagenet9").values()
    chosen = {p for positions in of_class for p in positions[: round(TRAINED * len(positions))]}
    rows = [r._replace(split=TRAIN) if n in chosen else r for n, r in enumerate(tests)]
    finding = (
        f"There is no training part, so {len(chosen):,} pictures of 'original', chosen by the "
        "seed, train; the other variants show the same things, so their accuracies are optimistic."
    )
    return rows, [finding]


_CLASS = re.compile(r"(\d+)_.+")


def _rows(folder: Path, split: str) -> list[Row]:
    """List the pictures of each class folder; the label is the number before the underscore."""
    rows: list[Row] = []
    for place in sorted(folder.iterdir()):
        if not place.is_dir() or place.name.startswith("."):
            continue
        match = _CLASS.fullmatch(place.name)
        if match is None or int(match[1]) >= KINDS:
            raise DataError(
                f"The folder {place} is no class of ImageNet-9.",
                "Name the class folders 00_dog to 08_fish, as they were unpacked.",
            )
        rows += [Row(path, int(match[1]), split) for path in pictures_in(place)]
    if not rows:
        raise DataError(
            f"{folder} holds no pictures; class folders such as {folder / '00_dog'} are expected.",
            "Unpack the archive again.",
        )
    return rows


def imagenet_to_in9(folder: Path | None = None) -> tuple[int, ...]:
    """Give the ImageNet-9 class, 0 to 8, of each of ImageNet's 1000, ``NONE`` where there is none.

    The table was derived, not copied: torchvision's class names stand in the order of their WordNet
    3.0 noun offsets, which settles almost every name's synset; a class belongs to the one of the
    nine synsets it descends from, dog before carnivore. WordNet gives 386 classes. ImageNet-9 has
    370, 116 + 52 + 42 + 36 + 35 + 27 + 26 + 20 + 16 (Xiao et al. 2020, table 4), because its
    hierarchy knows one parent a synset: greyhounds went to the racers, game birds to the game,
    house cats to the domestic animals. These 14 follow from the counts. Two vehicles are missing
    too; the counts do not say which two of the four with a parent that has no wheels, and
    ``UNCERTAIN`` names them. The table leaves out the golf cart (golf equipment) and the mobile
    home (housing). The challenge's own ``in_to_in9.json`` is taken when it lies in ``folder``.
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
