"""What hiding takes away before the epoch, in words and as a table, on pages, report and CLI."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from markupsafe import Markup

from masktune.scores.evidence import Direction, direction
from masktune.scores.groups import group_name
from masktune.scores.hiding import (
    COVERED,
    LEAST_LOST,
    STAYS,
    Covered,
    HiddenGroup,
    Hiding,
    common_and_rare,
    covers_thing,
    on_clue,
    together,
)
from masktune.scores.marks import Mark
from masktune.show.marks import linked_cell
from masktune.show.markup import piece
from masktune.show.tables import Cell, Column, Table, change_cell, count_cell, share_cell
from masktune.show.wording import MOST_NAMED, count, percent, points, points_interval

TITLES = {
    "leans on": "Hiding takes away what the model leans on",
    "nothing that matters": "Hiding takes away nothing that matters",
    "the thing itself": "Hiding takes away the thing itself",
    "cannot tell": "What hiding takes away, this cannot tell",
}
"""A verdict as a sentence."""

TAKEN = {verdict: verdict for verdict in TITLES} | {"leans on": "what it leans on"}
"""A verdict in the fewest words, for a table."""

WARNED = frozenset({"nothing that matters", "the thing itself"})
"""Verdicts after which an epoch is likely to be for nothing, or to do harm."""

POINTS: dict[str, Direction] = {"leans on": "up", "the thing itself": "down"}
"""Where a verdict points; the others nowhere."""

MANY_EMPTY = 0.2
"""Share of pictures with nothing hidden from which on people are warned."""

MORE = "More pictures would tell."
"""What is said where pictures are too few for any other verdict."""

LEFT_WHOLE = "they go on teaching what they teach now. A smaller k hides in more."
"""What is said of many pictures in which nothing is hidden."""

KINDS = {"group": "group", "class": "class", "clue": "place it looks at"}
"""What a row of the table is."""


def pictures_words(hiding: Hiding) -> str:
    """Say which training pictures were looked at."""
    looked = hiding.whole.count
    if looked == hiding.of:
        return f"all {count(looked)} training pictures"
    return f"{count(looked)} of the {count(hiding.of)} training pictures"


def verdict_words(hiding: Hiding) -> list[tuple[Direction, str]]:
    """Return the verdict in words, with where it points: the sentence, then why."""
    where = POINTS.get(hiding.verdict, "unclear")
    return [(where, f"{TITLES[hiding.verdict]}. {reason(hiding)}")]


def reason(hiding: Hiding) -> str:
    """Say in a sentence or two why the verdict is what it is."""
    broken, hit = hiding.broken, hiding.telling
    if not broken:
        bounds = points_interval(hiding.whole.change.interval)
        low, _ = hiding.whole.change.interval or (-1.0, 1.0)
        lost = direction(hiding.whole.change.interval) == "down"
        if hiding.verdict == "cannot tell" and low > -LEAST_LOST:
            return _unjudged_words(hiding)
        if hiding.verdict == "cannot tell" and lost:
            return (
                f"Answers are lost over all pictures ({bounds} points), but on so few no single "
                f"{KINDS[hiding.by]} passes the stricter test for several at once. {MORE}"
            )
        if hiding.verdict == "cannot tell":
            return (
                f"No {KINDS[hiding.by]} clearly breaks, but so few pictures do not rule out a loss "
                f"of {100 * LEAST_LOST:.0f} points ({bounds}). {MORE}"
            )
        return (
            f"No {KINDS[hiding.by]} breaks ({bounds} points over all): the clue is not under the "
            "mask, or k is too high for so coarse a map. The epoch would teach little new."
        )
    fell = f"{_named(broken, hiding.by)}; there {_covered_words(hit, of=broken)}"
    if hiding.verdict == "leans on":
        return f"It breaks {fell}."
    if hiding.verdict == "the thing itself":
        why = "" if covers_thing(broken) else f" {_rare_words(hiding.groups)}"
        left = "What is left is what the common pictures have in common, and the epoch teaches it."
        return f"It breaks {fell}.{why} {left}"
    return f"It breaks {fell}. {_why_unclear(broken)} {would_tell(hiding)}"


def _unjudged_words(hiding: Hiding) -> str:
    """Say which large groups may break unseen."""
    kind, unknown = KINDS[hiding.by], hiding.unjudged
    said = [
        f"{group_name(group)} ({count(group.right_before)} of {count(group.count)} right)"
        for group in unknown[:MOST_NAMED]
    ]
    more = len(unknown) - MOST_NAMED
    named = ", ".join([*said, *([f"{more} more"] if more > 0 else [])])
    some = all(group.right_before for group in unknown)
    would = MORE if some else "A model that is right on some of each would tell."
    return (
        f"No {kind} clearly breaks, but a loss of {1 - STAYS:.0%} of the right answers would go "
        f"unseen in {named}. {would}"
    )


def _rare_words(groups: Sequence[HiddenGroup]) -> str:
    common, rare = (together(some).change for some in common_and_rare(groups))
    return (
        "The commonest group of every class keeps most of its answers "
        f"({percent(common.before)} to {percent(common.after)} together), the rarer ones lose "
        f"clearly more ({percent(rare.before)} to {percent(rare.after)})."
    )


def _why_unclear(broken: Sequence[HiddenGroup]) -> str:
    hit = together(broken)
    if hit.clue is None and hit.thing is None:
        return (
            "Nobody says where clue and thing lie, and accuracies look alike when either is hidden."
        )
    if len({on_clue(group) for group in broken if group.clue is not None}) > 1:
        return "The mask is on the clue in some of them and not in others."
    if hit.clue is not None and hit.clue.share < COVERED:
        return "Most of the clue stays in the pictures and goes on teaching."
    return "The mask is on neither of them alone."


def would_tell(hiding: Hiding) -> str:
    """Say what would tell whether it is the clue that hiding takes away, in broken groups."""
    hit, more = hiding.telling, []
    if hit.clue is None and hit.thing is None:
        more.append("pictures with boxes of the thing or regions of the clue")
    if hiding.by != "group":
        more.append("attributes, so that there are groups")
    return f"What would tell: {', '.join([*more, 'a look at the hidden pictures on Mask'])}."


def _named(groups: Sequence[HiddenGroup], by: str) -> str:
    most = sorted(groups, key=lambda group: group.change.change or 0.0)
    said = [
        f"{group_name(group)} ({percent(group.change.before)} to {percent(group.change.after)})"
        for group in most[:MOST_NAMED]
    ]
    more = len(groups) - MOST_NAMED
    kind = {"group": "groups", "class": "classes", "clue": "places"}[by]
    return ", ".join([*said, *([f"{more} more {kind}"] if more > 0 else [])])


def _covered_words(group: HiddenGroup, *, of: Sequence[HiddenGroup] = ()) -> str:
    """Say how much of the pictures, the clue and the thing is hidden.

    Of the clue by group where it is hidden in some of those that the group is made ``of`` only.
    """
    parts = [f"{percent(group.hidden_fraction)} of the picture"]
    if group.clue is not None:
        each = [(one, one.clue.share) for one in of if one.clue is not None]
        unlike = len({share < COVERED for _, share in each}) > 1
        said = [f"{group_name(one)}: {percent(share)}" for one, share in each[:MOST_NAMED]]
        among = f" ({'; '.join(said)})" if unlike else ""
        parts.append(f"{percent(group.clue.share)} of the clue{among}")
    if group.thing is not None:
        parts.append(f"{percent(group.thing.share)} of the thing")
    return f"{_and(parts)} {'is' if len(parts) == 1 else 'are'} hidden"


def _and(parts: Sequence[str]) -> str:
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


def numbers_words(hiding: Hiding) -> str:
    """Say what hiding does to the pictures looked at, and to the answers."""
    whole = hiding.whole
    change = whole.change
    return (
        f"On {pictures_words(hiding)} {_covered_words(whole)}. Right answers: "
        f"{percent(change.before)} as they are, {percent(change.after)} hidden "
        f"({points(change.change)} points, {points_interval(change.interval)})."
    )


def empty_words(hiding: Hiding) -> str:
    """Say in how many pictures nothing is hidden; empty where something is in all."""
    if not hiding.whole.empty:
        return ""
    many = hiding.empty_fraction > MANY_EMPTY
    return (
        f"In {count(hiding.whole.empty)} of {count(hiding.whole.count)} pictures "
        f"({'under 0.1%' if hiding.empty_fraction < 0.0005 else percent(hiding.empty_fraction)}) "
        "nothing is hidden" + (f": {LEFT_WHOLE}" if many else ".")
    )


def verdict_html(hiding: Hiding, *, small: str = "") -> Markup:
    """Show the verdict with why, and below it in small letters the numbers, and what is added."""
    words = " ".join(filter(None, (numbers_words(hiding), empty_words(hiding), small)))
    return piece("verdict", parts=verdict_words(hiding), more="", small=words)


def warns(hiding: Hiding) -> bool:
    """Tell whether what somebody about to finetune hears is a warning."""
    return hiding.verdict in WARNED or hiding.empty_fraction > MANY_EMPTY


def before_words(hiding: Hiding) -> str:
    """Return what somebody about to finetune must hear, in one line whatever the verdict is."""
    head = "Warning, before the epoch" if warns(hiding) else "Before the epoch"
    [(_, verdict)] = verdict_words(hiding)
    return " ".join(filter(None, (f"{head}: {verdict}", empty_words(hiding))))


def hiding_table(hiding: Hiding, *, marks: Mapping[str, Mark] = MappingProxyType({})) -> Table:
    """Show every group: right answers as the pictures are and hidden, and what is covered.

    The number of its pictures leads to them where a group's mark is known by its name.
    """
    known = {
        name: any(getattr(group, name) is not None for group in hiding.groups)
        for name in ("clue", "thing")
    }

    def cells(group: HiddenGroup) -> list[Cell]:
        change = group.change
        name = "all" if group is hiding.whole else group_name(group)
        return [
            Cell(name, values=(group.label, group.attribute)),
            linked_cell(marks.get(name), group.count),
            share_cell(change.before),
            share_cell(change.after),
            change_cell(change.change, change.interval),
            share_cell(group.hidden_fraction),
            count_cell(group.empty),
            _covered_cell(group.clue),
            _covered_cell(group.thing),
        ]

    several = (hiding.whole,) if len(hiding.groups) > 1 else ()
    return Table(
        name="What hiding takes away",
        columns=(
            Column(KINDS[hiding.by], ("label", "attribute"), left=True),
            Column("n"),
            Column("as they are", ("accuracy_whole",), "right answers"),
            Column("hidden", ("accuracy_hidden",), "right answers"),
            Column("change", ("change", "change_low", "change_high"), "points, 95% interval"),
            Column("pixels hidden", ("hidden_fraction",)),
            Column("nothing hidden", ("empty",), "pictures"),
            Column("of the clue", ("clue", "clue_n"), "hidden", shown=known["clue"]),
            Column("of the thing", ("thing", "thing_n"), "hidden", shown=known["thing"]),
        ),
        rows=[cells(group) for group in (*hiding.groups, *several)],
    )


def _covered_cell(covered: Covered | None) -> Cell:
    share, pictures = (None, None) if covered is None else covered
    return Cell(percent(share), values=(share, pictures))
