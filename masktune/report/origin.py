"""Sections on where a run comes from: its controls and settings, and how to repeat it."""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from markupsafe import Markup

from masktune.config import MASKTUNE, MaskingConfig
from masktune.data.fingerprint import fingerprint
from masktune.errors import MaskTuneError
from masktune.heat.strategies import CONTROLS
from masktune.report.filled import section
from masktune.runs import jobs
from masktune.runs.folder import BEFORE, RunFolder
from masktune.runs.jobs import repeat_command
from masktune.runs.open import OpenRun
from masktune.runs.resume import AFTER
from masktune.scores.evidence import Direction
from masktune.scores.result import RunResult
from masktune.show.results import weigh_control
from masktune.show.tables import Cell, Column, Table, accuracy_cell, html
from masktune.show.wording import (
    NOTHING,
    control_words,
    count,
    duration,
    masking_words,
    method_words,
    percent,
)


def beside_controls(view: OpenRun) -> dict[str, Markup]:
    """Show the controls with the same start beside the run; "not there" where there are none.

    A rival has no controls, and no such section.
    """
    if view.config.rival != MASKTUNE:
        return {}
    found, own = controls(view), view.config.masking
    runs: list[tuple[str, RunResult | None]] = [
        (f"{method_words(view.config)} (this run)", view.result)
    ]
    for strategy in CONTROLS:
        if strategy == own.strategy:
            continue
        if (control := found.get(strategy)) is not None:
            runs.append((masking_words(control.config.masking), control.result))
        else:
            wanted = MaskingConfig(strategy=strategy, rounds=own.rounds)
            runs.append((masking_words(wanted), None))
    columns = [Column("Run"), Column("Test set")]
    for what in ("Worst before", "Worst after", "Average before", "Average after"):
        columns.append(Column(what, (what, f"{what}, low", f"{what}, high")))
    rows = [
        [Cell(words), Cell(name), *_scores(result, name)]
        for name in view.result.test
        for words, result in runs
    ]
    missing = [words for words, result in runs if result is None]
    told = (
        f"Not there beside this run when the report was written: {'; '.join(missing)}. Without "
        "them nobody can tell how much of the change comes from one more epoch alone."
        if missing
        else "The newest finished run of each, from the folder that this run lies in."
    )
    table = Table(name="controls", columns=columns, rows=rows)
    shown = section(
        "controls",
        table=html(table, saved=True),
        words=[*(text for _, text in control_parts(view)), told],
    )
    return {"Controls": shown}


def _scores(result: RunResult | None, test: str) -> list[Cell]:
    both = None if result is None else result.test.get(test)
    if both is None:
        return [Cell("not there", values=(None, None, None))] * 4
    moments = (both.before, both.after)
    averages = [moment.average for moment in moments]
    worst = [accuracy_cell(moment.worst) for moment in moments]
    return [
        *(
            replace(cell, small=f"{cell.small}, n = {count(moment.worst.count)}")
            for cell, moment in zip(worst, moments, strict=True)
        ),
        *(Cell(percent(average), values=(average, None, None)) for average in averages),
    ]


def control_parts(view: OpenRun) -> list[tuple[Direction, str]]:
    """Say what a run came to beside each of its controls; nothing of a run that is one itself."""
    found = {} if view.config.masking.strategy in CONTROLS else controls(view)
    return [
        control_words(test.name, control.config.masking, evidence)
        for test in view.tests.values()
        for control in found.values()
        if (evidence := weigh_control(control, test)) is not None
    ]


def controls(view: OpenRun) -> dict[str, OpenRun]:
    """Return the newest finished control of each kind beside a run."""
    stored = [path for path in view.path.parent.glob("*/result.json") if path.parent != view.path]
    listed: list[jobs.Job] = []
    for path in sorted(stored, key=lambda path: path.stat().st_mtime):
        # A folder that cannot be read is no control; whoever opens it is told why.
        with suppress(MaskTuneError):
            listed.append(jobs.look(path.parent))
    found: dict[str, OpenRun] = {}
    for job in jobs.controls_of(jobs.look(view.path), listed) if listed else ():
        with suppress(MaskTuneError):
            result = RunResult.read(job.path)
            found[job.config.masking.strategy] = OpenRun(job.path, result=result)
    return {strategy: found[strategy] for strategy in CONTROLS if strategy in found}


def settings_and_origin(view: OpenRun) -> Markup:
    """Show every setting, where the numbers were made, and how to make them again."""
    card = view.bundle.card
    data = [
        ("dataset", view.title),
        ("pictures", card.source),
        ("licence", card.licence),
        # What tells models and pictures apart from others of the same name.
        *((f"SHA-256 of {name}", _sha256(view.path / name)) for name in (BEFORE, AFTER)),
        ("fingerprint of the pictures", fingerprint(view.bundle)),
    ]
    command, *options = repeat_command(view.config).split(" --")
    return section(
        "origin",
        command=command,
        options=options,
        settings=_pairs("settings", settings(view)),
        origin=_pairs("origin", [*origins(view.result), *data]),
    )


def _pairs(name: str, rows: Sequence[tuple[str, str]]) -> Markup:
    columns = (Column("Setting"), Column("Value"))
    return html(
        Table(name=name, columns=columns, rows=[(Cell(key), Cell(value)) for key, value in rows]),
        saved=True,
    )


def settings(view: OpenRun) -> list[tuple[str, str]]:
    """List every setting by its name in ``config.json``; where it was left open, what was used."""
    card = view.bundle.card
    used = getattr(view.bundle.train.images, "frame", None)
    rates = [each.lr for each in view.result.masking.rounds if each.lr is not None]
    numbers = " / ".join(", ".join(f"{v:g}" for v in part) for part in (card.mean, card.std))
    in_effect = {
        "arch": view.before.arch,
        "frame": f"{used}" if used is not None else f"as stored, {card.size[0]} x {card.size[1]}",
        "normalise": numbers,
        "masking.layer": view.layer or "",
        "finetune_lr": ", ".join(f"{rate:g}" for rate in dict.fromkeys(rates)),
    }
    return [
        (name, f"{in_effect[name]} (chosen by the run)")
        if text in ("not set", "auto") and in_effect.get(name)
        else (name, text)
        for name, text in _flat("", view.config.to_json())
    ]


def _flat(prefix: str, values: Mapping[str, Any]) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for name, value in values.items():
        if isinstance(value, Mapping):
            rows += _flat(f"{prefix}{name}.", value)
        else:
            rows.append((f"{prefix}{name}", _text(value)))
    return rows


def _text(value: object) -> str:
    if value is None:
        return "not set"
    if isinstance(value, list | tuple):
        return ", ".join(str(item) for item in value) or "none"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def origins(result: RunResult) -> list[tuple[str, str]]:
    """List what a result says about where and how long it was made."""
    records = enumerate(result.masking.rounds, start=1)
    rates = [(number, record.lr) for number, record in records if record.lr is not None]
    return [
        ("run folder", str(result.folder)),
        ("device", result.device),
        ("seed", str(result.seed)),
        *([] if result.best_epoch is None else [("best epoch", str(result.best_epoch))]),
        *((f"finetuning rate: round {n}", f"{rate:g}") for n, rate in rates),
        *((f"found out: {name}", text) for name, text in _flat("", result.rival)),
        *((f"time: {part}", duration(value)) for part, value in result.seconds.items()),
        ("time: all", duration(result.took)),
        *((f"version: {name}", text) for name, text in result.versions.items()),
    ]


def _sha256(path: Path) -> str:
    if not path.is_file():
        return NOTHING
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def dates(view: OpenRun, made: datetime) -> str:
    """Say when the run was started, as the app does, and finished, and the report made."""
    stored = view.path / "result.json"
    told = f"Report of {made:%d %B %Y, %H:%M} UTC."
    if not stored.is_file():
        return told
    began, done = (
        f"{datetime.fromtimestamp(moment, UTC):%d %B %Y, %H:%M} UTC"
        for moment in (jobs.look(view.path).created, stored.stat().st_mtime)
    )
    return f"Run started {began}, finished {done}. {told}"


def about(view: OpenRun) -> dict[str, str]:
    """Return the name and the note that somebody gave the run; empty where there is none."""
    folder = RunFolder(view.path)
    told = folder.read_json("about.json") if folder.has("about.json") else {}
    return {part: str(told.get(part) or "") for part in ("name", "note")}
