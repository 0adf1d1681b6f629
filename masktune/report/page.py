"""The report of a run: one HTML page that opens offline, in light and dark.

It carries its own Plotly and its own pictures and asks no host for anything.
"""

from html import escape
from pathlib import Path
from string import Template

from plotly.offline import get_plotlyjs

from masktune.report.abstained import held_back
from masktune.report.accuracy import by_class, by_group, in_short
from masktune.report.origin import settings_and_origin
from masktune.report.scored import score_tests
from masktune.report.seen import what_was_hidden, where_it_looks
from masktune.runs.open import RunView
from masktune.show.wording import method_words

TEMPLATES = Path(__file__).with_name("templates")


def report_html(view: RunView) -> str:
    """Give the report of a run as one self-contained HTML page."""
    tests = score_tests(view)
    return _page(
        view,
        {
            "In short": in_short(tests),
            "Accuracy by group": by_group(view, tests),
            "Where it looks": where_it_looks(view, tests),
            "What was hidden": what_was_hidden(view, tests),
            "Held back": held_back(view, tests),
            "Change by class": by_class(view, tests),
            "Settings and origin": settings_and_origin(view),
        },
    )


def _page(view: RunView, sections: dict[str, str]) -> str:
    card = view.bundle.card
    links = "".join(f'<a href="#{_anchor(name)}">{name}</a>' for name in sections)
    parts = "".join(
        f'<section id="{_anchor(name)}"><h2>{name}</h2>{content}</section>'
        for name, content in sections.items()
    )
    body = (
        f'<header><div class="mark">MaskTune Studio</div><h1>{escape(card.title)}</h1>'
        f'<p class="lead">{escape(method_words(view.config.masking))}. '
        f"Model {escape(view.before.arch)}, seed {view.config.seed}. {escape(card.summary)}</p>"
        f'<nav aria-label="Sections">{links}</nav></header><main>{parts}</main>'
    )
    return Template(_template("report.html")).substitute(
        title=escape(f"{card.title}: report of a MaskTune run"),
        style=_template("report.css"),
        script=_template("report.js"),
        plotly=get_plotlyjs(),
        body=body,
    )


def _template(name: str) -> str:
    return (TEMPLATES / name).read_text("utf-8")


def _anchor(name: str) -> str:
    return name.lower().replace(" ", "-")
