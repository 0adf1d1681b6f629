"""Draw docs/packages.svg: which package imports which, read off the import graph.

``python docs/packages.py`` writes it; ``tests/test_docs.py`` fails when it is out of date.
"""

import sys
import tomllib
from pathlib import Path
from xml.sax.saxutils import escape

import grimp

HERE = Path(__file__).resolve().parent
ROW, LEFT, TOP = 26, 520, 112


def order() -> list[str]:
    """Return the packages from the pages (one row) to the errors, as the contract has them."""
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text("utf-8"))
    (contract,) = project["tool"]["importlinter"]["contracts"]
    names = [name.strip() for layer in contract["layers"] for name in layer.split("|")]
    return [*dict.fromkeys("app" if name.startswith("app.") else name for name in names)]


def arrows(names: list[str]) -> list[tuple[str, str]]:
    """Return each package with each other one that it imports something of."""
    sys.path.insert(0, str(HERE.parent))  # a script has its own folder on the path only
    graph = grimp.build_graph("masktune", "app", cache_dir=None)

    def package(module: str) -> str | None:
        return next((n for n in names if module == n or module.startswith(f"{n}.")), None)

    found = set()
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            both = package(module), package(imported)
            if both[0] and both[1] and both[0] != both[1]:
                found.add((both[0], both[1]))
    return sorted(found)


def title(name: str) -> str:
    """Return the first line of a package's docstring."""
    path = HERE.parent / name.replace(".", "/")
    text = (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text("utf-8")
    return text.split('"""')[1].splitlines()[0] if '"""' in text else ""


def svg() -> str:
    """Return the picture: a row a package, a dot where it imports the package of the column."""
    names = order()
    width, height = LEFT + ROW * len(names) + 20, TOP + ROW * len(names) + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="12" fill="#14201D">',
        f'<rect width="{width}" height="{height}" fill="#FFFFFF"/>',
    ]
    for row, name in enumerate(names):
        y, x = TOP + ROW * row, LEFT + ROW * row
        short = name.removeprefix("masktune.")
        parts.append(f'<rect x="{x}" y="{y}" width="{ROW}" height="{ROW}" fill="#EBF0EE"/>')
        parts.append(f'<text x="10" y="{y + 17}" font-weight="bold">{escape(short)}</text>')
        parts.append(f'<text x="92" y="{y + 17}" fill="#53625E">{escape(title(name)[:72])}</text>')
        parts.append(
            f'<text transform="translate({x + 17} {TOP - 8}) rotate(-55)">{escape(short)}</text>'
        )
    for importer, imported in arrows(names):
        x = LEFT + ROW * names.index(imported) + ROW / 2
        y = TOP + ROW * names.index(importer) + ROW / 2
        parts.append(
            f'<circle cx="{x}" cy="{y}" r="5" fill="#0B6E62">'
            f"<title>{escape(importer)} imports {escape(imported)}</title></circle>"
        )
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    (HERE / "packages.svg").write_text(svg(), "utf-8")
