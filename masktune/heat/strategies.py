"""A strategy is a producer of keep; nothing else differs between MaskTune and its controls.

Pages read names and titles before any picture is there, so PyTorch is imported where it is used.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial, reduce
from operator import mul
from typing import TYPE_CHECKING, NamedTuple

from masktune.config import MaskingConfig, Statistics, Strategy, options
from masktune.data.fills import FILLS, Fill, FillName, filled
from masktune.errors import ConfigError
from masktune.files import written_path

if TYPE_CHECKING:
    from torch import Tensor

    from masktune.data.preprocess import Keeper
    from masktune.data.regions import Regions
    from masktune.data.types import Split
    from masktune.heat.store import HeatStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What a strategy may hide by in one round."""

    masking: MaskingConfig
    store: "HeatStore | None"  # heat of the rounds so far; None for strategies without heat
    size: tuple[int, int]  # (H, W) of a picture
    count: int  # pictures in the training set
    number: int  # 1 is the first round
    seed: int
    split: "Split | None" = None  # the training pictures, for fills other than black and regions


@dataclass(frozen=True, slots=True, kw_only=True)
class Producer:
    """A strategy."""

    name: Strategy
    title: str  # what it does to a picture; fields of the masking, or their words, in braces
    short: str  # the same in a word or two, for a switch
    hint: str  # one sentence for people who choose
    make: "Callable[[Round], Keeper] | None" = None  # None where nothing is hidden
    is_control: bool = False  # whether it hides nothing that the model leans on
    keeps_hot: bool = False  # whether it hides what is not above the threshold k
    fill: FillName | None = None  # where it has one of its own

    @property
    def settings(self) -> frozenset[str]:
        """The options of the masking that it alone or with others looks at, by name."""
        return frozenset(o.name for o in options(MaskingConfig) if self.name in o.used_by)

    @property
    def needs_heat(self) -> bool:
        """Whether heat is computed for it, by an explainer."""
        return "method" in self.settings

    @property
    def needs_regions(self) -> bool:
        """Whether somebody must have said where the clue is."""
        return "regions" in self.settings

    @property
    def uses_k(self) -> bool:
        """Whether it has the threshold k."""
        return "k" in self.settings

    @property
    def advised(self) -> bool:
        """Whether a k can be suggested for it: the rule looks for the smallest masks over heat."""
        return self.uses_k and not self.keeps_hot

    @property
    def hides(self) -> bool:
        """Whether it hides anything."""
        return self.make is not None

    def words(self, masking: MaskingConfig) -> str:
        """Return its title with the settings of a run.

        >>> STRATEGIES["heat"].words(MaskingConfig(k=1.5))
        'MaskTune, k = 1.5'
        """
        rounds = masking.rounds
        epochs = "one more epoch" if rounds == 1 else f"{rounds} more epochs"
        return self.title.format(**asdict(masking), rounds_as_epochs=epochs)


def _above_threshold(now: Round) -> "Keeper":
    from masktune.heat.keep import keep_masks

    masking = now.masking
    return _by_heat(now, partial(keep_masks, k=masking.k, statistics=masking.statistics))


def _not_above_threshold(now: Round) -> "Keeper":
    from masktune.heat.keep import keep_hot

    masking = now.masking
    return _by_heat(now, partial(keep_hot, k=masking.k, statistics=masking.statistics))


def _above_mean(now: Round) -> "Keeper":
    # The paper's one threshold for all: the mean over the training set.
    tau = mean_heat(_heat(now), round_number=now.number, statistics=now.masking.statistics)
    return _by_heat(now, lambda heat: heat <= tau)


def _hottest(now: Round) -> "Keeper":
    from masktune.heat.keep import keep_all_but_top

    return _by_heat(now, partial(keep_all_but_top, fraction=now.masking.top_fraction))


def _darkened(now: Round) -> "Keeper":
    # The paper's soft mask, without a threshold: the share of brightness that is left.
    return _by_heat(now, lambda heat: (1.0 - heat).float())


def _window(now: Round) -> "Keeper":
    from masktune.heat.keep import keep_outside, random_windows
    from masktune.seeds import stream

    # Drawn once for the whole set: like MaskTune's, these masks do not change while training.
    generator = stream(now.seed, f"windows/{now.number}")
    windows = random_windows(now.count, now.size, generator=generator)
    return lambda index: keep_outside(windows[index.cpu()].to(index.device), now.size)


def _known(now: Round) -> "Keeper":
    regions = known_clue(now.masking, _pictures(now))
    return lambda index: ~regions.batch(index.tolist()).to(index.device)


def _pictures(now: Round) -> "Split":
    if now.split is None:
        raise ValueError(f"the strategy {now.masking.strategy} needs the pictures")
    return now.split


def _heat(now: Round) -> "HeatStore":
    if now.store is None:
        raise ValueError(f"the strategy {now.masking.strategy} needs heat")
    return now.store


def _by_heat(now: Round, rule: "Callable[[Tensor], Tensor]") -> "Keeper":
    """Return what applies a rule for fine heat (B, H, W) to the heat of a round."""
    store = _heat(now)

    def keep(index: "Tensor") -> "Tensor":
        # Apple's GPUs have no double precision, and thresholds are decided in it.
        device = "cpu" if index.device.type == "mps" else str(index.device)
        return rule(store.fine(index, round_number=now.number, device=device)).to(index.device)

    return keep


_EVERY = (
    Producer(
        name="heat",
        title="MaskTune, k = {k:g}",
        short="Heat",
        hint="The pixels hotter than mean + k sigma, as MaskTune does.",
        make=_above_threshold,
    ),
    Producer(
        name="random",
        title="Control: one random window hidden",
        short="Random",
        hint="One random window, the RandMask control.",
        make=_window,
        is_control=True,
    ),
    Producer(
        name="none",
        title="Control: {rounds_as_epochs}, nothing hidden",
        short="Nothing",
        hint="One more epoch on the pictures as they are, the other control.",
        is_control=True,
    ),
    Producer(
        name="soft",
        title="Soft mask: darkened by heat",
        short="Darken by heat",
        hint="A pixel keeps 1 − heat of its brightness.",
        make=_darkened,
    ),
    Producer(
        name="global",
        title="One threshold for all: the mean heat of the training set",
        short="One threshold for all pictures",
        hint="The mean heat of the training set decides for every picture.",
        make=_above_mean,
    ),
    Producer(
        name="topk",
        title="The hottest {top_fraction:.1%} of every picture hidden",
        short="The hottest share of each picture",
        hint="The same number of pixels everywhere.",
        make=_hottest,
    ),
    Producer(
        name="cold",
        title="All but the hot part hidden, k = {k:g}",
        short="All but the hot part",
        hint="The other way round, for a model that looks at the thing itself: what is not hot is "
        "hidden. A picture where nothing is hot stays whole.",
        make=_not_above_threshold,
        keeps_hot=True,
    ),
    Producer(
        name="paste",
        title="The hot part on another picture, k = {k:g}",
        short="The hot part on another picture",
        hint="The hot part stays; around it stands the rest of a picture of another class, without "
        "that one's hot part.",
        make=_not_above_threshold,
        keeps_hot=True,
        fill="another",
    ),
    Producer(
        name="judged",
        title="The known clue hidden",
        short="The known clue",
        hint="Where the dataset or somebody's boxes say that the clue is, whatever the model looks "
        "at. A picture without a region stays whole.",
        make=_known,
    ),
)
STRATEGIES: dict[Strategy, Producer] = {producer.name: producer for producer in _EVERY}
"""Every strategy by name; the first is the paper's."""

CONTROLS: tuple[Strategy, ...] = tuple(p.name for p in _EVERY if p.is_control)


def strategy_of(masking: MaskingConfig) -> Producer:
    """Return the strategy of a masking."""
    return STRATEGIES[masking.strategy]


def known_clue(masking: MaskingConfig, split: "Split") -> "Regions":
    """Return where the clue of the training pictures is, by somebody's boxes or by the dataset.

    Raises:
        MaskTuneError: nobody says so, or the boxes cannot be used.
    """
    from masktune.data.boxes import EXAMPLE, read_boxes

    if masking.regions is not None:
        return read_boxes(written_path(masking.regions), split.images)
    if split.clue is None:
        raise ConfigError(
            "Nobody says where the clue is in these pictures, so it cannot be hidden.",
            f"Give boxes by --regions, {EXAMPLE}; or take the digits with squares, cows and "
            "camels, stamped pets, or Waterbirds beside CUB's boxes, which have regions of their "
            "own.",
        )
    return split.clue


def check(masking: MaskingConfig, split: "Split") -> None:
    """Refuse training pictures that lack what a strategy needs, before anything is trained."""
    if strategy_of(masking).needs_regions:
        known_clue(masking, split)


def fill_of(masking: MaskingConfig) -> Fill:
    """Return what stands where a masking hides."""
    return FILLS[strategy_of(masking).fill or masking.fill]


def keeper(now: Round) -> "Keeper | None":
    """Return the producer of keep for one round, with its fill; None hides nothing.

    Accumulating, a pixel hidden in any round so far stays hidden; otherwise only the newest round
    counts.
    """
    make = strategy_of(now.masking).make
    if make is None:
        return None
    first = 1 if now.masking.accumulate else now.number
    makers = [make(replace(now, number=n)) for n in range(first, now.number + 1)]

    def keep(index: "Tensor") -> "Tensor":
        # Two soft masks darken one after the other, two hard ones both hide.
        return reduce(mul, (maker(index) for maker in makers))

    fill = fill_of(now.masking).name
    if fill == "black":
        return keep
    return filled(keep, fill, split=_pictures(now), seed=now.seed, stage=f"{now.number}")


def mean_heat(store: "HeatStore", *, round_number: int, statistics: Statistics) -> float:
    """Average the heat over every pixel of the training set (or every positive one)."""
    total, taken = 0.0, 0
    for index in store.chunks():
        heat = store.fine(index, round_number=round_number)
        total += float(heat.sum())
        taken += int((heat > 0).sum()) if statistics == "positive" else heat.numel()
    return total / max(taken, 1)


class Hidden(NamedTuple):
    """How much of a training set is hidden, in [0, 1]."""

    hidden_fraction: float  # the mean share of a picture's pixels
    empty_fraction: float  # the share of the pictures in which nothing is


def hidden_area(keep: "Keeper | None", count: int) -> Hidden:
    """Measure a keeper over the whole training set."""
    if keep is None:
        return Hidden(0.0, 1.0)
    import torch

    from masktune.heat.store import BATCH

    every = torch.split(torch.arange(count), BATCH)
    hidden = torch.cat([1.0 - keep(index).double().mean(dim=(1, 2)) for index in every])
    return Hidden(float(hidden.mean()), float((hidden == 0).double().mean()))
