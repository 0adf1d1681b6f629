"""What hiding takes away, in words: each verdict with its reason, and when people are warned."""

import re
from dataclasses import replace
from html import unescape

import pytest

from masktune.cli.run import say
from masktune.scores.hiding import Covered, HiddenGroup, Hiding, together, verdict_of
from masktune.scores.marks import GroupMark
from masktune.show.hiding import (
    TAKEN,
    TITLES,
    before_words,
    empty_words,
    hiding_table,
    numbers_words,
    reason,
    verdict_html,
    verdict_words,
    warns,
)
from masktune.show.tables import csv, html
from masktune.studies.results_page import page
from tests import results


def group(name, count, right, *, empty=0, hidden=0.1, **covered) -> HiddenGroup:
    label, _, attribute = name.partition(", ")
    return HiddenGroup(
        label=label,
        attribute=attribute or "any",
        count=count,
        right_before=count,
        fixed=0,
        broken=count - right,
        hidden_fraction=hidden,
        empty=empty,
        **{what: Covered(share, count) for what, share in covered.items()},
    )


def hiding(*groups, of=None, by="group") -> Hiding:
    whole = together(groups)
    verdict = verdict_of(groups, by=by)
    return Hiding(verdict=verdict, of=of or whole.count, by=by, whole=whole, groups=groups)


SCORES = results.scores([("a", "x", 9, 0.5)])
TESTS = {"test": {"before": SCORES, "after": SCORES}}

SQUARE = hiding(
    group("0–4, square", 500, 150, clue=1.0, thing=0.0, rest=0.1),
    group("5–9, none", 500, 500, thing=0.1, rest=0.1),
)
BIRDS = hiding(group("land, land", 500, 480), group("land, water", 50, 10))
NOTHING = hiding(group("a, x", 500, 500, empty=400), group("b, x", 500, 500, empty=300))
UNKNOWN = hiding(group("a, x", 500, 250), group("b, x", 500, 490))
PART = hiding(group("a, x", 500, 250, hidden=0.2, clue=0.2, thing=0.1, rest=0.2))
FEW = hiding(group("a, x", 6, 6), group("b, x", 6, 5), of=3500)
SHEET = hiding(group("cow, stamp", 15, 11), group("camel, none", 9, 8), of=1200)
BLIND = hiding(group("a, x", 500, 500), replace(group("b, x", 500, 500), right_before=0, broken=0))
FAINT = hiding(group("a, x", 500, 500), replace(group("b, x", 500, 500), right_before=5, broken=0))
UNLIKE = hiding(
    group("0–4, square", 500, 0, clue=1.0, thing=0.1), group("5–9, square", 500, 0, clue=0.0)
)
SLIGHT = hiding(group("a, x", 2000, 1970), group("b, x", 2000, 1985))
CLASSES = hiding(
    *(group(name, 500, 100) for name in "abcdef"),
    by="class",
)


def test_every_verdict_has_its_sentence_and_a_short_one():
    said = [verdict_words(one)[0][1] for one in (SQUARE, BIRDS, NOTHING, UNKNOWN)]

    assert [text.split(". ")[0] for text in said] == list(
        map(TITLES.get, ("leans on", "the thing itself", "nothing that matters", "cannot tell"))
    )
    assert TITLES.keys() == TAKEN.keys()
    assert [verdict_words(one)[0][0] for one in (SQUARE, BIRDS, NOTHING)] == [
        *("up", "down", "unclear"),
    ]


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (SQUARE, "It breaks 0–4, square (100.0% to 30.0%); there 10.0% of the picture, 100.0% of "),
        (BIRDS, "What is left is what the common pictures have in common"),
        (NOTHING, "k is too high for so coarse a map"),
        (UNKNOWN, "Nobody says where clue and thing lie"),
        (PART, "Most of the clue stays in the pictures"),
        (BIRDS, "answers (100.0% to 96.0% together), the rarer ones lose clearly more"),
        (SHEET, "Answers are lost over all pictures (−40.5 to −2.8 points), but on so few no "),
        (SLIGHT, "No group breaks (−1.5 to −0.8 points over all)"),
        (FEW, "so few pictures do not rule out a loss of 5 points"),
        (
            UNLIKE,
            "50.0% of the clue (0–4, square: 100.0%; 5–9, square: 0.0%) and 10.0% of the thing",
        ),
        (UNLIKE, "The mask is on the clue in some of them and not in others. What would tell"),
        (BLIND, "a loss of 25% of the right answers would go unseen in b, x (0 of 500 right). A "),
        (FAINT, "unseen in b, x (5 of 500 right). More pictures would tell."),
        (CLASSES, "d (100.0% to 20.0%), 2 more classes; there"),
    ],
)
def test_the_reason_names_what_decides(found, words):
    assert words in reason(found)


def test_the_numbers_say_how_many_pictures_were_looked_at():
    assert numbers_words(FEW).startswith("On 12 of the 3,500 training pictures 10.0% of the pic")
    assert "On all 1,000 training pictures" in numbers_words(SQUARE)
    assert "100.0% as they are, 65.0% hidden (−35.0 points, " in numbers_words(SQUARE)


def test_pictures_with_nothing_hidden_are_counted_and_many_are_a_reason_to_warn():
    assert empty_words(SQUARE) == ""
    assert empty_words(NOTHING).startswith("In 700 of 1,000 pictures (70.0%) nothing is hidden: ")
    one = hiding(group("a, x", 500, 100, empty=1, clue=1.0))
    assert empty_words(one) == "In 1 of 500 pictures (0.2%) nothing is hidden."
    least = hiding(group("a, x", 3500, 100, empty=1, clue=1.0))
    assert empty_words(least) == "In 1 of 3,500 pictures (under 0.1%) nothing is hidden."


def test_people_are_warned_of_the_thing_itself_of_nothing_and_of_many_empty_pictures_only():
    many = hiding(group("a, x", 500, 100, empty=200, clue=1.0))

    assert many.verdict == "leans on"
    assert [warns(one) for one in (SQUARE, UNKNOWN, BIRDS, NOTHING, many)] == [
        *(False, False, True, True, True),
    ]
    # A fifth of the pictures is not yet many.
    assert not warns(hiding(group("a, x", 500, 100, empty=100, clue=1.0)))
    assert "700 of 1,000" in before_words(NOTHING)
    assert before_words(many).endswith(empty_words(many))


@pytest.mark.parametrize("found", [SQUARE, BIRDS, NOTHING, UNKNOWN, PART, FEW, CLASSES])
def test_before_the_epoch_every_verdict_is_said_in_the_words_of_pages_and_report(found):
    said = before_words(found)

    assert verdict_words(found)[0][1] in said
    assert verdict_words(found)[0][1] in unescape(re.sub("<[^>]+>", "", verdict_html(found)))
    assert "\n" not in said
    assert said.startswith("Warning, before the epoch: ") == warns(found)
    assert said.startswith("Before the epoch: ") != warns(found)


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (UNKNOWN, "pictures with boxes of the thing or regions of the clue, a look at the hidden"),
        (
            CLASSES,
            "regions of the clue, attributes, so that there are groups, a look at the hidden",
        ),
        (PART, "What would tell: a look at the hidden pictures on Mask."),
        (FEW, "More pictures would tell."),
        (SHEET, "More pictures would tell."),
        (BLIND, "A model that is right on some of each would tell."),
    ],
)
def test_what_cannot_be_told_comes_with_what_would_tell(found, told):
    assert found.verdict == "cannot tell"
    assert told in before_words(found)


@pytest.mark.parametrize("found", [BIRDS, SQUARE, UNKNOWN])
def test_a_run_says_every_verdict_on_standard_error_and_not_on_standard_output(capsys, found):
    say(found)

    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == f"{before_words(found)}\n"


def test_of_several_processes_the_first_alone_says_it(capsys, monkeypatch):
    monkeypatch.setenv("RANK", "1")

    say(BIRDS)

    assert capsys.readouterr().err == ""


def test_a_result_keeps_what_hiding_took_away():
    run = results.a_result(TESTS, rounds=[{"hiding": SQUARE.to_json()}, {}])

    assert run.masking.rounds[0].hiding == SQUARE
    assert run.masking.rounds[1].hiding is None
    assert run.to_json()["masking"]["rounds"][0]["hiding"]["verdict"] == "leans on"
    assert "hiding" not in run.to_json()["masking"]["rounds"][1]


def test_the_table_has_a_row_for_each_group_and_one_for_all_and_knows_what_is_known():
    table, unknown = hiding_table(SQUARE), hiding_table(UNKNOWN)

    assert [row[0].text for row in table.rows] == ["0–4, square", "5–9, none", "all"]
    assert [column.title for column in table.columns if column.shown][-2:] == [
        *("of the clue", "of the thing"),
    ]
    assert "of the clue" not in [c.title for c in unknown.columns if c.shown]
    lines = csv(table).decode().splitlines()
    assert lines[0].startswith("label,attribute,n,accuracy_whole,accuracy_hidden,change,change_low")
    assert lines[1].startswith("0–4,square,500,1.0,0.3,-0.7,")
    assert len(hiding_table(PART).rows) == 1


def test_numbers_of_groups_lead_to_their_pictures_where_these_are_known_and_no_file_changes():
    marks = {"0–4, square": GroupMark("train", 1)}

    linked = hiding_table(SQUARE, marks=marks)

    assert '?shown=group%3Atrain%3A1">500</a>' in html(linked)
    assert html(linked).count('class="mark"') == 1  # nobody said where the others are
    assert 'class="mark"' not in html(hiding_table(SQUARE))
    assert csv(linked) == csv(hiding_table(SQUARE))


def test_the_page_of_results_shows_each_verdict_with_its_numbers():
    rows = [{"model": "seed 0", "k": 0.5, "hiding": SQUARE.to_json()}]
    document = {"name": "digits", "command": "python -m docs.verdicts digits", "rows": rows}

    text = page([], verdicts=[document])

    assert "## What hiding takes away, before the epoch" in text
    assert (
        "| digits | seed 0 | 0.5 | **what it leans on** | 100.0% → 65.0% | 10.0% | 0.0% | 100.0% | "
        "5.0% | 0–4, square 100.0% → 30.0% |" in text
    )
    assert "What hiding takes away" not in page([])
    calm = [{**rows[0], "hiding": NOTHING.to_json()}]
    assert "| – | – | nothing |" in page([], verdicts=[{**document, "rows": calm}])


def test_the_page_of_results_shows_what_is_suggested_where_a_row_says_so():
    calm = {"model": "seed 0", "k": 0.5, "hiding": SQUARE.to_json()}
    told = [
        {"k": 2.0, "lr": None, "lr_reason": ""},
        {"k": 0.5, "lr": 0.01, "lr_reason": "It moves little. Try a rate of 0.01."},
        {"k": 1.0, "lr": None, "lr_reason": "It moves little. A larger one makes harm larger too."},
        {"k": None, "lr": None, "lr_reason": ""},
    ]
    rows = [calm, *({**calm, "advice": advice} for advice in told)]
    document = {"name": "digits", "command": "python -m docs.verdicts digits", "rows": rows}

    text = page([], verdicts=[document])

    assert "| what breaks | suggested k | suggested rate |" in text
    ends = [line.split(" | ")[-2:] for line in text.splitlines() if line.startswith("| digits")]
    assert ends == [
        *(["–", "– |"], ["2", "the usual |"], ["0.5", "0.01 |"]),
        *(["1", "none, by the verdict at this k |"], ["none", "– |"]),
    ]
    # Rows from before there was advice alone are shown as they always were.
    assert "suggested" not in page([], verdicts=[{**document, "rows": [calm]}])


def test_a_group_that_is_shown_as_all_is_the_whole():
    alone = replace(SQUARE, groups=SQUARE.groups[:1])

    assert [row[0].text for row in hiding_table(alone).rows] == ["0–4, square"]
