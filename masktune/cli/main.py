"""The command line: ``python -m masktune run`` and what goes with it."""

import argparse
import dataclasses
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, get_args

from masktune.checkpoints.inspect import diagnose
from masktune.checkpoints.settings import add_options, run_config
from masktune.cli.advise import add_advise_arguments, advise
from masktune.cli.reproduce import add_reproduce_arguments, reproduce
from masktune.cli.terminal import print_json, print_text, shown
from masktune.compute import first_process
from masktune.datasets.catalogue import CATALOGUE
from masktune.errors import ConfigError, MaskTuneError, ModelError
from masktune.files import write_new
from masktune.pipeline import run
from masktune.report.page import report_html
from masktune.runs.answers import answers_csv
from masktune.runs.export import Layout, weights_bytes
from masktune.runs.folder import Cancelled, RunFolder
from masktune.runs.masked import write_masks
from masktune.runs.open import tuned, view

LAYOUTS = get_args(Layout)


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
    commands = parser.add_subparsers(
        required=True,
        metavar="datasets | run | advise | inspect | masks | weights | predictions | report | "
        "reproduce | bench",
    )
    running = commands.add_parser("run", help="train or load, hide, finetune for one epoch")
    add_options(running)
    running.add_argument(
        "--out", type=Path, help="run folder; by default a new one in $MASKTUNE_HOME/runs"
    )
    running.set_defaults(command=_run)
    # Unabbreviated, or --k, which a run has, would be taken for --ks.
    advising = commands.add_parser("advise", help="suggest a threshold k", allow_abbrev=False)
    add_advise_arguments(advising)
    advising.set_defaults(command=advise)
    listing = commands.add_parser("datasets", help="list the datasets a run can use")
    listing.set_defaults(command=_datasets)
    looking = commands.add_parser("inspect", help="say what a checkpoint file holds and fits")
    looking.add_argument("file", type=Path, help="a .pt, .pth, .th, .ckpt or .safetensors file")
    looking.add_argument("--arch", help="try this architecture only")
    looking.set_defaults(command=_inspect)
    for name, (help_, export) in _EXPORTS.items():
        giving = commands.add_parser(name, help=help_)
        giving.add_argument("run", type=Path, help="folder of a finished run")
        giving.add_argument("--export", type=Path, required=True, help="where to write")
        giving.add_argument("--arch", help=_OWN_ARCH)
        if name == "weights":
            giving.add_argument("--layout", default="original", help=f"one of {', '.join(LAYOUTS)}")
        giving.set_defaults(command=export)
    repeating = commands.add_parser("reproduce", help="repeat an experiment of the paper")
    add_reproduce_arguments(repeating)
    repeating.set_defaults(command=reproduce)
    writing = commands.add_parser("report", help="write report.html into a run folder")
    writing.add_argument("run", type=Path, help="folder of a finished run")
    writing.add_argument("--arch", help=_OWN_ARCH)
    writing.set_defaults(command=_report)
    measuring = commands.add_parser("bench", help="measure the ratios of benchmarks/")
    measuring.add_argument("--quick", action="store_true", help="fewer repetitions, rougher")
    measuring.set_defaults(command=_bench)
    for command in commands.choices.values():
        command.add_argument("--json", action="store_true", help="print one JSON document only")
    return parser


def _run(chosen: argparse.Namespace) -> None:
    config = run_config(chosen)
    if not first_process():
        run(config, out=chosen.out)
        return
    with shown() as watcher:
        result = run(config, out=chosen.out, watcher=watcher)
    if chosen.json:
        print_json(result.document)
        return
    for sentence in result.document.get("data", {}).get("findings", ()):
        print_text(sentence)
    for name, scores in result.document["test"].items():
        print_text(_sentence(name, scores))
    if gaps := result.document.get("bg_gap"):
        print_text(f"BG-gap: {gaps['before']:.1%} before, {gaps['after']:.1%} after")
    print_text(f"Report: {result.folder / 'report.html'}")


def _datasets(chosen: argparse.Namespace) -> None:
    cards = [dataclasses.asdict(entry.card) for entry in CATALOGUE.values()]
    if chosen.json:
        print_json({"datasets": cards})
        return
    for known in cards:
        where = "bundled" if known["bundled"] else "needs --root"
        if known["download"]:
            where += f", or downloads {known['download']}"
        print_text(f"{known['key']:24}{where}")
        print_text(f"    {known['summary']}")
        if known["layout"]:
            print_text(f"    Layout: {known['layout']}.")


def _inspect(chosen: argparse.Namespace) -> None:
    found = diagnose(chosen.file, arch=chosen.arch)
    if chosen.json:
        print_json(found.to_json())
    else:
        print_text(found.text())
    if not found.ok:
        raise ModelError(found.problem, found.remedy)


def _masks(chosen: argparse.Namespace) -> None:
    with shown() as watcher:
        written = write_masks(view(chosen.run, arch=chosen.arch), chosen.export, watcher=watcher)
    _exported(chosen, pictures=written)


def _weights(chosen: argparse.Namespace) -> None:
    if chosen.layout not in LAYOUTS:
        raise ConfigError(
            f"There is no layout '{chosen.layout}'.", f"Choose {' or '.join(LAYOUTS)}."
        )
    write_new(
        chosen.export,
        weights_bytes(tuned(chosen.run, arch=chosen.arch), layout=chosen.layout)[1],
    )
    _exported(chosen, layout=chosen.layout)


def _predictions(chosen: argparse.Namespace) -> None:
    write_new(chosen.export, answers_csv(view(chosen.run, arch=chosen.arch)))
    _exported(chosen)


def _exported(chosen: argparse.Namespace, **facts: object) -> None:
    if chosen.json:
        print_json({"export": str(chosen.export), **facts})
    else:
        print_text(str(chosen.export))


_OWN_ARCH = "package.module:factory, for a run of a model class of your own"
_EXPORTS = {
    "masks": ("write keep maps and masked pictures as PNG files", _masks),
    "weights": (
        "write the tuned weights, by default in the layout of the file that came",
        _weights,
    ),
    "predictions": ("write every answer of both models as CSV", _predictions),
}


def _report(chosen: argparse.Namespace) -> None:
    RunFolder(chosen.run).write(
        "report.html", report_html(view(chosen.run, arch=chosen.arch)).encode()
    )
    path = str(chosen.run / "report.html")
    if chosen.json:
        print_json({"report": path})
    else:
        print_text(path)


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
        print_json(ratios.to_json())
    else:
        print_text(str(ratios))


def _sentence(name: str, scores: dict[str, Any]) -> str:
    before, after = scores["before"], scores["after"]
    return (
        f"{name}: average {before['average']:.1%} before, {after['average']:.1%} after; "
        f"worst {after['worst_is']} {before['worst_group']:.1%} before, "
        f"{after['worst_group']:.1%} after ({after['worst_name']})"
    )


def _cancel(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise Cancelled


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
