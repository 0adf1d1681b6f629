"""Several runs side by side: which ones can be compared, and what they say. No Streamlit."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from html import escape

from masktune.config import RunConfig
from masktune.datasets.catalogue import CATALOGUE
from masktune.errors import RunFolderError
from masktune.runs import jobs
from masktune.show.markup import chip, strip
from masktune.show.wording import NOTHING, count, duration, interval, method_words, percent

CONTROLS = ("random", "none")
"""The strategies that hide nothing the model leans on."""

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


def row_of(job: jobs.Job, test: str) -> RunRow | None:
    """Read the numbers of a finished run; None where it was not tested on this test set."""
    try:
        document = jobs.result(job.path)
        both = document["test"][test]
        groups = both["after"]["groups"]
        worst = min(
            (group for group in groups if group["count"]), key=lambda group: group["accuracy"]
        )
        return RunRow(
            job=job,
            title=run_title(job),
            count=sum(group["count"] for group in groups),
            worst=_both(both, "worst_group"),
            worst_interval=tuple(worst["interval"]),
            worst_count=worst["count"],
            average=_both(both, "average"),
            group_mean=_both(both, "group_mean"),
            fixed=document["flips"][test]["fixed"],
            broken=document["flips"][test]["broken"],
            seconds=sum(document["seconds"].values()),
        )
    except (RunFolderError, KeyError, TypeError, ValueError):
        # Written by another version, or changed by hand: it is left out, the others are shown.
        return None


def _both(scores: dict[str, dict[str, float | None]], name: str) -> Both:
    return scores["before"][name], scores["after"][name]


def run_title(job: jobs.Job) -> str:
    """Call a run by its name, or by what it does."""
    return job.name or method_words(job.config.masking)


def run_labels(listed: Sequence[jobs.Job], *, dataset: bool = True) -> dict[str, str]:
    """Give a label for each run by id; no two are the same, so that a list can tell them apart."""
    labels: dict[str, str] = {}
    for job in listed:
        moment = datetime.fromtimestamp(job.created)
        pictures = f"{CATALOGUE[job.config.dataset].card.title}, " if dataset else ""
        label = f"{pictures}{run_title(job)}, {moment:%d %b %H:%M}"
        taken = label in labels.values()
        labels[job.id] = f"{label} ({job.id.rsplit('-', 1)[-1]})" if taken else label
    return labels


def finished_runs() -> list[jobs.Job]:
    """Give the finished runs that can be opened here, the newest first."""
    return [j for j in jobs.history() if j.state == "done" and j.config.dataset in CATALOGUE]


def comparable(shown: jobs.Job, listed: Sequence[jobs.Job]) -> list[jobs.Job]:
    """Give the other runs on the same pictures; another seed may split them differently."""
    want = (shown.config.dataset, shown.config.root)
    return [j for j in listed if (j.config.dataset, j.config.root) == want and j.id != shown.id]


def same_start(one: RunConfig, other: RunConfig) -> bool:
    """Tell whether two runs tuned the same model before."""
    return _start(one) == _start(other)


def _start(config: RunConfig) -> RunConfig:
    plain = replace(config.masking, strategy="none", k=0.0, statistics="positive", rounds=1)
    plain = replace(plain, accumulate=True, top_fraction=0.05, method="xgradcam", layer=None)
    return replace(config, masking=plain, finetune_lr=None, device="auto")


def sweep(shown: jobs.Job, listed: Sequence[jobs.Job]) -> list[jobs.Job]:
    """Give the runs that differ from one in nothing but k, ascending; one a k, the newest.

    Of the strategies only MaskTune's own has a k, so that others have no sweep.

    Args:
        shown: taken at its own k, even when it is not the newest.
        listed: finished runs, the newest first.
    """
    if shown.config.masking.strategy != "heat":
        return []

    def without_k(config: RunConfig) -> RunConfig:
        return replace(config, masking=replace(config.masking, k=0.0), device="auto")

    at: dict[float, jobs.Job] = {shown.config.masking.k: shown}
    for job in listed:
        if without_k(job.config) == without_k(shown.config):
            at.setdefault(job.config.masking.k, job)
    return [at[k] for k in sorted(at)]


def beside_words(shown: RunRow, others: Sequence[RunRow]) -> str:
    """Say whether a run did more for the worst group than the controls beside it.

    Empty when there is no control to weigh it against.
    """
    if shown.job.config.masking.strategy in CONTROLS:
        return "This run is a control: set it beside a run that hides what the model leans on."
    controls = [
        row
        for row in others
        if row.job.config.masking.strategy in CONTROLS
        and same_start(row.job.config, shown.job.config)
    ]
    if not controls or shown.worst_interval is None:
        return ""
    reached = " and ".join(
        f"{percent(row.worst[1])} ({row.title.removeprefix('Control: ')})" for row in controls
    )
    opening = (
        f"This run brings the worst group to {percent(shown.worst[1])}; with the controls it is at "
        f"{reached}."
    )
    low, high = shown.worst_interval
    below = [row for row in controls if row.worst_interval and high < row.worst_interval[0]]
    if below:
        return f"{opening} A control did clearly better: hiding these pixels did not help."
    if all(row.worst_interval and row.worst_interval[1] < low for row in controls):
        return f"{opening} That is clearly more than a control reaches."
    return f"{opening} That is not clearly more than a control reaches: the intervals overlap."


def runs_html(shown: RunRow, others: Sequence[RunRow]) -> str:
    """Show runs one below the other, the shown one first and in bold."""
    heads = (
        "Run", "k", "Rounds", "Model, seed", "Worst group before", "0 to 100%", "after",
        "Test average", "Group mean", "Fixed", "Broken", "Took",
    )  # fmt: skip
    left = ("Run", "Model, seed", "0 to 100%")
    head = "".join(
        f'<th scope="col"{_left(text in left and text != "Run")}>{text}</th>' for text in heads
    )
    rows = "".join(_line(row, strong=row is shown) for row in (shown, *others))
    return (
        '<div class="wide"><table class="runs" aria-label="Runs side by side">'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _left(wanted: bool) -> str:
    return ' class="left"' if wanted else ""


def _line(row: RunRow, *, strong: bool) -> str:
    config = row.job.config
    k = f"{config.masking.k:g}" if config.masking.strategy == "heat" else NOTHING
    name = f"<b>{escape(row.title)}</b>" if strong else escape(row.title)
    return (
        f'<tr><th scope="row">{name}{"<small>this run</small>" if strong else ""}</th>'
        f"<td>{k}</td><td>{config.masking.rounds}</td>"
        f'<td class="left">{escape(_model(config))}<small>seed {config.seed}</small></td>'
        f"<td>{percent(row.worst[0])}</td>"
        f"<td>{strip(row.worst[0] or 0.0, row.worst[1] or 0.0, after_interval=row.worst_interval)}"
        f"</td><td><b>{percent(row.worst[1])}</b>"
        f"<small>{interval(row.worst_interval)}, n = {count(row.worst_count)}</small></td>"
        f"{_change(row.average)}{_change(row.group_mean)}"
        f"<td>{chip('fixed')} {count(row.fixed)}</td><td>{chip('broken')} {count(row.broken)}</td>"
        f"<td>{duration(row.seconds)}</td></tr>"
    )


def _model(config: RunConfig) -> str:
    if config.model is None:
        return f"{config.arch}, trained by the run"
    return (
        "bundled" if config.model == "bundled" else config.model.replace("\\", "/").split("/")[-1]
    )


def _change(both: Both) -> str:
    return f"<td>{percent(both[1])}<small>from {percent(both[0])}</small></td>"
