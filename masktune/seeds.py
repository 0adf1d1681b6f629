"""Named random streams: each use of chance has its own, so adding one never moves another."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

_turns = RLock()


def stream_seed(seed: int, name: str) -> int:
    """Give the 63-bit seed of the stream ``name`` of a run's ``seed``.

    >>> stream_seed(0, "split") == stream_seed(0, "split")
    True
    >>> stream_seed(0, "split") == stream_seed(0, "order/1")
    False
    """
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def stream(seed: int, name: str) -> torch.Generator:
    """Give a CPU generator for the stream ``name`` of a run's ``seed``."""
    import torch  # not above: the catalogue lists datasets, which plant clues by chance, without it

    return torch.Generator().manual_seed(stream_seed(seed, name))


@contextmanager
def isolated(seed: int, name: str) -> Iterator[None]:
    """Seed torch's global generators for code that reads them, and put them back afterwards.

    Weight initialisation and dropout cannot be handed a generator. There is one of them in a
    process, so threads take turns.
    """
    import torch

    devices = list(range(torch.cuda.device_count()))
    with _turns, torch.random.fork_rng(devices=devices):
        torch.manual_seed(stream_seed(seed, name))
        yield
