"""What a tournament came to: one table, as a JSON document and as a value."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import PurePath
from typing import Any

from masktune.config import MASKTUNE
from masktune.datasets.catalogue import title as pictures_title
from masktune.runs.open import OpenRun
from masktune.scores.evidence import direction, student_interval, weigh
from masktune.scores.metrics import METRICS
from masktune.scores.result import RunResult
from masktune.show.tables import Cell, Column, Table, markdown
from masktune.show.wording import NOTHING, count, interval, percent, points
from masktune.studies.tables import interval as interval_of_shares
from masktune.studies.tournament.plan import ERM, NONE, Outcome, Planned, supervision, title

MEASURES = {metric.key: metric for metric in METRICS if metric.key in ("worst_group", "average")}
NOISE = "≈"
"""Marks what cannot be told apart from MaskTune."""

WITHIN_NOISE = (
    f"{NOISE}: the difference from MaskTune is within noise. Its 95% interval, Student's of the "
    "differences seed by seed, or with one seed Newcombe's over the same pictures, holds 0; a "
    "worst group of one seed is compared within the group that decides."
)
SECONDS = (
    "CPU seconds are those of the last try of each run, of all settings and seeds of a method; "
    "those of the ERM include one more epoch, which its run does as well. Heat and answers of the "
    "model before count in the run that asked for them first."
)


def document(outcome: Outcome) -> dict[str, Any]:
    """Give a tournament as a JSON document; accuracies are fractions in [0, 1].

    Rows are methods, after the model before; a method counts the seeds in which all of its settings
    are finished. Scores on test sets are those of the chosen settings; of the others ``runs`` says
    how they did on validation.
    """
    request, chosen = outcome.request, outcome.chosen
    first, begun = next(iter(outcome.done.values())), request.configs[NONE]
    own = {seed: outcome.done[one] for (name, seed), one in chosen.items() if name == MASKTUNE}
    rows = [_before(outcome)]
    for method in request.methods:
        picked = {seed: one for (name, seed), one in chosen.items() if name == method}
        if picked:
            rows.append(_row(outcome, method, picked, own))
    return {
        "study": "tournament",
        "dataset": request.given["dataset"],
        "title": pictures_title(str(request.given["dataset"]), _text(request.given.get("root"))),
        "given": {**request.given},
        "recipe": begun.recipe,
        "arch": begun.arch if request.trains else "as in the checkpoint",
        "training": asdict(begun.training),
        "methods": list(request.methods),
        "ks": list(request.ks),
        "rates": list(request.rates),
        "seeds": sorted({one.seed for one in outcome.runs}),
        "rule": outcome.rule,
        "chosen_by": "worst_group" if outcome.by_groups else "average",
        "worst_is": {name: test.after.worst_is for name, test in first.test.items()},
        "rows": rows,
        "runs": [_run(outcome, one, one in chosen.values()) for one in outcome.runs],
        "finished": len(outcome.done) == len(outcome.runs),
        "cpu_seconds": _seconds(list(outcome.done.values())),
        "device": first.device,
        "versions": {**first.versions},
        "command": request.command(outcome.out),
    }


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _run(outcome: Outcome, one: Planned, picked: bool) -> dict[str, Any]:
    said = one.to_json(out=outcome.out)
    result = outcome.done.get(one)
    if result is None:
        return {**said, "state": "waiting"}
    after = result.validation.after
    validation = {"worst_group": after.worst.accuracy, "average": after.average}
    return {**said, "state": "done", "validation": validation, "chosen": picked}


def _before(outcome: Outcome) -> dict[str, Any]:
    """Return the row of the model before."""
    some = {one.seed: one for one in reversed([*outcome.done])}
    results = {seed: outcome.done[one] for seed, one in sorted(some.items())}
    trainers = [r for one, r in outcome.done.items() if one.config.model is None]
    return {
        "method": ERM,
        "title": title(ERM),
        "settings": "",
        "supervision": supervision(outcome.request, ERM, by_groups=outcome.by_groups),
        "test": _tests(results, moment="before"),
        "cpu_seconds": _seconds(trainers),
    }


def _row(
    outcome: Outcome,
    method: str,
    picked: Mapping[int, Planned],
    own: Mapping[int, RunResult],
) -> dict[str, Any]:
    results = {seed: outcome.done[one] for seed, one in sorted(picked.items())}
    tests = _tests(results, moment="after")
    if method != MASKTUNE:
        shared = [seed for seed in results if seed in own]
        pairs = [(own[seed], results[seed]) for seed in shared]
        for test, scores in tests.items():
            for measure, score in scores.items():
                score["against_masktune"] = _against(pairs, test, measure)
    # The run that trained the model before counts there.
    spent = [
        result
        for one, result in outcome.done.items()
        if one.method == method and one.config.model is not None
    ]
    return {
        "method": method,
        "title": title(method),
        "settings": _settings([one for _, one in sorted(picked.items())]),
        "supervision": supervision(outcome.request, method, by_groups=outcome.by_groups),
        "test": tests,
        "cpu_seconds": _seconds(spent),
    }


def _settings(picked: Sequence[Planned]) -> str:
    """Say what was chosen; where seeds differ, how often."""
    words = [one.words or "as usual" for one in picked]
    kinds = dict.fromkeys(words)
    if len(kinds) == 1:
        return picked[0].words
    return "; ".join(f"{kind} ({words.count(kind)} of {len(words)})" for kind in kinds)


def _seconds(results: Sequence[RunResult]) -> float | None:
    known = [result.cpu_seconds for result in results if result.cpu_seconds is not None]
    return round(sum(known), 1) if known else None


def _tests(
    results: Mapping[int, RunResult], *, moment: str
) -> dict[str, dict[str, dict[str, Any]]]:
    some = next(iter(results.values()))
    return {
        name: {key: _score(results, name, key, moment) for key in MEASURES} for name in some.test
    }


def _score(results: Mapping[int, RunResult], test: str, key: str, moment: str) -> dict[str, Any]:
    metric = MEASURES[key]
    summaries = [getattr(result.test[test], moment) for result in results.values()]
    values = [value for summary in summaries if (value := metric.of(summary)) is not None]
    bounds = interval_of_shares(values)
    if len(values) == 1:
        found = metric.interval(summaries[0])
        bounds = None if found is None else list(found)
    return {
        "values": values,
        "mean": statistics.fmean(values) if values else None,
        "std": statistics.stdev(values) if len(values) > 1 else None,
        "n": len(values),
        "interval": bounds,
        "interval_over": "seeds" if len(values) > 1 else "pictures",
    }


def _against(
    pairs: Sequence[tuple[RunResult, RunResult]], test: str, key: str
) -> dict[str, Any] | None:
    """Compare a method with MaskTune, each pair of one seed; None where no seed has both."""
    if not pairs:
        return None
    metric = MEASURES[key]
    both = [[metric.of(result.test[test].after) or 0.0 for result in pair] for pair in pairs]
    values = [theirs - ours for ours, theirs in both]
    bounds = student_interval(values)
    clear = direction(bounds)
    if len(pairs) == 1:
        ours, theirs = (OpenRun(result.folder).predictions.tests[test] for result in pairs[0])
        names = pairs[0][0].test[test]
        found = weigh(ours.after, theirs.after, classes=names.classes, attributes=names.attributes)
        clear = metric.clear(found)
        if key == "average" and found.overall.interval is not None:
            bounds = list(found.overall.interval)
    return {
        "difference": statistics.fmean(values),
        "interval": bounds,
        "direction": clear,
        "within_noise": clear == "unclear",
    }


def table_of(told: Mapping[str, Any]) -> Table:
    """Return the table of a tournament's document."""
    columns = [
        Column("Method", ("method",), left=True),
        Column("Chosen", ("chosen settings",), left=True),
        Column("Supervision", ("supervision",), left=True, hint="Beside pictures and labels."),
    ]
    for test, worst in told["worst_is"].items():
        for key, head in (("worst_group", f"Worst {worst}"), ("average", "Average")):
            what = ("mean", "std", "n", "low", "high", "difference from MaskTune", "within noise")
            names = tuple(f"{test} {key} {each}" for each in what)
            columns.append(Column(head, names, hint=MEASURES[key].hint))
    columns.append(Column("CPU s", ("cpu seconds",), hint=SECONDS))
    return Table(
        name="tournament",
        columns=columns,
        rows=[_cells(row, told["worst_is"]) for row in told["rows"]],
        spans=[("", 2), *((test, 2) for test in told["worst_is"]), ("", 1)],
    )


def _cells(row: Mapping[str, Any], tests: Mapping[str, str]) -> list[Cell]:
    seconds = row["cpu_seconds"]
    return [
        Cell(row["title"], strong=row["method"] == MASKTUNE),
        Cell(row["settings"] or NOTHING, values=(row["settings"],)),
        Cell(", ".join(row["supervision"]) or "none"),
        *(_score_cell(row["test"][test][key]) for test in tests for key in MEASURES),
        Cell(NOTHING if seconds is None else count(round(seconds)), values=(seconds,)),
    ]


def _score_cell(score: Mapping[str, Any]) -> Cell:
    against = score.get("against_masktune") or {}
    text = percent(score["mean"])
    if score["std"] is not None:
        text += f" ± {100 * score['std']:.1f}"
    if against.get("within_noise"):
        text += f" {NOISE}"
    bounds = score["interval"]
    small = [interval((bounds[0], bounds[1]))] if bounds else []
    noise = against.get("within_noise")
    values = (
        *(score[name] for name in ("mean", "std", "n")),
        *(bounds or (None, None)),
        against.get("difference"),
        None if noise is None else str(noise).lower(),
    )
    return Cell(text, ", ".join([*small, f"n = {score['n']}"]), values)


def notes(told: Mapping[str, Any]) -> list[str]:
    """Say how the table is to be read."""
    return [
        "± is the standard deviation over n seeds; intervals are those of the mean at 95% "
        "(Student), with one seed those of its pictures (Wilson).",
        *([WITHIN_NOISE] if MASKTUNE in told["methods"] and len(told["methods"]) > 1 else []),
        told["rule"],
        SECONDS,
    ]


def markdown_page(told: Mapping[str, Any]) -> str:
    """Return the table as Markdown with its command and how to read it."""
    return "\n\n".join([f"`{told['command']}`", *notes(told), markdown(table_of(told))]) + "\n"


def kept(told: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a tournament's document by a name, for the page of results.

    Paths from the root are cut to their last part: results must not tell whose machine they come
    from. Names with a slash, such as timm's, are no such paths.
    """
    command = str(told["command"])
    given = {**told["given"]}
    *words, out = command.split(" --out ")
    command = f"{' --out '.join(words)} --out DIR" if words else out
    for option in ("root", "model", "weights"):
        path = str(given.get(option) or "")
        if PurePath(path).is_absolute():
            given[option] = PurePath(path).name
            command = command.replace(path, given[option])
    return {**told, "name": name, "given": given, "command": command}


def tried_table(told: Mapping[str, Any]) -> Table:
    """Show how every run did on validation, and what was chosen."""
    rows = []
    for one in told["runs"]:
        scores = one.get("validation") or {"worst_group": None, "average": None}
        rows.append(
            (
                Cell(one["title"], strong=bool(one.get("chosen"))),
                Cell(one["settings"] or NOTHING, values=(one["settings"],)),
                Cell(str(one["seed"])),
                *(Cell(percent(value), values=(value,)) for value in scores.values()),
                Cell("yes" if one.get("chosen") else "no" if "chosen" in one else one["state"]),
            )
        )
    return Table(
        name="what was tried",
        columns=(
            Column("Method", ("method",), left=True),
            Column("Settings", ("settings",), left=True),
            Column("Seed", ("seed",)),
            Column("Worst on validation", ("validation worst",)),
            Column("Average on validation", ("validation average",)),
            Column("Chosen", ("chosen",)),
        ),
        rows=rows,
    )


def in_words(told: Mapping[str, Any]) -> list[str]:
    """Say the table in lines for a terminal."""
    lines = []
    for row in told["rows"]:
        for test, scores in row["test"].items():
            parts = []
            for key, name in (("worst_group", f"worst {told['worst_is'][test]}"), ("average",) * 2):
                against = scores[key].get("against_masktune")
                mark = ""
                if against is not None:
                    noise = ", within noise" if against["within_noise"] else ""
                    mark = f" ({points(against['difference'])} points from MaskTune{noise})"
                parts.append(f"{name} {percent(scores[key]['mean'])}{mark}")
            head = ", ".join(filter(None, (row["title"], row["settings"])))
            lines.append(f"{head}; {test}: {', '.join(parts)}")
    return lines
