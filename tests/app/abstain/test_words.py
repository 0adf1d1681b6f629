"""The sentences and tables of the Abstain page."""

from app.abstain import words
from app.abstain.numbers import read_off
from masktune.scores.evidence import Difference, weigh_scores
from masktune.scores.groups import wilson
from masktune.scores.marks import AbstainedMark, AnsweredMark
from masktune.show.abstained import least_answered
from masktune.show.tables import html
from tests.app.abstain.test_numbers import TENTHS, card, ranked, rankings, says


def test_a_coverage_near_its_target_needs_no_excuse():
    reading = read_off(rankings(ranked(TENTHS), ranked(TENTHS)), "joint", target=0.8)

    assert words.miss_sentence(reading, test="test") == ""


def test_a_test_set_that_scores_lower_is_named_as_the_reason():
    reading = read_off(rankings(ranked(TENTHS), ranked([0.1] * 9 + [0.9])), "joint", target=0.8)

    said = words.miss_sentence(reading, test="<b>")

    assert "answers 80.0% of the validation pictures" in said
    assert "“&lt;b&gt;” are lower, so fewer" in said


def test_a_test_set_that_scores_higher_is_named_as_the_reason():
    reading = read_off(rankings(ranked(TENTHS), ranked([0.9] * 10)), "joint", target=0.8)

    assert "are higher, so more" in words.miss_sentence(reading, test="test")


def test_ties_are_named_as_the_reason_before_the_test_set_is():
    both = rankings(ranked([1.0] * 6 + [0.5] * 4), ranked([0.4, 0.3]))

    said = words.miss_sentence(read_off(both, "joint", target=0.5), test="test")

    assert "Scores tie" in said
    assert "6 validation pictures" in said
    assert "60.0%" in said


def test_fewer_mistakes_than_another_score_show_as_good_and_more_as_bad():
    both = rankings(ranked(TENTHS), ranked(TENTHS, [False, *[True] * 9]))
    reading = read_off(both, "joint", target=1.0)  # one of ten wrong

    fewer = words.wrong_metric(reading, "after", Difference(0.2, (0.1, 0.3)), split="test")
    more = words.wrong_metric(reading, "after", Difference(-0.05, (-0.09, -0.01)), split="test")
    perhaps = words.wrong_metric(reading, "after", Difference(0.2, (-0.1, 0.5)), split="test")

    assert 'class="delta up">↓ −20.0 points' in fewer
    assert 'class="delta down">↑ +5.0 points' in more
    assert 'class="delta same">↓ −20.0 points' in perhaps
    assert '?shown=wrong%3Atest%3Ajoint%3A10">1</a> of 10 answers' in more
    assert f"95% interval {words.interval(wilson(1, 10))}" in more


def test_what_is_answered_wrong_or_chosen_by_leads_to_its_pictures():
    scores = ranked(TENTHS, [False, *[True] * 9])
    both = rankings(scores, scores)
    reading, full = (read_off(both, "joint", target=target) for target in (0.8, 1.0))
    groups = least_answered(
        ranked([0.9], [False]), says([[0.9, 0.1]], [0]), gamma=0.5, names=card()
    )
    marks = [(AnsweredMark("my", "joint", 1, 0), AbstainedMark("my", "joint", 1, 0))]

    assert 'answered%3Amy%3Ajoint%3A8">8</a> of 10' in words.coverage_metric(reading, split="my")
    assert "answered%3Avalidation%3Aafter%3A10" in words.gamma_sentence(reading, 10)
    whole = html(words.scores_table({"joint": full}, "joint", split="my"))
    assert 'aria-label="10.0%: 1 wrong by the joint score"' in whole
    assert whole.count("shown=wrong%3Amy%3Ajoint%3A10") == 1
    none = html(words.scores_table({"joint": reading}, "joint", split="my"))
    assert "shown=wrong" not in none
    shown = html(words.groups_table(groups, marks))
    assert 'aria-label="100.0%: 1 wrong of cat" href="?shown=wrong%3Amy%3Ajoint%3A1%3A0"' in shown


def test_groups_that_are_left_out_are_counted_with_the_file_that_has_their_pictures(original):
    groups = least_answered(
        original.pair.ranked()["joint"], original.pair.before, gamma=0.5, names=original
    )

    assert words.left_out_words(original, groups) == ""
    assert words.left_out_words(original, groups[:1]) == (
        " 1 more groups, answered more often, are in “Predictions (CSV)”."
    )


def test_names_of_groups_are_escaped_in_the_table():
    groups = least_answered(
        ranked([0.9]), says([[0.9, 0.1]], [0]), gamma=0.5, names=card(classes=("<i>", "dog"))
    )

    marks = [(AnsweredMark("test", "joint", 1, 0), AbstainedMark("test", "joint", 1, 0))]

    shown = html(words.groups_table(groups, marks))

    assert (
        '&lt;i&gt;</th><td><a class="mark" href="?shown=answered%3Atest%3Ajoint%3A1%3A0"' in shown
    )
    assert ">1</a> of 1</td><td>0</td><td>0.0%" in shown


def test_no_gamma_is_needed_when_all_are_answered():
    reading = read_off(rankings(ranked(TENTHS), ranked(TENTHS)), "joint", target=1.0)

    assert "no gamma" in words.gamma_sentence(reading, 10)


def test_the_verdict_takes_the_colour_of_harm_only_when_before_is_the_safest():
    scores = [n / 100 for n in range(100)]
    good = ranked(scores, [score >= 0.5 for score in scores])
    bad = ranked(scores, [score < 0.5 for score in scores])

    def verdict(**by_score):
        return words.verdict_html(weigh_scores(by_score))

    harmed = verdict(joint=bad, before=good, after=bad)
    assert 'class="verdict down"' in harmed
    assert "before alone is safer than the joint score" in harmed
    assert 'class="verdict up"' in verdict(joint=good, before=bad, after=bad)
    assert 'class="verdict up"' in verdict(joint=bad, before=bad, after=good)
    assert 'class="verdict unclear"' in verdict(joint=good, before=good, after=good)
