"""Sections with pictures: where the models look, which clues there are, what was hidden."""

from collections.abc import Sequence
from dataclasses import replace

from markupsafe import Markup

from masktune.heat.clues import hidden_areas, hidden_shares
from masktune.heat.store import HeatStore
from masktune.heat.strategies import fill_of, strategy_of
from masktune.report.filled import section
from masktune.runs.open import OpenRun, OpenSplit
from masktune.scores.hiding import RULE
from masktune.scores.result import RoundResult
from masktune.show.clues import (
    clues_html,
    group_numbers,
    leaning,
    means_html,
    names_of_groups,
    stands_out,
)
from masktune.show.contact_sheets import (
    NO_MAPS,
    first_of_groups,
    hidden_pictures,
    looks,
    looks_html,
    photos,
    telling,
)
from masktune.show.curves import accuracy_by_round, hidden_against_k
from masktune.show.hiding import hiding_table, verdict_html
from masktune.show.markup import figure, rows_html
from masktune.show.results import scores_by_round
from masktune.show.tables import Cell, Column, Table, html, share_cell
from masktune.show.wording import count, early_stop, percent, pictures

KS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
MEASURED = 256
"""Training pictures that the curve over k is measured on."""

ACROSS = 8
"""Pictures side by side; more begin a new band."""


def where_it_looks(view: OpenRun, tests: Sequence[OpenSplit]) -> Markup:
    """Show the heat of both models side by side on some pictures of every test set."""
    if view.layer is None:
        return section("hint", words=NO_MAPS)
    blocks = []
    for test in tests:
        positions = telling(test.pair)
        found = looks(view, test.split, positions)
        blocks.append((test.name, looks_html(test, found, positions, most=ACROSS)))
    how = f"{view.config.masking.method} at layer {view.layer}"
    return section("looks", how=how, blocks=blocks)


def what_it_leans_on(view: OpenRun) -> Markup:
    """Show where the model before looks over the whole training set: mean heat and clues."""
    data, store = view.bundle, view.store
    if store is None:
        return section(
            "hint",
            words="This run computed no heat of the training set, so it cannot say what the model "
            "leans on: see the report of a run that hides by heat.",
        )
    found = leaning(data, store, seed=view.config.seed)
    total = len(data.train)
    captions = [
        f"{pictures(len(clue.members))}" + (f", {clue.place}" if stands_out(clue, total) else "")
        for clue in found.clues
    ]
    return section(
        "clues",
        total=count(total),
        means=means_html(found.means, found.sizes, across=ACROSS),
        clues=clues_html(found.clues, found.sentences, captions),
        sentences=found.sentences,
    )


def before_the_epoch(view: OpenRun) -> dict[str, Markup]:
    """Show what hiding took away from the model before, if the run looked; by its section's name.

    An older version did not look, and controls have nothing to take away.
    """
    hiding = next((one.hiding for one in view.result.masking.rounds), None)
    if hiding is None:
        return {}
    card = section(
        "card",
        title="The model before, asked about its training pictures as they are and hidden",
        content=html(hiding_table(hiding), saved=True),
        note=RULE,
    )
    return {"Before the epoch": verdict_html(hiding) + card}


def what_was_hidden(view: OpenRun, tests: Sequence[OpenSplit]) -> Markup:
    """Show what the finetuned model could not see, in pictures and in numbers."""
    rounds = view.result.masking.rounds
    if not rounds:
        return section("hint", words="There were no rounds of hiding: they are MaskTune's.")
    cards = [_rounds_card(view, rounds)]
    if view.store is not None and strategy_of(view.config.masking).uses_k:
        cards.append(_threshold_card(view, view.store))
    if len(rounds) > 1:
        cards.append(_accuracy_card(tests))
    # The table of several rounds is too wide to share a row.
    wide = 1 if len(rounds) > 1 else 0
    blocks = [_hidden_sheet(view), *cards[:wide], section("row", cards=cards[wide:])]
    if stopped := early_stop(view.result.masking):
        blocks.append(section("hint", words=stopped))
    return Markup("").join(blocks)


def _hidden_sheet(view: OpenRun) -> Markup:
    if not strategy_of(view.config.masking).hides:
        return section("hint", words="Nothing. This run is the control that only trains longer.")
    train = view.bundle.train
    positions = first_of_groups(train)
    rows, shares = hidden_pictures(view, positions)
    numbers = group_numbers(train, len(view.bundle.card.attributes))[positions].tolist()
    names = names_of_groups(view.bundle, numbers)
    captions = [
        section("hidden_caption", group=names[number], share=percent(share))
        for number, share in zip(numbers, shares, strict=True)
    ]
    sheet = rows_html(
        rows,
        captions,
        labels=[f"training picture {position}" for position in positions],
        photos=photos(view.bundle),
        most=ACROSS,
    )
    return section(
        "hidden",
        total=count(len(train)),
        sheet=sheet,
        heat=view.store is not None,
        fill=fill_of(view.config.masking).hint,
    )


def _rounds_card(view: OpenRun, rounds: Sequence[RoundResult]) -> Markup:
    several = len(rounds) > 1
    tests = [test for name, test in view.tests.items() if name in (rounds[0].test or {})]
    uses_k = strategy_of(view.config.masking).uses_k
    table = Table(
        name="rounds",
        columns=(
            Column("Round"),
            Column("k"),
            Column("Pixels hidden"),
            Column("Pictures with nothing hidden"),
            Column("Training accuracy, masked"),
            *([Column("Fitted")] if several else []),
            *(
                Column(f"{test.name}: {what}")
                for test in tests
                for what in ("test average", "worst")
            ),
        ),
        rows=[
            [
                Cell(str(number)),
                Cell(f"{record.k}", values=(record.k,)) if uses_k else Cell("not used"),
                share_cell(record.hidden_fraction),
                share_cell(record.empty_fraction),
                share_cell(record.train_accuracy),
                *([Cell("yes" if record.fitted else "no")] if several else []),
                *(share_cell(score[number]) for one in tests for score in scores_by_round(one)),
            ]
            for number, record in enumerate(rounds, start=1)
        ],
    )
    note = f"Over all {count(len(view.bundle.train))} training pictures."
    return section("card", title="Rounds", content=html(table, saved=True), note=note)


def _threshold_card(view: OpenRun, store: HeatStore) -> Markup:
    total = len(view.bundle.train)
    step = max(1, total // MEASURED)
    positions = list(range(0, total, step))[:MEASURED]
    part = replace(store, rounds=(store.rounds[0][positions],))
    masking = view.config.masking
    shares = hidden_shares(
        part, KS, statistics=masking.statistics, keeps_hot=strategy_of(masking).keeps_hot
    )
    areas = hidden_areas(shares)
    return section(
        "card",
        title="Hidden area against k",
        content=figure(hidden_against_k(KS, {"all groups": areas}, k=masking.k)),
        note=f"Round 1, measured on {count(len(positions))} training pictures. The dotted line is "
        "the k of this run.",
    )


def _accuracy_card(tests: Sequence[OpenSplit]) -> Markup:
    series: dict[str, list[float | None]] = {}
    for test in tests:
        averages, worst = scores_by_round(test)
        series |= {f"{test.name}, test average": averages, f"{test.name}, worst": worst}
    return section(
        "card",
        title="Accuracy by round",
        content=figure(accuracy_by_round(series)),
        note=", ".join(f"{test.name} n = {count(len(test))}" for test in tests),
    )
