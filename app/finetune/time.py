"""How long a run takes on this machine, told from the runs before it. No Streamlit in here."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from app.opened import result_of
from masktune.config import RunConfig
from masktune.data.frame import frame
from masktune.datasets.catalogue import CATALOGUE
from masktune.heat.strategies import strategy_of
from masktune.runs import jobs
from masktune.runs.folder import RunFolder
from masktune.runs.jobs import Job
from masktune.show.wording import duration

LOOKED_AT = 30
"""Earlier runs that are read for an estimate, the newest ones."""

NEWEST = 5
"""Runs that each part of an estimate is made from: the newest of those that have this part."""

WAITED = 60.0
"""Seconds around the work itself after which a run must have waited for another one."""

SHARES = {"load": 4.0, "train": 30.0, "heat": 2.0, "finetune": 5.0, "predict": 2.0, "report": 1.0}
"""Widths of the stages before any run has shown how long they take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Seconds that each part of a run takes; None where no run has shown it.

    Attributes:
        around: starting the process, reading the pictures, writing the report.
        train: one epoch of the ERM training.
        heat: one round.
        finetune: one round.
        predict: asking the models about hidden training pictures, validation and test sets.
        same: whether runs on the same pictures showed it, not on others.
    """

    around: float | None = None
    train: float | None = None
    heat: float | None = None
    finetune: float | None = None
    predict: float | None = None
    same: bool = True

    def scaled(self, factor: float) -> "Pace":
        """Give the pace on pictures that are ``factor`` times as many, or as large."""

        def times(seconds: float | None) -> float | None:
            return None if seconds is None else factor * seconds

        return replace(
            self,
            train=times(self.train),
            heat=times(self.heat),
            finetune=times(self.finetune),
            predict=times(self.predict),
            same=False,
        )


def stages(config: RunConfig) -> tuple[str, ...]:
    """Give the stages of a run in order, as its status names them."""
    rounds = range(1, config.masking.rounds + 1)
    parts = ("heat", "finetune") if strategy_of(config.masking).needs_heat else ("finetune",)
    work = [part if number == 1 else f"{part} {number}" for number in rounds for part in parts]
    first = ("load",) if config.model is not None else ("load", "train")
    return (*first, *work, "predict", "report")


def usual(config: RunConfig, past: Sequence[Job], *, pictures: int | None) -> Pace | None:
    """Tell the pace of a run from finished ones of the same architecture.

    Runs on the same pictures count; where there are none, the newest run on others, scaled by how
    many pixels there are to learn from.

    Args:
        config: the run.
        past: all runs, the newest first.
        pictures: in the training set; None when not known yet.
    """
    done = [j for j in past if j.state == "done" and j.config.arch == config.arch]
    seen = (config.dataset, config.root, config.frame)
    same = [j for j in done if (j.config.dataset, j.config.root, j.config.frame) == seen]
    paces = [pace for job in same[:LOOKED_AT] if (pace := _shown(job)) is not None]
    if paces:
        return _typical(paces)
    for job in done[:LOOKED_AT]:
        other, pace = _pixels_learnt(job), _shown(job)
        if pictures is not None and other is not None and pace is not None:
            return pace.scaled(pictures * _pixels(config) / other)
    return None


def seconds_of(config: RunConfig, pace: Pace | None) -> dict[str, float] | None:
    """Give the seconds of every stage of a run, None when one of them is not known."""
    if pace is None:
        return None
    around = pace.around or 0.0
    known: dict[str, float | None] = {
        "load": 0.75 * around,  # most of it is importing PyTorch
        "train": None if pace.train is None else config.training.epochs * pace.train,
        "heat": pace.heat,
        "finetune": pace.finetune,
        "predict": pace.predict,
        "report": 0.25 * around,
    }
    seconds = {stage: known[stage.split()[0]] for stage in stages(config)}
    told = {stage: value for stage, value in seconds.items() if value is not None}
    return told if len(told) == len(seconds) else None


def widths(config: RunConfig, pace: Pace | None) -> tuple[float, ...]:
    """Give how wide each stage is drawn: as long as it usually takes, but wide enough to see."""
    seconds = seconds_of(config, pace) or {s: SHARES[s.split()[0]] for s in stages(config)}
    least = 0.06 * sum(seconds.values()) or 1.0
    return tuple(max(value, least) for value in seconds.values())


def seconds_left(job: Job, pace: Pace | None) -> float | None:
    """Give the seconds until a running run is done; None when its later stages are not known."""
    seconds = seconds_of(job.config, pace)
    if seconds is None or job.stage not in seconds:
        return None
    names = list(seconds)
    later = sum(seconds[name] for name in names[names.index(job.stage) + 1 :])
    if job.step >= job.total:
        return later
    return later + (seconds[job.stage] if job.seconds_left is None else job.seconds_left)


def about(seconds: float) -> str:
    """Write an estimate, which knows no tenths of seconds.

    >>> about(0.3), about(24.7), about(840.0)
    ('1 s', '25 s', '14 min')
    """
    return f"{max(1, round(seconds))} s" if seconds < 100 else duration(seconds)


def _shown(job: Job) -> Pace | None:
    """Read the pace off a finished run."""
    result = result_of(job)
    if result is None:
        return None
    status, took, rounds = RunFolder(job.path).status(), result.seconds, len(result.masking.rounds)
    # Waiting in the queue counts into it: the shortest of several runs tells.
    around = float(status.get("updated") or 0.0) - job.created - result.took
    return Pace(
        around=around if 0 < around < WAITED else None,
        train=None if job.config.model else _part(took, "train", job.config.training.epochs),
        heat=_part(took, "heat", rounds),
        finetune=_part(took, "finetune", rounds),
        predict=_part(took, "evaluate", 1),
    )


def _part(took: Mapping[str, float], name: str, times: int) -> float | None:
    """Give the seconds of one time; None for a part that was not done in this try."""
    return took[name] / times if took.get(name) else None


def _typical(paces: Sequence[Pace]) -> Pace:
    def of(part: Callable[[Pace], float | None]) -> list[float]:
        return [value for pace in paces if (value := part(pace)) is not None][:NEWEST]

    def middle(values: list[float]) -> float | None:
        return median(values) if values else None

    return Pace(
        around=min(of(lambda p: p.around), default=None),
        train=middle(of(lambda p: p.train)),
        heat=middle(of(lambda p: p.heat)),
        finetune=middle(of(lambda p: p.finetune)),
        predict=middle(of(lambda p: p.predict)),
    )


def _pixels_learnt(job: Job) -> int | None:
    """Count the pixels of one epoch of a run, by its batches."""
    last = jobs.events(job.path, most=1)
    if not last or job.config.dataset not in CATALOGUE:
        return None
    steps = int(last[0]["total"])
    return steps * job.config.training.batch_size * _pixels(job.config)


def _pixels(config: RunConfig) -> int:
    usual = CATALOGUE[config.dataset].size
    height, width = usual if config.frame is None else frame(config.frame).size
    return height * width
