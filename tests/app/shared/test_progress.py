"""Progress of what a page itself does."""

from streamlit.testing.v1 import AppTest


def page():
    from app.shared.progress import shown_progress
    from masktune.progress import Progress

    with shown_progress("Trying the thresholds", unit="") as watch:
        watch(Progress(stage="sweep", done=340, total=900))
        raise RuntimeError  # so that what was drawn last is seen


def test_shares_of_parts_are_told_in_percent(monkeypatch):
    told = []
    monkeypatch.setattr(
        "streamlit.delta_generator.DeltaGenerator.progress",
        lambda _, __, *, text: told.append(text),
    )

    AppTest.from_function(page).run()

    assert told == ["Trying the thresholds: 38%"]
