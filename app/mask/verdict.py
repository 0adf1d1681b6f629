"""What hiding takes away, before the epoch: of the sheet at once, of the whole set when asked."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import streamlit as st
import torch

from app import loaded as cached
from app.joined import Work
from app.mask.sheet import Choice, group_names, hiding, hiding_all
from app.shared.pieces import download
from app.shared.sheets import show
from app.shared.wanted import when_wanted
from masktune.cache import Cache
from masktune.data.splits import part
from masktune.heat.hiding import clues_of, keep_of, look_at_hiding, sample_of
from masktune.heat.store import HeatStore
from masktune.progress import Steps, Watcher
from masktune.scores.hiding import RULE, Hiding
from masktune.scores.marks import GroupMark, Mark
from masktune.show.hiding import hiding_table, verdict_html
from masktune.show.tables import csv, html
from masktune.show.wording import count, duration

_SHEETS = Cache(most=256)
_WHOLE = Cache(most=32)

AT_ONCE = 3.0
"""Seconds that asking about the whole set may take without being asked for."""


def of_sheet(choice: Choice, positions: tuple[int, ...], k: float, store: HeatStore) -> Hiding:
    """Judge the sheet's pictures; the store has their heat in this order."""

    def judge() -> Hiding:
        few = cached.sample(choice.subject, positions)
        keep = hiding(choice, positions, k, store)
        data = cached.bundle(choice.subject)
        before, _ = cached.sample_answers(choice.subject, positions)
        after = cached.ask(choice.subject, few, keep=keep)
        return look_at_hiding(
            before,
            after,
            keep=keep,
            split=few,
            card=data.card,
            of=len(data.train),
            clues=clues_of(store, data.card, seed=choice.subject.seed),
        )

    return _SHEETS.get((cached.known(choice.subject), choice, positions, k), judge)


def draw_sheet(found: Hiding, *, columns: int = 1) -> None:
    """Draw the verdict on the sheet's pictures, of several columns on the first."""
    first = " in the first column" if columns > 1 else ""
    with st.container(key="card_taken_sheet"):
        _head(f"What hiding takes away from these pictures{first}")
        _draw(found, small="These pictures only; the whole training set can be judged below.")


def draw_whole(choice: Choice, k: float, store: HeatStore, *, seconds: float) -> None:
    """Draw the verdict on the whole training set, or on a sample of a large one.

    It is asked about at once where that is quick, ``seconds`` being what one picture takes.
    """
    train = cached.bundle(choice.subject).train
    chosen = sample_of(train, seed=choice.subject.seed)
    alike = replace(choice, count=0, draw=0, by=0)  # whatever is on the sheet
    key = (cached.known(choice.subject), alike, k)
    with st.container(key="card_taken"):
        which = (
            "all" if len(chosen) == len(train) else f"{count(len(chosen))} of {count(len(train))}"
        )
        _head(f"What hiding takes away from {which} training pictures at k = {k:g}")
        total = 2 * seconds * len(chosen)
        found = when_wanted(
            "taken",
            Work(_WHOLE, key, lambda watch: _judged(choice, k, store, chosen, watch)),
            f"Ask the model (about {duration(total)})",
            icon=":material/rule:",
            quick=total <= AT_ONCE,
            doing="Asking about the hidden pictures",
            words="The model is asked about every picture as it is and hidden. By group, with what "
            "is covered of clue and thing where they are known.",
        )
        if found is None:
            return
        # The drawer has all pictures of a group: where a sample was asked about, others too.
        numbers = group_names(cached.bundle(choice.subject)) if len(chosen) == len(train) else {}
        _draw(found, marks={name: GroupMark("train", number) for number, name in numbers.items()})
        name = f"{choice.subject.dataset}-taken-away.csv"
        download("CSV", lambda: csv(hiding_table(found)), name, prominent=True)


def _head(title: str) -> None:
    st.markdown(f"**{title}**", help=RULE)


def _draw(
    found: Hiding, *, small: str = "", marks: Mapping[str, Mark] = MappingProxyType({})
) -> None:
    show(verdict_html(found, small=small))
    show(html(hiding_table(found, marks=marks)))


def _judged(
    choice: Choice, k: float, store: HeatStore, chosen: torch.Tensor, watcher: Watcher
) -> Hiding:
    data = cached.bundle(choice.subject)
    few, steps = part(data.train, chosen), Steps(watcher, "hiding", total=2)
    keep = keep_of(hiding_all(choice, k, store), chosen)
    seen = replace(store, rounds=(store.rounds[0][chosen],))
    if len(chosen) == len(data.train):  # the same at every k, so asked once
        before = cached.answers(choice.subject, "train", watcher=steps.next())
    else:
        before = cached.ask(choice.subject, few, watcher=steps.next())
    return look_at_hiding(
        before,
        cached.ask(choice.subject, few, keep=keep, watcher=steps.next()),
        keep=keep,
        split=few,
        card=data.card,
        of=len(data.train),
        clues=clues_of(seen, data.card, seed=choice.subject.seed),
    )
