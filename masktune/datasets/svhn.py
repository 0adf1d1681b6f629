"""Street View House Numbers, cropped digits, in the .mat files of their home page."""

from pathlib import Path

from masktune.data.arrays import Arrays, Pictures
from masktune.data.card import DatasetCard
from masktune.data.download import fetch
from masktune.data.settings import DataSettings
from masktune.errors import DataError
from masktune.files import home
from masktune.progress import Watcher

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


def read(root: Path | None, settings: DataSettings, watcher: Watcher) -> Arrays:
    """Read SVHN as torchvision does, which takes only the official files.

    Args:
        root: the folder that holds both files; None downloads them.
        settings: not used here.
        watcher: hears "download".
    """
    del settings
    # Imported where it is used: it takes longer than PyTorch.
    from torchvision.datasets import SVHN

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
        f"Read as: cropped digits, {len(train.labels):,} training and {len(test.labels):,} test "
        "pictures; label 10 is the digit 0."
    )
    return Arrays(train=train, tests={"test": test}, findings=(finding,))


def _pictures(folder: Path, part: str) -> Pictures:
    import torch
    from torchvision.datasets import SVHN

    try:
        found = SVHN(str(folder), split=part)
    except RuntimeError as error:  # its MD5 is another: nothing of it was read
        raise DataError(
            f"{folder / SVHN.split_list[part][1]} cannot be read as SVHN: it is not the official "
            "file.",
            "Download it again.",
        ) from error
    return Pictures(torch.from_numpy(found.data).contiguous(), torch.from_numpy(found.labels))
