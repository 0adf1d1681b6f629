"""The command line: ``python -m masktune datasets | run | report | bench``."""

import argparse
import dataclasses
import json
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, get_args

from masktune.compute import DEVICES, first_process
from masktune.config import RunConfig, Strategy
from masktune.data.catalogue import CATALOGUE, card
from masktune.errors import ConfigError, MaskTuneError
from masktune.explainers import METHODS
from masktune.masking import Statistics
from masktune.pipeline import run
from masktune.recipes import RECIPES, recipe
from masktune.report import report_html
from masktune.runs import Cancelled, RunFolder
from masktune.terminal import shown
from masktune.view import view


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; give its exit code.

    0 on success, 2 for what the user can put right (one problem, one remedy on standard error),
    130 when interrupted, 143 when cancelled from outside.
    """
    previous = signal.signal(signal.SIGTERM, _cancel)
    try:
        chosen = _parser().parse_args(arguments)
        chosen.command(chosen)
    except MaskTuneError as error:
        _say(f"{error.problem}\n{error.remedy}".rstrip())
        return 2
    except KeyboardInterrupt:
        _say("Interrupted. The same command goes on from where it stopped.")
        return 130
    except Cancelled:
        _say("Cancelled. The same command goes on from where it stopped.")
        return 143
    finally:
        signal.signal(signal.SIGTERM, previous)
    return 0


class _Parser(argparse.ArgumentParser):
    """Explains a mistake like every other error, without a page of usage."""

    def error(self, message: str) -> NoReturn:
        raise ConfigError(
            f"{message[:1].upper()}{message[1:]}.", f"See {self.prog} --help for what is possible."
        )


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m masktune",
        description="Find the clue an image classifier leans on, hide it, finetune, compare.",
    )
    commands = parser.add_subparsers(required=True, metavar="datasets | run | report | bench")
    _add_run(commands.add_parser("run", help="train or load, hide, finetune for one epoch"))
    listing = commands.add_parser("datasets", help="list the datasets a run can use")
    listing.set_defaults(command=_datasets)
    writing = commands.add_parser("report", help="write report.html into a run folder")
    writing.add_argument("run", type=Path, help="folder of a finished run")
    writing.set_defaults(command=_report)
    measuring = commands.add_parser("bench", help="measure the ratios of benchmarks/")
    measuring.add_argument("--quick", action="store_true", help="fewer repetitions, rougher")
    measuring.set_defaults(command=_bench)
    for command in commands.choices.values():
        command.add_argument("--json", action="store_true", help="print one JSON document only")
    return parser


def _add_run(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("--dataset", required=True, help=f"one of {', '.join(CATALOGUE)}")
    add("--root", type=Path, help="folder of a dataset that is not bundled")
    add("--model", help="checkpoint to start from, or 'bundled'; without it a model is trained")
    add("--arch", help="architecture, such as small-cnn, resnet32 or a torchvision name")
    add("--layer", help="where heat is read; by default the last spatial feature map")
    add("--recipe", help=f"named settings, by default the dataset's: {', '.join(RECIPES)}")
    add("--epochs", type=int, help="epochs of the ERM training")
    add("--batch-size", type=int, help="pictures a step")
    add("--lr", type=float, help="learning rate of the ERM training")
    add("--strategy", help=f"what is hidden: {', '.join(get_args(Strategy))}")
    add("--k", type=float, help="threshold in sigmas above the mean heat, 0 to 3")
    add("--statistics", help=f"mu and sigma over: {', '.join(get_args(Statistics))}")
    add("--rounds", type=int, help="how often to mask and finetune")
    add("--accumulate", action=argparse.BooleanOptionalAction, help="later rounds hide in addition")
    add("--top-fraction", type=float, help="share of the pixels that topk hides")
    add("--method", help=f"explainer: {', '.join(METHODS)}")
    add("--finetune-lr", type=float, help="rate of the finetune; by default the ERM's last")
    add("--seed", type=int, default=0, help="the same seed gives the same result")
    add("--device", default="auto", help=f"one of {', '.join(DEVICES)}")
    add("--out", type=Path, help="run folder; by default a new one in $MASKTUNE_HOME/runs")
    command.set_defaults(command=_run)


def run_config(chosen: argparse.Namespace) -> RunConfig:
    """Give the settings of a run: what was asked for, over the recipe."""
    base = recipe(chosen.recipe or card(chosen.dataset).recipe)
    return RunConfig(
        dataset=chosen.dataset,
        recipe=base.name,
        arch=chosen.arch or base.arch,
        training=replace(base.training, **_given(chosen, "epochs", "batch_size", "lr")),
        masking=replace(
            base.masking,
            **_given(chosen, "strategy", "k", "statistics", "rounds", "accumulate"),
            **_given(chosen, "top_fraction", "method", "layer"),
        ),
        root=None if chosen.root is None else str(chosen.root),
        model=chosen.model,
        finetune_lr=chosen.finetune_lr,
        seed=chosen.seed,
        device=chosen.device,
    )


def _given(chosen: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Keep the settings that were given; the recipe decides the others."""
    return {name: value for name in names if (value := getattr(chosen, name)) is not None}


def _run(chosen: argparse.Namespace) -> None:
    config = run_config(chosen)
    if not first_process():
        run(config, out=chosen.out)
        return
    with shown() as watcher:
        result = run(config, out=chosen.out, watcher=watcher)
    if chosen.json:
        _print_json(result.document)
        return
    for name, scores in result.document["test"].items():
        _print(_sentence(name, scores))
    _print(f"Report: {result.folder / 'report.html'}")


def _datasets(chosen: argparse.Namespace) -> None:
    cards = [dataclasses.asdict(entry.card) for entry in CATALOGUE.values()]
    if chosen.json:
        _print_json({"datasets": cards})
        return
    for known in cards:
        _print(
            f"{known['key']:24}{'bundled' if known['bundled'] else 'needs --root or a download'}"
        )
        _print(f"    {known['summary']}")
        if known["layout"]:
            _print(f"    Layout: {known['layout']}.")


def _report(chosen: argparse.Namespace) -> None:
    RunFolder(chosen.run).write("report.html", report_html(view(chosen.run)).encode())
    path = str(chosen.run / "report.html")
    if chosen.json:
        _print_json({"report": path})
    else:
        _print(path)


def _bench(chosen: argparse.Namespace) -> None:
    try:
        from benchmarks.ratios import measure
    except ModuleNotFoundError as error:
        raise MaskTuneError(
            "The folder benchmarks/ is not here.", "Start this command in the repository."
        ) from error
    with shown() as watcher:
        ratios = measure(quick=chosen.quick, watcher=watcher)
    if chosen.json:
        _print_json(ratios.to_json())
    else:
        _print(str(ratios))


def _sentence(name: str, scores: dict[str, Any]) -> str:
    before, after = scores["before"], scores["after"]
    return (
        f"{name}: average {before['average']:.1%} before, {after['average']:.1%} after; "
        f"worst {after['worst_is']} {before['worst_group']:.1%} before, "
        f"{after['worst_group']:.1%} after ({after['worst_name']})"
    )


def _cancel(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise Cancelled


def _print_json(document: object) -> None:
    _print(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
