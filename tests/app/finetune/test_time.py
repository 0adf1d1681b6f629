"""How long a run takes and has left, told from the runs before it."""

from dataclasses import replace

import pytest

from app.finetune.time import seconds_left, seconds_of, stages, usual, widths
from masktune.config import MaskingConfig
from masktune.runs import jobs
from masktune.runs.folder import RunFolder
from masktune.runs.jobs import Job
from tests import results
from tests.app.conftest import TRAINS, demo_config

PACE = {"load": 3, "train": 5, "heat": 2, "finetune": 6, "evaluate": 3, "report": 1}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (demo_config(), "load heat finetune predict report"),
        (TRAINS, "load train heat finetune predict report"),
        (demo_config(masking=MaskingConfig(strategy="none")), "load finetune predict report"),
    ],
)
def test_stages_are_those_that_a_run_goes_through(config, expected):
    assert " ".join(stages(config)) == expected


def test_every_round_has_its_own_stages():
    config = demo_config(masking=MaskingConfig(rounds=2))

    assert list(stages(config))[1:-2] == ["heat", "finetune", "heat 2", "finetune 2"]


def test_an_estimate_adds_up_all_parts():
    two = demo_config(masking=MaskingConfig(rounds=2))

    assert sum(seconds_of(demo_config(), PACE).values()) == 4 + 2 + 6 + 3
    assert sum(seconds_of(two, PACE).values()) == 4 + 2 * (2 + 6) + 3
    assert sum(seconds_of(TRAINS, PACE).values()) == 4 + 12 * 5 + 2 + 6 + 3


def test_what_no_run_has_shown_is_not_estimated():
    never_trained = {part: seconds for part, seconds in PACE.items() if part != "train"}

    assert seconds_of(TRAINS, never_trained) is None
    assert seconds_of(demo_config(), never_trained) is not None
    assert seconds_of(demo_config(), {}) is None


def past_run(home, name, *, config=None, seconds, train=None):
    """Make a finished run that took some seconds."""
    config = config or demo_config()
    folder = RunFolder.claim(home / "runs" / name, config)
    result = results.a_result(
        {"test": results.both(0.5, 0.6)},
        rounds=[{}] * config.masking.rounds,
        seconds=seconds,
        data={"train": train},
    )
    folder.write_json("result.json", result.to_json())
    return jobs.look(folder.path)


def test_the_pace_is_the_middle_of_earlier_runs(home):
    past = [
        past_run(home, str(n), seconds={**PACE, "heat": heat, "load": load})
        for n, (heat, load) in enumerate([(1.0, 30.0), (2.0, 4.0), (9.0, 3.0)])
    ]

    pace, same = usual(demo_config(), past, pictures=3500)

    assert (pace["heat"], pace["load"], pace["report"]) == (2.0, 4.0, 1.0)
    assert "train" not in pace  # a model that is only loaded shows nothing about training
    assert same


def test_an_older_run_that_did_not_measure_everything_still_tells(home):
    seconds = {"train": 0.0, "heat": 2.0, "finetune": 6.0, "evaluate": 3.0}

    pace, _ = usual(demo_config(), [past_run(home, "a", seconds=seconds)], pictures=None)

    assert sum(seconds_of(demo_config(), pace).values()) == 2 + 6 + 3


def test_of_many_earlier_runs_the_newest_tell(home):
    old = [past_run(home, f"old{n}", seconds={**PACE, "heat": 9.0}) for n in range(6)]
    new = [past_run(home, f"new{n}", seconds={**PACE, "heat": 1.0}) for n in range(5)]

    assert usual(demo_config(), [*new, *old], pictures=None)[0]["heat"] == 1.0


def test_rounds_and_epochs_are_counted_one_by_one(home):
    config = replace(TRAINS, masking=MaskingConfig(rounds=3))
    seconds = {"train": 60.0, "heat": 6.0, "finetune": 9.0, "evaluate": 2.0}

    pace, _ = usual(config, [past_run(home, "a", config=config, seconds=seconds)], pictures=None)

    assert pace == {"train": 5.0, "heat": 2.0, "finetune": 3.0, "evaluate": 2.0}


def test_a_part_that_a_run_did_not_do_says_nothing(home):
    seconds = {"train": 0.0, "heat": 0.0, "finetune": 5.0, "evaluate": 2.0}
    control = demo_config(masking=MaskingConfig(strategy="none"))
    past = [past_run(home, "a", config=control, seconds=seconds)]

    pace, _ = usual(demo_config(), past, pictures=None)

    assert pace == {"finetune": 5.0, "evaluate": 2.0}
    assert seconds_of(demo_config(), pace) is None
    assert seconds_of(control, pace) is not None


def test_a_run_tells_of_the_model_that_it_trained_and_that_of_its_controls(home):
    trained = past_run(home, "a", config=TRAINS, seconds=PACE)
    (trained.path / "before.safetensors").touch()
    config = jobs.opened(trained)
    control = replace(config, masking=MaskingConfig(strategy="none"))
    other = past_run(home, "b", config=TRAINS, seconds=PACE)  # of the same settings, not its model

    for wanted in (config, control):
        pace, same = usual(wanted, [trained], pictures=3500)
        assert seconds_of(wanted, pace) is not None
        assert same
    assert usual(config, [other], pictures=None) == ({}, False)


def test_other_pictures_count_where_there_are_no_runs_on_these_by_their_pixels(home):
    # As large as those of the demo, and half as many.
    config = demo_config(dataset="two-squares-mnist-5k")
    other = past_run(home, "a", config=config, seconds=PACE, train=640)

    pace, same = usual(demo_config(), [other], pictures=1280)

    assert (pace["heat"], pace["finetune"], same) == (4.0, 12.0, False)
    assert (pace["load"], pace["report"]) == (3.0, 1.0)  # most of it is importing PyTorch
    assert usual(demo_config(), [other], pictures=None) == ({}, False)
    assert usual(replace(demo_config(), arch="resnet18"), [other], pictures=1280) == ({}, False)
    assert usual(demo_config(), [], pictures=1280) == ({}, False)


def at_stage(stage, step=0, total=0, *, state="running", left=None, config=None):
    return Job(
        path=None,
        config=config or demo_config(),
        state=state,
        stage=stage,
        step=step,
        total=total,
        seconds_left=left,
    )


def test_the_time_left_is_this_stage_and_all_later_ones():
    # Later than the finetune: predict 3 s, report 1 s.
    assert seconds_left(at_stage("finetune", 5, 10, left=2.5), PACE) == 2.5 + 3 + 1
    assert seconds_left(at_stage("finetune", 1, 10), PACE) == 6 + 3 + 1
    assert seconds_left(at_stage("finetune", 10, 10), PACE) == 3 + 1
    assert seconds_left(at_stage(""), PACE) is None
    assert seconds_left(at_stage("finetune", 5, 10, left=2.5), {}) is None


def test_stages_are_as_wide_as_they_are_long_but_never_too_narrow_to_see():
    wide = dict(zip(stages(TRAINS), widths(TRAINS, PACE), strict=True))

    assert wide["train"] == 60.0
    assert wide["heat"] == wide["report"] == pytest.approx(0.06 * 75)
    assert len(widths(demo_config(), {})) == 5
