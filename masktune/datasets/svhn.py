"""Street View House Numbers, cropped digits, in the .mat files of their home page."""

import zlib
from pathlib import Path

import numpy as np
import torch

from masktune.data.arrays import Pictures, checked, label_free
from masktune.data.card import DatasetCard
from masktune.data.download import fetch
from masktune.data.types import DatasetBundle
from masktune.errors import DataError
from masktune.files import home
from masktune.progress import Watcher

MOST_PICTURES = 700_000  # the largest official file, "extra", has 531,131

CARD = DatasetCard(
    key="svhn",
    title="SVHN",
    summary=(
        "Digits cropped from photographs of house numbers, for selective classification. Pixels "
        "in [0, 1] are not normalised, as in the paper's code."
    ),
    classes=tuple("0123456789"),
    attributes=(),
    size=(32, 32),
    tests=("test",),
    recipe="svhn-selective",
    bundled=False,
    layout="ROOT/train_32x32.mat and ROOT/test_32x32.mat, as torchvision keeps them",
    source="Netzer et al. 2011, http://ufldl.stanford.edu/housenumbers",
    download="235 MB",
    licence="non-commercial use (as stated)",
)


def load_svhn(root: Path | None, seed: int, watcher: Watcher) -> DatasetBundle:
    """Read SVHN; a fifth of the training pictures validates.

    Args:
        root: the folder that holds both files; None downloads them.
        seed: decides which pictures validate.
        watcher: hears "download".
    """
    folder = _downloaded(home() / "data" / "svhn", watcher) if root is None else root
    paths = [folder / f"{part}_32x32.mat" for part in ("train", "test")]
    if missing := [str(path) for path in paths if not path.is_file()]:
        raise DataError(
            f"SVHN needs {' and '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} "
            "missing.",
            f"Download {' and '.join(Path(m).name for m in missing)} from "
            "http://ufldl.stanford.edu/housenumbers, or leave --root out.",
        )
    train, test = map(_read, paths)
    finding = (
        f"Read as: cropped digits, {len(train.labels):,} training and {len(test.labels):,} test "
        "pictures; label 10 is the digit 0."
    )
    return label_free(CARD, train, tests={"test": test}, seed=seed, findings=(finding,))


def _downloaded(folder: Path, watcher: Watcher) -> Path:
    # Imported where it is used: it takes longer than PyTorch.
    from torchvision.datasets import SVHN

    for part in ("train", "test"):
        url, name, md5 = SVHN.split_list[part]
        fetch(url, to=folder / name, md5=md5, watcher=watcher)
    return folder


def _read(path: Path) -> Pictures:
    """Read X (32, 32, 3, N) uint8 and y (N, 1), 1 .. 10, of a .mat file."""
    from scipy.io import loadmat, whosmat
    from scipy.io.matlab import MatReadError

    try:
        # The shapes come first, without the pixels: a small file may claim any size.
        claims = {name: (shape, kind) for name, shape, kind in whosmat(str(path))}
        shape, kind = claims["X"]
        if shape[:3] != (32, 32, 3) or len(shape) != 4 or kind != "uint8":
            raise ValueError(f"X is {shape} {kind}, not (32, 32, 3, N) uint8")  # noqa: TRY301
        if shape[3] > MOST_PICTURES or int(np.prod(claims["y"][0])) != shape[3]:
            raise ValueError(f"X is {shape} and y is {claims['y'][0]}")  # noqa: TRY301
        content = loadmat(str(path), variable_names=["X", "y"])
    except (
        MatReadError,
        OSError,
        ValueError,
        TypeError,
        KeyError,
        IndexError,
        EOFError,
        NotImplementedError,
        zlib.error,
    ) as error:
        reason = f"it has no {error.args[0]}" if isinstance(error, KeyError) else str(error)
        raise DataError(
            f"{path} cannot be read as SVHN: {reason.rstrip('.')}.", "Download it again."
        ) from error
    pixels = np.ascontiguousarray(content["X"].transpose(3, 2, 0, 1))
    labels = content["y"].reshape(-1).astype(np.int64)
    labels[labels == 10] = 0
    pictures = Pictures(torch.from_numpy(pixels), torch.from_numpy(labels))
    return checked(pictures, classes=10, path=path)
