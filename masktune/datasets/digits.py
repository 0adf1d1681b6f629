"""Plain MNIST: ten digits, no planted clue."""

from pathlib import Path

from masktune.data.arrays import NO_ATTRIBUTE, Pictures, unattributed
from masktune.data.card import DatasetCard
from masktune.data.types import DatasetBundle, Split
from masktune.datasets.mnist import BIASED_70K, Digits, all_digits
from masktune.progress import Watcher

CARD = DatasetCard(
    key="mnist",
    title="MNIST, ten digits",
    summary="Handwritten digits, 0 to 9, without a planted clue.",
    classes=tuple("0123456789"),
    attributes=(),
    size=(28, 28),
    tests=("test",),
    recipe="mnist",
    bundled=False,
    download="11 MB",
    layout=BIASED_70K.layout,
    source=BIASED_70K.source,
    licence=BIASED_70K.licence,
)


def load_mnist(root: Path | None, seed: int, watcher: Watcher) -> DatasetBundle:
    """Read MNIST; a fifth of the training digits validates.

    Args:
        root: the folder that holds ``MNIST/raw``; None downloads.
        seed: decides which digits validate.
        watcher: hears "download".
    """
    parts = all_digits(root, seed, watcher=watcher)
    train, validation, test = (
        _split(name, part)
        for name, part in (
            ("train", parts.train),
            ("validation", parts.validation),
            ("test", parts.test),
        )
    )
    told = f"{len(validation):,} of the training pictures, chosen by the seed, validate."
    return DatasetBundle(
        card=CARD,
        train=train,
        validation=validation,
        tests={"test": test},
        findings=(
            f"Read as: MNIST/raw, {len(train) + len(validation):,} training and {len(test):,} test "
            "digits.",
            told,
            NO_ATTRIBUTE,
        ),
        set_aside=told,
    )


def _split(name: str, part: Digits) -> Split:
    pictures = part.pixels[:, None].repeat(1, 3, 1, 1)  # (N, 3, 28, 28)
    return unattributed(name, Pictures(pictures, part.digits))
