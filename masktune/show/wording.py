"""How numbers and verdicts read, in reports and on pages alike: plain words, also for bad news."""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import PurePath

from masktune.config import BY_RECIPE, MASKTUNE, MaskingConfig, RivalConfig, RunConfig, options
from masktune.data.fills import FILLS
from masktune.heat.strategies import strategy_of
from masktune.recipes import RECIPES
from masktune.scores.evidence import Direction, Evidence, Safety, direction
from masktune.scores.flips import Change
from masktune.scores.groups import GroupScore, Summary, group_name
from masktune.scores.metrics import Metric
from masktune.scores.result import MaskingResult
from masktune.training.methods import RIVALS

NOTHING = "–"
"""Stands where there is no number; never 0."""

MOST_NAMED = 4
"""Groups that one sentence names; it counts the others."""

UNUSUAL = {
    "statistics": "mean and sigma over {} pixels",
    "rounds": "{} rounds",
    "accumulate": "each round hides anew",
    "method": "heat by {}",
    "layer": "layer {}",
    "fill": "filled with {}",
    "regions": "boxes of {}",
}
"""How a setting of the masking reads where it is not the usual one."""


def percent(share: float | None) -> str:
    """Write a share in [0, 1].

    >>> percent(0.9184), percent(None)
    ('91.8%', '–')
    """
    return NOTHING if share is None else f"{share:.1%}"


def points(change: float | None) -> str:
    """Write a difference of two shares in points, with its sign.

    >>> points(0.465), points(-0.016), points(0.0001)
    ('+46.5', '−1.6', '0.0')
    """
    if change is None:
        return NOTHING
    text = f"{100 * change:+.1f}"
    return "0.0" if float(text) == 0 else text.replace("-", "−")


def difference(before: float | None, after: float | None) -> float | None:
    """Return how much a share has changed, None where one of the two is unknown."""
    return None if before is None or after is None else after - before


def interval(bounds: tuple[float, float] | None) -> str:
    """Write the interval of a share.

    >>> interval((0.878, 0.946))
    '87.8 to 94.6%'
    """
    return NOTHING if bounds is None else f"{100 * bounds[0]:.1f} to {bounds[1]:.1%}"


def points_interval(bounds: tuple[float, float] | None) -> str:
    """Write the interval of a difference.

    >>> points_interval((-0.02, 0.031))
    '−2.0 to +3.1'
    """
    return NOTHING if bounds is None else f"{points(bounds[0])} to {points(bounds[1])}"


def count(number: int, one: str = "", several: str = "") -> str:
    """Write a number of things, by their name where it is given; with an s unless told otherwise.

    >>> count(3500), count(1, "seed"), count(3500, "seed"), count(2, "class", "classes")
    ('3,500', '1 seed', '3,500 seeds', '2 classes')
    """
    name = one if number == 1 or not one else several or f"{one}s"
    return f"{number:,} {name}".rstrip()


def pictures(number: int) -> str:
    """Write a number of pictures.

    >>> pictures(1), pictures(3500)
    ('1 picture', '3,500 pictures')
    """
    return "1 picture" if number == 1 else f"{count(number)} pictures"


def signed(number: int) -> str:
    """Write a number of things more or fewer, with its sign.

    >>> signed(1200), signed(-3), signed(0)
    ('+1,200', '−3', '0')
    """
    return f"{number:+,}".replace("-", "−") if number else "0"


def duration(seconds: float) -> str:
    """Write how long something took.

    >>> duration(0.04), duration(8.2), duration(840.0), duration(9000.0)
    ('0.0 s', '8.2 s', '14 min', '2.5 h')
    """
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def area(value: float) -> str:
    """Write an area under a risk-coverage curve, a plain fraction.

    >>> area(0.02431)
    '0.0243'
    """
    return f"{value:.4f}".replace("-", "−")


@cache
def masking_words(masking: MaskingConfig) -> str:
    """Say what a run does to its training pictures, with every setting that is not the usual.

    >>> masking_words(MaskingConfig())
    'MaskTune, k = 2'
    >>> masking_words(MaskingConfig(k=1.5, method="gradcam", layer="conv2"))
    'MaskTune, k = 1.5, heat by gradcam, layer conv2'
    >>> masking_words(MaskingConfig(strategy="none"))
    'Control: one more epoch, nothing hidden'
    >>> masking_words(MaskingConfig(strategy="cold", fill="mean"))
    'All but the hot part hidden, k = 2, filled with mean colour'
    """
    strategy, usual = strategy_of(masking), MaskingConfig()
    spelled: dict[str, Callable[[str], str]] = {
        "fill": lambda name: FILLS[name].title.lower(),  # type: ignore[index]
        "regions": lambda path: PurePath(path).name,
    }
    said = [
        UNUSUAL.get(option.name, f"{option.name.replace('_', ' ')} {{}}").format(
            spelled.get(option.name, str)(value)
        )
        for option in options(MaskingConfig)
        if (value := getattr(masking, option.name)) != getattr(usual, option.name)
        and option.name != "strategy"
        and f"{{{option.name}" not in strategy.title
        and (not option.used_by or strategy.name in option.used_by)
    ]
    return ", ".join([strategy.words(masking), *said])


def method_words(config: RunConfig) -> str:
    """Say by which method a run makes the model after, with every setting that is not the usual.

    >>> from masktune.checkpoints.settings import settings
    >>> method_words(settings({"dataset": "biased-mnist-5k", "rival": "jtt", "error_weight": 20}))
    'JTT, error weight 20'
    >>> method_words(settings({"dataset": "biased-mnist-5k", "rival": "lff", "epochs": 2}))
    'LfF, epochs 2'
    >>> from dataclasses import replace
    >>> method_words(replace(settings({"dataset": "biased-mnist-5k"}), only_before=True))
    'Training: small-cnn, 12 epochs'
    """
    if config.only_before:
        epochs = config.training.epochs
        times = "1 epoch" if epochs == 1 else f"{count(epochs)} epochs"
        begun = f" from {PurePath(config.weights).name}" if config.weights else ""
        return f"Training: {config.arch}{begun}, {times}"
    if config.rival == MASKTUNE:
        return masking_words(config.masking)
    usual = RivalConfig()
    said = [
        f"{option.name.replace('_', ' ')} {value}"
        for option in options(RivalConfig)
        if config.rival in option.rivals
        and (value := getattr(config.rival_settings, option.name)) != getattr(usual, option.name)
    ]
    if config.rival in BY_RECIPE:
        said += _unusual_training(config)
        if config.start == "erm":
            said.append("from the model before")
    return ", ".join([RIVALS[config.rival].title, *said])


def _unusual_training(config: RunConfig) -> list[str]:
    """Say for how long and how fast a rival trains, where that is not the recipe's."""
    now, known = config.training, RECIPES.get(config.recipe)
    usual = now if known is None else known.training  # another version's recipe tells nothing
    said = [f"epochs {count(now.epochs)}"] if now.epochs != usual.epochs else []
    return [*said, f"rate {now.lr:g}"] if now.lr != usual.lr else said


def early_stop(masking: MaskingResult) -> str:
    """Say why there was no further round and what became of the last one; empty where all fitted.

    >>> from masktune.scores.result import RoundResult
    >>> one = RoundResult(k=2.0, hidden_fraction=0.1, empty_fraction=0.0)
    >>> early_stop(MaskingResult(rounds=(one, one), layer=None))
    ''
    """
    last = len(masking.rounds)
    if not masking.rounds or masking.rounds[-1].fitted:
        return ""
    fate = "is the result all the same" if masking.result == last else "was dropped"
    return (
        f"Round {last} left too little to learn from: its model did not fit its masked training "
        f"pictures and {fate}."
    )


def metric_title(metric: Metric, summary: Summary) -> str:
    """Return what heads the card or the row of a metric."""
    name = metric.name(summary)
    return f"{name[0].upper()}{name[1:]}"


def metric_note(metric: Metric, summary: Summary) -> str:
    """Write what belongs to a metric: its interval, or what it is made of, and n."""
    bounds, size = metric.interval(summary), f"n = {count(metric.count(summary))}"
    if bounds is not None:
        return f"95% interval {interval(bounds)}, {size}"
    present = sum(score.count > 0 for score in summary.scores)
    names = ("class", "classes") if summary.worst_is == "class" else ("group", "groups")
    groups = count(present, *names)
    return f"{metric.basis.format(groups=groups)}, {size}"


def whose(metric: Metric, before: Summary, after: Summary) -> str:
    """Name whose number a metric is, and before if that was another's; empty for that of all.

    A group that is the worst now because it fell is said to have fallen.
    """
    was, now = metric.who(before), metric.who(after)
    if was == now:
        return now
    had = next((one.accuracy for one in before.scores if group_name(one) == now), None)
    return f"{now}{_fell(had, metric.of(after))} (before: {was})"


def _fell(had: float | None, has: float | None) -> str:
    if had is None or has is None or has >= had:
        return ""
    return f", which fell from {percent(had)} to {percent(has)}"


def worst_words(summary: Summary | Evidence) -> str:
    """Name what the lowest accuracy belongs to, in full where it is only a stand-in.

    Without attributes there are no groups; see ``masktune.scores.groups``.
    """
    if summary.worst_is == "class":
        return "worst class (stands in for the worst group)"
    return "worst group"


def worst_mark(*, before: bool, after: bool) -> str:
    """Say when a group is the worst one; empty when it is not.

    >>> worst_mark(before=True, after=True), worst_mark(before=False, after=True)
    ('worst before and after', 'worst after')
    """
    moments = [name for name, is_so in (("before", before), ("after", after)) if is_so]
    return f"worst {' and '.join(moments)}" if moments else ""


def score_words(score: GroupScore) -> str:
    """Write an accuracy with all that belongs to it.

    >>> score_words(GroupScore("0–4", "square", 10, 0.8, (0.49, 0.943)))
    '80.0% (0–4, square; n = 10; 95% interval 49.0 to 94.3%)'
    """
    return (
        f"{percent(score.accuracy)} ({group_name(score)}; n = {count(score.count)}; "
        f"95% interval {interval(score.interval)})"
    )


def verdict_parts(test: str, evidence: Evidence | None) -> list[tuple[Direction, str]]:
    """Say what tuning did to a test set, harm first, each part with where it points.

    Named are the group that clearly lost most and the one that clearly gained most, and before
    them the worst group where it did; see ``masktune.scores.evidence`` for what is clear. Without
    evidence nothing is said: about a run whose file does not tell which answers changed.
    """
    if evidence is None:
        return []
    worst = worst_words(evidence)
    one, several = ("class", "classes") if evidence.worst_is == "class" else ("group", "groups")
    total, whole = len(evidence.groups), evidence.overall

    def part(where: Direction, did: str, way: str, clear: Sequence[Change], low: Change) -> str:
        if not clear:
            moved = _moved(whole.before, whole.after)
            text = f"Tuning {did} the answers on “{test}” as a whole: {moved}."
            return text if direction(whole.interval) == where else ""
        most = clear[0]
        # In one breath "the worst" must not be two groups: the one before, and the one now.
        turned = where == "down" and evidence.worst_before in evidence.gained
        lowest = f"what is now the {worst}" if turned else f"the {worst}"
        first, who = (low, lowest) if low in clear else (most, f"a {one}")
        moved = _moved(first.before, first.after)
        text = f"Tuning {did} {who} of “{test}” ({group_name(first)}): {moved}."
        if len(clear) > 1:
            other = f", most {group_name(most)} ({points(most.change)})" if most != first else ""
            text += f" {len(clear)} of {total} {several} clearly {way}{other}."
        return text

    parts: list[tuple[Direction, str]] = [
        ("down", part("down", "harmed", "lost", evidence.lost, evidence.worst_after)),
        ("up", part("up", "helped", "gained", evidence.gained, evidence.worst_before)),
    ]
    if told := [(where, text) for where, text in parts if text]:
        return told
    if evidence.verdict == "no change":
        return [("unclear", f"No change on “{test}”: no answer turned right or wrong.")]
    now = evidence.worst_after
    lowest = _moved(evidence.worst_before.before, now.after)
    text = f"No clear change in any of {total} {several} of “{test}”. The {worst}: {lowest}."
    if now != evidence.worst_before and (fell := _fell(now.before, now.after)):
        text += f" It is now {group_name(now)}{fell}."
    return [("unclear", text)]


def control_words(test: str, control: MaskingConfig, evidence: Evidence) -> tuple[Direction, str]:
    """Say what a run came to beside a control on a test set, and where that points.

    ``evidence`` weighs the control's answers, as before, against those of the run: up is the run's
    favour. Every group is held against itself, and those that clearly differ are named. Only the
    control that hides nothing tells whether hiding helped.
    """
    whole, verdict = evidence.overall, evidence.verdict

    def clearly(way: str, where: Direction, groups: Sequence[Change]) -> str:
        if not groups and direction(whole.interval) == where:
            groups = (whole,)
        said = [
            f"{'all pictures together' if group == whole else group_name(group)} "
            f"({percent(group.after)} against {percent(group.before)})"
            for group in groups[:MOST_NAMED]
        ]
        more = [f"{len(groups) - MOST_NAMED} more"] if len(groups) > MOST_NAMED else []
        return f"clearly {way} in {', '.join([*said, *more])}" if said else ""

    told = [clearly("worse", "down", evidence.lost), clearly("better", "up", evidence.gained)]
    found = " and ".join(filter(None, told))
    found = found or f"not clearly better in any {evidence.worst_is}"
    name = masking_words(control).removeprefix("Control: ")
    text = f"Beside the control “{name}” this run is, on “{test}”, {found}"
    if not strategy_of(control).hides and verdict in ("harmed", "no clear change", "no change"):
        text += f": hiding these pixels did not {'' if verdict == 'harmed' else 'clearly '}help"
    favours: dict[str, Direction] = {"helped": "up", "harmed": "down"}
    return favours.get(verdict, "unclear"), f"{text}."


def _moved(before: float | None, after: float | None) -> str:
    change = points((after or 0.0) - (before or 0.0))
    return f"from {percent(before)} to {percent(after)}, {change} points"


def score_name(score: str) -> str:
    """Name a score of selective classification as people read it.

    >>> score_name("joint"), score_name("own")
    ('joint', 'its own score')
    """
    return "its own score" if score == "own" else score


def selective_verdict(safety: Safety) -> str:
    """Say in one sentence whether the joint score is the safest of "joint", "before", "after".

    The lower the area under the risk-coverage curve, the safer.
    """
    joint = area(safety.areas["joint"])
    best = safety.safest if safety.safest in ("before", "after") else safety.best_alone
    alone = area(safety.areas[best])
    if safety.safest == "joint":
        return f"The joint score is the safest: AURC {joint}, against {alone} for {best} alone."
    if safety.safest == best:
        return (
            f"The model {best} alone is safer than the joint score: AURC {alone} against {joint}."
        )
    if joint == alone:
        return f"The joint score is as safe as the model {best} alone: AURC {joint} both."
    return (
        f"No clear difference between the joint score and the model {best} alone: "
        f"AURC {joint} against {alone}."
    )
