"""Tell whether a dataset is still the one that a run saw."""

import hashlib
import os

from masktune.data.images import TensorImages
from masktune.data.types import DatasetBundle

VERSION = "2:"
"""What a fingerprint begins with; those without it are of runs up to version 0.1.0."""


def fingerprint(bundle: DatasetBundle) -> str:
    """Return a text that differs when a picture was added, removed, renamed or labelled anew.

    Heat and predictions are kept by position, so any of these would pair them with other pictures.
    Of the files' names the beginning that all have in common does not count: the dataset may move
    as a whole. Of pictures in memory the pixels count, of files only the names.

    Returns:
        ``VERSION`` and 32 hexadecimal digits.
    """
    return VERSION + _digest(bundle, pixels=True)


def is_of(bundle: DatasetBundle, known: object) -> bool:
    """Tell whether ``known``, as some version kept it, is the fingerprint of a dataset."""
    if isinstance(known, str) and known.startswith(VERSION):
        return known == fingerprint(bundle)
    return known == _digest(bundle, pixels=False)


def _digest(bundle: DatasetBundle, *, pixels: bool) -> str:
    splits = (bundle.train, bundle.validation, *bundle.tests.values())
    files = [list(map(str, split.images.files)) for split in splits]
    every = [file for part in files for file in part]
    above = len(os.path.commonprefix(every))  # noqa: RUF071 (a list may mix absolute and relative)
    digest = hashlib.sha256(repr((bundle.card.classes, bundle.card.attributes)).encode())
    for split, part in zip(splits, files, strict=True):
        names = [file[above:] for file in part]
        digest.update(repr((split.name, len(split), names)).encode())
        digest.update(split.labels.numpy().tobytes())
        digest.update(split.attributes.numpy().tobytes())
        if pixels and isinstance(split.images, TensorImages):
            digest.update(split.images.pixels.contiguous().numpy().data)
    return digest.hexdigest()[:32]
