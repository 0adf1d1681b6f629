"""A grid: every combination of some strategies, thresholds, rates and seeds, as one study.

All runs of a seed start from one model before: the given one, or that which the first of them
trains. Nothing is chosen among the settings; each has its mean over seeds with an interval.
"""

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from masktune.checkpoints.settings import OPTIONS, settings, words_of
from masktune.compute import accelerator
from masktune.config import BUNDLED, MASKTUNE, RunConfig, Strategy, Value
from masktune.errors import ConfigError
from masktune.heat.strategies import STRATEGIES, check
from masktune.progress import Watcher, unwatched
from masktune.runs.load import load_for
from masktune.scores.metrics import METRICS, Metric
from masktune.scores.result import RunResult, SplitResult
from masktune.show.tables import Cell, Column, Table, count_cell, csv
from masktune.show.wording import count, masking_words, percent
from masktune.studies.carry_out import carry_out
from masktune.studies.study import Study, StudyRun
from masktune.studies.tournament.over_seeds import over_seeds, score_cell
from masktune.studies.tournament.plan import from_first, with_effect
from masktune.studies.tournament.tries import check_once, exact

KIND = "grid"
VARIED = frozenset({"rival", "strategy", "k", "finetune_lr", "seed"})
"""Options of a run that a grid is about; all others are the same in all of its runs."""

MOST_RUNS = 500
"""Runs of one grid; more is a slip."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GridRun(StudyRun):
    """One run of a grid; ``method`` is the strategy.

    ``k`` is None of a strategy that has none, ``rate`` where the usual one is taken.
    """

    k: float | None
    rate: float | None

    @property
    def words(self) -> str:
        """Its settings without the seed."""
        said = masking_words(self.config.masking)
        return said if self.rate is None else f"{said}, rate {exact(self.rate)}"

    def to_json(self, *, out: Path) -> dict[str, Any]:
        """Give it as a JSON object; its folder from that of the study."""
        return {
            "title": self.words,
            "strategy": self.method,
            "k": self.k,
            "rate": self.rate,
            "seed": self.seed,
            "run": self.path.relative_to(out).as_posix(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """What to try.

    Attributes:
        given: options of a run by name, for all of its runs.
        strategies: what is hidden.
        ks: thresholds, for strategies that have one; none for the usual one.
        rates: learning rates of the finetune; none for the usual one.
        seeds: each with another split, order and start.
    """

    given: Mapping[str, Value]
    strategies: tuple[Strategy, ...] = ("heat",)
    ks: tuple[float, ...] = ()
    rates: tuple[float, ...] = ()
    seeds: tuple[int, ...] = (0,)
    first: RunConfig = field(init=False, repr=False)

    def __post_init__(self) -> None:
        unknown = [name for name in self.strategies if name not in STRATEGIES]
        if unknown or not self.strategies:
            named = " or ".join(f"'{name}'" for name in unknown)
            raise ConfigError(
                f"There is no strategy {named}." if unknown else "No strategy is named.",
                f"Choose some of {', '.join(STRATEGIES)}.",
            )
        if not self.seeds:
            raise ConfigError("No seed is named.", "Give some, such as 0,1.")
        check_once(strategy=self.strategies, k=self.ks, rate=self.rates, seed=self.seeds)
        if self.ks and not any(STRATEGIES[name].uses_k for name in self.strategies):
            raise ConfigError(
                "Thresholds k are to be tried, and no strategy among these has one.",
                "Leave them out, or add the strategy heat.",
            )
        if not all(math.isfinite(rate) and rate > 0 for rate in self.rates):
            raise ConfigError(
                f"The rates are {', '.join(map(str, self.rates))}.",
                "Give learning rates above 0, such as 0.001,0.01.",
            )
        if self.given.get("model") == BUNDLED and self.seeds != (0,):
            raise ConfigError(
                "The bundled model was trained on the split of seed 0; with others it would be "
                "tested on pictures it has seen.",
                "Leave --model out to train one for every seed, or take seed 0 only.",
            )
        settings_of_one = sum(len(_ks(self, name)) for name in self.strategies)
        if (runs := settings_of_one * len(self.rates or (None,)) * len(self.seeds)) > MOST_RUNS:
            raise ConfigError(
                f"That makes {runs:,} runs.", f"Ask for {MOST_RUNS} at most in one grid."
            )
        first, *_ = plan(self, out=Path())  # every setting is checked
        if first.config.rival != MASKTUNE:
            raise ConfigError(
                f"A grid is about what is hidden, and '{first.config.rival}' hides nothing.",
                "Leave --rival out, or set methods side by side by masktune tournament.",
            )
        # Frozen: what is checked here is kept, not made again.
        object.__setattr__(self, "first", first.config)

    @property
    def trains(self) -> bool:
        """Whether the model before is trained here."""
        return self.given.get("model") is None

    def command(self, out: Path | str = "DIR") -> str:
        """Give the command that repeats the grid."""
        return shlex.join(["python", "-m", "masktune", *self.arguments(out)])

    def arguments(self, out: Path | str) -> list[str]:
        """Return the words after ``python -m masktune``."""
        words = ["grid", *words_of(self.given)]
        words += ["--strategies", ",".join(self.strategies)]
        for flag, values in (("--ks", self.ks), ("--rates", self.rates), ("--seeds", self.seeds)):
            if values:
                words += [flag, ",".join(map(exact, values))]
        return [*words, "--out", str(out)]


def heeded(given: Mapping[str, Value], strategies: Sequence[Strategy]) -> dict[str, Value]:
    """Return of some options of a run those that change something in runs of some strategies."""
    return with_effect(
        given,
        lambda said: [
            settings({**said, "strategy": name}, without_effect="left out") for name in strategies
        ],
    )


def at_thresholds(config: RunConfig, ks: Sequence[float]) -> Grid:
    """Return the grid that does a run at several thresholds, with all else as it is."""
    strategy = config.masking.strategy
    given = {name: option.of(config) for name, option in OPTIONS.items() if name not in VARIED}
    return Grid(
        given=heeded(given, [strategy]),
        strategies=(strategy,),
        ks=tuple(ks),
        rates=() if config.finetune_lr is None else (config.finetune_lr,),
        seeds=(config.seed,),
    )


def plan(grid: Grid, *, out: Path) -> Iterator[GridRun]:
    """List the runs of a grid in order, seed by seed; the first of a seed trains its model."""
    for seed in grid.seeds:
        yield from from_first(_of_seed(grid, seed, out=out), trains=grid.trains)


def _ks(grid: Grid, strategy: Strategy) -> tuple[float | None, ...]:
    return grid.ks if grid.ks and STRATEGIES[strategy].uses_k else (None,)


def _of_seed(grid: Grid, seed: int, *, out: Path) -> Iterator[GridRun]:
    for strategy in grid.strategies:
        for k, rate in product(_ks(grid, strategy), grid.rates or (None,)):
            config = settings(
                {**grid.given, "strategy": strategy, "seed": seed}
                | ({} if k is None else {"k": k})
                | ({} if rate is None else {"finetune_lr": rate}),
                without_effect="left out",
            )
            parts: list[str] = [strategy]
            parts += [] if k is None else ["k", exact(k)]
            parts += [] if rate is None else ["rate", exact(rate)]
            yield GridRun(
                method=strategy,
                k=config.masking.k if STRATEGIES[strategy].uses_k else None,
                rate=rate,
                seed=seed,
                config=config,
                path=out / f"seed-{seed}" / "-".join(parts),
            )


def grid(wanted: Grid, *, out: Path, watcher: Watcher = unwatched) -> dict[str, Any]:
    """Do every run of a grid that is not done yet; return its table as a JSON document."""
    out = out.absolute()  # runs name their model before by it, from wherever they go on
    bundle = load_for(wanted.first, watcher=watcher)
    runs = [*plan(wanted, out=out)]
    for one in runs:
        check(one.config.masking, bundle.train)
    del bundle  # every run reads its own
    compute = accelerator(wanted.first.device)
    study = Study.claim(out, runs, kind=KIND, about={**wanted.given}, compute=compute)
    with study.recording():
        carry_out(study, watcher=watcher, table=lambda done: document(wanted, done, out=out))
        tables = [table_of(study.table, test) for test in study.table["tests"]]
        study.folder.write("table.csv", csv(*tables))
    return {**study.table}


def document(wanted: Grid, done: Mapping[GridRun, RunResult], *, out: Path) -> dict[str, Any]:
    """Return what came out so far as JSON: the mean of every setting over its finished seeds.

    ``means`` has, by test set and for each setting in the order of the plan, every metric's mean
    over ``seeds`` with Student's 95 % interval, of one seed with that of its ``pictures``.
    """
    alike: dict[tuple[str, float | None, float | None], list[GridRun]] = {}
    for one in done:
        alike.setdefault((one.method, one.k, one.rate), []).append(one)
    tests = [*dict.fromkeys(name for result in done.values() for name in result.test)]
    return {
        "command": wanted.command(out),
        "tests": tests,
        "worst_is": {
            name: result.test[name].after.worst_is
            for name in tests
            for result in done.values()
            if name in result.test
        },
        "runs": [
            {**one.to_json(out=out), "seconds": round(result.took, 3)}
            for one, result in done.items()
        ],
        "means": {
            test: [
                {
                    **{"title": those[0].words, "strategy": strategy, "k": k, "rate": rate},
                    "seeds": [one.seed for one in those],
                    **{
                        metric.key: _over_seeds(metric, [done[one].test[test] for one in those])
                        for metric in METRICS
                    },
                }
                for (strategy, k, rate), those in alike.items()
            ]
            for test in tests
        },
    }


def _over_seeds(metric: Metric, tests: Sequence[SplitResult]) -> dict[str, Any]:
    summaries = [test.after for test in tests]
    known = [(each, value) for each in summaries if (value := metric.of(each)) is not None]
    values = [value for _, value in known]
    return {
        **over_seeds(values, of_one=lambda: metric.interval(known[0][0])),
        "pictures": metric.count(known[0][0]) if len(known) == 1 else None,
    }


VALUES = ("mean", "std", "n", "low", "high", "interval over")
SHOWN = ("worst_group", "average", "group_mean")


def table_of(told: Mapping[str, Any], test: str) -> Table:
    """Show the mean of every setting of a grid over its seeds on a test set."""
    titles = {metric.key: metric.title.capitalize() for metric in METRICS}
    titles["worst_group"] = f"Worst {_worst(told, test)}"
    return Table(
        name=f"{test}: mean over seeds",
        columns=(
            Column("Setting", ("setting", "strategy", "k", "rate"), left=True),
            Column("Test set", ("test set",), shown=False),
            Column("Seeds", ("seeds",)),
            *(Column(titles[key], tuple(f"{key} {each}" for each in VALUES)) for key in SHOWN),
        ),
        rows=[
            (
                Cell(one["title"], values=(one["title"], one["strategy"], one["k"], one["rate"])),
                Cell(test),
                count_cell(len(one["seeds"])),
                *_cells(one),
            )
            for one in told["means"][test]
        ],
    )


def _cells(one: Mapping[str, Any]) -> list[Cell]:
    return [_cell(one[key]) for key in SHOWN]


def _cell(score: Mapping[str, Any]) -> Cell:
    cell = score_cell(score, size=_size(score))
    values = (cell.values or ())[: len(VALUES) - 1]
    return replace(cell, values=(*values, score["interval_over"]))


def _size(score: Mapping[str, Any]) -> str:
    """Say what an interval is over: one seed has that of its pictures, and their n."""
    if score["n"] != 1:
        return f"n = {count(score['n'], 'seed')}"
    pictures = score.get("pictures")  # a study of before does not count them
    return "1 seed" if pictures is None else f"1 seed, n = {count(pictures)}"


def _worst(told: Mapping[str, Any], test: str) -> str:
    """Say what the worst is of: "group", or "class" where no attribute is recorded."""
    kinds: Mapping[str, str] = told.get("worst_is", {})  # a study of before says nothing of it
    return kinds.get(test, "group")


def in_words(told: Mapping[str, Any]) -> list[str]:
    """Say what a grid came to, a line a setting and test set."""
    return [
        f"{test}, {one['title']}: worst {_worst(told, test)} "
        f"{percent(one['worst_group']['mean'])}, average {percent(one['average']['mean'])}, "
        f"mean of {count(len(one['seeds']), 'seed')}"
        for test, means in told["means"].items()
        for one in means
    ]
