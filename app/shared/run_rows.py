"""Several runs side by side: which ones can be compared, and what they say. No Streamlit."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import PureWindowsPath

from app.opened import result_of
from masktune.checkpoints.settings import same
from masktune.config import MASKTUNE, RunConfig
from masktune.datasets.catalogue import CATALOGUE
from masktune.heat.strategies import strategy_of
from masktune.runs import jobs
from masktune.runs.index import OF_STUDIES
from masktune.runs.load import same_pictures, title_of
from masktune.scores.evidence import Evidence
from masktune.scores.groups import group_name
from masktune.scores.marks import FlipMark, written
from masktune.scores.metrics import METRICS
from masktune.scores.result import FlipCounts, SplitResult
from masktune.show.markup import metric_strip, piece
from masktune.show.tables import Cell, Column, Table, count_cell
from masktune.show.wording import (
    NOTHING,
    control_words,
    count,
    duration,
    interval,
    method_words,
    percent,
)

MOST_OF_STUDIES = 12
"""Runs of studies that a list to choose from offers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """One run on one test set, with the seconds that the run took."""

    job: jobs.Job
    test: SplitResult
    flips: FlipCounts
    seconds: float


def row_of(job: jobs.Job, test: str | None = None) -> RunRow | None:
    """Read the numbers of a finished run on a test set, its first unless one is named.

    None where it was not tested on it, or an older version did not count the answers that changed.
    """
    result = result_of(job)
    found = None if result is None else result.test.get(test or result.first.name)
    if result is None or found is None or found.flips is None:
        return None
    return RunRow(job=job, test=found, flips=found.flips, seconds=result.took)


def run_title(job: jobs.Job) -> str:
    """Call a run by its name, or by what it does."""
    return job.name or method_words(job.config)


def runs_words(number: int) -> str:
    """Count runs.

    >>> runs_words(1), runs_words(1200)
    ('1 run', '1,200 runs')
    """
    return "1 run" if number == 1 else f"{count(number)} runs"


def tags_of(text: str) -> list[str]:
    """Read tags that somebody typed, with commas or spaces between, each once.

    >>> tags_of("best, a,b best")
    ['best', 'a', 'b']
    """
    return [*dict.fromkeys(text.replace(",", " ").split())]


def about(seconds: float) -> str:
    """Write an estimate, which knows no tenths of seconds.

    >>> about(0.3), about(24.7), about(840.0)
    ('1 s', '25 s', '14 min')
    """
    return f"{max(1, round(seconds))} s" if seconds < 100 else duration(seconds)


def ahead_words(ahead: int) -> str:
    """Say how many runs come before one that waits."""
    if ahead == 0:
        return "next"
    return "1 run is ahead" if ahead == 1 else f"{ahead} runs are ahead"


def clock(moment: float, *, today: str = "%H:%M:%S") -> str:
    """Write a time of today as asked for, that of another day with the day."""
    when = datetime.fromtimestamp(moment)
    is_today = when.date() == datetime.now().date()
    return when.strftime(today if is_today else "%d %b, %H:%M")


def run_labels(listed: Sequence[jobs.Job], *, dataset: bool = True) -> dict[str, str]:
    """Give a label for each run by id; no two are the same, so that a list can tell them apart."""
    labels: dict[str, str] = {}
    taken: set[str] = set()
    for job in listed:
        moment = datetime.fromtimestamp(job.created)
        pictures = f"{title_of(job.config)}, " if dataset else ""
        label = f"{pictures}{run_title(job)}, {moment:%d %b %H:%M}"
        own = "/".join(job.path.parts[-2:]) if job.of_study else job.id.rsplit("-", 1)[-1]
        every = (label, f"{label} ({own})", f"{label} ({job.id})")
        labels[job.id] = next(each for each in every if each not in taken)
        taken.add(labels[job.id])
    return labels


def finished_runs(
    shown: str | None = None, *, named: Collection[str] = (), trainings: bool = False
) -> list[jobs.Job]:
    """Give the finished runs that can be opened here, those of studies too, the newest first.

    Trainings, which have no model after, are among them only where that is asked for.

    What is in the archive is left out, but for the run that is shown and those that are named.
    Where the run that is shown is one of a study, the others of its seed come before all others.
    """
    known = [
        job
        for job in jobs.every()
        if job.config.dataset in CATALOGUE
        and job.digest is not None
        and (trainings or not job.config.only_before)
        and not (job.archived and job.id != shown and job.id not in named)
    ]
    seed = (shown or "").rpartition("/")[0]
    return sorted(known, key=lambda job: job.id.rpartition("/")[0] != seed) if seed else known


def few_of_studies(runs: Iterable[jobs.Job], *, named: Collection[str] = ()) -> list[jobs.Job]:
    """Return runs for a list to choose from, where a study may have hundreds.

    Of the runs of studies only the first ``MOST_OF_STUDIES`` stay, and those that are named.
    """
    found, of_studies = [], 0
    for job in runs:
        of_studies += job.of_study
        if not job.of_study or of_studies <= MOST_OF_STUDIES or job.id in named:
            found.append(job)
    return found


def demo_takes() -> str:
    """Say how long a finetune of the first demo takes, as the last one here took."""
    demo = next(iter(CATALOGUE))
    runs = (job for job in finished_runs() if job.config.dataset == demo and job.config.model)
    last = next((job.digest for job in runs if job.config.rival == MASKTUNE), None)
    if last is None:
        return "A finetune of the demo takes less than a minute."
    return f"The last finetune of the demo took {duration(last.took)} here."


def comparable(shown: jobs.Job, listed: Sequence[jobs.Job]) -> list[jobs.Job]:
    """Give the other runs on the same pictures."""
    files = shown.fingerprint

    def beside(job: jobs.Job) -> bool:
        same = files is not None and job.fingerprint == files
        return job.id != shown.id and same_pictures(job.config, shown.config, same_files=same)

    return list(filter(beside, listed))


def missing(wanted: Sequence[RunConfig], past: Sequence[jobs.Job]) -> tuple[RunConfig, ...]:
    """Return the settings of which no run is done or under way; another would come to the same."""
    here = [job.config for job in past if job.active or job.state == "done"]
    return tuple(config for config in wanted if not any(same(config, one) for one in here))


def sweep(shown: jobs.Job, listed: Sequence[jobs.Job]) -> list[jobs.Job]:
    """Give the runs that differ from one in nothing but k, ascending; one a k, the newest listed.

    The one itself is taken at its k. Strategies without a k have no sweep.
    """
    if not strategy_of(shown.config.masking).uses_k:
        return []

    at: dict[float, jobs.Job] = {shown.config.masking.k: shown}
    for job in listed:
        # Or one of them took the model that the other trained, as the runs of a grid do.
        both = ((job.config, shown.config), (jobs.opened(job), jobs.opened(shown)))
        if any(same(one, other, but={"k", "device"}) for one, other in both):
            at.setdefault(job.config.masking.k, job)
    return [at[k] for k in sorted(at)]


def beside_words(
    shown: RunRow, others: Sequence[RunRow], *, against: Callable[[jobs.Job], Evidence | None]
) -> str:
    """Say where a run did better or worse than the controls beside it.

    Empty when there is no control to weigh it against. ``against`` weighs a control's answers, as
    before, against those of the run shown; None where they cannot be read: nothing is claimed then.
    """
    if jobs.is_control(shown.job.config):
        return "This run is a control: set it beside a run that hides what the model leans on."
    known = jobs.controls_of(shown.job, [row.job for row in others])
    controls = [row for row in others if row.job in known]
    if not controls:
        return ""
    reached = " and ".join(
        f"{_reached(row)} with {run_title(row.job).removeprefix('Control: ')}" for row in controls
    )
    worst = worst_head([shown.test]).lower()
    said = [f"This run brings the {worst} to {_reached(shown)}; it is at {reached}."]
    for row in controls:
        if (found := against(row.job)) is not None:
            said.append(control_words(shown.test.name, row.job.config.masking, found)[1])
    return " ".join(said)


def _reached(row: RunRow) -> str:
    worst = row.test.after.worst
    return f"{percent(worst.accuracy)} ({group_name(worst)})"


def worst_cells(test: SplitResult) -> tuple[Cell, Cell, Cell]:
    """Return the worst group before, a strip from there to after, and after with n and interval."""
    now = test.after.worst
    small = f"{interval(now.interval)}, n = {count(now.count)}"
    return (
        Cell(percent(test.before.worst.accuracy)),
        Cell(metric_strip(METRICS[0], test)),
        Cell(percent(now.accuracy), small, strong=True),
    )


def worst_head(tests: Iterable[SplitResult]) -> str:
    """Return what heads a column of lowest accuracies: of groups, or of classes without them."""
    kinds = {test.after.worst_is for test in tests}
    return f"Worst {' or '.join(sorted(kinds, reverse=True)) or 'group'}"


def runs_table(shown: RunRow | None, rows: Sequence[RunRow]) -> Table:
    """Show runs one below the other, one of them in bold; a file has more of their settings.

    Where one is shown, answers that any of them changed lead to their pictures.
    """
    return Table(
        name="Runs side by side",
        kind="runs",
        columns=(
            Column("Run", ("run", "what", "strategy")),
            Column("k"),
            Column("Rounds", ("rounds",)),
            Column("Model, seed", ("model", "seed", "n"), left=True),
            Column(f"{worst_head(row.test for row in rows)} before", ("worst before",)),
            Column("0 to 100%", (), left=True, roomy=True),
            Column("after", ("worst after", "worst after low", "worst after high")),
            Column("Test average", ("average before", "average after")),
            Column("Group mean", ("group mean before", "group mean after")),
            Column("Fixed", ("fixed",)),
            Column("Broken", ("broken",)),
            Column("Took", ("seconds",)),
        ),
        rows=[_line(row, shown) for row in rows],
    )


def _line(row: RunRow, shown: RunRow | None) -> list[Cell]:
    strong = row is shown
    config, masking, name = row.job.config, row.job.config.masking, run_title(row.job)
    was, now = row.test.before, row.test.after
    before, line, after = worst_cells(row.test)
    bounds = now.worst.interval or (None, None)
    model = config.model or "trained by the run"
    made_by = masking.strategy if config.rival == MASKTUNE else config.rival
    return [
        Cell(name, "this run" if strong else "", (row.job.id, name, made_by), strong=strong),
        Cell(f"{masking.k:g}" if strategy_of(masking).uses_k else NOTHING, values=(masking.k,)),
        count_cell(masking.rounds) if config.rival == MASKTUNE else Cell(NOTHING, values=(None,)),
        Cell(_model(config), f"seed {config.seed}", (model, config.seed, len(row.test))),
        replace(before, values=(was.worst.accuracy,)),
        line,
        replace(after, values=(now.worst.accuracy, *bounds)),
        *(
            Cell(percent(b), f"from {percent(a)}", (a, b))
            for a, b in ((was.average, now.average), (was.group_mean, now.group_mean))
        ),
        *(
            Cell(
                piece("counted", state=state, number=number, link=_way(row, state, number, shown)),
                values=(number,),
            )
            for state, number in (("fixed", row.flips.fixed), ("broken", row.flips.broken))
        ),
        Cell(duration(row.seconds), values=(row.seconds,)),
    ]


def _way(row: RunRow, state: str, number: int, shown: RunRow | None) -> str:
    """Return a link to what a run changed, on the page of the run that is shown, if any."""
    if shown is None or not number:
        return ""
    mark = FlipMark(row.test.name, state, run="" if row is shown else row.job.id)
    return piece("mark", shown=written(mark), text=count(number))


def _model(config: RunConfig) -> str:
    """Name a model by its file; one that a run trained is called the same by all who took it."""
    path = PureWindowsPath(config.model or "")  # which knows both slashes
    # Of a run by itself the folder's name, of a study's the way to it.
    way = path.parts[-5:-1]
    trainer = jobs.find("/".join(way) if {*way[:1]} & {*OF_STUDIES} else path.parent.name)
    if trainer is not None and config.model == jobs.opened(trainer).model:
        config = trainer.config
    # The name of "bundled" is itself.
    return path.name if config.model else f"{config.arch}, trained by a run"
