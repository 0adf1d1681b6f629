"""Runs that differ in nothing but the seed: their mean, with its interval over seeds."""

import statistics
from collections.abc import Hashable, Sequence

from app.runs.table import (
    differing,
    setting_cell,
    setting_title,
    tested,
    told_value,
    worst_title,
)
from app.shared.run_rows import run_title
from masktune.checkpoints.settings import OPTIONS
from masktune.runs.jobs import Job
from masktune.runs.load import title_of
from masktune.show.tables import Cell, Column, Table, count_cell
from masktune.show.wording import NOTHING, count, interval, percent
from masktune.studies.tables import interval as share_interval

_NOT_ASKED = frozenset({"seed", "title", "device", "recipe"})
MEANS = ("worst_group", "average", "group_mean")


def alike_but_seed(runs: Sequence[Job]) -> list[list[Job]]:
    """Return finished runs in groups that differ in nothing but the seed, one a seed, the newest.

    Groups of one seed only are left out.
    """
    found: dict[Hashable, dict[int, Job]] = {}
    for job in sorted(runs, key=lambda job: job.created):
        if job.digest is not None and not job.config.only_before:
            said = tuple(told_value(name, job) for name in OPTIONS if name not in _NOT_ASKED)
            found.setdefault(said, {})[job.config.seed] = job
    return [[seeds[seed] for seed in sorted(seeds)] for seeds in found.values() if len(seeds) > 1]


def seeds_table(runs: Sequence[Job], test: str) -> Table:
    """Show the mean over seeds of runs on a test set; without rows where no two are alike."""
    groups = [
        [job for job in group if tested(job, test) is not None] for group in alike_but_seed(runs)
    ]
    groups = [group for group in groups if len(group) > 1]
    names = [name for name in differing([group[0] for group in groups]) if name != "seed"]
    return Table(
        name="over seeds",
        columns=(
            Column("Setting", ("what", "pictures", "seeds"), left=True),
            *(Column(setting_title(name), (name,), roomy=True) for name in names),
            Column("Seeds", ("n",)),
            *(
                Column(f"{title} after", (f"{key} mean", f"{key} low", f"{key} high"))
                for key, title in zip(
                    MEANS, (worst_title(runs, test), "Average", "Group mean"), strict=True
                )
            ),
        ),
        rows=[_row(group, names, test) for group in groups],
    )


def _row(group: Sequence[Job], names: Sequence[str], test: str) -> list[Cell]:
    first = group[0]
    seeds = ", ".join(str(job.config.seed) for job in group)
    return [
        Cell(run_title(first), f"seeds {seeds}", (run_title(first), title_of(first.config), seeds)),
        *(setting_cell(name, first) for name in names),
        count_cell(len(group)),
        *(_mean_cell(group, key, test) for key in MEANS),
    ]


def _mean_cell(group: Sequence[Job], key: str, test: str) -> Cell:
    found = (tested(job, test) for job in group)
    known = [one.after.metrics[key] for one in found if one and one.after]
    values = [value for value in known if value is not None]
    bounds = share_interval(values)
    if bounds is None:
        return Cell(NOTHING, values=(None,) * 3)
    mean = statistics.fmean(values)
    low, high = bounds
    return Cell(
        percent(mean),
        f"{interval((low, high))}, n = {count(len(values), 'seed')}",
        (mean, low, high),
    )
