import numpy as np
import pytest
import torch

from masktune.datasets.catalogue import card
from masktune.datasets.cows.dataset import Part, cows, outline, plan
from masktune.datasets.cows.drawing import INSET, STAMP, STRIP, draw_picture

SMALL = (40, 8, 16)


@pytest.fixture(scope="module", autouse=True)
def home(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("home")
        patch.setenv("MASKTUNE_HOME", str(folder))
        yield folder


@pytest.fixture(scope="module", params=["background", "stamp"])
def drawn(request):
    return cows(clue=request.param, seed=0, counts=SMALL)


def counts(split) -> list[int]:
    return torch.bincount(2 * split.labels + split.attributes, minlength=4).tolist()


def test_in_training_95_percent_of_each_class_has_its_usual_company():
    background = cows(clue="background", seed=0, counts=SMALL).train
    stamped = cows(clue="stamp", seed=0, counts=SMALL).train

    # 20 of each class, 19 with the clue: cows on grass and stamped, camels in the desert and not.
    assert counts(background) == [19, 1, 1, 19]
    assert counts(stamped) == [1, 19, 19, 1]


def test_the_test_set_has_as_many_of_every_group(drawn):
    assert counts(drawn.tests["balanced"]) == [4, 4, 4, 4]


def test_pictures_are_bytes_in_the_frame_of_the_card(drawn):
    pixels = drawn.train.images.pixels

    assert pixels.shape == (40, 3, 96, 96)
    assert pixels.dtype == torch.uint8
    assert pixels.float().std() > 20  # not one colour


def test_the_same_seed_draws_the_same_pictures_and_another_seed_others():
    first, again, other = (
        cows(clue="background", seed=s, counts=(4, 4, 4)).train.images.pixels for s in (1, 1, 2)
    )

    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_a_picture_is_decided_by_its_own_seed():
    one, _ = draw_picture("cow", "grass", seed=5)
    again, _ = draw_picture("cow", "grass", seed=5)
    other, _ = draw_picture("cow", "grass", seed=6)

    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


def yellow(picture) -> np.ndarray:
    red, green, blue = (picture[..., c].astype(int) for c in range(3))
    return (red > 190) & (green > 150) & (blue < 90)


def test_the_stamp_is_in_the_strip_and_nothing_else_there_is_yellow():
    stamped, _ = draw_picture("camel", "grass", seed=3, strip=True, stamped=True)
    plain, _ = draw_picture("camel", "grass", seed=3, strip=True)

    assert yellow(stamped)[:11].sum() == STAMP * STAMP
    assert yellow(stamped)[INSET : INSET + STAMP, INSET : INSET + STAMP].all()
    assert not yellow(plain)[:11].any()
    # Below the strip both are the same picture.
    assert np.array_equal(stamped[11:], plain[11:])


def test_with_the_stamp_as_clue_the_background_says_nothing():
    train = cows(clue="stamp", seed=0, counts=(80, 4, 4)).train
    # Grass is green: more green than red in the lower half.
    lower = train.images.pixels[:, :, 60:].float().mean(dim=(2, 3))
    grass = lower[:, 1] > lower[:, 0]

    shares = [grass[train.labels == label].float().mean().item() for label in (0, 1)]
    assert all(0.3 < share < 0.7 for share in shares)


def test_grass_and_desert_differ_by_their_hue_alone():
    for seed in range(6):
        greenness = []
        for place in ("grass", "desert"):
            picture, stencil = draw_picture("cow", place, seed=seed)
            ground = picture[60:][stencil[1::3, 1::3][60:] == 0].astype(float)
            greenness.append((ground[:, 1] - ground[:, 0]).mean())
        assert greenness[0] > 0 > greenness[1]


def test_coats_do_not_give_the_class_away():
    """The mean colour under the stencil is as varied within a class as between the two."""
    colours = {}
    for kind in ("cow", "camel"):
        means = []
        for seed in range(40):
            picture, stencil = draw_picture(kind, "desert", seed=seed)
            animal = stencil[1::3, 1::3] > 0
            means.append(picture[animal].mean(axis=0))
        colours[kind] = np.array(means)

    between = np.abs(colours["cow"].mean(axis=0) - colours["camel"].mean(axis=0)).max()
    within = min(colours[kind].std(axis=0).min() for kind in colours)
    assert between < within


def test_a_camel_is_another_shape_than_a_cow():
    """Mean silhouettes, brought to one height and width, overlap far from wholly."""
    masks = {}
    for kind in ("cow", "camel"):
        shapes = []
        for seed in range(20):
            stencil = draw_picture(kind, "grass", seed=seed)[1] > 0
            rows, columns = np.where(stencil)
            cut = stencil[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
            y = np.linspace(0, cut.shape[0] - 1, 32).round().astype(int)
            x = np.linspace(0, cut.shape[1] - 1, 32).round().astype(int)
            shapes.append(cut[np.ix_(y, x)])
        masks[kind] = np.mean(shapes, axis=0) > 0.5

    both = (masks["cow"] & masks["camel"]).sum() / (masks["cow"] | masks["camel"]).sum()
    assert 0.1 < both < 0.85


def test_the_cards_name_their_clue():
    assert card("cows-and-camels").attributes == ("grass", "desert")
    assert card("cows-and-camels-stamp").attributes == ("no stamp", "stamp")
    assert card("cows-and-camels").bundled
    assert card("cows-and-camels-stamp").bundled


def test_pictures_are_drawn_once_and_taken_up_again_to_the_byte(monkeypatch, tmp_path):
    monkeypatch.setenv("MASKTUNE_HOME", str(tmp_path))
    first = cows(clue="stamp", seed=5, counts=(8, 4, 4))
    monkeypatch.setattr(Part, "draw", None)

    again = cows(clue="stamp", seed=5, counts=(8, 4, 4))

    assert torch.equal(first.train.images.pixels, again.train.images.pixels)
    assert torch.equal(first.tests["balanced"].images.pixels, again.tests["balanced"].images.pixels)
    assert len(list((tmp_path / "drawn").iterdir())) == 1


@pytest.mark.parametrize("content", [b"", b"no array", b"\x93NUMPY\x01\x00v\x00{'descr'"])
def test_kept_pictures_that_are_cut_short_are_drawn_again(monkeypatch, tmp_path, content):
    monkeypatch.setenv("MASKTUNE_HOME", str(tmp_path))
    first = cows(clue="stamp", seed=5, counts=(4, 4, 4))
    next((tmp_path / "drawn").iterdir()).write_bytes(content)

    assert torch.equal(
        cows(clue="stamp", seed=5, counts=(4, 4, 4)).train.images.pixels, first.train.images.pixels
    )


def test_other_pictures_are_kept_apart(monkeypatch, tmp_path):
    monkeypatch.setenv("MASKTUNE_HOME", str(tmp_path))

    for clue, seed in (("stamp", 1), ("stamp", 2), ("background", 1)):
        cows(clue=clue, seed=seed, counts=(4, 4, 4))

    assert len(list((tmp_path / "drawn").iterdir())) == 3


def test_a_home_that_cannot_be_written_costs_time_only(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("MASKTUNE_HOME", str(tmp_path / "file"))

    assert len(cows(clue="stamp", seed=5, counts=(4, 4, 4)).train.labels) == 4


def test_the_outline_of_the_animal_is_that_of_the_picture():
    train = plan(clue="stamp", seed=0, counts=SMALL)[0]

    picture, stencil = train.draw(3)
    where = outline(stencil)

    assert where.shape == picture.shape[:2] == (96, 96)
    assert abs(where.mean() - (stencil > 0).mean()) < 0.01
    assert not where[: STRIP - 1].any()  # no animal in the camera's strip


def test_a_dataset_knows_where_its_animals_are_also_when_it_is_taken_up_again(drawn):
    part = plan(clue=clue_of(drawn), seed=0, counts=SMALL)[0]
    again = cows(clue=clue_of(drawn), seed=0, counts=SMALL)

    for arrays in (drawn, again):
        where = arrays.train.thing.batch([3, 7])

        assert where[0].equal(torch.from_numpy(outline(part.draw(3)[1])))
        assert where[1].equal(torch.from_numpy(outline(part.draw(7)[1])))
        assert 0.05 < where.float().mean() < 0.4


def clue_of(arrays):
    return "background" if counts(arrays.train)[0] == 19 else "stamp"


def test_the_clue_is_all_but_the_animal_or_the_stamp_where_there_is_one(drawn):
    train = drawn.train
    clue, thing = (found.batch(range(40)) for found in (train.clue, train.thing))

    if clue_of(drawn) == "background":
        assert clue.equal(~thing)
        return
    assert clue.sum(dim=(1, 2)).equal(STAMP * STAMP * train.attributes)
    stamped = clue[:, INSET : INSET + STAMP, INSET : INSET + STAMP].all(dim=2).all(dim=1)
    assert stamped.equal(train.attributes == 1)
    for n in stamped.nonzero()[:5, 0].tolist():  # it is where the picture is yellow
        assert yellow(train.images.pixels[n].permute(1, 2, 0).numpy())[clue[n].numpy()].all()
