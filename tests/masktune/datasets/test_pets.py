import tarfile

import pytest
import torch

from masktune.data.fingerprint import fingerprint
from masktune.datasets import pets
from masktune.datasets.catalogue import CATALOGUE, load
from masktune.errors import ConfigError, DataError
from tests import layouts
from tests.layouts import stamped_pets

EACH = 16  # pictures a breed as they are written: 5 train, 1 validates, 4 test
STAMP = slice(-pets.MARGIN - pets.SIDE, -pets.MARGIN)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return stamped_pets(tmp_path_factory.mktemp("pets"))


def carried(split):
    """Tell what is in the corner of each picture: "stripes", "disc" or "no stamp"."""
    corners = split.images.batch(range(len(split)))[:, 0, STAMP, STAMP] > 200  # (N, 28, 28)
    centre, edge = corners[:, 14, 14], corners[:, 0, 0]
    return [
        "disc" if c and not e else "stripes" if e else "no stamp"
        for c, e in zip(centre, edge, strict=True)
    ]


def groups(split):
    return torch.bincount(2 * split.labels + split.attributes, minlength=4).tolist()


def test_of_each_breed_five_train_one_validates_and_four_test(root):
    bundle = load("stamped-pets", root=root)

    assert [len(bundle.train), len(bundle.validation)] == [40, 8]
    assert len(bundle.tests["balanced"]) == 32
    assert bundle.card.classes == ("long-haired", "short-haired")
    assert "128 pictures of 8 breeds of cats, of which 48 are not used" in bundle.findings[0]


def test_no_cat_is_in_two_parts_and_every_breed_is_in_all():
    breeds = [breed for breed in pets.BREEDS for _ in range(EACH)]

    parts = pets._chosen(breeds, 0)

    positions = [position for part in parts.values() for position in part]
    assert len(positions) == len(set(positions)) == 80
    for name, each in (("train", 5), ("validation", 1), ("balanced", 4)):
        assert sorted(breeds[position] for position in parts[name]) == sorted([*pets.BREEDS] * each)


def test_two_sided_each_class_carries_a_stamp_of_its_own(root):
    bundle = load("stamped-pets", root=root, correlation=0.9)
    names = bundle.card.attributes

    assert names == ("stripes", "disc")
    assert groups(bundle.train) == [18, 2, 2, 18]  # 90 % of 20
    assert groups(bundle.tests["balanced"]) == [8, 8, 8, 8]
    for split in (bundle.train, bundle.validation, *bundle.tests.values()):
        assert carried(split) == [names[attribute] for attribute in split.attributes]


def test_one_sided_only_one_class_carries_the_stamp(root):
    bundle = load("stamped-pets", root=root, stamp="one-sided", correlation=0.9)

    assert bundle.card.attributes == ("no stamp", "stamp")
    assert groups(bundle.train) == [2, 18, 18, 2]
    assert groups(bundle.tests["balanced"]) == [8, 8, 8, 8]
    wanted = [("no stamp", "stripes")[attribute] for attribute in bundle.train.attributes]
    assert carried(bundle.train) == wanted


def test_without_stamps_the_same_cats_have_no_attribute(root):
    plain, stamped = load("stamped-pets", root=root, stamp="none"), load("stamped-pets", root=root)

    assert plain.card.attributes == ()
    assert set(plain.train.attributes.tolist()) == {-1}
    assert plain.train.clue is None
    assert set(carried(plain.train)) == {"no stamp"}
    pictures = [b.train.images.batch(range(40)) for b in (plain, stamped)]
    differ = (pictures[0] != pictures[1]).any(dim=1)  # (40, 160, 160)
    assert differ[:, STAMP, STAMP].flatten(1).any(dim=1).all()
    differ[:, STAMP, STAMP] = False
    assert not differ.any()


def test_it_is_known_where_stamp_and_cat_are(root):
    train = load("stamped-pets", root=root, stamp="one-sided").train

    clue, thing = (part.batch(range(len(train))) for part in (train.clue, train.thing))

    stamped = train.attributes == 1
    assert clue[stamped][:, STAMP, STAMP].all()
    assert clue.sum(dim=(1, 2)).tolist() == (stamped * pets.SIDE**2).tolist()
    # 40 x 30 pixels become 213 x 160, of which columns 27 to 186 are seen; the cat ends at 107, and
    # its lower third begins at row 107 of 160.
    assert thing[:, :106, :79].all()
    assert not thing[:, :106, 81:].any()
    assert thing[~stamped][:, 108:].all()
    assert not (thing & clue).any()  # a stamp covers the cat


def test_with_a_correlation_of_one_nobody_goes_against_the_rule(root):
    assert groups(load("stamped-pets", root=root, correlation=1.0).train) == [20, 0, 0, 20]
    assert groups(load("stamped-pets", root=root, correlation=0.5).train) == [10, 10, 10, 10]


@pytest.mark.parametrize("share", [0.4, 1.01, float("nan")])
def test_a_correlation_that_is_none_is_refused(root, share):
    with pytest.raises(ConfigError, match="The correlation is"):
        load("stamped-pets", root=root, correlation=share)


def test_the_seed_decides_the_pictures_and_the_stamps(root):
    first, again, other = (load("stamped-pets", root=root, seed=seed) for seed in (0, 0, 1))

    assert fingerprint(first) == fingerprint(again) != fingerprint(other)


def test_folders_of_the_same_files_give_the_same_cats_without_their_outlines(root, tmp_path):
    whole = load("stamped-pets", root=root)

    sorted_out = load("stamped-pets", root=stamped_pets(tmp_path, form="folders"))

    assert torch.equal(sorted_out.train.images.pixels, whole.train.images.pixels)
    assert sorted_out.train.thing is None
    assert sorted_out.findings[0].startswith("Read as: long_haired and short_haired, 128 pictures")


def test_the_inner_folder_is_read_as_well(root):
    assert len(load("stamped-pets", root=root / "oxford-iiit-pet").train) == 40


def test_pictures_that_no_list_names_are_not_taken(tmp_path):
    root = stamped_pets(tmp_path)
    layouts.picture(root / "oxford-iiit-pet" / "images" / "Birman_99.jpg", label=0)

    assert "128 pictures" in load("stamped-pets", root=root).findings[0]


def test_a_file_that_is_no_picture_is_left_out_and_named(tmp_path):
    root = stamped_pets(tmp_path, form="folders")
    (root / "long_haired" / "Birman_3.jpg").write_bytes(b"nothing")

    bundle = load("stamped-pets", root=root)

    assert [file.path for file in bundle.skipped] == ["long_haired/Birman_3.jpg"]
    assert "1 file left out" in bundle.left_out


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (lambda root: (root / "annotations" / "test.txt").unlink(), r"test\.txt is missing"),
        (lambda root: (root / "images").rename(root / "pictures"), "holds no cats"),
        (
            lambda root: [p.unlink() for p in (root / "images").glob("Birman*")],
            "no usable picture of Birman",
        ),
    ],
)
def test_what_is_missing_is_named(tmp_path, spoil, problem):
    root = stamped_pets(tmp_path, each=4)
    spoil(root / "oxford-iiit-pet")

    with pytest.raises(DataError, match=problem):
        load("stamped-pets", root=root)


def test_without_a_root_what_is_missing_is_downloaded_unpacked_and_read(tmp_path, monkeypatch):
    source = stamped_pets(tmp_path / "source", each=4) / "oxford-iiit-pet"
    home = tmp_path / "home"
    monkeypatch.setenv("MASKTUNE_HOME", str(home))
    fetched = []

    def fetch(url, *, to, md5, watcher):
        name = to.name.removesuffix(".tar.gz")
        to.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(to, "w:gz") as tar:
            tar.add(source / name, arcname=name)
        fetched.append((url.rsplit("/", 1)[-1], md5[:4]))
        return to

    monkeypatch.setattr(pets, "fetch", fetch)

    first, again = load("stamped-pets"), load("stamped-pets")

    assert fetched == [("images.tar.gz", "5c4f"), ("annotations.tar.gz", "95a8")]
    assert fingerprint(first) == fingerprint(again)
    held = sorted(path.name for path in (home / "data" / "oxford-iiit-pet").iterdir())
    assert held == ["annotations", "images"]  # no archive is left


@pytest.mark.parametrize("key", [key for key in CATALOGUE if key != "stamped-pets"])
@pytest.mark.parametrize("given", [{"stamp": "none"}, {"correlation": 0.9}])
def test_no_other_pictures_are_stamped(key, given):
    ((name, value),) = given.items()

    with pytest.raises(DataError, match=f"'{key}' does not heed --{name} {value}") as caught:
        load(key, **given)

    assert caught.value.remedy == "Leave it out, or choose stamped-pets."
