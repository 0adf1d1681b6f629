"""The paper's figures beside a run of one of its recipes, on Compare and Abstain."""

from collections.abc import Sequence

import streamlit as st

from app.shared.pieces import card, download
from app.shared.problems import plain
from app.shared.sheets import show
from masktune.runs.open import OpenRun
from masktune.show.tables import Cell, Column, Table, csv, html, share_cell
from masktune.show.wording import percent, points
from masktune.studies.beside import Beside, beside, differences

WHOSE = {"before": "before (ERM)", "after": "after", "joint": "joint"}


def show_paper(view: OpenRun, *, selective: bool) -> None:
    """Draw errors at a coverage, or else accuracies; nothing where the paper has no figure."""
    rows = [
        row
        for row in beside(view.config, view.result)
        if (row.printed.target is not None) == selective
    ]
    if not rows:
        return
    with card(
        f"paper_{'abstain' if selective else 'compare'}",
        "Beside the paper",
        hint="What the NeurIPS 2022 paper prints for this recipe. It repeats each experiment "
        "three times; this is one run. `python -m masktune reproduce` repeats it in full.",
    ):
        table = paper_table(rows)
        show(html(table))
        st.caption(plain(caption(view)))
        download("Beside the paper (CSV)", csv(table), "beside-the-paper.csv", prominent=True)


def caption(view: OpenRun) -> str:
    """Say how far the run is the paper's experiment."""
    told = differences(view.config, view.result)
    subset = [f for f in view.result.data.findings if "subset of" in f]
    if not told and not subset:
        return "The settings are the recipe's. One run is one seed."
    settings = f"Not the paper's settings: {'; '.join(told)}. " if told else ""
    return f"{settings}{' '.join(subset)} Do not read the difference as a failure to repeat."


def paper_table(rows: Sequence[Beside]) -> Table:
    """Show the paper's figure with its spread, ours, and the difference in points."""
    return Table(
        name="Beside the paper",
        columns=(
            Column("What", ("what", "test set", "model")),
            Column("Paper", ("paper", "paper std")),
            Column("This run", ("this run",)),
            Column("Points", ()),
            Column("Where", ("source",), left=True),
        ),
        rows=[
            (
                Cell(
                    printed.title,
                    f"{printed.test}, {WHOSE[printed.moment]}",
                    (printed.title, printed.test, printed.moment),
                    strong=True,
                ),
                Cell(
                    percent(printed.value),
                    "" if printed.std is None else f"± {100 * printed.std:.2f}",
                    (printed.value, printed.std),
                ),
                share_cell(row.ours),
                Cell(points(row.difference)),
                Cell(small=printed.source, values=(printed.source,)),
            )
            for row, printed in ((row, row.printed) for row in rows)
        ],
    )
