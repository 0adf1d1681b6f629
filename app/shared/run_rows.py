"""Several runs side by side: which ones can be compared, and what they say. No Streamlit."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from app.opened import result_of
from masktune.checkpoints.settings import same
from masktune.config import MaskingConfig, RunConfig
from masktune.datasets.catalogue import CATALOGUE
from masktune.heat.strategies import CONTROLS, strategy_of
from masktune.runs import jobs
from masktune.runs.load import same_pictures, title_of
from masktune.scores.evidence import Evidence
from masktune.show.markup import piece, strip
from masktune.show.tables import Cell, Column, Table, count_cell, share_cell
from masktune.show.wording import NOTHING, count, duration, interval, method_words, percent

Both = tuple[float | None, float | None]
"""A share before and after."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """The numbers of one run on one test set.

    Attributes:
        job: the run.
        title: what it was called, or what it does.
        count: pictures of the test set.
        worst: accuracy of the worst group before and after.
        worst_interval: the 95 % interval after.
        worst_count: pictures of the group that is worst after.
        average: test average before and after.
        group_mean: likewise.
        fixed: answers wrong before and right after.
        broken: the reverse.
        seconds: how long the run took.
    """

    job: jobs.Job
    title: str
    count: int
    worst: Both
    worst_interval: tuple[float, float] | None
    worst_count: int
    average: Both
    group_mean: Both
    fixed: int
    broken: int
    seconds: float


def row_of(job: jobs.Job, test: str | None = None) -> RunRow | None:
    """Read the numbers of a finished run; None where it was not tested on this test set.

    Args:
        job: the run.
        test: name of the test set, None for its first.
    """
    result = result_of(job)
    found = None if result is None else result.test.get(test or result.first.name)
    if result is None or found is None or found.flips is None:
        return None
    was, now = found.before, found.after
    return RunRow(
        job=job,
        title=run_title(job),
        count=len(found),
        worst=(was.worst.accuracy, now.worst.accuracy),
        worst_interval=now.worst.interval,
        worst_count=now.worst.count,
        average=(was.averages.test, now.averages.test),
        group_mean=(was.averages.group_mean, now.averages.group_mean),
        fixed=found.flips.fixed,
        broken=found.flips.broken,
        seconds=result.took,
    )


def run_title(job: jobs.Job) -> str:
    """Call a run by its name, or by what it does."""
    return job.name or method_words(job.config.masking)


def run_labels(listed: Sequence[jobs.Job], *, dataset: bool = True) -> dict[str, str]:
    """Give a label for each run by id; no two are the same, so that a list can tell them apart."""
    labels: dict[str, str] = {}
    for job in listed:
        moment = datetime.fromtimestamp(job.created)
        pictures = f"{title_of(job.config)}, " if dataset else ""
        label = f"{pictures}{run_title(job)}, {moment:%d %b %H:%M}"
        taken = label in labels.values()
        labels[job.id] = f"{label} ({job.id.rsplit('-', 1)[-1]})" if taken else label
    return labels


def finished_runs() -> list[jobs.Job]:
    """Give the finished runs that can be opened here, the newest first."""
    known = (job for job in jobs.history() if job.config.dataset in CATALOGUE)
    return [job for job in known if result_of(job) is not None]


def demo_takes() -> str:
    """Say how long a finetune of the first demo takes, as the last one here took."""
    demo = next(iter(CATALOGUE))
    found = (result_of(j) for j in finished_runs() if j.config.dataset == demo and j.config.model)
    last = next((result for result in found if result is not None), None)
    if last is None:
        return "A finetune of the demo takes less than a minute."
    return f"The last finetune of the demo took {duration(last.took)} here."


def comparable(shown: jobs.Job, listed: Sequence[jobs.Job]) -> list[jobs.Job]:
    """Give the other runs on the same pictures."""
    files = jobs.fingerprint_of(shown)

    def beside(job: jobs.Job) -> bool:
        same = files is not None and jobs.fingerprint_of(job) == files
        return job.id != shown.id and same_pictures(job.config, shown.config, same_files=same)

    return [job for job in listed if beside(job)]


def control_settings(config: RunConfig) -> tuple[RunConfig, ...]:
    """Return the controls of a run: they differ in nothing but what is hidden.

    What only the threshold needs is left at its usual value, so that runs at several k share
    their controls.
    """
    rounds = MaskingConfig(rounds=config.masking.rounds, accumulate=config.masking.accumulate)
    return tuple(
        replace(config, masking=replace(rounds, strategy=strategy))
        for strategy in CONTROLS
        if strategy != config.masking.strategy
    )


def missing(wanted: Sequence[RunConfig], past: Sequence[jobs.Job]) -> tuple[RunConfig, ...]:
    """Return the settings of which no run is done or under way; another would come to the same."""
    here = [job.config for job in past if job.active or job.state == "done"]
    return tuple(config for config in wanted if not any(same(config, one) for one in here))


def sweep(shown: jobs.Job, listed: Sequence[jobs.Job]) -> list[jobs.Job]:
    """Give the runs that differ from one in nothing but k, ascending; one a k, the newest.

    Of the strategies only MaskTune's own has a k, so that others have no sweep.

    Args:
        shown: taken at its own k, even when it is not the newest.
        listed: finished runs, the newest first.
    """
    if not strategy_of(shown.config.masking).uses_k:
        return []

    def without_k(config: RunConfig) -> RunConfig:
        return replace(config, masking=replace(config.masking, k=0.0), device="auto")

    at: dict[float, jobs.Job] = {shown.config.masking.k: shown}
    for job in listed:
        if without_k(job.config) == without_k(shown.config):
            at.setdefault(job.config.masking.k, job)
    return [at[k] for k in sorted(at)]


def beside_words(
    shown: RunRow,
    others: Sequence[RunRow],
    *,
    against: Callable[[RunRow], Evidence | None],
) -> str:
    """Say whether a run did more for the worst group than the controls beside it.

    Empty when there is no control to weigh it against.

    Args:
        shown: the run.
        others: runs beside it.
        against: weighs a control's answers, as before, against those of the run shown; None where
            they cannot be read, and then nothing is claimed.
    """
    if strategy_of(shown.job.config.masking).is_control:
        return "This run is a control: set it beside a run that hides what the model leans on."
    controls = [
        row
        for row in others
        if strategy_of(row.job.config.masking).is_control and jobs.tuned_alike(row.job, shown.job)
    ]
    if not controls:
        return ""
    reached = " and ".join(
        f"{percent(row.worst[1])} ({row.title.removeprefix('Control: ')})" for row in controls
    )
    opening = (
        f"This run brings the worst group to {percent(shown.worst[1])}; with the controls it is at "
        f"{reached}."
    )
    found = [against(row) for row in controls]
    worst = {evidence.worst for evidence in found if evidence is not None}
    if "down" in worst:
        return f"{opening} A control did clearly better: hiding these pixels did not help."
    if None in found:
        return opening
    clearly = "clearly" if worst == {"up"} else "not clearly"
    return f"{opening} That is {clearly} more than a control reaches."


def runs_table(shown: RunRow | None, rows: Sequence[RunRow]) -> Table:
    """Show runs one below the other; a file has more of their settings.

    Args:
        shown: the run in bold, None where none is.
        rows: all of them, in order.
    """
    return Table(
        name="Runs side by side",
        kind="runs",
        columns=(
            Column("Run", ("run", "what", "strategy")),
            Column("k"),
            Column("Rounds", ("rounds",)),
            Column("Model, seed", ("model", "seed", "n"), left=True),
            Column("Worst group before", ("worst before",)),
            Column("0 to 100%", (), left=True, roomy=True),
            Column("after", ("worst after", "worst after low", "worst after high")),
            Column("Test average", ("average before", "average after")),
            Column("Group mean", ("group mean before", "group mean after")),
            Column("Fixed", ("fixed",)),
            Column("Broken", ("broken",)),
            Column("Took", ("seconds",)),
        ),
        rows=[_line(row, strong=row is shown) for row in rows],
    )


def _line(row: RunRow, *, strong: bool) -> list[Cell]:
    config, masking = row.job.config, row.job.config.masking
    before, after = row.worst
    model = config.model or "trained by the run"
    return [
        Cell(
            row.title,
            "this run" if strong else "",
            (row.job.id, row.title, masking.strategy),
            strong=strong,
        ),
        Cell(f"{masking.k:g}" if strategy_of(masking).uses_k else NOTHING, values=(masking.k,)),
        count_cell(masking.rounds),
        Cell(_model(config), f"seed {config.seed}", (model, config.seed, row.count)),
        share_cell(before),
        Cell(strip(before or 0.0, after or 0.0, after_interval=row.worst_interval)),
        Cell(
            percent(after),
            f"{interval(row.worst_interval)}, n = {count(row.worst_count)}",
            (after, *(row.worst_interval or (None, None))),
            strong=True,
        ),
        *(Cell(percent(b), f"from {percent(a)}", (a, b)) for a, b in (row.average, row.group_mean)),
        Cell(piece("counted", state="fixed", number=row.fixed), values=(row.fixed,)),
        Cell(piece("counted", state="broken", number=row.broken), values=(row.broken,)),
        Cell(duration(row.seconds), values=(row.seconds,)),
    ]


def _model(config: RunConfig) -> str:
    if config.model is None:
        return f"{config.arch}, trained by the run"
    return (
        "bundled" if config.model == "bundled" else config.model.replace("\\", "/").split("/")[-1]
    )
