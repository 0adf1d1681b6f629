"""Tell whether a dataset is still the one that a run saw."""

import hashlib
import os

from masktune.data.images import FileImages
from masktune.data.types import DatasetBundle, Split


def fingerprint(bundle: DatasetBundle) -> str:
    """Give a text that differs when a picture was added, removed, renamed or labelled anew.

    Heat and predictions are kept by position, so any of these would pair them with other pictures.
    Of the files' names the beginning that all have in common does not count: the dataset may move
    as a whole.

    Returns:
        32 hexadecimal digits.
    """
    splits = (bundle.train, bundle.validation, *bundle.tests.values())
    files = [_files(split) for split in splits]
    every = [file for part in files for file in part]
    above = len(os.path.commonprefix(every))  # noqa: RUF071 (a list may mix absolute and relative)
    digest = hashlib.sha256(repr((bundle.card.classes, bundle.card.attributes)).encode())
    for split, part in zip(splits, files, strict=True):
        names = [file[above:] for file in part]
        digest.update(repr((split.name, len(split), names)).encode())
        digest.update(split.labels.numpy().tobytes())
        digest.update(split.attributes.numpy().tobytes())
    return digest.hexdigest()[:32]


def _files(split: Split) -> list[str]:
    """Name the files of a split; none for pictures that are in memory only."""
    images = split.images
    return [str(path) for path in images.paths] if isinstance(images, FileImages) else []
