"""Why a checkpoint is not taken."""

from masktune.errors import ModelError


def printable(text: str) -> str:
    """Give text without control characters.

    >>> printable("a" + chr(27) + "[2Jb")
    'a?[2Jb'
    """
    return "".join(letter if letter.isprintable() else "?" for letter in text)


class RefusedError(ModelError):
    """A checkpoint that cannot be used, with what was found out about it before.

    Attributes:
        kind: what sort of file it is, in a word or two.
        arch: the architecture that comes closest, None where none was looked for.
        matched: how many tensors have the name and shape that ``arch`` asks for.
        missing: names of tensors that ``arch`` has and the file has not, or in another shape.
        unexpected: names of tensors in the file that ``arch`` has no place for.
    """

    def __init__(
        self,
        problem: str,
        remedy: str,
        *,
        kind: str,
        arch: str | None = None,
        matched: int = 0,
        missing: tuple[str, ...] = (),
        unexpected: tuple[str, ...] = (),
    ) -> None:
        # Names out of a hostile file could steer the terminal they are printed on.
        super().__init__(printable(problem), printable(remedy))
        self.kind = kind
        self.arch = arch
        self.matched = matched
        self.missing = missing
        self.unexpected = unexpected
