"""CIFAR-10, in the layouts it is passed round in: Python batches, binary batches, one .npz file."""

from pathlib import Path

from masktune.data.arrays import Arrays, Pictures
from masktune.data.card import DatasetCard
from masktune.data.download import fetch, unpack_tar
from masktune.data.normalisations import NORMALISATIONS
from masktune.data.settings import DataSettings
from masktune.errors import DataError
from masktune.files import alone, home
from masktune.progress import Watcher

PYTHON, BINARY = "cifar-10-batches-py", "cifar-10-batches-bin"
_LAYOUTS = (("Python batches", PYTHON, ""), ("binary batches", BINARY, ".bin"))

CARD = DatasetCard(
    key="cifar10",
    title="CIFAR-10",
    summary=(
        "Small photographs of ten kinds of things, for selective classification. Normalised with "
        "the ImageNet mean and standard deviation, as the public CIFAR ResNets are."
    ),
    classes=(
        *("airplane", "automobile", "bird", "cat", "deer"),
        *("dog", "frog", "horse", "ship", "truck"),
    ),
    attributes=(),
    size=(32, 32),
    tests=("test",),
    recipe="cifar10-selective",
    bundled=False,
    layout=(
        f"ROOT/{PYTHON}/ with data_batch_1 to data_batch_5 and test_batch, as torchvision keeps "
        f"them; or ROOT/{BINARY}/ with the same names ending in .bin; or an .npz file, or a folder "
        "with one, of x_train, y_train, x_test and y_test, pictures (N, 32, 32, 3) uint8"
    ),
    source="Krizhevsky 2009, https://www.cs.toronto.edu/~kriz/cifar.html",
    download="163 MB",
    reads_file=True,
    licence="none stated; commonly used for research",
    mean=NORMALISATIONS["imagenet"][0],
    std=NORMALISATIONS["imagenet"][1],
)


def read(root: Path | None, settings: DataSettings, watcher: Watcher) -> Arrays:
    """Read CIFAR-10.

    Args:
        root: an .npz file, or a folder as the card says; None downloads.
        settings: not used here.
        watcher: hears "download".
    """
    del settings
    train, test, layout = _read(_downloaded(home() / "data", watcher) if root is None else root)
    finding = (
        f"Read as: {layout}, {len(train.labels):,} training and {len(test.labels):,} test pictures."
    )
    return Arrays(train=train, tests={"test": test}, findings=(finding,))


def _downloaded(folder: Path, watcher: Watcher) -> Path:
    """Fetch and unpack CIFAR-10 from its home page into ``folder``, unless it is there."""
    # Imported where it is used: it takes longer than PyTorch.
    from torchvision.datasets import CIFAR10

    archive = folder / CIFAR10.filename
    with alone(folder / CARD.key):
        if not (folder / PYTHON).is_dir():
            fetch(CIFAR10.url, to=archive, md5=CIFAR10.tgz_md5, watcher=watcher)
            unpack_tar(archive, member=PYTHON, into=folder)
            archive.unlink()
    return folder


def _read(root: Path) -> tuple[Pictures, Pictures, str]:
    """Give training and test pictures, and the name of the layout they were found in."""
    from masktune.datasets.cifar_files import read_batches, read_npz

    if root.is_file():
        return *read_npz(root), f"one file, {root.name}"
    for title, name, suffix in _LAYOUTS:
        files = [f"data_batch_{n}{suffix}" for n in range(1, 6)] + [f"test_batch{suffix}"]
        for folder in (root, root / name):
            missing = [file for file in files if not (folder / file).is_file()]
            if len(missing) == len(files):
                continue
            if missing:
                raise DataError(
                    f"CIFAR-10 is incomplete: {', '.join(str(folder / m) for m in missing)} "
                    f"{'is' if len(missing) == 1 else 'are'} missing.",
                    "Unpack the whole archive again.",
                )
            paths = [folder / file for file in files]
            return read_batches(paths[:-1]), read_batches(paths[-1:]), title
    stored = sorted(root.glob("*.npz"))
    if len(stored) > 1:
        raise DataError(
            f"{root} holds {len(stored)} .npz files: {', '.join(p.name for p in stored[:3])}.",
            "Give one of them as --root.",
        )
    if not stored:
        raise DataError(
            f"{root} holds no CIFAR-10: neither {root / PYTHON / 'data_batch_1'} nor "
            f"{root / BINARY / 'data_batch_1.bin'} nor an .npz file.",
            f"Give the folder that holds {PYTHON}, or leave --root out to download it.",
        )
    return *read_npz(stored[0]), f"one file, {stored[0].name}"
