"""What a tournament came to: one table, as a JSON document and as a value."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import PurePath
from typing import Any, Literal

from masktune.config import BY_RECIPE, MASKTUNE, Value
from masktune.datasets.catalogue import title as pictures_title
from masktune.runs.open import OpenRun
from masktune.scores.evidence import Direction, Interval, weigh
from masktune.scores.metrics import METRICS
from masktune.scores.predictions import Predictions
from masktune.scores.result import RunResult
from masktune.show.tables import Cell, Column, Table, markdown
from masktune.show.wording import NOTHING, count, percent, points
from masktune.studies.tournament.abstaining import NOTES, abstaining, abstaining_lines, tables_of
from masktune.studies.tournament.over_seeds import NOISE, VALUES, against, over_seeds, score_cell
from masktune.studies.tournament.plan import (
    ERM,
    NONE,
    Outcome,
    Planned,
    Request,
    caution,
    supervision,
    title,
)
from masktune.training.methods import RIVALS

MEASURES = {metric.key: metric for metric in METRICS if metric.key in ("worst_group", "average")}
WITHIN_NOISE = (
    "{mark}: the difference from MaskTune is within noise. Its 95% interval, Student's of the "
    "differences seed by seed, or with one seed Newcombe's over the same pictures, holds 0; a "
    "worst {worst} of one seed is compared within the {worst} that decides."
)
WORST_CLASS = (
    "No attribute is recorded, so the class that gets the fewest right answers stands in for the "
    "worst group."
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
    before = _models_before(outcome)
    rows, sides = [_before(outcome, before, own)], {ERM: before}
    for method in request.methods:
        picked = {seed: one for (name, seed), one in sorted(chosen.items()) if name == method}
        if picked:
            rows.append(_row(outcome, method, picked, own))
            sides[method] = {s: _Side(outcome.done[one], "after") for s, one in picked.items()}
    _set_beside(rows, lambda *asked: _difference(sides, *asked))
    return {
        "study": "tournament",
        "dataset": request.given["dataset"],
        "title": pictures_title(str(request.given["dataset"]), _text(request.given.get("root"))),
        "given": {**request.given},
        "recipe": begun.recipe,
        "arch": begun.arch if request.trains else "as in the checkpoint",
        "training": training_of(request),
        "methods": list(request.methods),
        "ks": list(request.ks),
        "rates": list(request.rates),
        "tries": {name: list(values) for name, values in request.tries.items()},
        "learning": {**outcome.learning},
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


def training_of(request: Request) -> dict[str, Any]:
    """Tell how networks are trained here; where the model before is given, how rivals are."""
    names = () if request.trains else (name for name in request.methods if name in BY_RECIPE)
    return asdict(request.configs[next(iter(names), NONE)].training)


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


@dataclass(frozen=True, slots=True)
class _Side:
    """The model before or after of a run, beside that of another run with its seed."""

    run: RunResult
    moment: Literal["before", "after"]

    def score(self, test: str, key: str) -> float:
        return MEASURES[key].of(getattr(self.run.test[test], self.moment)) or 0.0

    def said(self, test: str) -> Predictions:
        both = OpenRun(self.run.folder).predictions.tests[test]
        return both.before if self.moment == "before" else both.after


def _models_before(outcome: Outcome) -> dict[int, _Side]:
    """Return the model before of every seed, as the first of its runs has it."""
    some = {one.seed: one for one in reversed([*outcome.done])}
    return {seed: _Side(outcome.done[one], "before") for seed, one in sorted(some.items())}


def _before(
    outcome: Outcome, before: Mapping[int, _Side], own: Mapping[int, RunResult]
) -> dict[str, Any]:
    """Return the row of the model before."""
    results = {seed: side.run for seed, side in before.items()}
    trainers = [r for one, r in outcome.done.items() if one.config.model is None]
    return {
        "method": ERM,
        "title": title(ERM),
        "settings": "",
        "supervision": supervision(outcome.request, ERM, by_groups=outcome.by_groups),
        "test": _tests(results, moment="before"),
        "abstaining": abstaining(ERM, results, own),
        "cpu_seconds": _seconds(trainers),
    }


def _row(
    outcome: Outcome, method: str, picked: Mapping[int, Planned], own: Mapping[int, RunResult]
) -> dict[str, Any]:
    results = {seed: outcome.done[one] for seed, one in picked.items()}
    # The run that trained the model before counts there.
    spent = [
        result
        for one, result in outcome.done.items()
        if one.method == method and one.config.model is not None
    ]
    return {
        "method": method,
        "title": title(method),
        "settings": _settings([(one, outcome.done[one]) for one in picked.values()]),
        "supervision": supervision(outcome.request, method, by_groups=outcome.by_groups),
        "test": _tests(results, moment="after"),
        "abstaining": abstaining(method, results, own),
        "cpu_seconds": _seconds(spent),
    }


def _settings(picked: Sequence[tuple[Planned, RunResult]]) -> str:
    """Say what was chosen, and at which rate it was finetuned; where seeds differ, how often."""
    words = [_chosen(one, result) for one, result in picked]
    kinds = dict.fromkeys(words)
    if len(kinds) == 1:
        return words[0]
    return "; ".join(
        f"{kind or 'as usual'} ({words.count(kind)} of {len(words)})" for kind in kinds
    )


def _chosen(one: Planned, result: RunResult) -> str:
    lr = next((each.lr for each in result.masking.rounds), None)  # None of rivals and old runs
    return ", ".join(filter(None, [one.words, "" if lr is None else f"finetuned at {lr:g}"]))


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
    known = [(each, value) for each in summaries if (value := metric.of(each)) is not None]
    return over_seeds([value for _, value in known], of_one=lambda: metric.interval(known[0][0]))


def _set_beside(
    rows: Sequence[dict[str, Any]],
    difference: Callable[[str, str, str, str], dict[str, Any] | None],
) -> None:
    """Set every score beside MaskTune's, and every worst group beside the best one.

    What a row has already stays.

    Args:
        rows: of a document; changed in place.
        difference: of a method from another one, on a test set, by a measure; None if unknown.
    """
    methods = {row["method"] for row in rows}
    for row, test in product(rows, rows[0]["test"]):
        method, scores, best = row["method"], row["test"][test], _best(rows, test)
        if method == MASKTUNE:
            continue
        for key, score in scores.items():
            if MASKTUNE in methods and "against_masktune" not in score:
                score["against_masktune"] = difference(method, MASKTUNE, test, key)
        worst = scores["worst_group"]
        if best not in (None, MASKTUNE, method) and "against_best" not in worst:
            worst["against_best"] = difference(method, best, test, "worst_group")


def _best(rows: Sequence[Mapping[str, Any]], test: str) -> str | None:
    """Return the method, or the model before, with the best worst group."""
    means = {row["method"]: row["test"][test]["worst_group"]["mean"] for row in rows}
    return max((m for m in means if means[m] is not None), key=means.__getitem__, default=None)


def _difference(
    sides: Mapping[str, Mapping[int, _Side]], method: str, other: str, test: str, key: str
) -> dict[str, Any] | None:
    """Compare two methods, each pair of one seed; None where no seed has both."""
    pairs = [
        (sides[other][seed], theirs)
        for seed, theirs in sides[method].items()
        if seed in sides.get(other, {})
    ]

    def of_one() -> tuple[Interval | None, Direction]:
        ours, theirs = pairs[0]
        names = ours.run.test[test]
        found = weigh(
            ours.said(test), theirs.said(test), classes=names.classes, attributes=names.attributes
        )
        return found.overall.interval if key == "average" else None, MEASURES[key].clear(found)

    changes = [theirs.score(test, key) - ours.score(test, key) for ours, theirs in pairs]
    return against(changes, of_one=of_one)


def _rows(told: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of a document with differences that its version did not record yet.

    They come from the values of several seeds: what a single one differs by, its pictures tell.
    """
    rows: list[dict[str, Any]] = deepcopy(told["rows"])
    values = {
        (row["method"], test, key): score["values"]
        for row in rows
        for test, scores in row["test"].items()
        for key, score in scores.items()
    }

    def difference(method: str, other: str, test: str, key: str) -> dict[str, Any] | None:
        theirs, ours = values[method, test, key], values[other, test, key]
        if len(theirs) != len(ours) or len(ours) < 2:
            return None
        changes = [one - another for one, another in zip(theirs, ours, strict=True)]
        return against(changes, of_one=lambda: (None, "unclear"))

    _set_beside(rows, difference)
    return rows


def table_of(told: Mapping[str, Any]) -> Table:
    """Return the table of a tournament's document."""
    columns = [
        Column("Method", ("method",), left=True),
        Column("Chosen", ("chosen settings",), left=True),
        Column("Supervision", ("supervision",), left=True, hint="Beside pictures and labels."),
    ]
    for test, worst in told["worst_is"].items():
        for key, head in (("worst_group", f"Worst {worst}"), ("average", "Average")):
            names = tuple(f"{test} {key} {each}" for each in VALUES)
            columns.append(Column(head, names, hint=_hint(key, worst)))
    columns.append(Column("CPU s", ("cpu seconds",), hint=SECONDS))
    return Table(
        name="tournament",
        columns=columns,
        rows=[_cells(row, told["worst_is"]) for row in _rows(told)],
        spans=[("", 2), *((test, 2) for test in told["worst_is"]), ("", 1)],
    )


def _hint(key: str, worst: str) -> str:
    return WORST_CLASS if (key, worst) == ("worst_group", "class") else MEASURES[key].hint


def _cells(row: Mapping[str, Any], tests: Mapping[str, str]) -> list[Cell]:
    seconds = row["cpu_seconds"]
    return [
        Cell(row["title"], strong=row["method"] == MASKTUNE),
        Cell(row["settings"] or NOTHING, values=(row["settings"],)),
        Cell(", ".join(row["supervision"]) or "none"),
        *(score_cell(row["test"][test][key]) for test in tests for key in MEASURES),
        Cell(NOTHING if seconds is None else count(round(seconds)), values=(seconds,)),
    ]


def verdicts(told: Mapping[str, Any]) -> list[str]:
    """Say, a sentence a test set, which method has the best worst group, and how sure that is."""
    rows = _rows(told)
    said = (_verdict(rows, test, worst) for test, worst in told["worst_is"].items())
    so_far = "" if all(one["state"] == "done" for one in told["runs"]) else "So far: "
    return [so_far + words for words in said if words]


def _verdict(rows: Sequence[Mapping[str, Any]], test: str, worst: str) -> str:
    scores = {row["method"]: row["test"][test]["worst_group"] for row in rows}
    names = {row["method"]: row["title"] for row in rows}
    known = {method: score["mean"] for method, score in scores.items() if score["mean"] is not None}
    before = known.pop(ERM, None)
    if not known:
        return ""
    place = f"the worst {worst} of “{test}”"
    best, *others = sorted(known, key=known.__getitem__, reverse=True)
    if before is not None and known[best] <= before:
        noise = ", within noise of it" if _noisy(scores, best, ERM) else ""
        return (
            f"No method here answers {place} better than the model before, {percent(before)}; the "
            f"next is {names[best]}, {percent(known[best])}{noise}."
        )
    since = "" if before is None else f", from {percent(before)} before"
    words = f"{names[best]} answers {place} best: {percent(known[best])}{since}."
    alike = [name for name in (*others, ERM) if _noisy(scores, name, best)]
    beside = [
        "the model before" if name == ERM else f"{names[name]} ({percent(known[name])})"
        for name in alike
    ]
    if any(scores[name]["n"] == 2 for name in alike):
        return f"{words} {TWO_SEEDS} {' and '.join(beside)}."
    if beside:
        return f"{words} Within noise of it: {', '.join(beside)}."
    if others:
        clear = "" if _beside(scores, others[0], best) is None else ", beyond noise"
        return f"{words} Next{clear}: {names[others[0]]}, {percent(known[others[0]])}."
    return words


TWO_SEEDS = "Two seeds are too few to tell it from"
"""Of two differences Student's interval is 12.7 standard errors wide: it holds nearly anything."""


def _beside(
    scores: Mapping[str, Mapping[str, Any]], method: str, best: str
) -> Mapping[str, Any] | None:
    """Return what is known of the difference of two, of which one is the best."""
    if MASKTUNE in (method, best):
        method, by = (best if method == MASKTUNE else method), "against_masktune"
    else:
        by = "against_best"
    known: Mapping[str, Any] | None = scores.get(method, {}).get(by)
    return known


def _noisy(scores: Mapping[str, Mapping[str, Any]], method: str, best: str) -> bool:
    return bool((_beside(scores, method, best) or {}).get("within_noise"))


def notes(told: Mapping[str, Any]) -> list[str]:
    """Say how the table is to be read."""
    worst = worst_name(told)
    return [
        *rates_of(told),
        "± is the standard deviation over n seeds; intervals are those of the mean at 95% "
        "(Student), with one seed those of its pictures (Wilson).",
        *([WITHIN_NOISE.format(mark=NOISE, worst=worst)] if MASKTUNE in told["methods"] else []),
        *([WORST_CLASS] if worst == "class" else []),
        told["rule"],
        *_learnt(told["methods"]),
        *caution(told["given"], told.get("seeds", ())),
        SECONDS,
    ]


def _learnt(methods: Sequence[str]) -> list[str]:
    """Say whose answers on validation flatter them."""
    names = [title(name) for name in methods if name in RIVALS and RIVALS[name].learns_validation]
    if not names:
        return []
    return [
        f"{' and '.join(names)} learnt from the validation pictures, with their labels: scores on "
        "them are better than on unseen ones, and a choice of settings or of what to leave "
        "unanswered that rests on them is less to be trusted."
    ]


def rates_of(told: Mapping[str, Any]) -> list[str]:
    """Say at which rates methods learn; a document of an older version does not know."""
    return [*told.get("learning", {}).get("words", ())]


def worst_name(told: Mapping[str, Any]) -> str:
    """Say what the worst is of: a class, where no test set has groups, else a group."""
    return "class" if {*told["worst_is"].values()} == {"class"} else "group"


def markdown_page(told: Mapping[str, Any]) -> str:
    """Return the tables as Markdown with their command and how to read them."""
    parts = [f"`{told['command']}`", *notes(told), markdown(table_of(told))]
    tables = tables_of(told)
    for table in tables:
        parts += [f"### {table.name}", markdown(table)]
    parts += NOTES if tables else ()
    return "\n\n".join(parts) + "\n"


def kept(told: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a tournament's document by a name, for the page of results.

    Paths from the root are cut to their last part: results must not tell whose machine they come
    from. Names with a slash, such as timm's, are no such paths.
    """
    given, words = told["given"], shlex.split(told["command"])
    if "--out" in words:
        words[words.index("--out") + 1 :] = ["DIR"]
    paths = {str(given.get(option)) for option in ("root", "model", "weights", "attributes")}

    def cut(value: Value) -> Value:
        path = PurePath(str(value))
        return path.name if str(value) in paths and path.is_absolute() else value

    command = shlex.join(str(cut(word)) for word in words)
    given = {option: cut(value) for option, value in given.items()}
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
    for row in _rows(told):
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
    return [*lines, *abstaining_lines(told), *verdicts(told)]
