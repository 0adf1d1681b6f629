"""What is drawn and has not changed is not drawn again: one bounded cache for all sessions."""

import hashlib
import pickle
from collections.abc import Callable
from typing import TypeVar

from masktune.cache import Cache

Made = TypeVar("Made")

DRAWN = Cache(most=64)
"""Figures and sheets of pictures."""

COMPUTED = Cache(most=64)
"""What takes long to compute and little to keep: drawings do not push it out."""


def once(make: Callable[..., Made], *inputs: object, **named: object) -> Made:
    """Return what a function makes of its inputs; inputs of the same content give the same object.

    Args:
        make: gives the same for the same inputs, something that nobody changes afterwards.
        inputs: values that can be pickled, not too large: they are hashed each time.
        named: likewise.
    """
    content = hashlib.sha256(pickle.dumps((inputs, named))).digest()
    key = (make.__module__, make.__qualname__, content)
    return DRAWN.get(key, lambda: make(*inputs, **named))
