"""Which runs are listed, in which order and with which columns. No Streamlit."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from operator import attrgetter
from pathlib import Path, PurePath

from markupsafe import Markup, escape

from app.shared.run_rows import clock, run_title
from masktune.checkpoints.settings import OPTIONS
from masktune.config import ERM_ONLY, MASKTUNE, PARTS, RunConfig, Value, idle
from masktune.datasets.catalogue import OWN
from masktune.errors import MaskTuneError
from masktune.files import home, stamp
from masktune.heat.strategies import STRATEGIES
from masktune.runs import jobs
from masktune.runs.folder import BEFORE
from masktune.runs.index import Numbers
from masktune.runs.jobs import Job
from masktune.runs.load import title_of
from masktune.scores.groups import group_name
from masktune.scores.metrics import METRICS
from masktune.show.markup import piece, strip
from masktune.show.tables import Cell, Column, Table
from masktune.show.wording import NOTHING, count, duration, interval, method_words, percent
from masktune.training.methods import RIVALS

TRAINING = "training"
"""The method of a run that makes no model after."""

STATES = {
    "": "All",
    "finished": "Finished",
    "running": "Running",
    "waiting": "Waiting",
    "failed": "Failed",
    "cancelled": "Cancelled",
    "archived": "Archived",
}
"""What can be asked for of a run's state."""

_STATE = {"done": "finished", "queued": "waiting", "interrupted": "cancelled"}

MOST_SETTINGS = 4
"""Settings that differ which have a column of their own on the page; a file has all."""

FIRST = ("rival", "strategy", "k", "finetune_lr", "seed", "rounds", "model", "arch", "lr", "epochs")
"""Settings that come before others, where they differ."""

UNTOLD = frozenset({"dataset", "root", "title", "recipe", "device"})
"""What another column says, or what changes no result."""


_LEARNT = frozenset({*ERM_ONLY, "arch"})
"""What decides the model before, where a run here makes it."""

_UNHEEDED = ""
"""Stands for the value of a setting that a run does not look at: that is no difference."""

_OF_RUNS = ("created", "took")
"""Numbers of a run, not of a test set; they have columns of their own."""

_ABOUT = ("name", "note", "tags", "what", "dataset", "created", "problem")

_NAMES = (*FIRST, *(name for name in OPTIONS if name not in FIRST))

_HELD = {
    within: [option.name for option in OPTIONS.values() if option.within == within]
    for within in ("", *PARTS)
}
"""Settings by the field of a run's that holds them, "" for those of no part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What somebody asked the list for; "" is all."""

    search: str = ""
    dataset: str = ""  # as ``pictures_of`` tells them
    method: str = ""
    state: str = ""
    test: str = ""
    sort: str = "created"
    order: str = "down"


def state_of(job: Job) -> str:
    """Return a run's state as the list calls it.

    >>> from pathlib import Path
    >>> from masktune.checkpoints.settings import settings
    >>> config = settings({"dataset": "biased-mnist-5k"})
    >>> [state_of(Job(path=Path(), config=config, state=s)) for s in ("done", "interrupted")]
    ['finished', 'cancelled']
    """
    return _STATE.get(job.state, job.state)


def method_of(config: RunConfig) -> str:
    """Return what makes the model after: a rival's name, or what MaskTune or a control hides."""
    if config.only_before:
        return TRAINING
    return config.masking.strategy if config.rival == MASKTUNE else config.rival


def method_title(method: str) -> str:
    """Return what people call a method.

    >>> method_title("heat"), method_title("none"), method_title("jtt"), method_title("training")
    ('MaskTune', 'Control: nothing hidden', 'JTT', 'Training only')
    """
    named = {
        TRAINING: "Training only",
        "heat": "MaskTune",
        "random": "Control: random window",
        "none": "Control: nothing hidden",
    }
    if method in named:
        return named[method]
    return STRATEGIES[method].short if method in STRATEGIES else RIVALS[method].title  # type: ignore[index]


def pictures_of(config: RunConfig) -> str:
    """Return what tells the pictures of runs apart: the dataset, and where own ones lie."""
    return f"{OWN}:{config.root}" if config.dataset == OWN else config.dataset


def pictures_titles(runs: Sequence[Job]) -> dict[str, str]:
    """Return what the pictures of runs, the newest first, are called, by ``pictures_of``.

    Where folders have one name it also says where they lie.
    """
    titles: dict[str, str] = {}
    for job in runs:  # a name may have been changed: the newest counts
        if (pictures := pictures_of(job.config)) not in titles:
            titles[pictures] = title_of(job.config)
    shared = Counter(titles.values())
    return {
        pictures: title if shared[title] == 1 else f"{title} ({pictures.partition(':')[2]})"
        for pictures, title in titles.items()
    }


def matching(runs: Sequence[Job], wanted: Wanted) -> list[Job]:
    """Return the runs that were asked for, in the order given."""
    words = wanted.search.casefold().split()

    def fits(job: Job) -> bool:
        if job.archived != (wanted.state == "archived"):
            return False
        if wanted.state not in ("", "archived") and state_of(job) != wanted.state:
            return False
        if wanted.dataset and pictures_of(job.config) != wanted.dataset:
            return False
        if wanted.method and method_of(job.config) != wanted.method:
            return False
        if not words:
            return True
        told = (job.name, job.note, *job.tags, job.id, title_of(job.config), job.config.dataset)
        text = " ".join((*told, method_words(job.config))).casefold()
        return all(word in text for word in words)

    return list(filter(fits, runs))


def tested(job: Job, test: str) -> Numbers | None:
    """Return a run's numbers on a test set, "" for its first; None where it has none."""
    if job.digest is None:
        return None
    return job.digest.tests.get(test) if test else next(iter(job.digest.tests.values()), None)


def told_value(name: str, job: Job) -> Value:
    """Return the value of a setting as it tells runs apart; None where a run does not heed it.

    A model that another run here has trained is told by how that one trained it.
    """
    value = _value(name, job)
    return None if value == _UNHEEDED else value


def _value(name: str, job: Job) -> Value:
    return _told(job.config, _maker(job.config))[_NAMES.index(name)]


@lru_cache(maxsize=8192)
def _told(config: RunConfig, maker: RunConfig) -> tuple[Value, ...]:
    unheeded = idle(config)
    if maker.model is not None:  # nobody knows how it was trained
        learnt: frozenset[str] = frozenset()
    else:
        learnt = _LEARNT - (unheeded if maker is config else idle(maker)).keys()

    def value(name: str) -> Value:
        if name == "model":
            return maker.model and PurePath(maker.model).name
        if name in _LEARNT:
            return OPTIONS[name].of(maker) if name in learnt else _UNHEEDED
        return _UNHEEDED if name in unheeded else OPTIONS[name].of(config)

    return tuple(map(value, _NAMES))


def _maker(config: RunConfig) -> RunConfig:
    """Return the settings of the run in this home that made the model a run starts from."""
    if not (config.model or "").endswith(BEFORE):
        return config
    path = Path(config.model or "")
    if path.name == BEFORE and path.is_relative_to(home()):
        made = _settings_in(path.parent, stamp(f"{path.parent}/config.json"))
        return config if made is None else made
    return config


@lru_cache(maxsize=4096)
def _settings_in(path: Path, _: object) -> RunConfig | None:
    try:
        return jobs.look(path).config
    except (MaskTuneError, ValueError, OSError):
        return None


def differing(runs: Sequence[Job]) -> list[str]:
    """Return the settings in which some runs differ, those that people ask for first."""
    varied = _varied([job.config for job in runs]) - UNTOLD
    return [name for name in _NAMES if name in varied and _differs(name, runs)]


def _varied(configs: Sequence[RunConfig]) -> set[str]:
    """Return the settings of which there are several values, whether runs heed them or not."""
    # Those of 1,000 runs are compared at every rerun of the page, and most are all the same.
    every = {*map(id, configs)}
    makers = [maker for config in configs if id(maker := _maker(config)) not in every]
    found = set()
    for within, names in _HELD.items():
        holders: Iterable[object] = (*configs, *makers)
        if within:  # many runs have one in common
            holders = {id(part): part for part in map(attrgetter(within), holders)}.values()
        columns = zip(*map(attrgetter(*names), holders), strict=True)
        found |= {name for name, column in zip(names, columns, strict=False) if len({*column}) > 1}
    return found


def _differs(name: str, runs: Sequence[Job]) -> bool:
    values = (value for job in runs if (value := _value(name, job)) != _UNHEEDED)
    first = next(values, _UNHEEDED)
    return any(value != first for value in values)


def setting_cell(name: str, job: Job) -> Cell:
    """Return the value of a setting as it tells a run apart."""
    value = told_value(name, job)
    words = str(escape(value_words(name, value)))
    # Columns are narrow: a path or a list breaks where a new part begins.
    parted = Markup(re.sub(r"[_/,](?=\w)", r"\g<0><wbr>", words))
    return Cell(parted, values=(value,))


def value_words(name: str, value: Value) -> str:
    """Write the value of a setting.

    >>> value_words("weights", None), value_words("lr", 0.5), value_words("accumulate", True)
    ('–', '0.5', 'yes')
    >>> value_words("strategy", "none"), value_words("rival", "jtt"), value_words("arch", "vit")
    ('Control: nothing hidden', 'JTT', 'vit')
    """
    if value is None or value == "":
        return NOTHING
    if name in ("strategy", "rival"):
        return method_title(str(value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else f"{value}"


_CALLED = {
    "dataset": "Pictures",
    "root": "Where they lie",
    "k": "k",
    "lr": "Learning rate",
    "finetune_lr": "Finetuning rate",
    "decay_at": "Rate falls after",
    "decay_factor": "Rate falls by",
    "warmup": "Warm-up",
    "schedule": "Rate over epochs",
    "best": "Epoch taken",
    "freeze": "Frozen layers",
    "method": "Explainer",
    "rival": "Method",
    "strategy": "What is hidden",
    "statistics": "Mean and sigma over",
    "arch": "Architecture",
    "erm_batch_norm": "Batch norm in the training",
}
"""Settings whose option says too little, or something else than the pages say, as forms have it."""


def setting_title(name: str) -> str:
    """Return what a setting is called.

    >>> setting_title("finetune_lr"), setting_title("k"), setting_title("batch_size")
    ('Finetuning rate', 'k', 'Batch size')
    """
    return _CALLED.get(name, name.replace("_", " ").capitalize())


Number = Callable[[Job, Numbers | None], float | None]


def _metric(key: str, moment: str) -> Number:
    def number(_: Job, test: Numbers | None) -> float | None:
        scored = None if test is None else getattr(test, moment)
        return None if scored is None else scored.metrics[key]

    return number


def _area(score: str) -> Number:
    return lambda _, test: None if test is None else test.aurc.get(score)


def numbers() -> dict[str, tuple[str, Number]]:
    """Return every number that the list can be sorted by, by its name: a title and its value."""
    found: dict[str, tuple[str, Number]] = {"created": ("When", lambda job, _: job.created)}
    for metric in METRICS:
        for moment in ("after", "before"):
            title = f"{metric.title.capitalize()} {moment}"
            found[f"{metric.key} {moment}"] = title, _metric(metric.key, moment)
    for score in ("joint", "after", "before"):
        found[f"aurc {score}"] = f"AURC {score}", _area(score)
    found["fixed"] = "Fixed", lambda _, test: None if test is None else test.fixed
    found["broken"] = "Broken", lambda _, test: None if test is None else test.broken
    found["took"] = "Took", lambda job, _: None if job.digest is None else job.digest.took
    return found


def ordered(runs: Sequence[Job], wanted: Wanted) -> list[Job]:
    """Return runs by a number or a setting, pinned ones first, those without it last."""
    every = numbers()
    of: Callable[[Job], Value]
    if wanted.sort in every:
        number = every[wanted.sort][1]

        def of(job: Job) -> Value:
            # What the index has of a test set is read once somebody asks.
            return number(job, None if wanted.sort in _OF_RUNS else tested(job, wanted.test))
    elif wanted.sort in OPTIONS:

        def of(job: Job) -> Value:
            return told_value(wanted.sort, job)
    else:

        def of(job: Job) -> Value:
            return run_title(job).casefold()

    known = [(of(job), job) for job in runs]
    there = [(value, job) for value, job in known if value is not None]
    # Numbers before words: some settings are either.
    there.sort(
        key=lambda one: (isinstance(one[0], str), one[0], one[1].created),
        reverse=wanted.order == "down",
    )
    listed = [job for _, job in there] + [job for value, job in known if value is None]
    return sorted(listed, key=lambda job: not job.pinned)


def runs_table(
    runs: Sequence[Job], *, settings: Sequence[str], test: str, whole: bool = False
) -> Table:
    """Show runs with the first settings in which they differ and their numbers on a test set.

    Args:
        runs: in their order.
        settings: in which they differ.
        test: name of the test set, "" for each run's first.
        whole: for a file, which also has all other settings and numbers.
    """
    worst = worst_title(runs, test)
    every = {name: number for name, number in numbers().items() if whole and name not in _OF_RUNS}
    settings = settings if whole else settings[:MOST_SETTINGS]
    return Table(
        name="All runs",
        kind="listed",
        columns=(
            Column("State", ("run", "state", "pinned", "archived"), left=True, roomy=True),
            Column("Run", _ABOUT, left=True),
            *(Column(setting_title(name), (name,), roomy=True) for name in settings),
            Column(f"{worst} before", ("test set", "n", "worst before"), roomy=True),
            Column("0 to 100%", (), left=True, roomy=True),
            Column("Worst after", ("worst after", "low", "high", "worst name", "worst n")),
            Column("Average", ("average before", "average after")),
            Column("Took", ("seconds",), roomy=True),
            *(Column(title, shown=False) for title, _ in every.values()),
        ),
        rows=[_row(job, settings, tested(job, test), _name_of(job, test), every) for job in runs],
    )


def worst_title(runs: Sequence[Job], test: str) -> str:
    """Return what heads a column of lowest accuracies: of groups, or of classes without them."""
    kinds = {found.before.worst_is for job in runs if (found := tested(job, test))} or {"group"}
    return f"Worst {' or '.join(sorted(kinds, reverse=True))}"


def _name_of(job: Job, test: str) -> str:
    return test or (next(iter(job.digest.tests), "") if job.digest is not None else "")


def _row(
    job: Job,
    settings: Sequence[str],
    test: Numbers | None,
    name: str,
    every: Mapping[str, tuple[str, Number]],
) -> list[Cell]:
    what = method_words(job.config)
    pictures = title_of(job.config)
    said = [
        _held(what) if job.name else "",
        pictures,
        clock(job.created, today="today, %H:%M"),
        job.note,
    ]
    small = Markup(", ").join(filter(None, said))
    if job.state == "failed":
        small = Markup("<br>").join((small, job.problem))
    if job.tags:
        small = Markup("<br>").join((small, piece("tags", names=job.tags)))
    created = datetime.fromtimestamp(job.created).isoformat(sep=" ", timespec="seconds")
    about = (job.name, job.note, " ".join(job.tags), what, pictures, created, job.problem)
    pin = Markup("★ ") if job.pinned else ""
    return [
        Cell(
            piece("run_state", state=job.state),
            values=(job.id, state_of(job), int(job.pinned), int(job.archived)),
        ),
        Cell(Markup(pin) + _held(run_title(job)), small, about, strong=bool(job.name)),
        *(setting_cell(setting, job) for setting in settings),
        *_scores(job, test, name),
        *(Cell(values=(number(job, test),)) for _, number in every.values()),
    ]


def _held(title: str) -> str:
    """Hold "k = 2" together where a line breaks."""
    return title.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")


def _scores(job: Job, test: Numbers | None, name: str) -> tuple[Cell, ...]:
    took = None if job.digest is None else job.digest.took
    ending = Cell("" if took is None else duration(took), values=(took,))
    if test is None:
        return (
            Cell(NOTHING, values=(None,) * 3),
            Cell(),
            Cell(NOTHING, values=(None,) * 5),
            Cell(NOTHING, values=(None,) * 2),
            ending,
        )
    was, average = test.before.worst, test.before.metrics["average"]
    before = Cell(percent(was.accuracy), values=(name, test.pictures, was.accuracy))
    if test.after is None:
        return (
            before,
            Cell(strip(was.accuracy or 0.0, None, before_interval=was.interval)),
            Cell(NOTHING, values=(None,) * 5),
            Cell(NOTHING, f"before: {percent(average)}", (average, None)),
            ending,
        )
    now, reached = test.after.worst, test.after.metrics["average"]
    line = strip(
        was.accuracy or 0.0,
        now.accuracy or 0.0,
        before_interval=was.interval,
        after_interval=now.interval,
    )
    return (
        before,
        Cell(line),
        Cell(
            percent(now.accuracy),
            f"{interval(now.interval)}, n = {count(now.count)}",
            (now.accuracy, *(now.interval or (None, None)), group_name(now), now.count),
            strong=True,
        ),
        Cell(percent(reached), f"from {percent(average)}", (average, reached)),
        ending,
    )


def settings_table(runs: Mapping[str, Job]) -> Table:
    """Show the settings in which runs differ, one below the other, a column a run."""
    listed = [*runs.values()]
    pictures = {
        "dataset": [title_of(job.config) for job in listed],
        "root": [job.config.root or NOTHING for job in listed],
    }
    return Table(
        name="settings that differ",
        columns=(Column("Setting", ("setting",), left=True), *(Column(name) for name in runs)),
        rows=[
            (Cell(setting_title(name), OPTIONS[name].help, (name,)), *map(Cell, said))
            for name, said in pictures.items()
            if len({*said}) > 1
        ]
        + [
            (
                Cell(setting_title(name), OPTIONS[name].help, (name,)),
                *(setting_cell(name, job) for job in listed),
            )
            for name in differing(listed)
        ],
    )
