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
def test_pages_are_imported_by_none_but_their_own_folder(path):
    folder = path.relative_to(ROOT / "app").parts[0]
    pages = {p.parent.name for p in (ROOT / "app").glob("*/page.py")} - {folder}

    assert not [
        name for name in imports(path) if name.startswith("app.") and name.split(".")[1] in pages
    ]
