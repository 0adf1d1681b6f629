"""Imports go downwards only: pages, components, state and jobs, the core."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CORE = sorted((ROOT / "masktune").rglob("*.py"))
APP = sorted((ROOT / "app").rglob("*.py"))


def imports(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {node.module or "", *(f"{node.module}.{a.name}" for a in node.names)}
    return names


@pytest.mark.parametrize("path", CORE, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_the_core_knows_nothing_of_the_page(path):
    assert not [name for name in imports(path) if name.split(".")[0] in ("streamlit", "app")]


@pytest.mark.parametrize("path", APP, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_pages_stand_on_components_and_never_on_pages(path):
    below = path.relative_to(ROOT / "app").parts[0]
    seen = imports(path)

    assert not [name for name in seen if name.startswith("app.app_pages")]
    if below != "components" and below != "app_pages" and path.name != "main.py":
        assert not [name for name in seen if name.startswith("app.components")]


def test_jobs_know_nothing_of_streamlit():
    assert not [name for name in imports(ROOT / "app" / "jobs.py") if name.startswith("streamlit")]
    assert not [n for n in imports(ROOT / "app" / "subject.py") if n.startswith("streamlit")]


@pytest.mark.parametrize("path", [*CORE, *APP], ids=lambda p: p.relative_to(ROOT).as_posix())
def test_a_file_holds_one_idea(path):
    assert len(path.read_text("utf-8").splitlines()) <= 400
