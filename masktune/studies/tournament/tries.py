"""Settings of methods that a tournament tries, beside thresholds and rates."""

from collections import Counter
from collections.abc import Mapping, Sequence

from masktune.checkpoints.settings import OPTIONS
from masktune.config import Strategy, Value
from masktune.errors import ConfigError

_HIDDEN: frozenset[Strategy] = frozenset({"heat", "random", "none"})
"""What MaskTune and its controls hide."""

Tries = Mapping[str, tuple[Value, ...]]
"""Values to be tried, by the options' names."""

Tried = tuple[tuple[str, Value], ...]
"""One combination of them, as names and values."""

TRIABLE = tuple(
    name
    for name, option in OPTIONS.items()
    if option.rivals
    and name not in ("strategy", "k", "finetune_lr")  # which methods, ks and rates stand for
    and (not option.used_by or not option.used_by.isdisjoint(_HIDDEN))
)
"""Settings of methods that can be tried, by the options' names."""


def tries_of(text: str) -> dict[str, tuple[Value, ...]]:
    """Read which settings are to be tried, as the command line and the page have it.

    >>> tries_of("worst-share=0.1,0.5 start=scratch,erm")
    {'worst_share': (0.1, 0.5), 'start': ('scratch', 'erm')}

    Raises:
        ConfigError: it names no such settings.
    """
    found: dict[str, tuple[Value, ...]] = {}
    for part in text.split():
        flag, _, listed = part.partition("=")
        values = listed.split(",")
        if not all(values):
            raise ConfigError(
                f"'{part}' names no setting with values to be tried.",
                "Write the setting, =, and its values with commas between and no space, such as "
                "worst-share=0.1,0.5.",
            )
        name = flag.removeprefix("--").replace("-", "_")
        _check_name(name)
        if name in found:
            raise ConfigError(f"{called(name)} is named twice.", "Give all of its values at once.")
        try:
            found[name] = tuple(OPTIONS[name].read(value) for value in values)
        except ValueError as error:
            raise ConfigError(
                f"{called(name)} is to be tried at '{listed}': {error}.",
                f"Give values with commas between: {OPTIONS[name].help}.",
            ) from error
    return found


def tries_words(tries: Tries) -> list[str]:
    """Write what is to be tried as ``tries_of`` reads it, a word a setting."""
    return [f"{called(name)}={','.join(map(exact, values))}" for name, values in tries.items()]


def called(name: str) -> str:
    """Return what a setting is called where it is tried: as on the command line, without dashes.

    >>> called("worst_share")
    'worst-share'
    """
    return OPTIONS[name].flag.removeprefix("--")


def check_tries(tries: Tries) -> None:
    """Refuse to try what is no setting of a method, no value or one value twice."""
    for name, values in tries.items():
        _check_name(name)
        if not values:
            raise ConfigError(f"{called(name)} has no value to be tried.", "Give some.")
        check_once(**{called(name): values})


def _check_name(name: str) -> None:
    if name not in TRIABLE:
        raise ConfigError(
            f"'{name.replace('_', '-')}' is no setting of a method that can be tried.",
            f"Choose among {', '.join(map(called, TRIABLE))}. Thresholds k and rates have lists of "
            "their own.",
        )


def exact(value: Value) -> str:
    """Write a value so that it reads back as the same.

    >>> exact(2.0), exact(0.0123456789), exact(1234567), exact(1e16), exact("layer4.0")
    ('2', '0.0123456789', '1234567', '1e+16', 'layer4.0')
    """
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)


def check_once(**named: Sequence[object]) -> None:
    """Refuse what is named twice among things of a kind."""
    for what, values in named.items():
        if twice := sorted(str(one) for one, times in Counter(values).items() if times > 1):
            raise ConfigError(
                f"The {what} {', '.join(twice)} is named twice.", "Name everything once."
            )
