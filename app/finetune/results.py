"""What runs came to, read off their folders: for the job card and the list of runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from masktune.checkpoints.settings import same
from masktune.config import RunConfig
from masktune.errors import RunFolderError
from masktune.files import Value, csv_bytes
from masktune.runs import jobs
from masktune.runs.jobs import Job
from masktune.scores.evidence import Evidence, weigh_result
from masktune.scores.groups import Averages, GroupScore, Summary
from masktune.show.wording import duration, method_words


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a finished run on its first test set.

    Attributes:
        test: name of the test set.
        before: scores of the model before.
        after: scores of the tuned model.
        seconds: that the work took.
        evidence: what became of the groups; None where the file does not tell.
    """

    test: str
    before: Summary
    after: Summary
    seconds: float
    evidence: Evidence | None


def outcome(job: Job) -> Outcome | None:
    """Give what a run came to; None when it is not finished or cannot be read."""
    if job.state != "done":
        return None
    try:
        document = jobs.result(job.path)
        test, scores = next(iter(document["test"].items()))
        return Outcome(
            test=test,
            before=_summary(scores["before"]),
            after=_summary(scores["after"]),
            seconds=sum(document["seconds"].values()),
            evidence=weigh_result(document, test),
        )
    except (RunFolderError, KeyError, StopIteration):
        return None


def _summary(scores: dict[str, Any]) -> Summary:
    groups = tuple(
        GroupScore(
            group["label"],
            group["attribute"],
            group["count"],
            group["accuracy"],
            None if group["interval"] is None else (group["interval"][0], group["interval"][1]),
        )
        for group in scores["groups"]
    )
    worst = next(group for group in groups if group.accuracy == scores["worst_group"])
    averages = Averages(scores["average"], scores["train_weighted"], scores["group_mean"])
    return Summary(averages, worst, scores["worst_is"], groups)


def on_same_pictures(job: Job, subject: RunConfig) -> bool:
    """Tell whether a run used these pictures, split in the same way."""
    return same(job.config, subject, "pictures")


def title(job: Job) -> str:
    """Name a run: as somebody called it, else by what it does."""
    return job.name or method_words(job.config.masking)


def rate_words(job: Job) -> str:
    """Say at which rate a run finetunes."""
    config = job.config
    if config.finetune_lr is not None:
        return f"{config.finetune_lr:g}"
    own = config.model not in (None, "bundled")
    # A checkpoint from elsewhere says in its file which rate it was trained with last.
    return "its last" if own else f"{config.training.last_lr:g}"


def standing(job: Job, result: Outcome | None) -> str:
    """Say how long a run took, where it stands, or what went wrong."""
    match job.state:
        case "done":
            return "" if result is None else duration(result.seconds)
        case "running":
            return f"since {clock(job.created)}"
        case "queued":
            return ahead_words(job.ahead)
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
    rows = [_row(job, outcome(job)) for job in shown]
    return csv_bytes(list(rows[0]) if rows else [], ([*row.values()] for row in rows), end="\r\n")


def _row(job: Job, result: Outcome | None) -> dict[str, Value]:
    masking = job.config.masking
    nothing = GroupScore("", "", 0, None, None)
    before, after = (result.before.worst, result.after.worst) if result else (nothing, nothing)
    return {
        "run": job.id,
        "name": job.name,
        "note": job.note,
        "state": job.state,
        "hidden": masking.strategy,
        "k": masking.k,
        "rounds": masking.rounds,
        "learning rate": rate_words(job),
        "test set": result.test if result else None,
        **_numbers("before", before),
        **_numbers("after", after),
        "seconds": result.seconds if result else None,
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
