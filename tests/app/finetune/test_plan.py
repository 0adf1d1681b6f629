"""The plan of a finetune: its settings, its controls and its effort."""

from dataclasses import replace

from app.finetune.plan import effort_words
from masktune.checkpoints.settings import settings
from masktune.config import MaskingConfig
from masktune.runs import jobs
from tests.app.conftest import DEMO, TRAINS, demo_config


def test_settings_are_the_recipe_with_what_was_chosen():
    masking = MaskingConfig(k=1.0)

    chosen = {"dataset": DEMO, "k": 1.0}
    assert settings({**chosen, "model": "bundled"}) == demo_config(masking=masking)
    assert settings(chosen).model is None
    assert settings({**chosen, "model": "a.pt"}).model == "a.pt"
    # The command line reads a folder without its last slash; both must mean the same run.
    assert settings({**chosen, "root": "data/"}).root == "data"


def test_runs_at_several_k_share_their_controls():
    at_1, at_2 = (
        jobs.control_settings(demo_config(masking=MaskingConfig(k=k, statistics=s, rounds=2)))
        for k, s in ((1.0, "all"), (2.0, "positive"))
    )

    assert at_1 == at_2
    assert [c.masking.strategy for c in at_1] == ["random", "none"]
    assert {c.masking.rounds for c in at_1} == {2}
    # A control has the other one as its control.
    assert [c.masking.strategy for c in jobs.control_settings(at_1[0])] == ["none"]


def test_the_control_that_hides_fills_as_the_run_does_and_the_other_has_nothing_to_fill():
    for masking in (MaskingConfig(fill="blur"), MaskingConfig(strategy="paste")):
        random, none = jobs.control_settings(demo_config(masking=masking))

        assert random.masking.fill == {"heat": "blur", "paste": "another"}[masking.strategy]
        assert none.masking == MaskingConfig(strategy="none")


def test_the_effort_is_told_in_pictures_and_steps():
    assert effort_words(demo_config(), 1, 129) == "129 pictures, 3 steps an epoch."
    assert effort_words(demo_config(), 3, 128) == "128 pictures, 2 steps each."
    assert effort_words(TRAINS, 1, None) == "The model is trained first: 12 epochs."
    once = replace(TRAINS, training=replace(TRAINS.training, epochs=1))
    assert effort_words(once, 1, None) == "The model is trained first: one epoch."
    jtt = replace(demo_config(), rival="jtt")
    assert effort_words(jtt, 1, None) == "JTT trains for 15 epochs."  # 3 of 12 for errors first
