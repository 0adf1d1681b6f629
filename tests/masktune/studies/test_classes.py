"""The no-harm check: what happened to every class, over seeds."""

import pytest

from masktune.studies.results_page import class_markdown
from masktune.studies.tables import class_rows
from tests import results


def a_run(before, after, attribute="any"):
    """Give a result with the accuracies of cats and dogs before and after."""
    scores = (
        results.scores([("cat", attribute, 10, cat), ("dog", attribute, 10, dog)])
        for cat, dog in (before, after)
    )
    return results.a_result(
        {"test": dict(zip(("before", "after"), scores, strict=True))}, rounds=[{}]
    )


TWO_SEEDS = [a_run((0.5, 0.9), (0.7, 0.8)), a_run((0.6, 0.9), (0.82, 0.79))]


def test_the_change_of_a_class_is_the_mean_over_seeds_with_its_interval():
    cat, dog = class_rows({"MaskTune": TWO_SEEDS})

    assert cat["values"] == pytest.approx([0.2, 0.22])
    assert (cat["before"], cat["after"], cat["mean"]) == pytest.approx((0.55, 0.76, 0.21))
    # Standard error 0.01, t(0.975, 1) = 12.706: it reaches below 0.1 and above 0.3.
    assert cat["interval"] == pytest.approx([0.0829, 0.3371], abs=1e-4)
    assert dog["mean"] == pytest.approx(-0.105)


def test_a_loss_is_not_cut_off_at_nought():
    _, dog = class_rows({"MaskTune": TWO_SEEDS})

    assert dog["interval"] == pytest.approx([-0.1685, -0.0415], abs=1e-4)


def test_gained_and_lost_classes_are_named_for_every_arm():
    same = [a_run((0.5, 0.9), (0.5, 0.9))] * 2

    text = class_markdown(class_rows({"MaskTune": TWO_SEEDS, "one more epoch": same}))

    assert "MaskTune: clearly gained cat; clearly lost dog." in text
    assert "one more epoch: clearly gained none; clearly lost none." in text
    assert "| class of test | ERM | MaskTune | one more epoch |" in text
    assert "| cat | 55.0 | **+21.0** [+8.3, +33.7] | **+0.0** [+0.0, +0.0] |" in text
    assert "| dog | 90.0 | **−10.5** [−16.9, −4.1] |" in text


def test_one_seed_has_no_interval_and_claims_nothing():
    text = class_markdown(class_rows({"MaskTune": TWO_SEEDS[:1]}))

    assert "clearly gained none; clearly lost none" in text
    assert "| cat | 50.0 | **+20.0** |" in text


def test_a_class_without_pictures_has_no_change():
    run = a_run((None, 0.9), (None, 0.9))

    assert class_rows({"MaskTune": [run]})[0]["mean"] is None
    assert "| cat | – | – |" in class_markdown(class_rows({"MaskTune": [run]}))


def test_a_dataset_with_an_attribute_is_judged_by_its_groups():
    assert class_rows({"MaskTune": [a_run((0.5, 0.9), (0.7, 0.8), attribute="sand")]}) == []
