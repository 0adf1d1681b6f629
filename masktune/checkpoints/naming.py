"""From the names in a file to the names of an architecture."""

import re
from collections.abc import Callable, Iterable, Iterator

PREFIXES = (
    "module.", "_orig_mod.", "model.", "network.", "backbone.", "net.", "encoder.", "attacker.",
    "feature_extractor.", "featurizer.", "classifier.", "algorithm.", "0.", "1.",
)  # fmt: skip
"""What wrappers put before the names of the model inside them."""

EXTRA = re.compile(
    r"^origin/|(^|\.)(n_averaged$|num_batches_tracked$|(normalizer|normalize|normalise)\."
    r"|0\.(mean|std)$|AuxLogits\.|aux1\.|aux2\.|aux_classifier\.)"
)
"""Tensors that come and go: averaging and batch counts, normalisation, heads used in training."""

_DENSE = re.compile(r"(denselayer\d+\.(?:norm|relu|conv))\.([12])\.")


def is_extra(name: str) -> bool:
    """Tell whether a model can be whole without this tensor.

    >>> is_extra("bn1.num_batches_tracked"), is_extra("AuxLogits.fc.weight"), is_extra("fc.weight")
    (True, True, False)
    """
    return EXTRA.search(name) is not None


def modern(name: str) -> str:
    """Give today's name of a tensor in torchvision's DenseNet files, which are from 2017.

    >>> modern("features.denseblock1.denselayer1.norm.1.weight")
    'features.denseblock1.denselayer1.norm1.weight'
    """
    return _DENSE.sub(r"\1\2.", name)


def renamings(names: Iterable[str]) -> Iterator[dict[str, str]]:
    """Guess how names in a file lose what wrappers added, most careful guess first.

    First a prefix is taken off only while all names have it, then from each name that has one.
    Two names may become one: robustness stores its network twice.

    Yields:
        {name in the file: name without prefix}; a caller takes the first that fits.
    """
    current = {name: modern(name) for name in names}
    yield current
    while True:
        prefix = next((p for p in PREFIXES if _all_have(current.values(), p)), None)
        if prefix is None:
            break
        current = _renamed(current, lambda name, p=prefix: name.removeprefix(p))  # type: ignore[misc]
        yield current
    # Transformers have an encoder of their own, and many networks a classifier: first without.
    own = ("encoder.", "classifier.", "0.", "1.")
    for prefixes in (tuple(p for p in PREFIXES if p not in own), PREFIXES):
        loose = _renamed(current, lambda name, p=prefixes: _stripped(name, p))  # type: ignore[misc]
        if loose != current:
            yield loose


def _all_have(names: Iterable[str], prefix: str) -> bool:
    judged = [name for name in names if not is_extra(name)]
    return bool(judged) and all(name.startswith(prefix) for name in judged)


def _renamed(names: dict[str, str], rename: Callable[[str], str]) -> dict[str, str]:
    return {name: rename(inner) for name, inner in names.items()}


def _stripped(name: str, prefixes: tuple[str, ...]) -> str:
    while True:
        shorter = next((name.removeprefix(p) for p in prefixes if name.startswith(p)), name)
        if shorter == name:
            return name
        name = shorter
