import subprocess
import sys

import masktune

CONTRACT = [
    "load",
    "build",
    "cam_layer",
    "xgradcam",
    "upsample",
    "keep_masks",
    "random_keep_masks",
    "hide",
    "train",
    "finetune",
    "predict",
    "group_scores",
    "worst_group",
    "joint",
    "alone",
    "risk_coverage",
    "threshold_at",
    "at_threshold",
    "run",
    "load_checkpoint",
    "MaskTuneError",
]


def test_every_name_of_the_contract_can_be_imported():
    for name in CONTRACT:
        assert callable(getattr(masktune, name)), name


def test_a_public_function_is_not_hidden_by_a_module_of_the_same_name():
    assert [n for n in masktune.__all__ if type(getattr(masktune, n)).__name__ == "module"] == []


def test_importing_the_package_does_not_import_pytorch():
    code = "import sys, masktune.runs.queue; sys.exit('torch' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
