"""Street View House Numbers, cropped digits, in the .mat files of their home page."""

from pathlib import Path

import torch
from torchvision.datasets import SVHN

from masktune.data.card import DataSettings
from masktune.data.download import fetch
from masktune.data.types import Arrays, Split, in_memory
from masktune.errors import DataError
from masktune.files import home
from masktune.progress import Watcher


def read(root: Path | None, _settings: DataSettings, watcher: Watcher) -> Arrays:
    """Read SVHN as torchvision does, which takes only the official files; None downloads them."""
    folder = home() / "data" / "svhn" if root is None else root
    files = {part: SVHN.split_list[part] for part in ("train", "test")}
    for url, name, md5 in files.values():
        if root is None:
            fetch(url, to=folder / name, md5=md5, watcher=watcher)
    if missing := [name for _, name, _ in files.values() if not (folder / name).is_file()]:
        raise DataError(
            f"SVHN needs {' and '.join(str(folder / name) for name in missing)}, which "
            f"{'is' if len(missing) == 1 else 'are'} missing.",
            f"Download {' and '.join(missing)} from http://ufldl.stanford.edu/housenumbers, or "
            "leave --root out.",
        )
    train, test = (_pictures(folder, part) for part in ("train", "test"))
    finding = (
        f"Read as: cropped digits, {len(train):,} training and {len(test):,} test "
        "pictures; label 10 is the digit 0."
    )
    return Arrays(train=train, tests={"test": test}, findings=(finding,))


def _pictures(folder: Path, part: str) -> Split:
    try:
        found = SVHN(str(folder), split=part)
    except RuntimeError as error:  # its MD5 is another: nothing of it was read
        raise DataError(
            f"{folder / SVHN.split_list[part][1]} cannot be read as SVHN: it is not the official "
            "file.",
            "Download it again.",
        ) from error
    pixels, labels = torch.from_numpy(found.data).contiguous(), torch.from_numpy(found.labels)
    return in_memory(part, pixels, labels)
