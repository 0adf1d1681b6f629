"""The pictures of a run, read as its settings say."""

from dataclasses import replace
from typing import TYPE_CHECKING

from masktune.checkpoints.settings import same
from masktune.config import MASKTUNE, RunConfig, names_listed
from masktune.datasets.catalogue import load, title
from masktune.progress import Watcher, unwatched

if TYPE_CHECKING:  # which runs go together is told without PyTorch
    from masktune.data.types import DatasetBundle


def load_for(config: RunConfig, *, watcher: Watcher = unwatched) -> "DatasetBundle":
    """Read the dataset of a run; the watcher hears while files are checked or downloaded."""
    return load(
        config.dataset,
        root=config.root,
        seed=config.seed,
        frame=config.frame,
        normalise=config.normalise,
        attributes=config.attributes,
        class_names=None if config.class_names is None else names_listed(config.class_names),
        validation=config.validation,
        exceptions=config.exceptions,
        stamp=config.stamp,
        correlation=config.correlation,
        watcher=watcher,
    )


def title_of(config: RunConfig) -> str:
    """Return what the pictures of a run are called."""
    return config.title or title(config.dataset, config.root)


def same_start(one: RunConfig, other: RunConfig) -> bool:
    """Tell whether two runs tuned the same model before: they differ in how they tuned it only.

    What a rival trains by says nothing of the model before, where that was given.
    """
    first, second = (replace(config, rival=MASKTUNE) for config in (one, other))
    return same(first, second, "pictures", "model", "training")


def same_pictures(one: RunConfig, other: RunConfig, *, same_files: bool = False) -> bool:
    """Tell whether two runs see the same pictures in the same parts, in the same way.

    ``same_files`` says that their datasets have one fingerprint: then the seed made no difference.
    """
    return same(one, other, "pictures", but={"seed"} if same_files else ())


def same_parts(one: RunConfig, other: RunConfig) -> bool:
    """Tell whether two runs have the same pictures in the same parts, however they see them.

    A number in a part then names the same picture of both.
    """
    return same(one, other, "pictures", but={"frame", "normalise", "attributes", "class_names"})
