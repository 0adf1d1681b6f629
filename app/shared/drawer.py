"""The drawer: what is clicked opens its pictures, on every page the same."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import streamlit as st
import torch
from markupsafe import Markup

from app import loaded as cached
from app.kept import DRAWN
from app.opened import computed, opened, written
from app.shared.pages import copy_link, write_address_again
from app.shared.pieces import download, pager
from app.shared.problems import explained_errors, plain, show_problem
from app.shared.run_rows import run_labels
from app.shared.sheets import picture_links, say, show
from app.state import keep, show_pictures
from masktune.config import RunConfig
from masktune.data.splits import part
from masktune.data.types import Split
from masktune.errors import ConfigError, MaskTuneError
from masktune.runs import jobs
from masktune.runs.open import OpenSplit
from masktune.scores.marks import Examples, Mark, Order, Rows, filters, ordered, orders, read_mark
from masktune.scores.predictions import Predictions
from masktune.scores.result import VALIDATION
from masktune.show.contact_sheets import picture_tiles
from masktune.show.marks import captions, of_split, of_two, pictures_csv
from masktune.show.markup import sheet_html
from masktune.show.painting import SMALL, png_bytes, sheet
from masktune.show.wording import count, pictures

Choice = TypeVar("Choice", int, str, Order)
ACROSS = 8
PAGE = 3 * ACROSS
"""Pictures that the drawer shows at a time."""

EVERY, ALL = "all", -1
ORDERS: dict[Order, str] = {
    "data": "As in the data",
    "changed": "Changed most first",
    "unsure": "Least sure first",
    "sure": "Surest first",
}
UNASKED = (
    "The model was not asked about all of these pictures yet: they have no filter by answer and no "
    "order by confidence."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where the drawer takes the pictures of a split from; nothing is read before it opens.

    Attributes:
        key: tells these pictures from others.
        examples: gives what is known of all.
        split: gives the pictures.
        said: gives what the only model says about some, None where there is no model.
        unasked: whether there is such a model, and it was not asked about all.
        linked: whether the address leads to these pictures, and so to each of them.
        whose: what the run is called that says it, where it is another than that of the page.
    """

    key: Hashable
    examples: Callable[[], Examples]
    split: Callable[[], Split]
    said: Callable[[Sequence[int]], Predictions | None] = lambda _: None
    unasked: bool = False
    linked: bool = True
    whose: str = ""


def show_drawer(find: Callable[[str], Source]) -> None:
    """Open the drawer if something was clicked; ``find`` gives the source of a split by its name.

    Raises nothing for what no longer fits: the drawer says so.
    """
    if not (text := st.session_state.shown):
        return
    try:
        mark = read_mark(text)
        source = find(mark.split)
        if run := getattr(mark, "run", ""):
            source = _said_by(run, mark.split, source)
        if run := getattr(mark, "against", ""):
            source = _set_against(run, mark.split, source)
        of = source.examples()
        rows = mark.rows(of)
        title = ", ".join(filter(None, [mark.title(of), source.whose]))
        title = f"{plain(title)}: {pictures(len(rows))}"
    except MaskTuneError as error:
        _dialog("No such pictures")(show_problem)(error.problem, error.remedy)
        return
    _dialog(title)(_draw)(source, mark, of, rows)


def _said_by(run: str, name: str, here: Source) -> Source:
    """Return the pictures of a split of the page's run with what another run says about them."""
    test, whose = _asked_also(run, name, here)
    return replace(
        here,
        key=(written(test.run.path), name),
        examples=lambda: computed(test, "examples", lambda: Examples.of_pair(test.pair, test)),
        whose=whose,
    )


def _set_against(run: str, name: str, here: Source) -> Source:
    """Return the pictures of a split with what another run's model after and the page's say."""
    test, whose = _asked_also(run, name, here)
    return replace(
        here,
        key=(here.key, written(test.run.path)),
        examples=lambda: of_two(here.examples(), test.pair.after),
        whose=f"against {whose}",
    )


def _asked_also(run: str, name: str, here: Source) -> tuple[OpenSplit, str]:
    """Return the split of another run that was asked about the same pictures, and its label."""
    job = jobs.find(run)
    test = None if job is None else opened(run).tests.get(name)
    if (
        job is None
        or test is None
        or not np.array_equal(test.pair.after.labels, here.examples().labels)
    ):
        raise ConfigError(
            f"Run “{run}” was not asked about these pictures.", "Choose a point of the chart."
        )
    return test, run_labels([job], dataset=False)[job.id]


def _dialog(title: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return st.dialog(title, width="large", on_dismiss=lambda: show_pictures(None))


def of_run(test: OpenSplit) -> Callable[[str], Source]:
    """Return what finds the splits of a run that both models were asked about."""

    def find(name: str) -> Source:
        every = {**test.run.tests, VALIDATION: test.run.validation}
        if name not in every:
            raise ConfigError(
                f"This run was not tested on “{name}”.", f"It was on {', '.join(every)}."
            )
        one = every[name]
        return Source(
            key=(written(one.run.path), name),
            examples=lambda: computed(one, "examples", lambda: Examples.of_pair(one.pair, one)),
            split=lambda: one.split,
        )

    return find


def of_loaded(
    subject: RunConfig, clues: Callable[[], Sequence[Rows]] = lambda: (), *, linked: bool = True
) -> Callable[[str], Source]:
    """Return what finds the splits that are loaded; ``clues`` gives those of the training set.

    ``linked`` is false for pictures that are looked at while others are loaded.
    """

    def find(name: str) -> Source:
        data = cached.bundle(subject)
        if name not in (splits := cached.splits(data)):
            raise ConfigError(f"There are no pictures “{name}”.", f"There are {', '.join(splits)}.")
        split = splits[name]
        asked = subject.model is not None and cached.has_answers(subject, name)

        def examples() -> Examples:
            said = {"before": cached.answers(subject, name)} if asked else {}
            return of_split(split, data.card, said=said, clues=clues())

        def say_of(rows: Sequence[int]) -> Predictions | None:
            return (
                None
                if subject.model is None
                else cached.ask(subject, part(split, torch.as_tensor(rows)))
            )

        key = (cached.known(subject), name)
        return Source(
            key=key,
            examples=examples,
            split=lambda: split,
            said=say_of,
            unasked=subject.model is not None and not asked,
            linked=linked,
        )

    return find


def _draw(source: Source, mark: Mark, of: Examples, rows: Rows) -> None:
    with st.container(key="drawer"):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            found = _chosen(of, rows, score=getattr(mark, "score", ""))
            if source.linked:
                copy_link("drawer")
        if source.unasked and not of.said:
            say(UNASKED, kind="muted")
        if not len(found):
            say("None of these pictures is left. Choose others above.", kind="muted")
        else:
            with explained_errors():
                _sheet(source, mark, of, found, total=len(rows))
    write_address_again("drawer")


def _chosen(of: Examples, rows: Rows, *, score: str) -> Rows:
    """Let somebody choose among the pictures and put them in an order."""
    groups = {int(n): of.names[n] for n in np.unique(of.groups[rows])}
    classes = {int(n): of.classes[n] for n in np.unique(of.labels[rows])}
    became = filters(of)
    by_group = _select("Group", "shown_group", {ALL: "All groups", **groups})
    by_class = ALL
    if list(groups.values()) != list(classes.values()):
        by_class = _select("Class", "shown_class", {ALL: "All classes", **classes})
    # What holds of all of them, as all that were fixed were wrong before, leaves no choice.
    inside = {name: at for name, at in became.items() if at[rows].any() and not at[rows].all()}
    only = _select(
        "Answers", "shown_only", {EVERY: "All", **{name: name.capitalize() for name in inside}}
    )
    by = _select("Order", "shown_order", {order: ORDERS[order] for order in orders(of)})
    chosen = np.ones(len(rows), dtype=np.bool_)
    if by_group != ALL:
        chosen &= of.groups[rows] == by_group
    if by_class != ALL:
        chosen &= of.labels[rows] == by_class
    if only != EVERY:
        chosen &= inside[only][rows]
    return ordered(rows[chosen], of, by=by, score=score)


def _select(label: str, name: str, choices: dict[Choice, str]) -> Choice:
    """Let somebody choose one of several, where there are several."""
    if st.session_state[name] not in choices:
        st.session_state[name] = next(iter(choices))
    if len(choices) <= 2 and next(iter(choices)) in (ALL, EVERY):
        return next(iter(choices))  # all are of the only one
    chosen: Choice = st.selectbox(
        label,
        list(choices),
        format_func=choices.__getitem__,
        width=190,
        **keep(name),
    )
    return chosen


def _sheet(source: Source, mark: Mark, of: Examples, found: Rows, *, total: int) -> None:
    split, every = source.split(), found.tolist()
    chosen = ("shown", "shown_group", "shown_class", "shown_only", "shown_order")
    key = "_".join(["shown_page", *(str(st.session_state[name]) for name in chosen)])
    body, foot = st.container(), st.container(horizontal=True, vertical_alignment="center")
    with foot:
        rows = pager(every, PAGE, key=key, name="shown_page")
        name = f"{mark.split}-{mark.kind}"
        download(
            "Files and answers (CSV)" if of.said else "Files (CSV)",
            lambda: pictures_csv(of, every, split=mark.split, files=split.images.files),
            f"{name}.csv",
        )
        download(
            "This sheet (PNG)",
            lambda: png_bytes(sheet(picture_tiles(split, rows), ACROSS)),
            f"{name}.png",
        )

    score = getattr(mark, "score", "")

    def make() -> Markup:
        said = captions(of, rows, source.said(rows), score=score)
        tiles = picture_tiles(split, rows)
        return sheet_html(
            tiles,
            [caption for caption, _ in said],
            labels=[words for _, words in said],
            across=ACROSS,
            photos=split.images.batch(rows[:1]).shape[-1] > SMALL,
            links=picture_links(mark.split, rows) if source.linked else (),
        )

    with body:
        if len(found) < total:
            say(f"{count(len(found))} of them.", kind="muted")
        show(DRAWN.get(("drawer", source.key, source.linked, score, *rows), make))
