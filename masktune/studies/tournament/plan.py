"""Which runs a tournament is made of, and what is chosen among them.

All runs of a seed start from one model before, which is trained or given once; its answers, and its
heat where a run has computed it, serve all of them. Of the settings that are tried for a method one
is chosen on validation, seed by seed; test sets are looked at for what was chosen only.
"""

import math
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from masktune.checkpoints.settings import NO_WEIGHTS, OPTIONS, check_k, settings, words_of
from masktune.checkpoints.trained import settings_of, trained_in
from masktune.config import (
    AUTO,
    BUNDLED,
    BY_RECIPE,
    LAST_LAYER,
    MASKTUNE,
    RunConfig,
    Strategy,
    Unlabelled,
    Value,
    idle,
    names_code,
)
from masktune.data.types import DatasetBundle
from masktune.errors import ConfigError
from masktune.heat.strategies import check
from masktune.runs.folder import BEFORE
from masktune.scores.result import RunResult, SplitResult
from masktune.studies.study import Step, StudyRun
from masktune.studies.tournament.tries import (
    Tried,
    Tries,
    called,
    check_once,
    check_tries,
    exact,
    tries_words,
)
from masktune.training.by_recipe import check_best
from masktune.training.methods import RIVALS

RANDOM, NONE = "random", "none"
_HIDES: dict[str, Strategy] = {MASKTUNE: "heat", RANDOM: "random", NONE: "none"}
METHODS: tuple[str, ...] = (MASKTUNE, RANDOM, NONE, *(n for n in RIVALS if n != MASKTUNE))
"""What can be set side by side: rivals, and the two controls of MaskTune."""

ERM = "before"
"""Stands for the model before among methods."""

_TITLES = {RANDOM: "RandMask", NONE: "One more epoch", ERM: "ERM (the model before)"}

BY_GROUPS = (
    "Where several settings of a method were run, the one was chosen, seed by seed, whose worst "
    "group of validation pictures is answered best; of equal ones that with the smaller rate, then "
    "the larger k, then what was named first. Test sets are looked at for what was chosen only."
)
WITHOUT_GROUPS = (
    "Where several settings of a method were run, the one was chosen, seed by seed, that answers "
    "most validation pictures right, because their groups are not known; of equal ones that with "
    "the smaller rate, then the larger k, then what was named first. Test sets are looked at for "
    "what was chosen only."
)


SEEN = (
    "The model before was given and is the same for every seed: where the seed draws pictures for "
    "testing or validating, the model may have been trained on some of them, and knows them."
)


def caution(given: Mapping[str, Value], seeds: Sequence[int]) -> list[str]:
    """Return what to beware of where runs of other seeds start from one given model, in words.

    A model made here says which seed's pictures it was trained on; of any other file that is not
    known, and one seed alone is taken to be its own.

    >>> caution({"model": "m.pth"}, [0]), caution({"model": None}, [0, 1])
    ([], [])
    >>> len(caution({"model": "m.pth"}, [0, 1]))
    1
    """
    model = given.get("model")
    # With "test" half of pictures that no model has seen are drawn anew.
    if not model or model == BUNDLED or given.get("validation") == "test":
        return []
    trained = settings_of(trained_in(str(model)) or Path(str(model)))
    own = seeds[:1] if trained is None else [trained.seed]
    return [SEEN] if {*seeds} - {*own} else []


def title(method: str) -> str:
    """Return what people call a method of a tournament.

    >>> title("jtt"), title("random")
    ('JTT', 'RandMask')
    """
    return _TITLES[method] if method in _TITLES else RIVALS[method].title  # type: ignore[index]


Variant = tuple[Tried, RunConfig]
"""What is tried of a method's settings, and the settings of its run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to set side by side.

    Attributes:
        given: options of a run by name, for all methods that look at them; its seed is the first.
        methods: some of ``METHODS``, in the order of the table.
        ks: thresholds that MaskTune is tried at; none for its usual one.
        rates: factors on the usual rate, for methods that have one.
        tries: values that settings of methods are tried at, by the options' names; each for the
            methods that look at it.
        seeds: how often all of it is done.
    """

    given: Mapping[str, Value]
    methods: tuple[str, ...]
    ks: tuple[float, ...] = ()
    rates: tuple[float, ...] = (1.0,)
    tries: Tries = field(default_factory=dict)
    seeds: int = 1
    configs: Mapping[str, RunConfig] = field(init=False, repr=False)
    variants: Mapping[str, Sequence[Variant]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        unknown = [name for name in self.methods if name not in METHODS]
        if unknown or not self.methods:
            named = " or ".join(f"'{name}'" for name in unknown)
            raise ConfigError(
                f"There is no method {named}." if unknown else "No method is named.",
                f"Choose some of {', '.join(METHODS)}.",
            )
        check_once(method=self.methods, k=self.ks, rate=self.rates)
        if self.ks and MASKTUNE not in self.methods:
            raise ConfigError(
                "Thresholds k are to be tried, and no method among these has one.",
                "Leave --ks out, or add masktune to --methods.",
            )
        if not all(math.isfinite(rate) and rate > 0 for rate in self.rates) or not self.rates:
            raise ConfigError(
                f"The rates are {', '.join(map(str, self.rates)) or 'none'}.",
                "Give factors on the usual rate above 0, such as 1,3.",
            )
        if self.rates != (1.0,) and not any(name not in LAST_LAYER for name in self.methods):
            raise ConfigError(
                "Rates are to be tried, and no method among these has one: they retrain the last "
                "layer only.",
                "Leave --rates out.",
            )
        if self.seeds < 1:
            raise ConfigError(f"There are {self.seeds} seeds.", "Give a whole number from 1 up.")
        for k in self.ks:
            check_k(k)
        check_tries(self.tries)
        # Frozen: what is checked here is kept, not made again for every run.
        object.__setattr__(
            self, "configs", {name: _config(self.given, name) for name in self._made()}
        )
        object.__setattr__(
            self, "variants", {name: [*self._variants(name)] for name in self.methods}
        )
        self._refuse_unheeded()
        if self.given.get("model") == BUNDLED and (self.seeds > 1 or self.first_seed):
            raise ConfigError(
                "The bundled model was trained on the split of seed 0; with others it would be "
                "tested on pictures it has seen.",
                "Leave --model out to train one for every seed, or give --seeds 1.",
            )
        self._refuse_idle()

    def _made(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((NONE, *self.methods)))

    def _variants(self, method: str) -> Iterator[Variant]:
        """Return every combination of the tried settings that a method looks at, in their order."""
        rival = self.configs[method].rival
        mine = {name: these for name, these in self.tries.items() if rival in OPTIONS[name].rivals}
        found: set[Tried] = set()
        for values in product(*mine.values()):
            wanted = dict(zip(mine, values, strict=True))
            config = _config({**self.given, **wanted}, method)
            unused = idle(config)  # as what becomes of later rounds, where there is one
            tried = tuple((name, value) for name, value in wanted.items() if name not in unused)
            if tried not in found:
                found.add(tried)
                yield tried, config

    def _refuse_unheeded(self) -> None:
        """Refuse to try a setting that no method looks at, or that is given as well."""
        heeded = {
            name for those in self.variants.values() for tried, _ in those for name, _ in tried
        }
        for name in self.tries:
            if name in self.given:
                raise ConfigError(
                    f"{called(name)} is given, and values of it are to be tried.",
                    "Leave one of both out.",
                )
            if name not in heeded:
                able = ", ".join(sorted(OPTIONS[name].rivals))
                raise ConfigError(
                    f"{called(name)} is to be tried, and no method among these looks at it.",
                    f"Leave it out, or add a method that does: {able}.",
                )

    def _refuse_idle(self) -> None:
        """Refuse an option that no run looks at."""
        used = [self.configs[name] for name in self._used()]
        tried = [config for those in self.variants.values() for _, config in those]
        reasons = [idle(config) for config in (*used, *tried)]
        for name, value in self.given.items():
            if all(name in found for found in reasons):
                raise ConfigError(
                    f"{OPTIONS[name].flag} {value} would do nothing: {reasons[0][name]}.",
                    "Leave it out, or add a method that looks at it.",
                )

    def _used(self) -> tuple[str, ...]:
        return self._made() if self.trains else self.methods

    @property
    def trains(self) -> bool:
        """Whether the model before is trained here."""
        return self.given.get("model") is None

    @property
    def first_seed(self) -> int:
        """The seed of the first repetition; that of a model in its folder is the folder's."""
        return self.configs[NONE].seed

    @property
    def all_seeds(self) -> range:
        """The seed of every repetition."""
        return range(self.first_seed, self.first_seed + self.seeds)

    def command(self, out: Path | str = "DIR") -> str:
        """Give the command that repeats the tournament."""
        return shlex.join(["python", "-m", "masktune", *self.arguments(out)])

    def arguments(self, out: Path | str) -> list[str]:
        """Return the words after ``python -m masktune``."""
        words = ["tournament", *words_of(self.given)]
        words += ["--methods", ",".join(self.methods)]
        if self.ks:
            words += ["--ks", ",".join(map(exact, self.ks))]
        if self.rates != (1.0,):
            words += ["--rates", ",".join(map(exact, self.rates))]
        for said in tries_words(self.tries):
            words += ["--try", said]
        return [*words, "--seeds", str(self.seeds), "--out", str(out)]


def _config(given: Mapping[str, Value], method: str) -> RunConfig:
    chosen = {"strategy": _HIDES[method]} if method in _HIDES else {"rival": method}  # type: dict[str, Value]
    return settings({**given, **chosen}, without_effect="left out")


def heeded(given: Mapping[str, Value], methods: Sequence[str]) -> dict[str, Value]:
    """Return of some options of a run those that change something in a run of some methods.

    >>> heeded({"dataset": "biased-mnist-5k", "model": "bundled", "lr": 0.5, "seed": 0}, ["none"])
    {'dataset': 'biased-mnist-5k', 'model': 'bundled'}
    """
    used = methods if given.get("model") else (NONE, *methods)  # which trains the model before
    return with_effect(given, lambda said: [_config(said, method) for method in used])


def with_effect(
    given: Mapping[str, Value], made: Callable[[Mapping[str, Value]], list[RunConfig]]
) -> dict[str, Value]:
    """Return of some options of a run those that change what is made of them."""
    found: dict[str, Value] = {
        name: value for name, value in given.items() if value not in (None, "")
    }
    wanted = made(found)
    # A title is no difference between settings, so it is not asked for here. Nor is a network
    # beside its weights: without it they would be read to find out, and may fit several.
    by_weights = found.get("weights", NO_WEIGHTS) != NO_WEIGHTS
    asked = {"dataset", "title", *(("arch",) if by_weights else ())}
    for name in [name for name in found if name not in asked]:
        fewer = {other: value for other, value in found.items() if other != name}
        if made(fewer) == wanted:
            found = fewer
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned(StudyRun):
    """One run of a tournament: a method with some settings and a seed.

    ``k`` and ``rate``, a factor, are None where the method has none; ``tried`` are the settings
    among those to be tried that it looks at.
    """

    k: float | None = None
    rate: float | None = None
    tried: Tried = ()

    @property
    def words(self) -> str:
        """What was tried, "" for the method as it is.

        >>> config = settings({"dataset": "biased-mnist-5k"})
        >>> Planned(method="masktune", seed=0, k=2, rate=3, config=config, path=Path()).words
        'k = 2, rate × 3'
        """
        said = [] if self.k is None else [f"k = {exact(self.k)}"]
        if self.rate not in (None, 1.0):
            said.append(f"rate × {exact(self.rate)}")
        said += [f"{called(name)} = {exact(value)}" for name, value in self.tried]
        return ", ".join(said)

    @property
    def title(self) -> str:
        """The method, its settings and the seed."""
        return ", ".join(filter(None, (title(self.method), self.words, f"seed {self.seed}")))

    def to_json(self, *, out: Path) -> dict[str, Any]:
        """Give it as a JSON object; its folder from that of the study."""
        return {
            "method": self.method,
            "title": title(self.method),
            "seed": self.seed,
            "settings": self.words,
            "run": self.path.relative_to(out).as_posix(),
        }


def plan(request: Request, *, out: Path, usual: float | None = None) -> Iterator[Planned]:
    """List the runs of a tournament in order.

    For every seed the run that trains the model before comes first, which is one more epoch with
    nothing hidden, then MaskTune, whose heat others may take. The folder of a run says its
    settings, so that a tournament of more methods, settings or seeds goes on in the same place.

    ``usual`` is the rate of a finetune that the model before asks for; None takes the recipe's
    last.
    """
    for seed in request.all_seeds:
        planned = _of_seed(request, seed, out=out, usual=usual)
        in_turn = sorted(planned, key=lambda one: _turn(request, one))
        yield from from_first(in_turn, trains=request.trains)


def _turn(request: Request, one: Planned) -> tuple[bool, bool]:
    trainer = request.trains and one.method == NONE and one.rate == 1.0
    return not trainer, one.method != MASKTUNE


def from_first(runs: Iterable[Step], *, trains: bool) -> Iterator[Step]:
    """Give the runs of a seed; if it trains its model before, all start from that of the first."""
    before: str | None = None
    for one in runs:
        config = one.config
        if trains and before is not None:
            begins_anew = config.rival in BY_RECIPE and config.start == "scratch"
            arch = config.arch if names_code(config.arch) else AUTO
            weights = config.weights if begins_anew else None
            config = replace(config, model=before, arch=arch, weights=weights)
        before = before or str(one.path / BEFORE)
        yield replace(one, config=config)


def _of_seed(request: Request, seed: int, *, out: Path, usual: float | None) -> Iterator[Planned]:
    rates = request.rates
    if request.trains and (NONE not in request.methods or 1.0 not in rates):
        base: Variant = (), request.configs[NONE]
        yield from _tried(request, NONE, seed, (1.0,), base, out=out, usual=usual)
    for method in request.methods:
        for variant in request.variants[method]:
            yield from _tried(request, method, seed, rates, variant, out=out, usual=usual)


def _tried(
    request: Request,
    method: str,
    seed: int,
    rates: Sequence[float],
    variant: Variant,
    *,
    out: Path,
    usual: float | None,
) -> Iterator[Planned]:
    tried, base = variant[0], replace(variant[1], seed=seed)
    usual = base.finetune_lr or usual or base.training.last_lr
    ks = (request.ks or (base.masking.k,)) if method == MASKTUNE else (None,)
    for k in ks:
        for rate in (None,) if method in LAST_LAYER else rates:
            config = base if k is None else replace(base, masking=replace(base.masking, k=k))
            if rate not in (None, 1.0) and method in BY_RECIPE:
                training = replace(config.training, lr=rate * config.training.lr)
                config = replace(config, training=training)
            elif rate not in (None, 1.0):
                config = replace(config, finetune_lr=rate * usual)
            one = Planned(
                method=method, seed=seed, k=k, rate=rate, tried=tried, config=config, path=Path()
            )
            # Names of layers have capitals and underscores, and gradcam++ is not gradcam.
            name = re.sub(r"[^A-Za-z0-9._+]+", "-", f"{method} {one.words.replace('×', '')}")
            name = name.strip("-")
            yield replace(one, path=out / f"seed-{seed}" / name)


def check_needs(request: Request, bundle: DatasetBundle) -> None:
    """Refuse methods that need what the dataset does not have, before anything is trained."""
    for method in request.methods:
        for _, config in request.variants[method]:
            RIVALS[config.rival].check(bundle, config)
            check(config.masking, bundle.train)
            if request.trains or method in BY_RECIPE:
                check_best(config.training, bundle)


def choose(tried: Sequence[tuple[Planned, SplitResult]], *, by_groups: bool) -> Planned:
    """Return what was chosen of one method's settings, each with its scores on validation.

    By the rule that ``BY_GROUPS`` or ``WITHOUT_GROUPS`` says in words.
    """

    def order(one: tuple[Planned, SplitResult]) -> tuple[float, float, float]:
        planned, validation = one
        worst = validation.after.worst.accuracy
        score = worst if by_groups and worst is not None else validation.after.average
        return score, -(planned.rate or 0.0), planned.k or 0.0

    return max(tried, key=order)[0]


Done = Mapping[Planned, RunResult]


def _competes(request: Request, one: Planned) -> bool:
    """Tell whether a run is one of the settings that were asked for, and not for its model only."""
    return one.method in request.methods and (one.rate is None or one.rate in request.rates)


def several(request: Request, method: str) -> bool:
    """Tell whether there is a choice among settings of a method."""
    ks = len(request.ks) if method == MASKTUNE else 1
    rates = 1 if method in LAST_LAYER else len(request.rates)
    return max(ks, 1) * rates * len(request.variants[method]) > 1


UNLABELLED: Mapping[Unlabelled, str] = {
    "validation": "unlabelled pictures",
    "test": "unlabelled test pictures",
}
"""What DivDis was told, by whose pictures it looks at."""


def supervision(request: Request, method: str, *, by_groups: bool) -> list[str]:
    """List what a method was told beside pictures and labels, also for choosing its settings."""
    if method == ERM:
        found: list[str] = []
        config, picked = request.configs[NONE], request.trains
    else:
        config = request.configs[method]
        found = [*RIVALS[config.rival].needs]
        if method == "divdis":
            looked = {config.rival_settings.unlabelled for _, config in request.variants[method]}
            found = [UNLABELLED[whose] for whose in UNLABELLED if whose in looked]
        if method == "divdis" and by_groups and config.training.best != "average":
            found.append("validation groups")  # its head was chosen by them
        picked = request.trains or method in BY_RECIPE
        if several(request, method) and by_groups:
            found.append("validation groups")
    if picked and config.training.best == "worst-group":
        found.append("validation groups")  # its epoch was chosen by them
    return list(dict.fromkeys(found))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A tournament so far: what was asked, where it lies, and what is done.

    ``learning`` is what ``rates.learning`` says of it.
    """

    request: Request
    out: Path
    runs: Sequence[Planned]
    done: Done
    by_groups: bool
    learning: Mapping[str, Any]

    @property
    def chosen(self) -> dict[tuple[str, int], Planned]:
        """What was chosen, by method and seed, where all that is to be tried is finished."""
        tried: dict[tuple[str, int], list[Planned]] = {}
        for one in self.runs:
            if _competes(self.request, one):
                tried.setdefault((one.method, one.seed), []).append(one)
        return {
            which: choose(
                [(one, self.done[one].validation) for one in those], by_groups=self.by_groups
            )
            for which, those in tried.items()
            if all(one in self.done for one in those)
        }

    @property
    def rule(self) -> str:
        """The rule of choosing, in words."""
        return BY_GROUPS if self.by_groups else WITHOUT_GROUPS
