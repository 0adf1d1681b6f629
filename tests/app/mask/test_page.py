"""The Mask page: which pictures, what the whole set says, and its states."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from app import loaded
from app.mask import verdict
from app.mask.sheet import (
    ALIKE,
    TRAINING,
    Choice,
    chosen_positions,
    group_names,
    hiding,
    hiding_words,
    how_chosen,
)
from app.mask.whole import KS, Whole, areas_csv, at_k
from masktune.cache import Cache
from masktune.checkpoints.settings import settings
from masktune.config import MaskingConfig
from masktune.data.fills import FILLS
from masktune.data.preprocess import Preprocess
from masktune.data.splits import part
from masktune.data.types import UNKNOWN
from masktune.heat.clues import Clue
from masktune.heat.store import HeatStore
from masktune.heat.strategies import Hidden, Round, keeper
from masktune.show.clues import Leaning, clue_sentence, group_numbers
from tests.app.conftest import address, demo_config

DEMO = "biased-mnist-5k"


def choice(**changes) -> Choice:
    values = {
        "subject": settings({"dataset": DEMO, "model": "bundled"}),
        "method": "xgradcam",
        "layer": "features",
        "statistics": "positive",
        "count": 24,
        "draw": 0,
        "by": TRAINING,
    }
    return Choice(**{**values, **changes})


def test_the_sheet_shows_every_group_as_evenly_as_it_can(digits):
    positions = chosen_positions(choice(by=ALIKE), digits)

    numbers = group_numbers(digits.train, 2)[positions]
    assert torch.bincount(numbers).tolist() == [6, 6, 6, 6]
    assert len(set(positions)) == 24


def test_at_first_groups_are_as_frequent_as_in_training(digits):
    positions = chosen_positions(choice(), digits)

    # 17 of 3,500 are 0-4 without a square, 18 are 5-9 with one: 24 pictures show almost none.
    numbers = torch.bincount(group_numbers(digits.train, 2)[positions], minlength=4)
    assert numbers[1] >= 8  # 0-4 with a square, the clue
    assert numbers[0] + numbers[3] <= 2
    assert len(set(positions)) == 24
    assert "as often as in training, rare ones hardly ever." in how_chosen(choice(), digits)
    alike = replace(digits, train=replace(digits.train, attributes=1 - digits.train.labels))
    assert how_chosen(choice(), alike).endswith("groups show as often as in training.")


def test_the_page_says_what_is_hidden_and_what_stands_there_where_it_is_not_masktunes():
    assert hiding_words(choice(), "heat") == ""
    assert hiding_words(choice(keeps_hot=True), "cold").startswith("All but the hot part is hidden")
    assert "filled: a random colour for every pixel." in hiding_words(choice(fill="noise"), "heat")
    assert hiding_words(choice(), "judged").endswith(
        "in which k does nothing: The known clue. Chosen on Finetune."
    )


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("strategy", ["heat", "cold"])
def test_the_sheet_is_hidden_and_filled_as_the_first_round_of_a_run_would(strategy, fill, digits):
    masking = MaskingConfig(strategy=strategy, fill=fill, k=1.0)
    heat = torch.rand(len(digits.train), 7, 7, generator=torch.Generator().manual_seed(0))
    empty = HeatStore(rounds=(), size=(28, 28), layer="features", method="xgradcam")
    run, positions = empty.adding(heat), (40, 7, 3000)
    count = len(digits.train)
    now = Round(masking=masking, store=run, size=(28, 28), count=count, number=1, seed=0,
                split=digits.train)  # fmt: skip
    want = Preprocess().of(digits.train.__getitems__(positions), keeper(now))

    def some_heat(_subject, few, **_how):
        return empty.adding(heat[list(few)]), 0.0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loaded, "some_heat", some_heat)
        chosen = choice(keeps_hot=strategy == "cold", fill=fill)
        hides = hiding(chosen, positions, 1.0, empty.adding(heat[list(positions)]))
        found = Preprocess().of(part(digits.train, torch.tensor(positions)).__getitems__([0, 1, 2]),
                                hides)  # fmt: skip

    assert torch.equal(found, want)


def test_one_group_can_be_looked_at_alone(digits):
    positions = chosen_positions(choice(by=3), digits)

    assert group_numbers(digits.train, 2)[positions].tolist() == [3] * 18
    assert how_chosen(choice(by=3), digits) == ("All 18 training pictures of 5–9, square.")


def test_a_group_that_runs_out_leaves_its_places_to_the_others(digits):
    positions = chosen_positions(choice(count=96, by=ALIKE), digits)

    # 17 pictures of 0-4 without and 18 of 5-9 with a square; the other two share the rest.
    assert sorted(torch.bincount(group_numbers(digits.train, 2)[positions]).tolist())[:2] == [
        17,
        18,
    ]
    assert len(positions) == 96


def test_the_same_draw_shows_the_same_pictures_and_another_one_others(digits):
    first, again, other = (chosen_positions(choice(draw=d), digits) for d in (0, 0, 1))

    assert first == again
    assert first != other


def test_a_picture_is_named_by_its_group(digits):
    number = group_numbers(digits.train, 2)[torch.nonzero(digits.train.attributes == 1)[0]]

    assert group_names(digits)[int(number)] == "0–4, square"


@pytest.fixture
def measured() -> Whole:
    def areas(hidden: float, empty: float) -> list[Hidden]:
        return [Hidden(hidden_fraction=hidden, empty_fraction=empty)] * len(KS)

    leaning = Leaning(groups={}, means={}, sizes={"a": 30, "b": 10}, clues=[], sentences=[])
    return Whole({"a": areas(0.1, 0.0), "b": areas(0.3, 0.5)}, leaning)


def test_the_whole_set_weighs_groups_by_their_size(measured):
    now = at_k(measured, 2.0)

    assert now.hidden_fraction == pytest.approx((30 * 0.1 + 10 * 0.3) / 40)
    assert now.empty_fraction == pytest.approx(0.125)


@pytest.mark.parametrize(
    ("focus", "pictures", "words"),
    [
        (0.137, 40, "No clue stands out: the heat of all 40 pictures has no common place."),
        (0.137, 39, "In 97.5% of the pictures it looks at the top left, but not only there"),
        (0.25, 40, "In 100.0% of the pictures it looks at the top left, but not only there"),
    ],
)
def test_vague_heat_in_all_pictures_alike_is_no_clue(focus, pictures, words):
    heat = np.ones((3, 3))
    clue = Clue(members=np.arange(pictures), heat=heat, place="top left", focus=focus)

    assert clue_sentence(clue, {"a": pictures // 2, "b": 3}, 40).startswith(words)


def test_a_clue_is_told_in_a_sentence():
    clue = Clue(members=np.arange(30), heat=np.ones((3, 3)), place="top left", focus=0.8)

    assert clue_sentence(clue, {"a": 27, "b": 3}, 40) == (
        "In 75.0% of the pictures it looks at the top left (80.0% of the heat). "
        "90.0% of them are a."
    )


def test_the_csv_has_a_line_for_every_group_and_threshold(measured):
    lines = areas_csv(measured).decode().splitlines()

    assert len(lines) == 1 + 2 * len(KS)
    assert lines[1] == "a,30,0.0,0.1,0.0"


def test_with_nothing_loaded_the_page_offers_the_demo(home, open_page):
    at = open_page("mask")

    assert not at.exception
    at.button[0].click().run()
    assert at.session_state["dataset"] == DEMO


def test_the_demo_shows_its_sheet_and_the_whole_set(home, open_page):
    at = open_page("mask", dataset=DEMO, k="1.5")

    assert not at.exception
    assert any("3,500 training pictures" in header.value for header in at.header)
    assert any("At k = 1.5 " in text.value for text in at.markdown)


def test_the_page_says_what_hiding_takes_away_from_the_sheet_and_from_all(home, open_page):
    at = open_page("mask", dataset=DEMO)

    assert not at.exception
    said = [piece.value for piece in at.get("html") if 'class="verdict' in piece.value]
    few, all_of_them = (re.sub(r"<[^>]+>", "", words) for words in said)
    assert "On 24 of the 3,500 training pictures" in few
    assert all_of_them.startswith(
        "Hiding takes away what the model leans on. It breaks 0–4, square"
    )
    assert "On all 3,500 training pictures" in all_of_them
    assert "In 1 of 3,500 pictures (under 0.1%) nothing is hidden." in all_of_them
    few, all_of_them = (
        piece.value for piece in at.get("html") if 'aria-label="What hiding takes' in piece.value
    )
    assert "shown=group" not in few  # the drawer has all pictures of a group
    links = re.findall(r"shown=group%3Atrain%3A(\d)\">([\d,]+)</a>", all_of_them)
    sizes = group_numbers(loaded.bundle(demo_config()).train, 2).bincount().tolist()
    assert links == [(str(n), f"{size:,}") for n, size in enumerate(sizes) if size]


def test_groups_of_which_only_a_sample_was_asked_about_lead_to_no_more_pictures_than_they_say(
    home, open_page, monkeypatch
):
    monkeypatch.setattr(verdict, "sample_of", lambda *_, **__: torch.arange(200))
    verdict._WHOLE.clear()

    at = open_page("mask", dataset=DEMO)

    verdict._WHOLE.clear()
    assert not at.exception
    tables = [each.value for each in at.get("html") if 'aria-label="What hiding' in each.value]
    assert len(tables) == 2
    assert not any("shown=group" in table for table in tables)


def test_where_asking_about_all_takes_long_it_is_offered_with_its_time(
    home, open_page, monkeypatch
):
    monkeypatch.setattr(verdict, "AT_ONCE", -1.0)  # the clock of these tests stands still
    verdict._WHOLE.clear()

    at = open_page("mask", dataset=DEMO)

    (ask,) = [button for button in at.button if button.key == "ask_taken"]
    assert ask.label.startswith("Ask the model (about ")
    assert not any("On all 3,500" in piece.value for piece in at.get("html"))

    ask.click().run()

    assert any("On all 3,500" in piece.value for piece in at.get("html"))


@pytest.mark.parametrize("more", [{}, {"keeps_hot": True}, {"fill": "another"}, {"fill": "noise"}])
def test_the_sheet_is_judged_by_what_the_whole_set_is_judged_by(digits, more):
    # A sheet of all training pictures would be the whole set.
    some = replace(digits, train=part(digits.train, torch.arange(60)))
    asked = choice(**more)
    heat = torch.rand(60, 8, 8, generator=torch.Generator().manual_seed(0))
    store = HeatStore(rounds=(heat,), size=(28, 28), layer="features", method="xgradcam")

    def heat_of(_, where, **__):
        return replace(store, rounds=(heat[list(where)],)), 0.1

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loaded, "bundle", lambda *_, **__: some)
        said = loaded.ask(asked.subject, some.train)
        patch.setattr(loaded, "some_heat", heat_of)
        patch.setattr(loaded, "sample_answers", lambda *_: (said, 0.1))
        patch.setattr(loaded, "answers", lambda *_, **__: said)
        patch.setattr(loaded, "known", lambda _: ("test", str(more)))

        sheet = verdict.of_sheet(asked, tuple(range(60)), 1.0, store)
        whole = verdict._judged(asked, 1.0, store, torch.arange(60), lambda _: None)

    assert sheet == whole
    assert sheet.whole.count == 60


def test_the_sheet_is_judged_by_where_the_model_looks_where_there_are_no_groups(digits):
    train = part(digits.train, torch.arange(60))
    nobody = replace(train, attributes=torch.full((60,), UNKNOWN))
    some = replace(digits, card=replace(digits.card, attributes=()), train=nobody)
    heat = 0.01 * torch.rand(60, 8, 8, generator=torch.Generator().manual_seed(0))
    heat[:40, 0, 0] = heat[40:, 7, 7] = 1.0
    store = HeatStore(rounds=(heat,), size=(28, 28), layer="features", method="xgradcam")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loaded, "bundle", lambda *_, **__: some)
        said = loaded.ask(choice().subject, nobody)
        patch.setattr(loaded, "sample_answers", lambda *_: (said, 0.1))
        patch.setattr(loaded, "known", lambda _: ("test", "by place"))

        sheet = verdict.of_sheet(choice(), tuple(range(60)), 1.0, store)

    assert sheet.by == "clue"
    assert {group.label: group.count for group in sheet.groups} == {
        "top left": 40,
        "bottom right": 20,
    }


@pytest.fixture
def looked_at(monkeypatch):
    """Count the pictures of each look; the clock says a minute at first, then 0.1 s a picture."""
    found, now, explain = [], [0.0], loaded.explain

    def look(model, part, **how):
        now[0] += 0.1 * len(part) if found else 60.0
        found.append(len(part))
        return explain(model, part, **how)

    monkeypatch.setattr(loaded, "explain", look)
    monkeypatch.setattr(loaded, "time", SimpleNamespace(monotonic=lambda: now[0]))
    for kept in (loaded._HEAT, loaded._SOME_HEAT):
        kept.clear()
    yield found
    for kept in (loaded._HEAT, loaded._SOME_HEAT):
        kept.clear()


def test_the_time_of_the_whole_set_is_told_by_the_sheet_without_its_cold_start(
    home, open_page, looked_at
):
    at = open_page("mask", dataset=DEMO)

    assert not at.exception
    # 3,500 pictures at 0.1 s; with the first one's minute it would be 2.5 h.
    offer = next(b for b in at.button if b.label.startswith("Look at all"))
    assert offer.label == "Look at all of them (about 6 min)"
    assert looked_at == [1, 24]

    offer.click().run()

    assert looked_at == [1, 24, 3500]
    assert any("At k = 2 " in text.value for text in at.markdown)


def test_a_link_to_a_group_opens_its_pictures_though_nobody_looked_at_the_whole_set(
    home, open_page, slow_looks, monkeypatch
):
    monkeypatch.setattr(loaded, "_HEAT", Cache(most=4))

    at = open_page("mask", dataset=DEMO, shown="group:train:0")

    assert not at.exception
    assert [b for b in at.button if b.label.startswith("Look at all of them")]
    assert "This sheet (PNG)" in [button.label for button in at.get("download_button")]
    assert sum('href="picture' in element.value for element in at.get("html")) == 1


def test_pictures_that_the_model_was_not_all_asked_about_say_why_they_have_no_order_of_confidence(
    home, open_page, slow_looks, monkeypatch
):
    monkeypatch.setattr(loaded, "_HEAT", Cache(most=4))
    monkeypatch.setattr(loaded, "_ANSWERS", Cache(most=4))

    at = open_page("mask", dataset=DEMO, shown="group:train:0")

    why = "The model was not asked about all of these pictures yet"
    assert any(why in element.value for element in at.get("html"))
    assert at.selectbox(key="shown_order").options == ["As in the data"]
    loaded.answers(choice().subject, "train")
    at.run()
    assert not at.exception
    assert not any(why in element.value for element in at.get("html"))
    assert "Least sure first" in at.selectbox(key="shown_order").options


def test_a_link_to_a_clue_says_what_it_needs_offers_that_and_opens_then(
    home, open_page, slow_looks, monkeypatch
):
    monkeypatch.setattr(loaded, "_HEAT", Cache(most=4))

    at = open_page("mask", dataset=DEMO, shown="clue:train:1")

    assert not at.exception
    assert any("nobody has looked at all of them yet" in text.value for text in at.markdown)
    assert not any('href="picture' in element.value for element in at.get("html"))
    at.button(key="look_for_clues").click().run()
    assert not at.exception
    assert any('href="picture' in element.value for element in at.get("html"))
    assert address(at)["shown"] == "clue:train:1"
    assert not [b for b in at.button if b.label == "Stop" or b.key == "look_for_clues"]


def test_another_statistics_is_kept_for_the_finetune(home, open_page, slow_looks):
    at = open_page("mask", dataset=DEMO)

    box = next(b for b in at.selectbox if b.label == "Mean and sigma over")
    box.set_value("all").run()

    assert not at.exception
    assert at.session_state["statistics"] == "all"


def test_a_model_that_is_still_to_be_trained_has_no_heat(home, open_page):
    at = open_page("mask", dataset=DEMO, model="train")

    assert not at.exception
    assert any(b.label == "Go to Load" for b in at.button)


def test_an_address_that_makes_no_sense_is_not_an_error(home, open_page):
    at = open_page("mask", dataset="nope", k="nan", run="../../etc")

    assert not at.exception
    assert at.session_state["dataset"] is None
