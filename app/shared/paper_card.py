"""The paper's figures beside a run of one of its recipes, on Compare and Abstain."""

from collections.abc import Sequence
from html import escape

import streamlit as st

from app.shared.problems import plain
from app.shared.sheets import show
from masktune.files import csv_bytes
from masktune.runs.open import RunView
from masktune.show.wording import percent, points
from masktune.studies.beside import Beside, beside, differences

WHOSE = {"before": "before (ERM)", "after": "after", "joint": "joint"}


def show_paper(view: RunView, *, selective: bool) -> None:
    """Draw the card; nothing for runs that the paper has no figure for.

    Args:
        view: the run.
        selective: errors at a coverage, or else accuracies.
    """
    rows = [
        row
        for row in beside(view.config, view.document)
        if (row.printed.target is not None) == selective
    ]
    if not rows:
        return
    with st.container(key=f"card_paper_{'abstain' if selective else 'compare'}"):
        st.header(
            "Beside the paper",
            anchor=False,
            help="What the NeurIPS 2022 paper prints for this recipe. It repeats each experiment "
            "three times; this is one run. `python -m masktune reproduce` repeats it in full.",
        )
        show(rows_html(rows))
        st.caption(plain(caption(view)))
        st.download_button(
            "Beside the paper (CSV)",
            rows_csv(rows),
            file_name="beside-the-paper.csv",
            icon=":material/download:",
        )


def caption(view: RunView) -> str:
    """Say how far the run is the paper's experiment."""
    told = differences(view.config)
    subset = [f for f in view.bundle.findings if "subset of" in f]
    if not told and not subset:
        return "The settings are the recipe's. One run is one seed."
    settings = f"Not the paper's settings: {'; '.join(told)}. " if told else ""
    return f"{settings}{' '.join(subset)} Do not read the difference as a failure to repeat."


def rows_html(rows: Sequence[Beside]) -> str:
    """Give the table: what, the paper's figure with its spread, ours, the difference in points."""
    lines = []
    for row in rows:
        printed = row.printed
        spread = "" if printed.std is None else f" <small>± {100 * printed.std:.2f}</small>"
        lines.append(
            f"<tr><td><b>{escape(printed.title)}</b><small>{escape(printed.test)}, "
            f"{WHOSE[printed.moment]}</small></td><td>{percent(printed.value)}{spread}</td>"
            f"<td>{percent(row.ours)}</td><td>{points(row.difference)}</td>"
            f'<td class="left"><small>{escape(printed.source)}</small></td></tr>'
        )
    return (
        "<table><thead><tr><th>What</th><th>Paper</th><th>This run</th><th>Points</th>"
        f'<th class="left">Where</th></tr></thead><tbody>{"".join(lines)}</tbody></table>'
    )


def rows_csv(rows: Sequence[Beside]) -> bytes:
    """Give the same as CSV, fractions in [0, 1]."""
    heads = ("what", "test set", "model", "paper", "paper std", "this run", "source")
    return csv_bytes(
        heads,
        (
            (
                row.printed.title,
                row.printed.test,
                row.printed.moment,
                row.printed.value,
                row.printed.std,
                row.ours,
                row.printed.source,
            )
            for row in rows
        ),
    )
