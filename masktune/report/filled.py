"""The report's templates, filled in."""

from pathlib import Path

from markupsafe import Markup

from masktune.show.markup import templates

TEMPLATES = Path(__file__).with_name("templates")


def section(macro: str, /, **values: object) -> Markup:
    """Return a macro of sections.html, filled in; every text is escaped."""
    found = templates(TEMPLATES).get_template("sections.html").module
    drawn: Markup = getattr(found, macro)(**values)
    return drawn
