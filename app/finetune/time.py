"""How long a run takes on this machine, told from the runs before it. No Streamlit in here."""

from collections.abc import Sequence
from statistics import median

from app.opened import result_of
from masktune.config import BY_RECIPE, MASKTUNE, RunConfig
from masktune.data.frame import frame
from masktune.datasets.catalogue import CATALOGUE
from masktune.heat.strategies import strategy_of
from masktune.runs.jobs import Job, opened
from masktune.runs.load import same_start
from masktune.training.methods import RIVALS

Pace = dict[str, float]
"""Seconds by part of the work, as in ``result.json``, where runs have shown it; of one epoch
("train"), of one round ("heat" and "finetune")."""

LOOKED_AT = 30
"""Earlier runs that are read for an estimate, the newest ones."""

NEWEST = 5
"""Runs that each part of an estimate is made from: the newest of those that have this part."""

SHARES = {"load": 4.0, "train": 30.0, "heat": 2.0, "finetune": 5.0, "evaluate": 2.0, "report": 1.0}
"""Widths of the stages before any run has shown how long they take."""


def stages(config: RunConfig) -> dict[str, str]:
    """Give the stages of a run in order, as its status names them, and the part each belongs to."""
    if config.only_before:
        return {"load": "load", "train": "train", "predict": "evaluate"}
    parts = RIVALS[config.rival].stages
    if config.rival == MASKTUNE and strategy_of(config.masking).needs_heat:
        parts = ("heat", *parts)
    rounds = range(2, config.masking.rounds + 1)
    return {
        "load": "load",
        **({} if config.model else {"train": "train"}),
        **{part: "heat" if part == "heat" else "finetune" for part in parts},
        **{f"{part} {number}": part for number in rounds for part in parts},
        "predict": "evaluate",
        "report": "report",
    }


def usual(config: RunConfig, past: Sequence[Job], *, pictures: int | None) -> tuple[Pace, bool]:
    """Tell the pace of a run from finished ones of the same architecture.

    Runs on the same pictures count; where there are none, the newest run on others, scaled by how
    many pixels there are to learn from.

    Args:
        config: the run.
        past: all runs, the newest first.
        pictures: in the training set; None when not known yet.

    Returns:
        The pace, and whether runs on the same pictures showed it.
    """
    # A model that a run here trained is taken up as "auto", without the name it was trained by.
    done = [
        job
        for job in past
        if job.state == "done"
        and (job.config.arch == config.arch or same_start(opened(job), config))
    ]
    seen = (config.dataset, config.root, config.frame)
    same = [j for j in done if (j.config.dataset, j.config.root, j.config.frame) == seen]
    shown = [_shown(job, config) for job in same[:LOOKED_AT]]
    found = {part: [pace[part] for pace in shown if part in pace][:NEWEST] for part in SHARES}
    if pace := {part: median(seconds) for part, seconds in found.items() if seconds}:
        return pace, True
    for job in done[:LOOKED_AT]:
        pace, result = _shown(job, config), result_of(job)
        learnt = None if result is None else result.data.train
        if pictures and learnt and job.config.dataset in CATALOGUE:
            work = pictures * _pixels(config) / (learnt * _pixels(job.config))
            factors = {**dict.fromkeys(SHARES, work), "load": 1.0, "report": 1.0}
            return {part: factors[part] * seconds for part, seconds in pace.items()}, False
    return {}, False


def seconds_of(config: RunConfig, pace: Pace) -> dict[str, float] | None:
    """Give the seconds of every stage of a run, None when one of them is not known."""
    known = {"load": 0.0, "report": 0.0, **pace}  # older runs did not measure these
    times, parts = _epochs(config), stages(config)
    if not known.keys() >= set(parts.values()):
        return None
    return {stage: times.get(stage, 1) * known[part] for stage, part in parts.items()}


def _epochs(config: RunConfig) -> dict[str, int]:
    """Return the epochs of every stage that trains by the recipe."""
    epochs = config.training.epochs
    if config.rival not in BY_RECIPE:
        return {"train": epochs}
    first = {} if config.rival != "jtt" else {"errors": config.error_epochs}
    return {"train": epochs, "finetune": epochs, **first}


def widths(config: RunConfig, pace: Pace) -> tuple[float, ...]:
    """Give how wide each stage is drawn: as long as it usually takes, but wide enough to see."""
    known = seconds_of(config, pace)
    wide = [SHARES[part] for part in stages(config).values()] if known is None else known.values()
    least = 0.06 * sum(wide) or 1.0
    return tuple(max(value, least) for value in wide)


def seconds_left(job: Job, pace: Pace) -> float | None:
    """Give the seconds until a running run is done; None when its later stages are not known."""
    seconds = seconds_of(job.config, pace)
    if seconds is None or job.stage not in seconds:
        return None
    names = list(seconds)
    later = sum(seconds[name] for name in names[names.index(job.stage) + 1 :])
    if job.step >= job.total:
        return later
    return later + (seconds[job.stage] if job.seconds_left is None else job.seconds_left)


def _shown(job: Job, config: RunConfig) -> Pace:
    """Read the pace of a run with some settings off a finished one.

    A part that took no time was not done in its last try; how long one method takes says nothing
    of another.
    """
    result = result_of(job)
    if result is None:
        return {}
    epochs = _epochs(job.config)
    rounds = len(result.masking.rounds) or 1
    learnt = epochs.get("errors", 0) + epochs.get("finetune", 0)
    times = {"train": epochs["train"], "heat": rounds, "finetune": learnt or rounds}
    left_out = {"train"} if job.config.model else set()  # which is only loaded
    if job.config.rival != config.rival:
        left_out |= {"heat", "finetune"}
    return {
        part: seconds / times.get(part, 1)
        for part, seconds in result.seconds.items()
        if seconds and part not in left_out
    }


def _pixels(config: RunConfig) -> int:
    usual = CATALOGUE[config.dataset].size
    height, width = usual if config.frame is None else frame(config.frame).size
    return height * width
