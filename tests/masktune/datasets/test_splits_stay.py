"""Which picture is in which part at which position never changes: heat is kept by position."""

import hashlib
import json
from pathlib import Path

import pytest

from masktune.datasets.catalogue import load
from tests import layouts

KNOWN = json.loads((Path(__file__).parent / "splits.json").read_text("utf-8"))
"""First 16 hexadecimal digits by case, computed at commit c518f7a."""


def own_folders(folder):
    for label, name in enumerate(("cat", "dog")):
        for n in range(11):
            layouts.picture(folder / name / f"{n}.png", label=label)
    return folder


def own_list(folder):
    rows = []
    for n in range(24):
        layouts.picture(folder / "images" / f"{n}.png", label=n % 3)
        rows.append((f"{n}.png", n % 3, n % 2))
    layouts.table(folder / "labels.csv", ("filename", "label", "attribute"), rows)
    return folder


MADE = {
    "biased-mnist": ("biased-mnist", lambda folder: layouts.mnist(folder, each=20)),
    "two-squares-mnist": ("two-squares-mnist", lambda folder: layouts.mnist(folder, each=20)),
    "mnist": ("mnist", layouts.mnist),
    "waterbirds": ("waterbirds", layouts.waterbirds),
    "waterbirds/listed": (
        "waterbirds",
        lambda folder: layouts.waterbirds(folder, form="metadata_waterbirds.csv"),
    ),
    "waterbirds/corrected": (
        "waterbirds",
        lambda folder: layouts.waterbirds(folder, form="corrected"),
    ),
    "celeba": ("celeba", layouts.celeba),
    "celeba/txt": ("celeba", lambda folder: layouts.celeba(folder, form="txt")),
    "celeba/metadata": ("celeba", lambda folder: layouts.celeba(folder, form="metadata.csv")),
    "imagenet9": ("imagenet9", layouts.imagenet9),
    "imagenet9/untrained": (
        "imagenet9",
        lambda folder: layouts.imagenet9(folder, each=6, training=False),
    ),
    "imagenet9-1000": ("imagenet9-1000", layouts.imagenet9),
    "cifar10": ("cifar10", layouts.cifar10),
    "cifar10/binary": ("cifar10", lambda folder: layouts.cifar10(folder, form="binary")),
    "cifar10/npz": ("cifar10", lambda folder: layouts.cifar10(folder, form="npz")),
    "svhn": ("svhn", layouts.svhn),
    "cats-vs-dogs": ("cats-vs-dogs", layouts.cats_dogs),
    "cats-vs-dogs/listed": (
        "cats-vs-dogs",
        lambda folder: layouts.cats_dogs(folder, tested=(2, 5)),
    ),
    "cats-vs-dogs/pets": (
        "cats-vs-dogs",
        lambda folder: layouts.cats_dogs(folder, form="PetImages"),
    ),
    "folder": ("folder", own_folders),
    "folder/listed": ("folder", own_list),
}


def told(bundle, root=None):
    """Hash every part's name, labels, attributes and its files' names, or else its pixels."""
    digest = hashlib.sha256()
    for split in (bundle.train, bundle.validation, *bundle.tests.values()):
        digest.update(repr((split.name, split.labels.tolist(), split.attributes.tolist())).encode())
        if hasattr(split.images, "paths"):
            names = [path.relative_to(root).as_posix() for path in split.images.paths]
            digest.update(repr(names).encode())
        else:
            digest.update(split.images.batch(range(len(split))).numpy().tobytes())
    return digest.hexdigest()[:16]


@pytest.mark.parametrize("case", MADE)
def test_a_dataset_is_split_as_it_always_was(case, tmp_path):
    key, make = MADE[case]
    root = make(tmp_path)

    found = [told(load(key, root=root, seed=seed), root) for seed in (0, 3)]

    assert found == KNOWN[case]


@pytest.mark.parametrize("case", ["cifar10", "celeba", "folder"])
def test_validating_on_test_pictures_splits_as_it_always_did(case, tmp_path):
    key, make = MADE[case]
    root = make(tmp_path)

    assert told(load(key, root=root, validation="test"), root) == KNOWN[f"{case}/test"]


@pytest.mark.parametrize("key", ["biased-mnist-5k", "two-squares-mnist-5k"])
def test_the_bundled_digits_are_the_same_to_the_byte(key):
    assert [told(load(key, seed=seed)) for seed in (0, 3)] == KNOWN[key]


@pytest.mark.slow
@pytest.mark.parametrize("key", ["cows-and-camels", "cows-and-camels-stamp"])
def test_the_drawn_animals_are_the_same_to_the_byte(key):
    assert told(load(key)) == KNOWN[key]
