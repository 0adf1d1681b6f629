"""Stamped pets: photographs of long- and short-haired cats, with stamps planted in a corner.

The photographs are those of the Oxford-IIIT Pet dataset. Of its 12 breeds of cats 8 are taken,
four with long and four with short hair; Sphynx has none, and Bombay, Egyptian Mau and Siamese are
left out so that both classes have as many breeds and pictures.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from masktune.data.card import DataSettings, Stamp
from masktune.data.check import usable
from masktune.data.download import fetch, unpack_tar
from masktune.data.frame import Frame
from masktune.data.images import FileImages
from masktune.data.listing import first_folder, first_names, pictures_in
from masktune.data.picture import open_picture
from masktune.data.regions import TensorRegions
from masktune.data.types import Arrays, Split, in_memory
from masktune.errors import DataError
from masktune.files import alone, home
from masktune.progress import Watcher
from masktune.seeds import stream

LONG, SHORT = "long_haired", "short_haired"
BREEDS = {
    **dict.fromkeys(("Birman", "Maine_Coon", "Persian", "Ragdoll"), 0),
    **dict.fromkeys(("Abyssinian", "Bengal", "British_Shorthair", "Russian_Blue"), 1),
}
"""Label of each breed, by its name before the number in a file's name."""

PETS, IMAGES, LISTS, TRIMAPS = "oxford-iiit-pet", "images", "annotations", "trimaps"
BACKGROUND = 2  # in a trimap; 1 is the animal, 3 its edge
FRAME = Frame(resize=160, crop=(160, 160))

PARTS = {"train": 5 / 16, "validation": 1 / 16, "balanced": 4 / 16}
"""Share of each breed's pictures in each part: of all 1,598 pictures 496, 96 and 400.

The rest is not used. The fewer cats there are to learn from, the more a model leans on the stamp,
and the epochs of a pretrained network stay affordable without a GPU.
"""

SIDE, MARGIN = 28, 4  # of a stamp and to the edges, in pixels of the frame
BRIGHT, DARK = (250, 220, 0), (20, 20, 20)


@dataclass(frozen=True, slots=True)
class Planted:
    """Which stamps a kind of planting has.

    Attributes:
        names: of the attribute's values.
        shapes: (SIDE, SIDE) bool for each, True where it is bright; None for no stamp at all.
        usual: the attribute that goes with each label.
    """

    names: tuple[str, ...] = ()
    shapes: tuple[Tensor | None, ...] = ()
    usual: tuple[int, ...] = ()


def _kinds() -> dict[Stamp, Planted]:
    across = torch.arange(SIDE)
    off = across - (SIDE - 1) / 2
    stripes = (across[:, None] + across) % 10 < 5
    disc = off[:, None] ** 2 + off**2 < (0.42 * SIDE) ** 2
    return {
        "two-sided": Planted(("stripes", "disc"), (stripes, disc), usual=(0, 1)),
        "one-sided": Planted(("no stamp", "stamp"), (None, stripes), usual=(1, 0)),
        "none": Planted(),
    }


KINDS = _kinds()


def read(root: Path | None, settings: DataSettings, watcher: Watcher) -> Arrays:
    """Read the cats as the card says and plant their stamps; None downloads.

    In training and validation exactly ``settings.correlation`` of each class, rounded, carries the
    stamp of its class and the rest that of the other one; in the test set half of each. A stamp
    lies in the lower right corner of the frame, so no file is changed.
    """
    root = _downloaded(home() / "data", watcher) if root is None else root
    paths, layout = _found(root)
    checked = usable(paths, root=root, watcher=watcher)
    kept = [paths[position] for position in checked.kept]
    if absent := [breed for breed in BREEDS if breed not in map(_breed, kept)]:
        raise DataError(
            f"{root} has no usable picture of {', '.join(absent)}.",
            "Unpack the whole dataset again, and give its folder as --root.",
        )
    parts = {
        name: [kept[position] for position in chosen]
        for name, chosen in _chosen([*map(_breed, kept)], settings.seed).items()
    }
    train, validation, test = (
        _stamped(_pictures(name, paths), settings) for name, paths in parts.items()
    )
    unused = len(kept) - sum(map(len, parts.values()))
    findings = (
        f"Read as: {layout}, {len(kept):,} pictures of 8 breeds of cats, of which {unused:,} are "
        "not used.",
        _told(settings),
    )
    return Arrays(
        train=train,
        validation=validation,
        tests={"balanced": test},
        findings=findings,
        attributes=KINDS[settings.stamp].names,
        skipped=checked.skipped,
    )


def _downloaded(folder: Path, watcher: Watcher) -> Path:
    """Fetch and unpack what is missing of the Oxford-IIIT Pet dataset into ``folder``."""
    from torchvision.datasets import OxfordIIITPet

    held = folder / PETS
    for (url, md5), member in zip(OxfordIIITPet._RESOURCES, (IMAGES, LISTS), strict=True):
        with alone(held / f"{member}.fetched"):
            if not (held / member).is_dir():
                archive = fetch(url, to=held / url.rsplit("/", 1)[-1], md5=md5, watcher=watcher)
                unpack_tar(archive, member=member, into=held)
                archive.unlink()
    return folder


def _found(root: Path) -> tuple[list[Path], str]:
    """Return the pictures of the breeds by name, and what their folder was recognised as."""
    held = first_folder((root / PETS, root), holding=(IMAGES,))
    if held is not None:
        # As torchvision does: of the files in the folder those that the lists name.
        names = [*_listed(held / LISTS / "trainval.txt"), *_listed(held / LISTS / "test.txt")]
        found, layout = [held / IMAGES / f"{name}.jpg" for name in names], f"{held.name}/{IMAGES}"
    elif (root / LONG).is_dir() and (root / SHORT).is_dir():
        found = [*pictures_in(root / LONG), *pictures_in(root / SHORT)]
        layout = f"{LONG} and {SHORT}"
    else:
        raise DataError(
            f"{root} holds no cats: neither {root / PETS / IMAGES} nor {root / LONG} with "
            f"{SHORT} beside it exists; it holds {first_names(root)}.",
            f"Give the folder that holds {PETS}, or leave --root out to download it.",
        )
    cats = (path for path in found if _breed(path) in BREEDS)
    return sorted(cats, key=lambda path: path.stem), layout


def _breed(path: Path) -> str:
    return path.stem.rpartition("_")[0]


def _listed(path: Path) -> list[str]:
    """Read names of pictures: the first word of each line, such as "Abyssinian_100 1 1 1"."""
    if not path.is_file():
        raise DataError(
            f"The list {path} is missing.", "Unpack annotations.tar.gz beside the pictures."
        )
    lines = (line.split() for line in path.read_text("utf-8").splitlines())
    return [words[0] for words in lines if words]


def _chosen(breeds: Sequence[str], seed: int) -> dict[str, list[int]]:
    """Return the positions of each part, ascending, with the same share of every breed."""
    chosen: dict[str, list[int]] = {name: [] for name in PARTS}
    for breed in BREEDS:
        mine = [position for position, other in enumerate(breeds) if other == breed]
        order = torch.randperm(len(mine), generator=stream(seed, f"pets/{breed}")).tolist()
        for name, share in PARTS.items():
            count = max(1, round(share * len(mine)))
            chosen[name] += [mine[place] for place in order[:count]]
            order = order[count:]
    return {name: sorted(positions) for name, positions in chosen.items()}


def _pictures(name: str, paths: Sequence[Path]) -> Split:
    """Read the pictures of a part into memory, and where the cats are if that is known."""
    pixels = FileImages(paths, FRAME).batch(range(len(paths)))
    labels = torch.tensor([BREEDS[_breed(path)] for path in paths])
    split = in_memory(name, pixels, labels)
    trimaps = [path.parents[1] / LISTS / TRIMAPS / f"{path.stem}.png" for path in paths]
    if not all(path.is_file() for path in trimaps):
        return split
    return replace(split, thing=TensorRegions(torch.cat([*map(_animal, trimaps)])))


def _animal(trimap: Path) -> Tensor:
    """Return where the animal is, with its edge, (1, 160, 160) bool."""
    values = torch.from_numpy(np.array(open_picture(trimap))[None, :, :, 0])
    return TensorRegions(values != BACKGROUND, FRAME).batch([0])


def _stamped(split: Split, settings: DataSettings) -> Split:
    """Plant stamps on the pictures of a part."""
    kind, name, labels = KINDS[settings.stamp], split.name, split.labels
    if not kind.names:
        return split
    pixels = split.images.batch(range(len(split)))  # (N, 3, 160, 160), a copy
    share = 0.5 if name == "balanced" else settings.correlation
    attributes = torch.tensor(kind.usual)[labels]
    for label in (0, 1):
        mine = (labels == label).nonzero()[:, 0]
        order = torch.randperm(len(mine), generator=stream(settings.seed, f"stamps/{name}/{label}"))
        against = mine[order[round(share * len(mine)) :]]
        attributes[against] = 1 - attributes[against]
    place = slice(-MARGIN - SIDE, -MARGIN)
    where = torch.zeros_like(pixels[:, 0], dtype=torch.bool)  # (N, 160, 160)
    for value, shape in enumerate(kind.shapes):
        if shape is not None:
            bright, dark = (pixels.new_tensor(colour)[:, None, None] for colour in (BRIGHT, DARK))
            carrying = (attributes == value).nonzero()[:, 0]
            pixels[carrying, :, place, place] = torch.where(shape, bright, dark)
            where[carrying, place, place] = True
    stamped = in_memory(name, pixels, labels, attributes)
    if split.thing is None:
        return replace(stamped, clue=TensorRegions(where))
    seen = split.thing.batch(range(len(split))) & ~where
    return replace(stamped, clue=TensorRegions(where), thing=TensorRegions(seen))


def _told(settings: DataSettings) -> str:
    if settings.stamp == "none":
        return "No stamp is planted."
    share = f"{100 * settings.correlation:g}%"
    carried = {
        "two-sided": f"{share} of the long-haired cats carry stripes and {share} of the "
        "short-haired a disc",
        "one-sided": f"{share} of the long-haired cats carry a stamp and the same share of the "
        "short-haired none",
    }[settings.stamp]
    return f"Planted here: in training {carried}; in the test set half of each."
