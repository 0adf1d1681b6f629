"""The files of a tournament: its table in several forms, and a page of its own."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import plotly.graph_objects as go
from markupsafe import Markup

from masktune.report.filled import section
from masktune.report.page import study_html
from masktune.runs.folder import RunFolder
from masktune.show.figures import MethodScore, scores_by_method
from masktune.show.markup import figure
from masktune.show.tables import Cell, Column, Table, csv, html, latex
from masktune.studies.tournament.abstaining import NOTES, TITLE, tables_of
from masktune.studies.tournament.table import (
    markdown_page,
    notes,
    rates_of,
    table_of,
    tried_table,
    verdicts,
    worst_name,
)

ABSTAINING = "abstaining.csv"
"""File of what methods come to when they may abstain; older tournaments have none."""


def write(told: Mapping[str, Any], folder: RunFolder) -> None:
    """Write the files of a finished tournament beside ``study.json``."""
    table = table_of(told)
    folder.write("table.csv", csv(table))
    folder.write("table.md", markdown_page(told).encode())
    if tables := tables_of(told):
        folder.write(ABSTAINING, csv(*tables))
    folder.write("table.tex", "\n".join(map(_tex, [table, *tables])).encode())
    folder.write("report.html", page_html(told).encode())


def _tex(table: Table) -> str:
    return f"% {table.name}\n{latex(table)}"


def page_html(told: Mapping[str, Any], *, made: datetime | None = None) -> str:
    """Return the page of a tournament, which opens offline, made now or then."""
    seeds = ", ".join(map(str, told["seeds"]))
    moment = made or datetime.now(UTC)
    command, *options = told["command"].split(" --")
    which = "seed" if len(told["seeds"]) == 1 else "seeds"
    pairs = {
        **told["given"],
        **{name: told[name] for name in ("recipe", "arch")},
        **{name: _text(value) for name, value in told["training"].items()},
        "ks": _text(told["ks"]) or "as usual",
        "rates": _text(told["rates"]),
        **{f"{name}, tried": _text(values) for name, values in told.get("tries", {}).items()},
        which: seeds,
    }
    settings = Table(
        name="settings",
        columns=(Column("Setting"), Column("Value")),
        rows=[(Cell(name), Cell(str(value))) for name, value in pairs.items()],
    )
    waiting = sum(one["state"] != "done" for one in told["runs"])
    unfinished = f" {waiting} of {len(told['runs'])} runs are not done yet." if waiting else ""
    rates = rates_of(told)
    hint, *words = notes(told)[len(rates) :]
    further = _abstaining(tables_of(told))
    shown = html(table_of(told), saved=True)
    charts = [
        section("card", title=f"Test set “{test}”", content=figure(worst_figure(told, test)))
        for test in told["worst_is"]
    ]
    return study_html(
        title=told["title"],
        what="methods side by side",
        lead=f"{len(told['methods'])} methods side by side, {which} {seeds}.{unfinished}",
        dates=f"Made {moment:%d %B %Y, %H:%M} UTC.",
        sections={
            "Methods": section(
                "methods", hint=hint, verdicts=[*verdicts(told), *rates], table=shown, words=words
            ),
            f"Worst {worst_name(told)}": section("row", cards=charts),
            **({TITLE: further} if further else {}),
            "What was tried": section(
                "card", title="Validation decides", content=html(tried_table(told), saved=True)
            ),
            "Settings and origin": section(
                "study", command=command, options=options, words=[], settings=html(settings)
            ),
        },
    )


def _abstaining(tables: Sequence[Table]) -> Markup | None:
    if not tables:
        return None
    hint, *words = NOTES
    shown = Markup().join(html(table, saved=True) for table in tables)
    return section("methods", hint=hint, verdicts=(), table=shown, words=words)


def _text(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(_text(one) for one in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def worst_figure(told: Mapping[str, Any], test: str) -> go.Figure:
    """Draw the worst group of a test set by method."""
    scores = []
    for row in told["rows"]:
        score = row["test"][test]["worst_group"]
        bounds = score["interval"]
        scores.append(
            MethodScore(
                row["title"],
                f"n = {score['n']}",
                score["mean"],
                None if bounds is None else (bounds[0], bounds[1]),
            )
        )
    return scores_by_method(scores, what=f"worst {told['worst_is'][test]}")
