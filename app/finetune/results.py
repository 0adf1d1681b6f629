"""What runs came to, read off their folders: for the job card and the list of runs."""

from collections.abc import Sequence
from datetime import datetime

from app.opened import result_of
from masktune.config import BUNDLED
from masktune.files import Value, csv_bytes
from masktune.runs.jobs import Job
from masktune.scores.groups import GroupScore
from masktune.scores.result import RunResult
from masktune.show.wording import duration, method_words


def title(job: Job) -> str:
    """Name a run: as somebody called it, else by what it does."""
    return job.name or method_words(job.config.masking)


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


def runs_csv(shown: Sequence[Job]) -> bytes:
    """Give a list of runs as the content of a CSV file; accuracies are fractions."""
    rows = [_row(job, result_of(job)) for job in shown]
    return csv_bytes(list(rows[0]) if rows else [], ([*row.values()] for row in rows), end="\r\n")


def _row(job: Job, result: RunResult | None) -> dict[str, Value]:
    masking = job.config.masking
    before = after = GroupScore("", "", 0, None, None)
    if result is not None:
        before, after = result.first.before.worst, result.first.after.worst
    return {
        "run": job.id,
        "name": job.name,
        "note": job.note,
        "state": job.state,
        "hidden": masking.strategy,
        "k": masking.k,
        "rounds": masking.rounds,
        "learning rate": rate_words(job, result),
        "test set": result.first.name if result else None,
        **_numbers("before", before),
        **_numbers("after", after),
        "seconds": result.took if result else None,
        "problem": job.problem,
    }


def _numbers(moment: str, worst: GroupScore) -> dict[str, Value]:
    low, high = worst.interval or (None, None)
    return {
        f"worst {moment}": worst.accuracy,
        f"worst {moment}, low": low,
        f"worst {moment}, high": high,
        f"worst {moment}, n": worst.count or None,
    }
