"""What runs came to, read off their folders: for the job card and the list of runs."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from markupsafe import Markup

from app.opened import result_of
from app.shared.run_rows import run_title, worst_cells
from masktune.config import BUNDLED
from masktune.files import Value
from masktune.runs.jobs import Job
from masktune.scores.groups import GroupScore
from masktune.scores.result import RunResult
from masktune.show.markup import piece
from masktune.show.tables import Cell, Column, Table
from masktune.show.wording import duration, method_words


def rate_words(job: Job, result: RunResult | None) -> str:
    """Say at which rate a run finetunes; only a finished one knows what a file of weights said."""
    config = job.config
    taken = config.finetune_lr
    if taken is None and result is not None:
        taken = result.masking.rounds[0].lr
    if taken is None and config.model in (None, BUNDLED):
        taken = config.training.last_lr
    return "usual" if taken is None else f"{taken:g}"


def standing(job: Job, result: RunResult | None) -> str:
    """Say how long a run took, where it stands, or what went wrong."""
    match job.state:
        case "done":
            return "its result cannot be read" if result is None else duration(result.took)
        case "running":
            return f"since {clock(job.began or job.created)}"
        case "queued":
            return f"waiting since {clock(job.created)}, {ahead_words(job.ahead)}"
        case "failed":
            return job.problem
        case _:
            return "can go on where it stopped"


def ahead_words(ahead: int) -> str:
    """Say how many runs come before one that waits."""
    if ahead == 0:
        return "next"
    return "1 run is ahead" if ahead == 1 else f"{ahead} runs are ahead"


def clock(moment: float) -> str:
    """Write a time of today, or the day too."""
    when = datetime.fromtimestamp(moment)
    today = when.date() == datetime.now().date()
    return f"{when:%H:%M:%S}" if today else f"{when:%d %b, %H:%M}"


def runs_table(runs: Sequence[Job]) -> Table:
    """Show what runs did and came to, by the worst group of their first test set.

    Unlike those of other tables its rows are drawn one by one, each beside its buttons.
    """
    found = [(job, result_of(job)) for job in runs]
    tests = [result.first.name for _, result in found if result is not None]
    where = f" of “{tests[0]}”" if tests else ""
    return Table(
        name="Runs on these pictures",
        columns=(
            Column("State", ("run", "name", "note", "state")),
            Column("What is hidden", ("hidden", "k", "rounds")),
            Column("Learning rate", ("learning rate",)),
            Column(f"Worst group{where} before", ("test set", *_names("worst before"))),
            Column("0 to 100%", ()),
            Column("after", _names("worst after")),
            Column("Time, or what went wrong", ("seconds", "problem")),
        ),
        rows=[_row(job, result) for job, result in found],
    )


def _names(worst: str) -> tuple[str, ...]:
    return worst, f"{worst}, low", f"{worst}, high", f"{worst}, n"


def _row(job: Job, result: RunResult | None) -> list[Cell]:
    masking = job.config.masking
    notes = [method_words(masking) if job.name else "", job.note]
    return [
        Cell(piece("run_state", state=job.state), values=(job.id, job.name, job.note, job.state)),
        Cell(
            run_title(job),
            Markup("<br>").join(filter(None, notes)),
            (masking.strategy, masking.k, masking.rounds),
            strong=bool(job.name),
        ),
        Cell(rate_words(job, result)),
        *_scores(result),
        Cell(standing(job, result), values=(result.took if result else None, job.problem)),
    ]


def _scores(result: RunResult | None) -> tuple[Cell, Cell, Cell]:
    if result is None:
        return Cell(values=(None,) * 5), Cell(), Cell(values=(None,) * 4)
    test = result.first
    before, line, after = worst_cells(test)
    return (
        replace(before, values=(test.name, *_values(test.before.worst))),
        line,
        replace(after, values=_values(test.after.worst)),
    )


def _values(worst: GroupScore) -> tuple[Value, ...]:
    return worst.accuracy, *(worst.interval or (None, None)), worst.count
