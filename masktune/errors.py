"""What a user can put right: one problem, one remedy."""

from collections.abc import Iterable, Sequence


class MaskTuneError(Exception):
    """Says what went wrong, then what to do about it.

    >>> error = MaskTuneError("k is nan.", "Give a number from 0 to 3.")
    >>> error.problem, error.remedy
    ('k is nan.', 'Give a number from 0 to 3.')
    """

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(f"{problem} {remedy}".rstrip())
        self.problem = problem
        self.remedy = remedy


class ConfigError(MaskTuneError):
    """A setting that cannot be used."""


def check_choice(what: str, word: str, choices: Iterable[str]) -> None:
    """Refuse a word that is none of the choices."""
    if word not in choices:
        raise ConfigError(f"There is no {what} '{word}'.", f"Choose {', '.join(choices)}.")


def shortened(names: Sequence[str], *, most: int = 10) -> str:
    """Name the first few and count the others.

    >>> shortened(["ant", "bee", "cow"], most=2)
    'ant, bee and 1 more'
    """
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most:,} more" if len(names) > most else shown


class DataError(MaskTuneError):
    """A dataset that is missing, incomplete or unusable."""


class ModelError(MaskTuneError):
    """A model or checkpoint that does not fit.

    Attributes:
        choices: architectures to name, () where it may be any; None where a name does not help.
    """

    choices: tuple[str, ...] | None = None


class RunFolderError(MaskTuneError):
    """A run folder that cannot be written, or must not be."""


class Cancelled(BaseException):
    """Raised inside a run that somebody asked to stop; like Ctrl-C, not an error."""
