"""For the datasets: a home of their own, where verdicts on files and downloads are kept."""

import pytest


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("MASKTUNE_HOME", str(folder))
    return folder
