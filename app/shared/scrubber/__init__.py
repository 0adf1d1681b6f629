"""The scrubber: a sheet of pictures and a threshold that moves under the pointer.

The browser gets the sheet once and thresholds it by itself, so nothing is sent while the pointer
moves; on release k comes to Python, once. What changes often (k, the answers after hiding) goes to
the browser through a second, invisible mount: put into the same message, it would carry the whole
sheet along each time.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import streamlit as st

from app.shared.scrubber.wire import COLUMNS, Column, Sheet, encode, groups_of, preamble
from app.shared.scrubber.wire import MOST as PRINTS
from masktune.errors import ConfigError, DataError

__all__ = [
    "COLUMNS",
    "PRINTS",
    "AfterHiding",
    "Column",
    "Order",
    "ScrubState",
    "Sheet",
    "View",
    "Way",
    "encode",
    "scrubber",
]

View = Literal["picture", "heat", "hidden", "sees"]
Order = Literal["given", "most", "least", "change"]

LEAST, MOST = 0.0, 3.0
"""The ends of the slider: the mean, and three standard deviations above it."""

HERE = Path(__file__).parent
SCRIPTS = tuple(
    f"{name}.js"
    for name in ("wire", "levels", "plate", "strip", "sheet", "loupe", "ways", "scrubber")
)
"""Read in this order as one module: the component needs no build step and serves no files."""


def _read(*names: str) -> str:
    return "\n".join((HERE / name).read_text(encoding="utf-8") for name in names)


_mount = st.components.v2.component(
    "masktune_scrubber", html=_read("scrubber.html"), css=_read("scrubber.css"), js=_read(*SCRIPTS)
)
_tell = st.components.v2.component("masktune_scrubber_tell", js=_read("tell.js"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrubState:
    """Where the scrubber stands.

    Attributes:
        k: the threshold in standard deviations above the mean, from 0 to 3 in steps of 0.01.
        view: what the tiles show.
        selected: position on the sheet of the picture in the loupe.
        column: in which column it is, from 0.
        every: whether that picture is to be shown by every explainer.
        group: the only one on the sheet, by name; empty for all.
        order: what the tiles are sorted by.
    """

    k: float
    view: View = "hidden"
    selected: int = 0
    column: int = 0
    every: bool = False
    group: str = ""
    order: Order = "given"


@dataclass(frozen=True, slots=True, kw_only=True)
class AfterHiding:
    """What the model says about a picture once its pixels are hidden.

    Attributes:
        answer: the answer, by name.
        confidence: its probability, in [0, 1].
        support: the probability still given to the answer before hiding; how far it fell is what
            "what changes most" sorts by.
    """

    answer: str
    confidence: float
    support: float


Answers = Sequence[AfterHiding]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Way:
    """Where the model looks in one picture, by one explainer.

    Attributes:
        title: of the explainer.
        heat: (h, w) float32, coarse; None where it cannot explain this model.
        mu: mean heat as ``heat_statistics`` gives it.
        sigma: its standard deviation.
        problem: why there is no heat.
    """

    title: str
    heat: npt.NDArray[np.float32] | None = None
    mu: float = 0.0
    sigma: float = 0.0
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What survives a rerun, and the unmounting of the component, which loses its own value.

    Attributes:
        sheet: identity of the sheet shown.
        given: k that the page asked for last.
        state: where the scrubber stands.
        turn: number of the last message from the browser; it tells which of its moves are known.
        by_hand: the browser moved since the page last drew the scrubber.
    """

    sheet: str
    given: float
    state: ScrubState
    turn: int = 0
    by_hand: bool = False


Hear = Callable[[Memory, object], Memory]
"""Takes in a message about one sheet, see ``heard``."""


def scrubber(
    blob: bytes,
    *,
    k: float,
    key: str,
    first: Mapping[str, object] | None = None,
    after: Callable[[float], Sequence[Answers]] | None = None,
    ways: Callable[[int], Sequence[Way]] | None = None,
    on_move: Callable[[float], None] | None = None,
    on_open: Callable[[int], None] | None = None,
) -> ScrubState:
    """Draw the scrubber and tell where it stands.

    A page may pass the returned k back on the next run, or the same one for ever: a value that the
    page changes moves the slider, a hand's move wins over an unchanged one. The state outlives
    page switches.

    Args:
        blob: what ``encode`` gave. Two scrubbers on one page need two different sheets.
        k: the threshold to show, rounded to the slider's step of 0.01.
        key: unique name; the state is kept under it.
        first: what it stands at when it is drawn for the first time, by the fields of
            ``ScrubState``, as an address said it; what makes no sense is as usual.
        after: what the model says after hiding at k, for each column one for each picture; called
            once after the sheet is on its way (cache what it does).
        ways: where the model looks in the picture at a place of the sheet, by every explainer;
            called when somebody asks for it in the loupe (cache what it does).
        on_move: told k before the script runs, when a hand has moved the slider.
        on_open: told the place on the sheet of a picture that somebody wants a page of, while this
            is drawn.

    Returns:
        Where the scrubber stands; its k is what ``after`` was called with.
    """
    sheet, count, columns = preamble(blob)
    memory = st.session_state.get(f"{key}_memory")
    hear = partial(heard, count=count, columns=columns, groups=groups_of(blob))
    if memory is None:
        memory = begin(first or {}, sheet=sheet, k=rounded(k), hear=hear)
    memory = settle(memory, sheet=sheet, k=rounded(k))
    st.session_state[f"{key}_memory"] = memory
    state = memory.state
    with st.container(gap=None):
        told = {"sheet": sheet, "turn": memory.turn}
        told |= {"awaits": after is not None, "explains": ways is not None}
        told["opens"] = on_open is not None
        _tell(key=f"{key}_state", data={**told, **asdict(state)})
        result = _mount(
            key=key,
            data=blob,
            on_now_change=partial(_hear, key, hear, on_move),
            on_open_change=lambda: None,
        )
        wanted = result.get("open")
        if on_open is not None and isinstance(wanted, int) and 0 <= wanted < count:
            on_open(wanted)
        if after is not None:
            answers = _after_data(after(state.k), state.k, count, columns)
            _tell(key=f"{key}_after", data={"sheet": sheet, "after": answers})
        if ways is not None and state.every:
            rows = [_way_data(way) for way in ways(state.selected)]
            told = {"sheet": sheet, "ways": {"place": state.selected, "rows": rows}}
            _tell(key=f"{key}_ways", data=told)
    return state


def rounded(k: float) -> float:
    """Bring k to the slider's step and range.

    The browser divides whole steps by 100, which gives the same double as rounding to two places:
    both thresholds agree to the last bit.

    >>> rounded(1.2345), rounded(7.0)
    (1.23, 3.0)
    """
    if not math.isfinite(k):
        raise ConfigError(f"k is {k}.", "Give a number from 0 to 3; the paper's choice is 2.")
    return round(min(max(float(k), LEAST), MOST), 2)


def begin(first: Mapping[str, object], *, sheet: str, k: float, hear: Hear) -> Memory:
    """Return where a scrubber stands at first, each of ``first`` that makes no sense as usual."""
    memory = Memory(sheet=sheet, given=k, state=ScrubState(k=k))
    for name, value in first.items():
        memory = hear(memory, {**asdict(memory.state), "turn": 0, name: value})
    return replace(memory, by_hand=False)


def settle(memory: Memory, *, sheet: str, k: float) -> Memory:
    """Decide between what the page asks for and what the hand did.

    The page wins where it asks for something new; otherwise the scrubber stays where it is. On the
    first run after a hand's move the hand wins: the page cannot have known of it.
    """
    state = memory.state
    if not memory.by_hand and k != memory.given:
        state = replace(state, k=k)
    if sheet != memory.sheet:
        state = replace(state, selected=0, column=0, group="")
    return replace(memory, sheet=sheet, given=k, state=state, by_hand=False)


def heard(
    memory: Memory, message: object, *, count: int, columns: int, groups: Collection[str]
) -> Memory:
    """Take in a message of the browser; one that makes no sense changes nothing.

    It is a mapping of turn and the fields of ``ScrubState``, as JSON gave it, about ``count``
    pictures of some groups in some columns.
    """
    match message:
        case {
            "k": int() | float() as k,
            "view": "picture" | "heat" | "hidden" | "sees" as view,
            "selected": int() as selected,
            "column": int() as column,
            "every": bool() as every,
            "group": str() as group,
            "order": "given" | "most" | "least" | "change" as order,
            "turn": int() as turn,
        } if (
            LEAST <= k <= MOST
            and 0 <= selected < count
            and 0 <= column < columns
            and group in ("", *groups)
        ):
            state = ScrubState(
                k=rounded(k),
                view=view,
                order=order,
                selected=selected,
                column=column,
                every=every,
                group=group,
            )
            return replace(memory, state=state, turn=turn, by_hand=True)
    return memory


def _hear(key: str, hear: Hear, on_move: Callable[[float], None] | None) -> None:
    message: Any = st.session_state[key].get("now")
    memory: Memory | None = st.session_state.get(f"{key}_memory")
    if memory is not None:
        memory = st.session_state[f"{key}_memory"] = hear(memory, message)
        if on_move is not None:
            on_move(memory.state.k)


def _after_data(
    answers: Sequence[Answers], k: float, count: int, columns: int
) -> dict[str, object]:
    for column in answers:
        if len(column) != count or len(answers) != columns:
            raise DataError(
                f"There are {len(answers)} x {len(column)} answers after hiding for {columns} "
                f"columns of {count} pictures.",
                "Give one for each picture of each column.",
            )
    return {
        "k": k,
        "columns": [
            [[after.answer, round(after.confidence, 4), round(after.support, 4)] for after in rows]
            for rows in answers
        ],
    }


def _way_data(way: Way) -> dict[str, object]:
    if way.heat is None:
        return {"title": way.title, "problem": way.problem}
    # JSON carries doubles, and every float32 is one: the browser gets the very numbers.
    numbers = {"heat": way.heat.ravel().tolist(), "coarse": list(way.heat.shape)}
    return {"title": way.title, **numbers, "mu": way.mu, "sigma": way.sigma}
