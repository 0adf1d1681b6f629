"""``python -m masktune reproduce``."""

import argparse
import json
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

from masktune.cli.terminal import answer, first_process, shown
from masktune.compute import DEVICES
from masktune.datasets.catalogue import CATALOGUE, load
from masktune.errors import ConfigError, DataError, check_choice
from masktune.files import home, replace_file
from masktune.recipes import RECIPES, Scale
from masktune.runs.index import REPRODUCTIONS
from masktune.runs.queue import STUDY
from masktune.studies.experiments import EXPERIMENTS
from masktune.studies.figures_of_rivals import FIGURES
from masktune.studies.repeat import TABLE, reproduce
from masktune.studies.reproduce import Request, folder_of
from masktune.studies.results_page import TOURNAMENTS, collect, markdown, results_page
from masktune.studies.tournament.table import kept as kept_tournament
from masktune.training.methods import RIVALS


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add every option."""
    add = command.add_argument
    add("recipe", nargs="?", help=f"one of {', '.join(EXPERIMENTS)}")
    add(
        "--list",
        action="store_true",
        help="say what each experiment needs and whether it is in --root",
    )
    add("--scale", default="paper", help=f"how much work: {', '.join(get_args(Scale))}")
    add("--seeds", type=int, help="how many repetitions; by default the recipe's three")
    add("--root", type=Path, help="where the dataset lies")
    add("--model", type=Path, help="an ERM checkpoint to start from instead of training one")
    add(
        "--given",
        action="append",
        type=_named_file,
        metavar="NAME=FILE",
        help="released weights that imagenet9-table has a row of, SIN=FILE or IN+SIN=FILE: asked, "
        "not trained",
    )
    add(
        "--validation",
        default="own",
        help="what validates: own, or test: half of the test pictures, for a --model that has "
        "seen all others",
    )
    add("--exceptions", help="of the pictures: random or authors; by default the recipe's")
    add("--stamp", help="on photographs: two-sided, one-sided or none; by default the recipe's")
    add("--correlation", type=float, help="share of a class that carries its stamp")
    add("--arch", help="another network, without the recipe's weights and frozen layers")
    add("--freeze", help="none, body or the layer up to which nothing is learnt")
    add("--augment", help="none or names as of run; by default the recipe's")
    add(
        "--weights",
        type=Path,
        help="pretrained weights: a file, where there is no network, or a name as of run",
    )
    add("--device", default="auto", help=f"one of {', '.join(DEVICES)}")
    add("--out", type=Path, help="folder of all experiments; by default in $MASKTUNE_HOME")
    add(
        "--results",
        type=Path,
        metavar="PAGE.md",
        help="collect what is finished in the folder of all experiments in this Markdown page "
        "instead: their tables, and the tournaments there, of masktune tournament --out OUT/NAME; "
        "those of the app are left where they are",
    )


def _named_file(text: str) -> tuple[str, str]:
    """Return a name and a file from NAME=FILE."""
    name, _, file = text.partition("=")
    if not (name and file):
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=FILE")
    return name, file


def carry_out(chosen: argparse.Namespace) -> None:
    """Carry out the command; of several processes only the first writes."""
    out = chosen.out or home() / REPRODUCTIONS
    if chosen.list:
        _list(chosen)
    elif chosen.results is not None:
        if first_process():
            _collect(chosen, out)
    elif chosen.recipe is None:
        raise ConfigError(
            "No experiment is named.", f"Name one of {', '.join(EXPERIMENTS)}, or use --list."
        )
    else:
        _repeat(chosen, out)


def _request(chosen: argparse.Namespace) -> Request:
    check_choice("scale", chosen.scale, get_args(Scale))
    given: dict[str, Any] = {}
    for field in fields(Request):
        value = getattr(chosen, field.name)
        given[field.name] = str(value) if isinstance(value, Path) else value
    return Request(**{**given, "given": tuple(chosen.given or ())})


def _repeat(chosen: argparse.Namespace, out: Path) -> None:
    request = _request(chosen)
    with shown() as watcher:
        table = reproduce(request, out=out, watcher=watcher)
    if first_process():  # the others may read what the first is still writing
        made = folder_of(request, out=out) / TABLE
        answer(chosen, table, markdown(table), f"Table: {made}")


def _collect(chosen: argparse.Namespace, out: Path) -> None:
    """Copy finished tables beside the page, and write the page from all that lie there."""
    target: Path = chosen.results
    kept = target.parent / target.stem
    kept.mkdir(parents=True, exist_ok=True)
    for path in sorted(out.glob(f"*/{TABLE}")):
        table = json.loads(path.read_text("utf-8"))
        if table["scale"] != "tiny":  # tests, not results
            _write(kept / f"{path.parent.name}.json", _json(table))
    for path in sorted(out.glob(f"*/{STUDY}")):
        study = json.loads(path.read_text("utf-8"))
        if study["kind"] == "tournament" and study["state"] == "done":
            (kept / TOURNAMENTS).mkdir(exist_ok=True)
            name = path.parent.name
            _write(
                kept / TOURNAMENTS / f"{name}.json", _json(kept_tournament(study["table"], name))
            )
    _write(target, results_page(kept))
    answer(chosen, {"results": str(target), "tables": len(collect(kept))}, str(target))


def _write(path: Path, text: str) -> None:
    with replace_file(path) as file:
        file.write(text.encode())


def _json(table: dict[str, Any]) -> str:
    return json.dumps(table, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _list(chosen: argparse.Namespace) -> None:
    root = chosen.root or home() / "data"  # where downloads go
    known = [
        {
            "recipe": name,
            "dataset": RECIPES[name].dataset,
            **_presence(name, root),
            "own_figures": [RIVALS[rival].title for rival in FIGURES.get(name, ())],
        }
        for name in EXPERIMENTS
    ]
    answer(chosen, {"recipes": known}, *(line for row in known for line in _listed(row)))


def _listed(row: dict[str, Any]) -> list[str]:
    lines = [f"{row['recipe']:29}{row['dataset']:24}{row['state']}", f"    {row['needs']}"]
    if own := row["own_figures"]:
        lines.append(
            f"    at scale paper {', '.join(own)} by the figures of their own code, else by the "
            "recipe"
        )
    return lines


def _presence(name: str, root: Path) -> dict[str, str]:
    """Say what an experiment needs and whether it is here."""
    recipe = RECIPES[name]
    card = CATALOGUE[recipe.dataset]
    if card.bundled:
        return {"state": "present", "needs": "nothing: the pictures are bundled"}
    needs = f"--root with {card.layout}"
    if card.download:
        needs += f"; or a network to download {card.download}"
    if recipe.arch.startswith("timm/"):
        needs += "; the package timm (pip install timm)"
    if recipe.weights is not None:
        needs += f"; {recipe.weights} (downloaded, or by --weights)"
        needs += " at scale paper" if recipe.at("short").weights is None else ""
    for place in (root, root / recipe.dataset):
        try:
            load(recipe.dataset, root=place)
        except DataError:
            continue
        return {"state": f"present in {place}", "needs": needs}
    return {"state": f"not in {root}", "needs": needs}
