"""Which runs saw the same pictures, in the same way."""

from dataclasses import replace

import pytest

from masktune.checkpoints.settings import settings
from masktune.runs.load import same_parts, same_pictures, same_start, title_of

CONFIG = settings({"dataset": "folder", "root": "pictures"})


@pytest.mark.parametrize(
    "other",
    [
        {"dataset": "waterbirds"},
        {"root": "elsewhere"},
        {"frame": "resize 64x64"},
        {"normalise": "imagenet"},
        {"validation": "test"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_runs_that_see_otherwise_do_not_see_the_same_pictures(other):
    config = replace(CONFIG, **other)

    assert same_pictures(config, config)
    assert not same_pictures(config, CONFIG)
    assert not same_pictures(config, CONFIG, same_files=True)


def test_another_seed_may_split_the_pictures_otherwise_unless_the_fingerprints_say_no():
    other = replace(CONFIG, seed=1)

    assert not same_pictures(other, CONFIG)
    assert same_pictures(other, CONFIG, same_files=True)


def test_what_is_hidden_and_how_it_is_trained_makes_no_other_pictures():
    other = replace(CONFIG, masking=replace(CONFIG.masking, k=1.0), finetune_lr=0.5, device="cpu")

    assert same_pictures(other, CONFIG)


def test_a_number_names_the_same_picture_however_it_is_seen_and_called():
    seen = {"frame": "resize 64x64", "normalise": "imagenet", "title": "Birds"}
    seen |= {"attributes": "groups.csv", "class_names": "land,water"}

    assert same_parts(replace(CONFIG, **seen), CONFIG)
    for other in ({"root": "elsewhere"}, {"seed": 1}, {"validation": "test"}):
        assert not same_parts(replace(CONFIG, **other), CONFIG)


def test_pictures_by_another_name_are_the_same():
    other = replace(CONFIG, title="Birds of mine")

    assert (title_of(CONFIG), title_of(other)) == ("pictures", "Birds of mine")
    assert other == CONFIG
    assert same_pictures(other, CONFIG)
    assert same_start(other, CONFIG)


def test_a_rival_and_masktune_tuned_the_same_model_before_however_the_rival_trains():
    given = {"dataset": "biased-mnist-5k", "model": "bundled"}
    ours = settings(given)
    rivals = [
        settings({**given, "rival": "jtt", "epochs": 3}),
        settings({**given, "rival": "dfr"}),
    ]
    trained = settings({"dataset": "biased-mnist-5k"})

    assert all(same_start(ours, rival) for rival in rivals)
    assert not same_start(ours, trained)
    assert same_start(trained, settings({"dataset": "biased-mnist-5k", "rival": "sd"}))
    longer = settings({"dataset": "biased-mnist-5k", "rival": "sd", "epochs": 3})
    assert not same_start(trained, longer)  # there its ERM is another as well
