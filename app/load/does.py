"""The Load page's card on how well the model does: on every part, and what may be wrong with it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import log
from typing import NamedTuple

import streamlit as st
import torch

from app import loaded as cached
from app.joined import Work
from app.kept import COMPUTED
from app.load.pictures import NAMES, anew
from app.load.sees import NORMS, TAKEN
from app.shared.pieces import download
from app.shared.problems import plain
from app.shared.progress import shown_progress
from app.shared.sheets import show
from app.shared.wanted import wanted, when_wanted
from app.state import look_at, start
from masktune.config import AUTO, BUNDLED, RunConfig, order_listed
from masktune.data.normalisations import normalisation, spelled
from masktune.data.preprocess import Preprocess
from masktune.data.splits import part as part_of
from masktune.data.types import DatasetBundle
from masktune.datasets.catalogue import CATALOGUE, OWN
from masktune.errors import shortened
from masktune.models.predict import predict
from masktune.progress import Progress, Watcher
from masktune.scores.class_order import OtherOrder, better_order
from masktune.scores.evidence import direction
from masktune.scores.flips import Change
from masktune.scores.overall import Overall, overall
from masktune.scores.predictions import Predictions
from masktune.seeds import stream
from masktune.show.markup import strip
from masktune.show.tables import Cell, Column, Table, count_cell, csv, html
from masktune.show.wording import count, duration, interval, percent, points_interval

AT_ONCE = 30.0
"""Seconds that asking the model about all parts may take without being asked for."""

TRIED = 200
"""Validation pictures that normalisations are tried on, at most."""

VALIDATION = "validation"


def parts_of(data: DatasetBundle) -> dict[str, int]:
    """Return the parts that a model is asked about and their pictures, validation first."""
    return {VALIDATION: len(data.validation), **{n: len(s) for n, s in data.tests.items()}}


def asked_later(sizes: Mapping[str, int], *, pace: float, at_once: float) -> list[str]:
    """Return the parts that take too long to be asked about unasked, in their order.

    Args:
        sizes: pictures of those that are not answered yet, by name.
        pace: seconds that a picture takes.
        at_once: seconds that all together may take.

    >>> asked_later({"validation": 100, "test": 500, "odd": 50}, pace=0.1, at_once=30)
    ['test']
    """
    later, left = [], at_once
    for name, pictures in sizes.items():
        if pace * pictures > left:
            later.append(name)
        else:
            left -= pace * pictures
    return later


def show_how_it_does(subject: RunConfig, data: DatasetBundle, pace: float) -> set[str]:
    """Ask the model about every part and say how well it does; long work only when it is wanted.

    ``pace`` is the seconds that it takes for a picture. Return the parts it was asked about.
    """

    def give_up() -> None:
        for name in parts_of(data):
            cached.leave_answers(subject, name)

    sizes = parts_of(data)
    open_parts = {n: size for n, size in sizes.items() if not cached.has_answers(subject, n)}
    later = asked_later(open_parts, pace=pace, at_once=AT_ONCE)
    table, below, asking = st.empty(), st.container(), st.empty()
    go_on = False
    if later:
        pictures = sum(sizes[name] for name in later)
        with asking.container():
            go_on = wanted(
                "asking",
                cached.known(subject),
                f"Ask about all {count(pictures)} pictures (about {duration(pace * pictures)})",
                icon=":material/quiz:",
                give_up=give_up,
                hint="What it has answered is kept for the other pages.",
            )
            st.caption(
                f"It is asked at once where that takes up to {AT_ONCE:.0f} seconds on this "
                "computer, and otherwise when somebody wants it. It goes on while you click here."
            )
    found: dict[str, Overall] = {}
    for name in sizes:
        if name in later and not go_on:
            continue
        with shown_progress(f"Asking the model about '{name}'") as watcher:
            found[name] = overall(cached.answers(subject, name, watcher=watcher))
        with table:
            show(html(does_table(found, sizes)))
    if go_on:
        asking.empty()
    if found:
        with below:
            made = does_table(found, sizes)
            file = f"{subject.dataset}-accuracy.csv"
            download("Accuracy (CSV)", lambda: csv(made, end="\r\n"), file, prominent=True)
    _show_order(subject, data)
    _show_normalisations(subject, data)
    return {*found}


_COLUMNS = (
    Column("Accuracy", ("accuracy", "low", "high")),
    Column("0 to 100%, with 95% interval", (), left=True, roomy=True),
    Column(
        "Loss",
        ("loss",),
        hint=f"Mean cross entropy: 0 for sure and right, {log(2):.2f} for a guess between two "
        f"classes, {log(10):.2f} between ten",
    ),
    Column("n", ("n",)),
)


def does_table(found: Mapping[str, Overall], sizes: Mapping[str, int]) -> Table:
    """Show accuracy with interval and loss by part; a part that is not asked about yet is empty."""
    return Table(
        name="How well it does",
        columns=(Column("Pictures", ("part",)), *_COLUMNS),
        rows=[
            (Cell(name), *_cells(found.get(name)), count_cell(size)) for name, size in sizes.items()
        ],
    )


def _cells(one: Overall | None) -> tuple[Cell, ...]:
    if one is None:
        return (Cell("–", values=(None, None, None)), Cell(), Cell("–", values=(None,)))
    return (
        Cell(
            percent(one.accuracy),
            small=interval(one.interval),
            values=(one.accuracy, *one.interval),
            strong=True,
        ),
        Cell(strip(one.accuracy, None, before_interval=one.interval)),
        Cell(f"{one.loss:.3g}", values=(one.loss,)),
    )


def _take(**changes: str | None) -> None:
    """Look at the same with other settings; in a callback, before widgets are drawn."""
    now = start()
    assert now is not None
    look_at(replace(now, **changes))  # type: ignore[arg-type]  # texts of the options named
    anew(TAKEN)
    anew(NAMES)


# Classes in another order


def _show_order(subject: RunConfig, data: DatasetBundle) -> None:
    """Offer another order of the classes where the file names one, or does clearly better in one.

    And offer the file's names for classes that are only numbered.
    """
    classes = data.card.classes
    if subject.class_order is not None:
        st.caption(plain(order_words(order_listed(subject.class_order), classes)))
        st.button(
            "Take the classes as they are in the file",
            icon=":material/undo:",
            on_click=partial(_take, class_order=None),
        )
        return
    if subject.model == BUNDLED or data.card.pool:
        return
    arch = None if subject.arch == AUTO else subject.arch
    names = cached.diagnosis(str(cached.model_path(subject)), arch).class_names
    if order := named_order(names, classes):
        _offer_order(order, f"The file says so itself. {order_words(order, classes, by='are')}")
    elif cached.has_answers(subject, VALIDATION) and (
        found := better_order(cached.answers(subject, VALIDATION))
    ):
        _offer_order(found.order, gain_words(found, classes))
    called = [name.partition(",")[0] for name in names]  # synonyms follow, such as ImageNet's
    if subject.dataset == OWN and numbered_only(classes) and len({*called}) == len(classes):
        st.button(
            plain(f"Call the classes as the file does: {shortened(called)}"),
            icon=":material/label:",
            on_click=partial(_take, class_names=",".join(called)),
        )


def _offer_order(order: Sequence[int], words: str) -> None:
    st.warning(plain(words), icon=":material/swap_vert:")
    st.button(
        "Take this order of the classes",
        icon=":material/swap_vert:",
        on_click=partial(_take, class_order=",".join(map(str, order))),
    )


def named_order(names: Sequence[str], classes: Sequence[str]) -> tuple[int, ...]:
    """Return for each class of a file, by its name, the class of the pictures.

    Nothing where the names are others, or in the same order.

    >>> named_order(["Dog", "cat"], ["cat", "dog"]), named_order(["cat", "cow"], ["cat", "dog"])
    ((1, 0), ())
    """
    theirs, ours = ([name.casefold() for name in listed] for listed in (names, classes))
    if theirs == ours or sorted(theirs) != sorted(ours) or len({*ours}) < len(ours):
        return ()
    return tuple(ours.index(name) for name in theirs)


def numbered_only(classes: Sequence[str]) -> bool:
    """Tell whether classes have numbers for names."""
    return all(name.isdigit() for name in classes)


def order_words(order: Sequence[int], classes: Sequence[str], *, by: str = "are taken") -> str:
    """Say which class each output of the model stands for.

    >>> order_words([1, 0], ["cat", "dog"])
    "The model's classes are taken in another order: its first is dog, then cat."
    """
    return f"The model's classes {by} in another order: its first is {_in_turn(order, classes)}."


def _in_turn(order: Sequence[int], classes: Sequence[str]) -> str:
    first, *others = (classes[number] for number in order)
    return f"{first}, then {shortened(others)}"


def gain_words(found: OtherOrder, classes: Sequence[str]) -> str:
    """Say how much better the model does in another order of the classes, and how that is known."""
    change = found.change
    return (
        f"The file seems to have its classes in another order: {percent(change.before)} right as "
        f"it is, {percent(change.after)} if its first class is {_in_turn(found.order, classes)}. "
        f"That is {points_interval(change.interval)} points (95% interval, the same "
        f"{count(change.count)} validation pictures, none of which the order was found on)."
    )


# Normalisations


class Trial(NamedTuple):
    """A normalisation that was tried: as the settings say it (None: the usual), and answers."""

    normalise: str | None
    label: str
    said: Predictions


def candidates(subject: RunConfig, stored: str | None) -> dict[str | None, str]:
    """Return the normalisations to try, as the settings say them, and what each is called.

    First what is in use; of those with the same numbers one. ``stored`` is the file's own.
    """
    card = CATALOGUE[subject.dataset]
    usual = spelled(card.mean, card.std)
    named: dict[str | None, str] = {None: f"Usual for these pictures: {usual}"}
    if stored is not None:
        named[stored] = f"From the checkpoint: {stored}"
    named |= {name: label for name, label in NORMS.items() if name not in named}
    if subject.normalise is not None:
        now = named.pop(subject.normalise, subject.normalise)
        named = {subject.normalise: now, **named}
    numbers: dict[object, str | None] = {}
    for name in named:
        numbers.setdefault((card.mean, card.std) if name is None else normalisation(name), name)
    return {name: named[name] for name in numbers.values()}


def _show_normalisations(subject: RunConfig, data: DatasetBundle) -> None:
    """Offer to try the usual normalisations, and to take one that was tried."""
    model = cached.checkpoint(subject)
    said = model.mean is not None and model.std is not None
    stored = spelled(model.mean, model.std) if said else None  # type: ignore[arg-type]
    tried = candidates(subject, stored)
    # Which one is in use says nothing of the others.
    key = ("normalised", cached.known(replace(subject, normalise=None)), frozenset(tried))
    number = min(TRIED, len(data.validation))
    answers = when_wanted(
        "trying",
        Work(COMPUTED, key, lambda watch: _tried(subject, data, tuple(tried), watch)),
        "Try other normalisations",
        icon=":material/tune:",
        quick=False,
        doing="Trying normalisations",
        unit="batches",
        hint=f"Asks the model about {count(number)} validation pictures with each of the "
        f"{len(tried)} usual ones: a wrong one costs accuracy, and nothing else tells of it.",
    )
    if answers is None:
        return
    trials = [Trial(name, label, answers[name]) for name, label in tried.items()]
    st.subheader("Normalisations", anchor=False)
    table = trials_table(trials)
    show(html(table))
    st.caption(plain(trial_words(trials)))
    with st.container(horizontal=True):
        for trial in trials[1:]:
            name = trial.normalise
            short = "the usual" if name is None else "the file’s" if name == stored else name
            st.button(
                f"Take {short}",
                key=f"take_normalisation_{short}",
                help=trial.label,
                on_click=partial(_take, normalise=name),
            )
        file = f"{subject.dataset}-normalisations.csv"
        download("Normalisations (CSV)", lambda: csv(table, end="\r\n"), file, prominent=True)


def _tried(
    subject: RunConfig, data: DatasetBundle, names: Sequence[str | None], watcher: Watcher
) -> dict[str | None, Predictions]:
    """Ask the model about the same validation pictures with each normalisation."""
    size = len(data.validation)
    order = torch.randperm(size, generator=stream(0, "normalisations"))
    few = part_of(data.validation, order[:TRIED].sort().values)
    model, card = cached.checkpoint(subject).model, CATALOGUE[subject.dataset]
    said: dict[str | None, Predictions] = {}
    for number, name in enumerate(names):
        mean, std = (card.mean, card.std) if name is None else normalisation(name)

        def watch(progress: Progress, number: int = number) -> None:
            done = number * progress.total + progress.done
            watcher(replace(progress, done=done, total=len(names) * progress.total))

        said[name] = predict(model, few, preprocess=Preprocess(mean=mean, std=std), watcher=watch)
    return said


def trial_words(trials: Sequence[Trial]) -> str:
    """Say how the best normalisation compares with the first, which is in use."""
    now = trials[0].said
    best = max(trials, key=lambda one: (int(one.said.correct().sum()), one is trials[0]))
    change = Change.of(now.correct(), best.said.correct())
    asked = f"On {count(change.count)} validation pictures"
    if best is trials[0]:
        return f"{asked} none does better than the one in use, {percent(change.before)} right."
    # Picked as the best of several: judged together.
    clear = direction(change.interval_among(len(trials) - 1)) == "up"
    return (
        f"{asked}: {percent(change.before)} right with this normalisation, "
        f"{percent(change.after)} with “{best.label}”"
        + (", clearly more." if clear else ", which may be chance.")
    )


def trials_table(trials: Sequence[Trial]) -> Table:
    """Show accuracy and loss with each normalisation; the first is in use."""
    sums = [(trial, overall(trial.said)) for trial in trials]
    return Table(
        name="Normalisations",
        columns=(Column("Normalisation", ("normalisation",)), *_COLUMNS),
        rows=[
            (
                Cell(
                    trial.label, small="in use" if trial is trials[0] else "", values=(trial.label,)
                ),
                *_cells(one),
                count_cell(one.count),
            )
            for trial, one in sums
        ],
    )
