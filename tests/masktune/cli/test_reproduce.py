"""``python -m masktune reproduce --results``: what it collects, and from where."""

import json

import pytest

from masktune.cli.main import main
from tests.masktune.studies.tournament.test_table import TOLD


@pytest.fixture
def out(tmp_path):
    """Make a folder of experiments with tournaments and a grid in some states."""
    folder = tmp_path / "experiments"
    for name, kind, state in (
        ("digits", "tournament", "done"),
        ("unfinished", "tournament", "running"),
        ("strategies", "grid", "done"),
    ):
        (folder / name).mkdir(parents=True)
        (folder / name / "study.json").write_text(
            json.dumps({"kind": kind, "state": state, "table": TOLD})
        )
    return folder


def test_finished_tournaments_in_the_folder_of_experiments_reach_the_page(out, tmp_path, capsys):
    page = tmp_path / "results.md"

    assert main(["reproduce", "--results", str(page), "--out", str(out)]) == 0

    text = page.read_text()
    assert "## Methods side by side: digits" in text
    assert "unfinished" not in text
    assert "strategies" not in text
    (kept,) = (tmp_path / "results" / "tournaments").iterdir()
    assert kept.name == "digits.json"
    assert "/home/ada" not in kept.read_text()  # nor whose machine it was
    assert json.loads(kept.read_text())["name"] == "digits"
    assert capsys.readouterr().out.splitlines()[-1] == str(page)


def test_without_a_folder_it_is_the_home_s_experiments_and_not_what_the_app_tried(
    out, tmp_path, monkeypatch
):
    home = tmp_path / "home"
    monkeypatch.setenv("MASKTUNE_HOME", str(home))
    home.mkdir()
    out.rename(home / "reproductions")
    app = home / "studies" / "20261119-digits"
    app.mkdir(parents=True)
    (app / "study.json").write_text((home / "reproductions/digits/study.json").read_text())
    page = tmp_path / "results.md"

    assert main(["reproduce", "--results", str(page)]) == 0

    assert [path.name for path in (tmp_path / "results" / "tournaments").iterdir()] == [
        "digits.json"
    ]


def test_help_says_how_a_tournament_reaches_the_page(capsys):
    with pytest.raises(SystemExit):
        main(["reproduce", "--help"])

    assert "masktune tournament --out OUT/NAME" in " ".join(capsys.readouterr().out.split())
