import json

import pytest

from masktune.datasets.catalogue import card
from masktune.datasets.imagenet9 import FILE, NONE, UNCERTAIN, imagenet_to_in9
from masktune.errors import DataError


def test_each_class_has_as_many_of_imagenets_as_the_paper_says():
    # Xiao et al. 2020, table 4: 370 in all, so 630 map to nothing.
    table = imagenet_to_in9()

    assert [table.count(label) for label in range(9)] == [116, 52, 42, 36, 35, 27, 26, 20, 16]
    assert table.count(NONE) == 630
    assert len(table) == 1000


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("goldfish", "fish"),
        ("robin", "bird"),
        ("peacock", None),
        ("Komodo dragon", "reptile"),
        ("beagle", "dog"),
        ("whippet", None),
        ("timber wolf", "carnivore"),
        ("tabby", None),
        ("lion", "carnivore"),
        ("ladybug", "insect"),
        ("gorilla", "primate"),
        ("accordion", "musical instrument"),
        ("sports car", "wheeled vehicle"),
        ("freight car", "wheeled vehicle"),
        ("gondola", None),
        ("toaster", None),
    ],
)
def test_well_known_classes_are_where_one_expects_them(name, expected):
    from torchvision.models import ResNet18_Weights

    names = ResNet18_Weights.IMAGENET1K_V1.meta["categories"]

    found = imagenet_to_in9()[names.index(name)]

    assert (None if found == NONE else card("imagenet9").classes[found]) == expected


def test_two_of_the_uncertain_four_are_vehicles():
    table = imagenet_to_in9()

    assert sorted(table[number] for number in UNCERTAIN) == [NONE, NONE, 2, 2]


def test_the_challenges_own_file_is_taken_when_it_is_there(tmp_path):
    own = {str(number): number % 10 - 1 for number in range(1000)}
    (tmp_path / FILE).write_text(json.dumps(own))

    assert imagenet_to_in9(tmp_path)[:11] == (-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, -1)


def test_without_that_file_the_built_in_table_serves(tmp_path):
    assert imagenet_to_in9(tmp_path) == imagenet_to_in9()


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        "<html>",
        json.dumps({str(number): 9 for number in range(1000)}),
        json.dumps({str(number): True for number in range(1000)}),
        json.dumps({str(number): 1.0 for number in range(1000)}),
    ],
)
def test_another_file_of_that_name_is_refused(tmp_path, content):
    (tmp_path / FILE).write_text(content)

    with pytest.raises(DataError) as caught:
        imagenet_to_in9(tmp_path)

    assert str(tmp_path / FILE) in caught.value.problem
