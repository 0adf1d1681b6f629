"""What is known about a dataset before any picture is read."""

from dataclasses import dataclass, fields
from typing import Literal, NamedTuple

from masktune.errors import ConfigError

UNKNOWN = -1
"""The attribute of an example whose dataset records none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetCard:
    """What is known about a dataset before any picture is read.

    Attributes:
        key: name on the command line.
        title: name on the page.
        summary: what it is and which clue it holds, one or two sentences.
        classes: class names by label.
        attributes: names of the possibly spurious thing by number; empty when none is recorded.
        size: (H, W) of the frame the model sees.
        tests: names of its test sets.
        recipe: the recipe a run uses unless told otherwise.
        bundled: True when it needs no download and no folder.
        layout: which files its root must hold; empty when bundled.
        pool: for models of other classes, the number of ``classes`` that each logit stands for; the
            last of ``classes`` then is "none of these", and no picture is of it.
        marks: what a folder that holds it has, any of them; see ``masktune.datasets.recognise``.
        download: how much is fetched without a root, such as "163 MB"; empty when nothing can be.
        get: what to do without a root where nothing can be fetched.
        reads_file: True when its root may be a file.
        in_files: True when each picture stays in a file of its own, so that a list can name it.
        heeds: those of ``DataSettings`` that decide its pictures, beside the seed.
        source: where the pictures come from.
        licence: as stated by the source.
        mean: per channel, subtracted from [0, 1] pixels.
        std: per channel, divided by.
    """

    key: str
    title: str
    summary: str
    classes: tuple[str, ...]
    attributes: tuple[str, ...] = ()
    size: tuple[int, int]
    tests: tuple[str, ...] = ("test",)
    recipe: str
    bundled: bool = False
    layout: str = ""
    source: str
    licence: str
    mean: tuple[float, float, float] = (0.0, 0.0, 0.0)
    std: tuple[float, float, float] = (1.0, 1.0, 1.0)
    pool: tuple[int, ...] = ()
    marks: tuple[str, ...] = ()
    download: str = ""
    get: str = ""
    reads_file: bool = False
    in_files: bool = False
    heeds: tuple[str, ...] = ()


Validation = Literal["own", "test"]
"""What validates: the dataset's own part (drawn from training where it has none), or test half."""


Exceptions = Literal["random", "authors"]
"""Which pictures of a class go without its clue: any by chance, or, as in the authors' code, those
of one kind."""

Stamp = Literal["two-sided", "one-sided", "none"]
"""What is planted on photographs: a stamp of its own on each class, one on the first class only,
or nothing."""

CORRELATED = 0.99
"""Share of a class that carries its stamp in training, where nothing else is said."""


def check_correlation(share: float) -> None:
    """Refuse a share of a class that cannot carry the class's clue."""
    if not 0.5 <= share <= 1:
        raise ConfigError(
            f"The correlation is {share}.",
            "Give the share of a class that carries its stamp, from 0.5 (by chance) to 1 (all).",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSettings:
    """What decides the pictures of a dataset that are made or chosen by chance.

    All heed the seed; of the others a card names those that its dataset heeds.
    """

    seed: int = 0
    exceptions: Exceptions = "random"
    stamp: Stamp = "two-sided"
    correlation: float = CORRELATED


HEEDABLE = tuple(field.name for field in fields(DataSettings) if field.name != "seed")
"""What a card may name as heeded: each is an option of a run."""


class Skipped(NamedTuple):
    """A file that was left out, and why, such as ("a/b.jpg", "it ends too early")."""

    path: str
    reason: str
