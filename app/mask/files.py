"""What leaves the Mask page as files: keep maps and masked pictures at the present k."""

from collections.abc import Iterator, Sequence

from app import loaded as cached
from app.joined import joined
from app.mask.sheet import Beside, Choice, hiding, hiding_all
from masktune.cache import Cache
from masktune.data.preprocess import Keeper
from masktune.data.types import Split
from masktune.heat.store import HeatStore
from masktune.progress import Watcher, unwatched
from masktune.runs.export import hidden_files, zipped

MOST_BYTES = 2**30
"""Of all files together, about, that are held in memory until the browser has them."""

_ZIPS = Cache(most=1)


def read_me(choice: Choice, k: float) -> str:
    """Say what the files are and how they were made."""
    subject = choice.subject
    return (
        "keep/: white pixels survive, black ones are hidden.\n"
        "masked/: what a finetune at this threshold would show the model in its first round.\n"
        "index.csv: which training picture each file belongs to, and the share of its pixels that "
        "is hidden.\n\n"
        f"dataset {subject.dataset}, model {cached.model_path(subject).name}, {choice.method} at "
        f"layer {choice.layer}, k = {k:g}, mean and sigma over {choice.statistics} heat, "
        f"{'all but the hot part hidden, ' if choice.keeps_hot else ''}"
        f"filled: {choice.fill}\n"
    )


def sheet_zip(columns: Sequence[Beside], positions: tuple[int, ...], k: float) -> bytes:
    """Return the files of the sheet's pictures as a ZIP; several columns have a folder each."""

    def files() -> Iterator[tuple[str, bytes]]:
        for number, one in enumerate(columns, start=1):
            folder = f"column-{number}/" if len(columns) > 1 else ""
            few = cached.sample(one.choice.subject, positions)
            keep = hiding(one.choice, positions, k, one.store)
            text = f"{one.title}\n\n" if one.title else ""
            for name, content in _files(one.choice, k, few, keep, text, numbers=positions):
                yield folder + name, content

    return zipped(files())


def _files(
    choice: Choice,
    k: float,
    split: Split,
    keep: Keeper,
    text: str = "",
    *,
    numbers: Sequence[int] | None = None,
    watcher: Watcher = unwatched,
) -> Iterator[tuple[str, bytes]]:
    yield from hidden_files(
        keep,
        split,
        card=cached.bundle(choice.subject).card,
        numbers=numbers,
        read_me=text + read_me(choice, k),
        watcher=watcher,
    )


def largest(choice: Choice) -> int:
    """Return how many bytes the files of all training pictures have at most, about."""
    data = cached.bundle(choice.subject)
    height, width = data.card.size
    return len(data.train) * height * width * 4  # a mask and three colours, as if not compressed


def has_whole(choice: Choice, k: float) -> bool:
    """Tell whether the files of all training pictures are made already."""
    return _key(choice, k) in _ZIPS


def whole_zip(choice: Choice, k: float, store: HeatStore, *, watcher: Watcher) -> bytes:
    """Return the files of all training pictures as a ZIP; the store has their heat."""
    train = cached.bundle(choice.subject).train

    def make(watch: Watcher) -> bytes:
        keep = hiding_all(choice, k, store)
        return zipped(_files(choice, k, train, keep, watcher=watch))

    return joined(_ZIPS, _key(choice, k), make, watcher=watcher)


def _key(choice: Choice, k: float) -> tuple[object, ...]:
    how = (choice.method, choice.layer, choice.statistics, choice.keeps_hot, choice.fill)
    return cached.known(choice.subject), choice.subject.seed, *how, k
