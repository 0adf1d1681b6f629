"""Sections with pictures: where the models look, what was hidden."""

from html import escape
from typing import Any

from masktune.heat.strategies import strategy_of
from masktune.report.scored import Scored
from masktune.runs.open import RunView
from masktune.scores.flips import answer_changes
from masktune.show.contact_sheets import (
    NO_MAPS,
    first_of_groups,
    hidden_at,
    hidden_pictures,
    looks,
    telling,
)
from masktune.show.curves import accuracy_by_round, hidden_against_k
from masktune.show.markup import (
    Cell,
    Column,
    chip,
    figure,
    picture_sheet,
    share_cell,
    table,
)
from masktune.show.painting import SMALL
from masktune.show.wording import count, early_stop, percent

KS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
MEASURED = 256
"""Training pictures that the curve over k is measured on."""

HEAT_KEY = '<span>looks least<i class="heat"></i>most</span>'


def where_it_looks(view: RunView, tests: list[Scored]) -> str:
    """Show the heat of both models side by side on some pictures of every test set."""
    if view.layer is None:
        return f'<p class="hint">{escape(NO_MAPS)}</p>'
    blocks = []
    for test in tests:
        positions = telling(test.pair)
        sheet = picture_sheet(
            looks(view, test.split, positions).rows(),
            [_answer(view, test, position) for position in positions],
            photos=_photos(view),
        )
        blocks.append(
            f'<div class="card"><h3>Test set “{escape(test.name)}”</h3>{sheet}'
            f'<div class="key">{HEAT_KEY}<span>looks less<i class="change"></i>looks more</span>'
            "<span>captions: group, answer before → after, confidence</span></div></div>"
        )
    method = f"{view.config.masking.method} at layer {view.layer}"
    return (
        '<p class="hint">One picture of every group, then more of each kind: fixed, broken, still '
        "wrong, still right. Each is the first of its kind in the test set. "
        f"Heat: {escape(method)}, for the answer each model gives.</p>" + "".join(blocks)
    )


def _photos(view: RunView) -> bool:
    return max(view.bundle.card.size) > SMALL


def _answer(view: RunView, test: Scored, position: int) -> str:
    classes = view.bundle.card.classes
    before, after = (
        (classes[int(p.answers()[position])], float(p.probabilities[position].max()))
        for p in (test.pair.before, test.pair.after)
    )
    state = answer_changes(test.pair.before, test.pair.after)[position]
    group = _group(view, int(test.split.labels[position]), int(test.split.attributes[position]))
    return (
        f"{group}<br><b>{escape(before[0])} → {escape(after[0])}</b><br>"
        f'{before[1]:.0%} → {after[1]:.0%}<br>{chip(state)} <span class="muted">{state}</span>'
    )


def _group(view: RunView, label: int, attribute: int) -> str:
    card = view.bundle.card
    known = 0 <= attribute < len(card.attributes)
    name = f"{card.classes[label]}, {card.attributes[attribute]}" if known else card.classes[label]
    return escape(name)


def what_was_hidden(view: RunView, tests: list[Scored]) -> str:
    """Show what the finetuned model could not see, in pictures and in numbers."""
    rounds: list[dict[str, Any]] = view.document["masking"]["rounds"]
    cards = [_rounds_card(view, rounds)]
    if view.store is not None and strategy_of(view.config.masking).uses_k:
        cards.append(_threshold_card(view))
    if len(rounds) > 1:
        cards.append(_accuracy_card(tests, rounds))
    # The table of several rounds is too wide to share a row.
    wide = cards[:1] if len(rounds) > 1 else []
    beside = cards[len(wide) :]
    blocks = [_hidden_sheet(view), *wide, f'<div class="two">{"".join(beside)}</div>']
    if stopped := early_stop(rounds):
        blocks.append(f'<p class="hint">{escape(stopped)}</p>')
    return "".join(blocks)


def _hidden_sheet(view: RunView) -> str:
    if not strategy_of(view.config.masking).hides:
        return '<p class="hint">Nothing. This run is the control that only trains longer.</p>'
    train = view.bundle.train
    positions = first_of_groups(train)
    found = hidden_pictures(view, positions)
    captions = [
        f"{_group(view, int(train.labels[position]), int(train.attributes[position]))}<br>"
        f"<b>{percent(share)}</b> hidden"
        for position, share in zip(positions, found.shares, strict=True)
    ]
    keys = ['<span><i class="hatch"></i> hidden from the model</span>']
    if view.store is not None:
        keys.append(HEAT_KEY)
    return (
        f'<p class="hint">The first training pictures of every group, of {count(len(train))}. '
        "Pixels that are hatched were black while the model was finetuned.</p>"
        f'<div class="card">{picture_sheet(found.rows, captions, photos=_photos(view))}'
        f'<div class="key">{"".join(keys)}</div></div>'
    )


def _rounds_card(view: RunView, rounds: list[dict[str, Any]]) -> str:
    several = len(rounds) > 1
    names = list(rounds[0].get("test", {})) if rounds else []
    columns = [
        Column("Round"),
        Column("k"),
        Column("Pixels hidden"),
        Column("Pictures with nothing hidden"),
        Column("Training accuracy, masked"),
        *([Column("Fitted")] if several else []),
        *(Column(f"{name}: {what}") for name in names for what in ("test average", "worst")),
    ]
    uses_k = strategy_of(view.config.masking).uses_k
    rows = [
        [
            Cell(str(number)),
            Cell(f"{record['k']}", values=(record["k"],)) if uses_k else Cell("not used"),
            share_cell(record["hidden_fraction"]),
            share_cell(record["empty_fraction"]),
            share_cell(record.get("train_accuracy")),
            *([Cell("yes" if record["fitted"] else "no")] if several else []),
            *(
                share_cell(record["test"][name][what])
                for name in names
                for what in ("average", "worst_group")
            ),
        ]
        for number, record in enumerate(rounds, start=1)
    ]
    size = count(len(view.bundle.train))
    return (
        f'<div class="card"><h3>Rounds</h3>{table("rounds", columns, rows)}'
        f'<p class="note">Over all {size} training pictures.</p></div>'
    )


def _threshold_card(view: RunView) -> str:
    total = len(view.bundle.train)
    step = max(1, total // MEASURED)
    positions = list(range(0, total, step))[:MEASURED]
    curve = {"all groups": hidden_at(view, KS, positions=positions)}
    drawn = figure(hidden_against_k(KS, curve, k=view.config.masking.k))
    return (
        f'<div class="card"><h3>Hidden area against k</h3>{drawn}'
        f'<p class="note">Round 1, measured on {count(len(positions))} training pictures. '
        "The dotted line is the k of this run.</p></div>"
    )


def _accuracy_card(tests: list[Scored], rounds: list[dict[str, Any]]) -> str:
    series = {}
    for test in tests:
        records = [record["test"][test.name] for record in rounds]
        before = test.before
        series[f"{test.name}, test average"] = [
            before.averages.test,
            *(record["average"] for record in records),
        ]
        series[f"{test.name}, worst"] = [
            before.worst.accuracy,
            *(record["worst_group"] for record in records),
        ]
    sizes = ", ".join(f"{test.name} n = {count(len(test))}" for test in tests)
    return (
        f'<div class="card"><h3>Accuracy by round</h3>{figure(accuracy_by_round(series))}'
        f'<p class="note">{escape(sizes)}</p></div>'
    )
