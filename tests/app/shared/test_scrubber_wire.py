import io
import json
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from streamlit.testing.v1 import AppTest

from app.shared.scrubber import (
    Column,
    Memory,
    ScrubState,
    Sheet,
    Way,
    _way_data,
    begin,
    encode,
    heard,
    rounded,
    settle,
)
from app.shared.scrubber.wire import groups_of, preamble
from masktune.errors import ConfigError, DataError
from masktune.show.painting import CIVIDIS


def make_column(count=3, coarse=8, seed=0, **changes):
    draw = np.random.default_rng(seed)
    content = {
        "heat": draw.random((count, coarse, coarse), dtype=np.float32),
        "mu": draw.random(count),
        "sigma": draw.random(count),
        "answers": ("0–4",) * count,
        "confidences": np.full(count, 0.75),
    }
    return Column(**{**content, **changes})


def make_sheet(count=3, side=28, coarse=8, columns=1, **changes):
    draw = np.random.default_rng(0)
    of_column = {name: changes.pop(name) for name in ("heat", "mu", "sigma") if name in changes}
    content = {
        "pictures": draw.integers(0, 256, (count, side, side, 3), dtype=np.uint8),
        "columns": tuple(
            make_column(count, coarse + c, c, title=f"way {c}", **of_column) for c in range(columns)
        ),
        "names": tuple(f"picture {n}" for n in range(count)),
        "groups": ("A",) * count,
    }
    return Sheet(**{**content, **changes})


def read(blob):
    """Read a blob slowly, by its description alone: header and sections by name."""
    assert blob[:8] == b"MTSCRUB2"
    count, columns, length = struct.unpack("<HHI", blob[24:32])
    header = json.loads(blob[32 : 32 + length])
    body = 32 + length
    sections = {
        name: (body + start, blob[body + start : body + start + size])
        for name, (start, size) in header["sections"].items()
    }
    assert columns == len(header["columns"])
    return count, header, sections


def cut(header, sprite, number):
    picture = np.asarray(Image.open(io.BytesIO(sprite)).convert("RGB"))
    (height, width), columns = header["sprite"]["pitch"], header["sprite"]["columns"]
    top, left = number // columns * height, number % columns * width
    high, wide = header["size"]
    return picture[top : top + high, left : left + wide]


@pytest.mark.parametrize(("count", "columns"), [(1, 1), (3, 2), (24, 4)])
def test_a_blob_holds_every_number_of_every_column_bit_for_bit(count, columns):
    sheet = make_sheet(count, columns=columns)

    found, header, sections = read(encode(sheet))

    assert preamble(encode(sheet))[1:] == (count, columns)
    assert found == count
    assert [column["coarse"] for column in header["columns"]] == [
        [8 + c, 8 + c] for c in range(columns)
    ]
    for c, column in enumerate(sheet.columns):
        assert sections[f"heat{c}"][1] == column.heat.tobytes()
        assert sections[f"mu{c}"][1] == column.mu.tobytes()
        assert sections[f"sigma{c}"][1] == column.sigma.tobytes()
        assert header["columns"][c]["title"] == f"way {c}"
        assert header["columns"][c]["answers"] == ["0–4"] * count
    assert sections["palette"][1] == CIVIDIS.tobytes()


@given(count=st.integers(1, 5), letters=st.integers(0, 9), coarse=st.integers(1, 5))
def test_every_section_starts_at_a_multiple_of_eight(count, letters, coarse):
    sheet = make_sheet(count, side=5, coarse=coarse, names=("x" * letters,) * count)

    _, _, sections = read(encode(sheet))

    assert all(start % 8 == 0 for start, _ in sections.values())


def test_small_pictures_travel_without_loss():
    sheet = make_sheet(7)

    _, header, sections = read(encode(sheet))

    for number in range(7):
        picture = cut(header, sections["sprite"][1], number)
        assert np.array_equal(picture, sheet.pictures[number])


def test_photographs_travel_as_jpeg_without_bleeding_into_each_other():
    # Black beside white, at a side that is no multiple of JPEG's blocks.
    pictures = np.zeros((4, 90, 90, 3), dtype=np.uint8)
    pictures[1::2] = 255
    sheet = make_sheet(4, side=90, pictures=pictures)

    _, header, sections = read(encode(sheet))

    sprite = sections["sprite"][1]
    assert sprite.startswith(b"\xff\xd8")
    for number, colour in enumerate([0, 255, 0, 255]):
        assert np.abs(cut(header, sprite, number).astype(int) - colour).max() <= 1


def test_equal_sheets_give_equal_blobs_and_other_heat_another_identity():
    first, again = make_sheet(), make_sheet()
    other = make_sheet(mu=first.columns[0].mu + 1e-12)

    assert encode(first) == encode(again)
    assert preamble(encode(first))[0] != preamble(encode(other))[0]
    assert len(preamble(encode(first))[0]) == 16


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"pictures": np.zeros((3, 28, 28), np.uint8)}, "pictures are uint8 of shape (3, 28, 28)"),
        ({"pictures": np.zeros((3, 28, 28, 4), np.uint8)}, "(3, 28, 28, 4)"),
        ({"heat": np.zeros((3, 8, 8))}, "heat are float64"),
        ({"heat": np.zeros((3, 0, 8), np.float32)}, "(3, 0, 8)"),
        ({"mu": np.zeros(3, np.float32)}, "mu are float32"),
        ({"sigma": np.full(3, np.nan)}, "sigma hold values that are not numbers"),
        ({"names": ("one", "two")}, "3 pictures but 2 names"),
        ({"labels": ("one",)}, "3 pictures but 1 labels"),
        ({"mu": np.zeros(2)}, "3 pictures but 2 mu"),
    ],
)
def test_a_sheet_that_does_not_fit_together_is_refused(changes, words):
    with pytest.raises(DataError) as caught:
        make_sheet(**changes)

    assert words in caught.value.problem
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("count", "columns", "words"),
    [
        (0, 1, "1 to 96 pictures"),
        (97, 1, "1 to 96 pictures"),
        (49, 2, "1 to 48 pictures"),
        (25, 4, "1 to 24 pictures"),
        (3, 0, "1 to 4 columns"),
        (3, 5, "1 to 4 columns"),
    ],
)
def test_a_sheet_holds_one_to_96_prints_in_four_columns_at_most(count, columns, words):
    with pytest.raises(DataError, match=words):
        make_sheet(count, columns=columns)


def test_heat_that_travels_as_text_keeps_every_bit():
    heat = np.random.default_rng(1).random((5, 7), dtype=np.float32)

    sent = json.loads(json.dumps(_way_data(Way(title="eigencam", heat=heat, mu=0.1, sigma=1 / 3))))

    assert np.array_equal(np.array(sent["heat"], np.float32).reshape(sent["coarse"]), heat)
    assert (sent["mu"], sent["sigma"]) == (0.1, 1 / 3)
    assert _way_data(Way(title="a", problem="No channels.")) == {
        "title": "a",
        "problem": "No channels.",
    }


def test_other_bytes_are_not_a_sheet():
    with pytest.raises(DataError, match="not a sheet"):
        preamble(b"GIF89a" * 20)


@given(step=st.integers(0, 300), noise=st.floats(-0.004, 0.004))
def test_k_is_rounded_to_the_very_double_the_browser_has(step, noise):
    # The browser divides a whole step by 100.
    assert rounded(step / 100 + noise) == step / 100


@pytest.mark.parametrize(("k", "kept"), [(-1, 0.0), (3.2, 3.0), (2, 2.0)])
def test_k_stays_on_the_slider(k, kept):
    assert rounded(k) == kept


def test_k_that_is_no_number_is_refused():
    with pytest.raises(ConfigError, match="k is nan"):
        rounded(float("nan"))


GROUPS = frozenset({"cow", "camel"})


def at(k, view="hidden", selected=0, column=0, group=""):
    return ScrubState(k=k, view=view, selected=selected, column=column, group=group)


def move(k, *, turn=1, **changes):
    usual = {"view": "hidden", "selected": 0, "column": 0, "every": False}
    usual |= {"group": "", "order": "given"}
    return {"k": k, **usual, **changes, "turn": turn}


def told(memory, message):
    return heard(memory, message, count=3, columns=2, groups=GROUPS)


def first(**said):
    return begin(said, sheet="s", k=2.0, hear=told)


def test_a_page_that_always_asks_for_the_same_k_does_not_undo_the_hand():
    memory = first()
    memory = told(memory, move(1.5))

    for _ in range(3):
        memory = settle(memory, sheet="s", k=2.0)

    assert memory.state == at(1.5)


def test_a_page_that_passes_k_back_one_run_late_does_not_undo_the_hand():
    memory = first()
    memory = settle(told(memory, move(1.5)), sheet="s", k=2.0)
    memory = settle(told(memory, move(1.2, turn=2)), sheet="s", k=1.5)

    assert memory.state == at(1.2)
    assert settle(memory, sheet="s", k=1.2).state == at(1.2)


def test_a_page_that_asks_for_another_k_gets_it():
    memory = first()
    memory = settle(told(memory, move(1.5)), sheet="s", k=2.0)

    assert settle(memory, sheet="s", k=0.5).state == at(0.5)


def test_another_sheet_keeps_k_but_forgets_the_picture_its_column_and_the_group():
    memory = first()
    memory = settle(told(memory, move(1.5, selected=2, column=1, group="cow")), sheet="s", k=2.0)

    assert memory.state == at(1.5, selected=2, column=1, group="cow")
    assert settle(memory, sheet="t", k=2.0).state == at(1.5)


@pytest.mark.parametrize(
    "message",
    [
        None,
        "k",
        {},
        move(3.5),
        move(float("nan")),
        move("2"),
        move(2.0, view="x-ray"),
        move(2.0, selected=3),
        move(2.0, selected=-1),
        move(2.0, column=2),
        move(2.0, column=-1),
        move(2.0, every="yes"),
        move(2.0, group="sheep"),
        move(2.0, order="by chance"),
        {**move(2.0, view="heat"), "turn": None},
    ],
)
def test_a_message_that_makes_no_sense_changes_nothing(message):
    memory = Memory(sheet="s", given=2.0, state=at(2.0))

    assert told(memory, message) == memory


def test_a_scrubber_begins_where_an_address_says_and_as_usual_where_that_makes_no_sense():
    said = {"view": "heat", "selected": 2, "column": 1, "every": True}
    said |= {"group": "camel", "order": "most"}
    odd = {"view": "x-ray", "selected": 3, "column": 2, "every": "yes", "group": "sheep"}
    odd |= {"order": ""}

    assert first(**said).state == ScrubState(k=2.0, **said)
    assert first(**odd).state == at(2.0)
    assert first(**{**odd, "view": "sees"}).state == at(2.0, view="sees")
    assert not first(**said).by_hand  # a page that asks for another k gets it


def test_a_sheet_names_its_groups():
    assert groups_of(encode(make_sheet())) == set(make_sheet().groups)


def draw_page():
    import streamlit as st

    from app.shared.scrubber import AfterHiding, encode, scrubber
    from tests.app.shared.test_scrubber_wire import make_sheet

    def after(k):
        st.text(f"asked at {k}")
        return [[AfterHiding(answer="5–9", confidence=0.5, support=0.5)] * 3]

    state = scrubber(encode(make_sheet()), k=1.234, key="scrub", after=after)
    st.text(f"stands at {state.k} {state.view} {state.selected}")


def test_a_page_draws_the_scrubber_and_asks_for_answers_at_its_k():
    page = AppTest.from_function(draw_page).run()

    assert not page.exception
    assert [text.value for text in page.text] == ["asked at 1.23", "stands at 1.23 hidden 0"]


def draw_page_with_too_few_answers():
    import streamlit as st

    from app.shared.scrubber import AfterHiding, encode, scrubber
    from masktune.errors import DataError
    from tests.app.shared.test_scrubber_wire import make_sheet

    answers = [[AfterHiding(answer="5–9", confidence=0.5, support=0.5)]]
    try:
        scrubber(encode(make_sheet()), k=2.0, key="scrub", after=lambda _: answers)
    except DataError as error:
        st.text(error.problem)


def test_answers_must_fit_the_sheet():
    page = AppTest.from_function(draw_page_with_too_few_answers).run()

    assert [text.value for text in page.text] == [
        "There are 1 x 1 answers after hiding for 1 columns of 3 pictures."
    ]
