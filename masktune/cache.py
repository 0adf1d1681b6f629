"""What was made once and is needed again: bounded, and made by one thread only."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from threading import Lock, RLock
from typing import Any, TypeVar

Made = TypeVar("Made")


@dataclass(slots=True)
class _Entry:
    lock: Any = field(default_factory=RLock)  # a maker may ask for its own key again
    made: bool = False
    value: Any = None


class Cache:
    """Keeps what was used last; whoever comes while an entry is being made waits for it.

    Only the key's own lock is held meanwhile: other entries can be made and read.

    >>> kept = Cache(most=2)
    >>> kept.get("seven", lambda: 3 + 4), kept.get("seven", lambda: 0)
    (7, 7)
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Return the value of a key, made first where there is none.

        What ``make`` raises is raised here, and the next one to ask makes it again.
        """
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
            while len(self._entries) > self._most:
                self._entries.popitem(last=False)
        with entry.lock:
            if not entry.made:
                try:
                    entry.value = make()
                except BaseException:
                    with self._lock:
                        if self._entries.get(key) is entry:
                            del self._entries[key]
                    raise
                entry.made = True
            value: Made = entry.value
            return value

    def put(self, key: Hashable, value: object) -> None:
        """Keep a value that is there already."""
        self.get(key, lambda: value)

    def __contains__(self, key: Hashable) -> bool:
        """Tell whether a key has its value."""
        entry = self._entries.get(key)
        return entry is not None and entry.made

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()
