"""The report of a run: one HTML page that opens offline, in light and dark, and prints.

It carries its own Plotly and its own pictures and asks no host for anything. It is made anew
whenever somebody asks for it: controls, a name and a note come later than the run.
"""

from collections.abc import Mapping
from datetime import UTC, datetime

from markupsafe import Markup
from plotly.offline import get_plotlyjs

from masktune.report.abstained import abstained
from masktune.report.accuracy import by_class, by_group, in_short
from masktune.report.filled import TEMPLATES
from masktune.report.origin import about, beside_controls, dates, settings_and_origin
from masktune.report.seen import before_the_epoch, what_it_leans_on, what_was_hidden, where_it_looks
from masktune.runs.open import OpenRun
from masktune.show.markup import templates
from masktune.show.wording import method_words


def study_html(
    *, title: str, what: str, lead: str, dates: str, sections: Mapping[str, Markup]
) -> str:
    """Return a page about many runs in the manner of a report.

    Args:
        title: of the page.
        what: kind of page, for the browser's tab.
        lead: what it is about, one or two sentences.
        dates: when it was made.
        sections: by their titles.
    """
    return (
        templates(TEMPLATES)
        .get_template("study.html")
        .render(
            title=title,
            what=what,
            lead=lead,
            dates=dates,
            name="",
            note="",
            sections=sections,
            plotly=get_plotlyjs(),
        )
    )


def report_html(view: OpenRun, *, made: datetime | None = None) -> str:
    """Return the report of a finished run as one self-contained HTML page, made now or then."""
    tests = [*view.tests.values()]
    return (
        templates(TEMPLATES)
        .get_template("report.html")
        .render(
            title=view.title,
            summary=view.bundle.card.summary,
            **about(view),
            method=method_words(view.config),
            arch=view.before.arch,
            seed=view.config.seed,
            dates=dates(view, made or datetime.now(UTC)),
            sections={
                "In short": in_short(view, tests),
                **beside_controls(view),
                "Accuracy by group": by_group(view, tests),
                "What it leans on": what_it_leans_on(view),
                **before_the_epoch(view),
                "Where it looks": where_it_looks(view, tests),
                "What was hidden": what_was_hidden(view, tests),
                "Abstained": abstained(view, tests),
                "Change by class": by_class(tests),
                "Settings and origin": settings_and_origin(view),
            },
            plotly=get_plotlyjs(),
        )
    )
