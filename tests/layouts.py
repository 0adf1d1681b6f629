"""Tiny data in the real layout of each named dataset.

Every function writes into a folder that it makes and gives the root to load. Colours follow the
label, so that a small network learns something.
"""

import csv
import gzip
import hashlib
import pickle
import struct
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

LAYOUTS: dict[str, Callable[[Path], Path]] = {}
"""By key of the catalogue, what writes a tiny copy into a folder and gives the root to load."""


def layout(*keys: str) -> Callable[[Callable[..., Path]], Callable[..., Path]]:
    """Register what writes a dataset's tiny copy; a new dataset's stands beside its own tests."""

    def register(write: Callable[..., Path]) -> Callable[..., Path]:
        LAYOUTS.update(dict.fromkeys(keys, write))
        return write

    return register


PARTS = ("train", "validation", "test")

# A landbird, a waterbird, and one that the original release calls a waterbird.
LANDBIRD, WATERBIRD, TOWHEE = (
    "031.Black_billed_Cuckoo",
    "001.Laysan_Albatross",
    "021.Eastern_Towhee",
)

IN9_CLASSES = (
    *("00_dog", "01_bird", "02_wheeled vehicle", "03_reptile", "04_carnivore"),
    *("05_insect", "06_musical instrument", "07_primate", "08_fish"),
)


def picture(
    path: Path, *, label: int, attribute: int = 0, size: tuple[int, int] = (40, 30)
) -> Path:
    """Write a picture of (width, height) whose red follows the label, its green the attribute."""
    path.parent.mkdir(parents=True, exist_ok=True)
    noise = np.random.default_rng(len(path.name) + 7 * label).integers(0, 40, (*size[::-1], 3))
    colour = np.array([40 + 20 * label, 60 + 100 * attribute, 90])
    Image.fromarray((noise + colour).clip(0, 255).astype(np.uint8)).save(path, quality=90)
    return path


def table(path: Path, heading: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
    """Write a CSV file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([heading, *rows])
    return path


def birds(each: int) -> list[tuple[str, int, int, int]]:
    """List (file name, label, split number, place): ``each`` of every group and split."""
    rows = []
    for split in range(3):
        for label in (0, 1):
            for place in (0, 1):
                for n in range(each):
                    kind = TOWHEE if (label, n) == (1, 0) else (LANDBIRD, WATERBIRD)[label]
                    name = f"{kind[4:]}_{split}{label}{place}{n:02d}_7.jpg"
                    rows.append((f"{kind}/{name}", label, split, place))
    return rows


@layout("waterbirds")
def waterbirds(folder: Path, *, each: int = 2, form: str = "metadata.csv") -> Path:
    """Write Waterbirds with ``each`` pictures of every group and split.

    Args:
        folder: the root.
        each: the first waterbird of each group and split is an Eastern Towhee.
        form: "metadata.csv" (group_DRO, WILDS), "metadata_waterbirds.csv" or "corrected"
            (images/{train,val,test}/{0,1}, towhees as landbirds, with metadata.csv).
    """
    rows = birds(each)
    if form == "corrected":
        rows = [(name, 0 if TOWHEE in name else y, split, place) for name, y, split, place in rows]
    for name, label, split, place in rows:
        where = folder / name
        if form == "corrected":
            part = ("train", "val", "test")[split]
            where = folder / "images" / part / str(label) / Path(name).name
        picture(where, label=label, attribute=place)
    if form == "metadata_waterbirds.csv":
        listed = [(n, name, split, y, place) for n, (name, y, split, place) in enumerate(rows)]
        table(folder / form, ("id", "filename", "split", "y", "a"), listed)
    else:
        table(
            folder / "metadata.csv",
            ("img_id", "img_filename", "y", "split", "place", "place_filename"),
            [(n, name, y, s, p, "/o/ocean/1.jpg") for n, (name, y, s, p) in enumerate(rows, 1)],
        )
    return folder


@layout("celeba")
def celeba(folder: Path, *, each: int = 2, form: str = "csv", nested: bool = False) -> Path:
    """Write CelebA with ``each`` pictures of every group and split.

    The partition lists the pictures in another order than the attributes.

    Args:
        folder: the root.
        each: pictures a group and split.
        form: "csv", "txt" or "metadata.csv" (DFR).
        nested: True puts the pictures into img_align_celeba/img_align_celeba.
    """
    groups = [(s, y, a) for s in range(3) for y in (0, 1) for a in (0, 1) for _ in range(each)]
    rows = [(f"{n:06d}.jpg", y, s, a) for n, (s, y, a) in enumerate(groups, 1)]
    pictures = folder / "img_align_celeba"
    pictures = pictures / "img_align_celeba" if nested else pictures
    for name, label, _, attribute in rows:
        picture(pictures / name, label=label, attribute=attribute, size=(178, 218))
    heading = ["Bald", "Blond_Hair", "Blurry", "Male", "Young"]
    signs = [(name, -1, 2 * y - 1, 1, 2 * a - 1, 1) for name, y, _, a in rows]
    parts = [(name, split) for name, _, split, _ in reversed(rows)]
    if form == "csv":
        table(folder / "list_attr_celeba.csv", ["image_id", *heading], signs)
        table(folder / "list_eval_partition.csv", ["image_id", "partition"], parts)
    elif form == "txt":
        lines = [str(len(rows)), " ".join(heading) + " "]
        lines += ["  ".join(map(str, row)) for row in signs]
        (folder / "list_attr_celeba.txt").write_text("\n".join(lines) + "\n")
        partition = "".join(f"{name} {split}\n" for name, split in parts)
        (folder / "list_eval_partition.txt").write_text(partition)
    else:
        table(
            folder / "metadata.csv",
            ("img_id", "img_filename", "y", "split", "place", "place_filename"),
            [(n, name, y, s, a, "") for n, (name, y, s, a) in enumerate(rows)],
        )
    return folder


@layout("imagenet9", "imagenet9-1000")
def imagenet9(
    folder: Path,
    *,
    each: int = 2,
    variants: Sequence[str] = ("original", "mixed_same", "mixed_rand", "only_fg"),
    form: str = "in9l",
    training: bool = True,
) -> Path:
    """Write ImageNet-9 with ``each`` pictures a class in every variant and training part.

    Args:
        folder: the root.
        each: pictures a class.
        variants: the test sets to write; "fg_mask" with files that are no pictures comes along.
        form: "in9l" (variants and in9l/{train,val} side by side), "bg_challenge" (the variants in
            a folder of that name) or "masktune" ({train,val} and test/<variant>/val).
        training: False leaves the training part out.
    """
    held = {"in9l": folder, "bg_challenge": folder / "bg_challenge", "masktune": folder / "test"}
    places = [held[form] / name / "val" for name in variants]
    if training:
        base = folder if form == "masktune" else folder / "in9l"
        places += [base / "train", base / "val"]
    for place in places:
        for label, name in enumerate(IN9_CLASSES):
            for n in range(each):
                picture(place / name / f"n0{label}_{n}.JPEG", label=label, size=(24, 24))
    masks = held[form] / "fg_mask" / "val" / IN9_CLASSES[0]
    masks.mkdir(parents=True)
    (masks / "n00_0.npy").write_bytes(b"\x93NUMPY")
    return folder


def small_pictures(labels: Sequence[int], side: int = 32) -> np.ndarray:
    """Give (N, side, side, 3) uint8 with red = 20 * label + 10, green the column, blue the row."""
    pixels = np.zeros((len(labels), side, side, 3), np.uint8)
    pixels[..., 0] = 20 * np.array(labels)[:, None, None] + 10
    pixels[..., 1] = np.arange(side)
    pixels[..., 2] = np.arange(side)[:, None]
    return pixels


@layout("cifar10")
def cifar10(folder: Path, *, each: int = 2, form: str = "python") -> Path:
    """Write CIFAR-10 with ``each`` pictures a class in each of five batches and the test batch.

    Args:
        folder: the root.
        each: pictures a class and batch.
        form: "python" (pickles as torchvision keeps them), "binary" or "npz".
    """
    folder.mkdir(parents=True, exist_ok=True)
    labels = list(range(10)) * each
    pixels = small_pictures(labels)
    if form == "npz":
        np.savez_compressed(
            folder / "cifar10.npz",
            x_train=np.concatenate([pixels] * 5),
            y_train=np.array(labels * 5, np.uint8),
            x_test=pixels,
            y_test=np.array(labels, np.uint8),
        )
        return folder
    rows = pixels.transpose(0, 3, 1, 2).reshape(len(labels), -1)
    held = folder / ("cifar-10-batches-py" if form == "python" else "cifar-10-batches-bin")
    held.mkdir()
    for name in (*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"):
        if form == "python":
            batch = {
                "batch_label": name,
                "labels": labels,
                "data": rows,
                "filenames": [f"{n}.png" for n in range(len(labels))],
            }
            (held / name).write_bytes(pickle.dumps(batch, protocol=2))
            official_batch(held / name)
        else:
            content = np.column_stack([np.array(labels, np.uint8), rows])
            (held / f"{name}.bin").write_bytes(content.tobytes())
    return folder


def official_batch(path: Path) -> None:
    """Let torchvision take a pickled batch for the official one: no other is read."""
    from torchvision.datasets import CIFAR10

    for listed in (CIFAR10.train_list, CIFAR10.test_list):
        for entry in listed:
            if entry[0] == path.name:
                entry[1] = md5(path)


def md5(path: Path) -> str:
    """Hash a file as torchvision does."""
    return hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()


@layout("svhn")
def svhn(folder: Path, *, each: int = 5) -> Path:
    """Write SVHN's two .mat files with ``each`` pictures a class; the digit 0 is labelled 10."""
    from scipy.io import savemat
    from torchvision.datasets import SVHN

    folder.mkdir(parents=True, exist_ok=True)
    digits = list(range(10)) * each
    pixels = small_pictures(digits).transpose(1, 2, 3, 0)
    labels = np.array([digit or 10 for digit in digits], np.uint8)[:, None]
    for part in ("train", "test"):
        savemat(folder / f"{part}_32x32.mat", {"X": pixels, "y": labels}, do_compression=True)
        # Only files whose MD5 torchvision knows are read.
        SVHN.split_list[part][2] = md5(folder / f"{part}_32x32.mat")
    return folder


@layout("mnist")
def mnist(folder: Path, *, each: int = 10, packed: bool = False) -> Path:
    """Write MNIST's idx files with ``each`` digits a class for training and one for the test.

    Args:
        folder: the root; the files go into MNIST/raw.
        each: training digits a class.
        packed: True writes them as .gz, as they are on the web.
    """
    raw = folder / "MNIST" / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    for name, labels in (("train", list(range(10)) * each), ("t10k", list(range(10)))):
        pixels = small_pictures(labels, side=28)[..., 0]
        images = struct.pack(">IIII", 0x803, len(labels), 28, 28) + pixels.tobytes()
        digits = struct.pack(">II", 0x801, len(labels)) + bytes(labels)
        for kind, content in (("images-idx3", images), ("labels-idx1", digits)):
            path = raw / f"{name}-{kind}-ubyte"
            if packed:
                path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(content))
            else:
                path.write_bytes(content)
    return folder


@layout("biased-mnist", "two-squares-mnist")
def many_digits(folder: Path) -> Path:
    """Write MNIST's idx files with enough digits for one in a hundred to differ."""
    return mnist(folder, each=20)


@layout("cats-vs-dogs")
def cats_dogs(
    folder: Path, *, each: int = 10, form: str = "raw", tested: Sequence[int] = ()
) -> Path:
    """Write Cats vs Dogs with ``each`` pictures an animal.

    Args:
        folder: the root.
        each: pictures an animal.
        form: "raw" (the paper's code), "train" (Kaggle) or "PetImages" (Microsoft).
        tested: numbers that cat_idx.txt and dog_idx.txt list; no lists when empty.
    """
    for label, animal in enumerate(("cat", "dog")):
        for n in range(each):
            name = f"{animal}.{n}.jpg"
            if form == "PetImages":
                name = f"{animal.capitalize()}/{n}.jpg"
            picture(folder / form / name, label=8 * label, size=(50 + n, 40))
        if tested:
            lines = "".join(f"{n}.jpg\n" for n in tested)
            (folder / form / f"{animal}_idx.txt").write_text(lines)
    return folder


@layout("stamped-pets")
def stamped_pets(folder: Path, *, each: int = 16, form: str = "torchvision") -> Path:
    """Write ``each`` pictures of every breed that is taken, and one of some others.

    Args:
        folder: the root.
        each: pictures a breed.
        form: "torchvision" (oxford-iiit-pet with lists and trimaps, on which a cat with its edge
            fills the left half and the lower third) or "folders" (long_haired and short_haired).
    """
    from masktune.datasets.pets import BREEDS, LONG, SHORT

    held = folder / "oxford-iiit-pet"
    lists: dict[str, list[str]] = {"trainval": [], "test": []}
    trimap = np.full((30, 40), 2, np.uint8)
    trimap[:, :20], trimap[:, 18:20], trimap[20:] = 1, 3, 1
    for breed in (*BREEDS, "Sphynx", "Siamese", "beagle"):
        label = BREEDS.get(breed, 0)
        for n in range(1, 1 + (each if breed in BREEDS else 1)):
            name = f"{breed}_{n}"
            if form == "folders":
                picture(folder / (LONG, SHORT)[label] / f"{name}.jpg", label=label)
                continue
            picture(held / "images" / f"{name}.jpg", label=label)
            lists["test" if n % 2 else "trainval"].append(f"{name} 1 1 1\n")
            path = held / "annotations" / "trimaps" / f"{name}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(trimap).save(path)
    if form != "folders":
        for part, lines in lists.items():
            (held / "annotations" / f"{part}.txt").write_text("".join(lines))
    return folder
