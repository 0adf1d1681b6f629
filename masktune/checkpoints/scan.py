"""What would this pickle do? Found out without doing it."""

import io
import pickle
from dataclasses import dataclass, field
from typing import Any, ClassVar

MAX_PICKLE = 16 * 2**20
"""The longest pickle that is read, in bytes; the tensors themselves lie outside it."""

_ITEM_SIZES = {
    "Double": 8, "Float": 4, "Half": 2, "BFloat16": 2, "Long": 8, "Int": 4, "Short": 2,
    "ComplexFloat": 8, "ComplexDouble": 16, "QInt32": 4,
}  # fmt: skip
"""Bytes of a number, where it has more than one."""


@dataclass(slots=True)
class Scan:
    """What a pickle asks for.

    Attributes:
        names: classes and functions it names, as "module.name".
        storages: bytes of each storage of numbers it claims to need, by key.
        largest: the largest whole number it hands to a class or function.
    """

    names: set[str] = field(default_factory=set)
    storages: dict[str, int] = field(default_factory=dict)
    largest: int = 0

    @property
    def claimed(self) -> int:
        """Bytes it needs; a number handed to bytearray() or Tensor() is a size too."""
        return max(sum(self.storages.values()), self.largest)


class _Inert:
    """Stands for whatever a pickle names, and does nothing."""

    def __init__(self, name: str = "", scan: Scan | None = None) -> None:
        self.name = name
        self.scan = scan

    def __call__(self, *args: object) -> "_Inert":
        if self.scan is not None:
            whole = [a for a in args if isinstance(a, int)]
            self.scan.largest = max([self.scan.largest, *whole])
            # Bytes are written as latin1 text; any other codec can double them again and again.
            if self.name == "_codecs.encode" and args[1:] != ("latin1",):
                self.scan.names.add("_codecs.encode with a codec")
        return _Inert()

    def _ignore(self, *_: object) -> None: ...

    __setstate__ = __setitem__ = append = extend = _ignore


# The Python version on purpose: the C one makes room for as many memo entries as one opcode of
# five bytes says, gigabytes of them.
class _Scanner(pickle._Unpickler):
    stack: list[Any]

    def __init__(self, file: io.BytesIO, scan: Scan) -> None:
        super().__init__(file, encoding="latin1")
        self.scan = scan

    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401 (as in pickle)
        self.scan.names.add(f"{module}.{name}")
        return _Inert(f"{module}.{name}", self.scan)

    def get_extension(self, code: int) -> None:
        raise pickle.UnpicklingError(f"extension {code}")

    def persistent_load(self, key: Any) -> Any:  # noqa: ANN401 (as in pickle)
        if key[0] == "module":  # how legacy files name the class of a pickled model
            return key[1]
        kind, storage, name, _, count = key[:5]
        if kind != "storage" or not isinstance(count, int):
            raise pickle.UnpicklingError("not a storage")
        item = storage.name.rpartition(".")[2].removesuffix("Storage")
        claim = count * _ITEM_SIZES.get(item, 1)
        self.scan.storages[str(name)] = max(claim, self.scan.storages.get(str(name), 0))
        return _Inert()

    # A new object is a call of its class; pickle would ask the class itself for one.
    def load_newobj(self) -> None:
        args = self.stack.pop()
        self.stack.append(self.stack.pop()(*args))

    def load_newobj_ex(self) -> None:
        named = self.stack.pop()
        args = self.stack.pop()
        self.stack.append(self.stack.pop()(*args, *named.values()))

    dispatch: ClassVar[dict[int, Any]] = {
        **pickle._Unpickler.dispatch,
        pickle.NEWOBJ[0]: load_newobj,
        pickle.NEWOBJ_EX[0]: load_newobj_ex,
    }
    # Makes room for as many bytes as it says; PyTorch does not write it.
    del dispatch[pickle.BYTEARRAY8[0]]


def scan_pickles(content: bytes, count: int = 1) -> Scan:
    """Return what the first ``count`` pickles of ``content`` ask for; nothing they name is called.

    A pickle that is cut off or nonsense raises one error or other.
    """
    scan = Scan()
    file = io.BytesIO(content)
    for _ in range(count):
        # PyTorch's own files hold a number first; only objects name classes.
        _Scanner(file, scan).load()
    return scan
