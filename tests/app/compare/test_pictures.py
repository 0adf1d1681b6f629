"""The pictures of the Compare page: which are chosen, what is said of them, what is hidden."""

import shutil
from dataclasses import replace

import cv2
import numpy as np
import pytest
import torch

from app.compare.pictures import ACROSS, mixed, pictures_of, view_tiles
from masktune.errors import RunFolderError
from masktune.heat.keep import keep_masks
from masktune.runs.open import OpenRun
from masktune.scores.groups import group_name
from masktune.show.answers import answers_at
from masktune.show.contact_sheets import STATES, looks
from masktune.show.results import groups_figure

pytestmark = pytest.mark.usefixtures("pictures_read_once")


def test_pictures_are_found_by_state_and_group_in_the_order_of_the_test_set(original):
    before, after = original.pair.before, original.pair.after
    want = [
        i
        for i in range(len(original))
        if before.labels[i] == 1 and before.correct()[i] and not after.correct()[i]
    ]

    assert pictures_of(original, state="broken", group=2) == want
    assert pictures_of(original) == list(range(1000))
    assert want != pictures_of(original, state="broken", group=0)


def test_states_share_out_all_pictures(original):
    found = [pictures_of(original, state=state) for state in STATES]

    every = sorted(position for of_state in found for position in of_state)
    assert every == list(range(1000))
    assert all(found)


def test_an_answer_names_both_answers_and_how_sure_they_are(original):
    position = pictures_of(original, state="fixed", group=0)[0]
    was = original.pair.before.probabilities[position]

    (answer,) = answers_at(original, [position])

    assert (answer.truth, answer.before, answer.after) == ("0–4", "5–9", "0–4")
    assert answer.before_sure == was[1] > 0.5
    assert answer.html().striptags().startswith("5–9 → 0–4")
    assert "fixed" in answer.html()
    assert "fixed" not in answer.html(with_state=False)
    assert answer.words().startswith(f"position {position}, 0–4, no square, fixed: 5–9 before (")


def test_groups_without_pictures_are_not_drawn_and_of_many_the_worst_stay_in_order(original):
    both, alone = (groups_figure(original, most=most).layout.meta for most in (12, 1))

    names = [group_name(score) for score in original.before.scores]
    assert [name for name in names if f"{name} before" in both] == [
        "0–4, no square", "5–9, no square",
    ]  # fmt: skip
    assert both.index("0–4") < both.index("5–9")
    worst = group_name(original.before.worst)
    assert [name for name in names if f"{name} before" in alone] == [worst]


def test_pictures_that_were_exchanged_are_refused(finished_run, tmp_path):
    (tmp_path / "run").mkdir()
    for name in ("config.json", "result.json", "predictions.npz"):  # a run that kept no fingerprint
        shutil.copy(finished_run / name, tmp_path / "run")
    bundle = OpenRun(finished_run).bundle
    split = bundle.tests["biased"]
    other = replace(split, labels=1 - split.labels)

    for tests in ({**bundle.tests, "biased": other}, {}):
        run = OpenRun(tmp_path / "run", load=lambda _, t=tests: replace(bundle, tests=t))
        assert len(run.tests["biased"].pair.before.labels) == 1000  # the numbers need no picture
        with pytest.raises(RunFolderError, match="'biased' are not those"):
            run.bundle  # noqa: B018


def test_the_mix_fills_a_row_with_every_group(original):
    chosen = mixed(original)

    assert len(chosen) == ACROSS
    answers = answers_at(original, chosen)
    assert {answer.group for answer in answers} == {"0–4, no square", "5–9, no square"}
    assert len({answer.state for answer in answers}) == 4


def test_the_hidden_view_hatches_what_is_hotter_than_the_threshold(original):
    positions = pictures_of(original, state="fixed")[:2]
    found = looks(original.run, original.split, positions)
    keep = keep_masks(torch.from_numpy(found.before), 2.0).numpy()

    tiles = view_tiles_without_cache(original, positions, "Hidden", found)
    plain = view_tiles(original, positions, "Picture")

    for tile, picture, kept in zip(tiles, plain, keep, strict=True):
        factor = tile.shape[0] // kept.shape[0]
        far = cv2.erode(kept.astype(np.uint8), np.ones((3, 3))).astype(bool)
        far = far.repeat(factor, axis=0).repeat(factor, axis=1)
        assert (tile[far] == picture[far]).all()
        assert (tile != picture).any() == (not kept.all())


def view_tiles_without_cache(original, positions, which, found):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("app.compare.pictures.looks_of", lambda *_: found)
        return view_tiles(original, positions, which)
