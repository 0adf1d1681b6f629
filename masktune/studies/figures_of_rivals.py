"""The figures of the rivals' own code, by which the paper's tables train them at scale paper.

What a method's code has for no such dataset, or nobody has published, stays as the recipe has it;
so do network and augmentation, which are the table's for every row. At scales tiny and short all
rivals train by the recipe, as long as MaskTune's ERM: their own schedules are for a GPU.

Not here because the defaults of a run are the same: Group DRO's step 0.01, CVaR DRO's share 0.1,
LfF's power 0.7, SD's penalty 0.1, SelectiveNet's 32, Deep Gamblers' payoff 2.2 and the third of the
epochs that they train by plain cross entropy, 100 of CIFAR-10's and SVHN's 300.
"""

from collections.abc import Mapping
from typing import Any

from masktune.config import RivalName

_SELECTIVENET = {
    "optimizer": "sgd",
    "epochs": 300,
    "batch_size": 128,
    "lr": 0.1,
    "weight_decay": 5e-4,
    "decay_at": tuple(range(25, 300, 25)),
    "decay_factor": 0.5,
}

FIGURES: Mapping[str, Mapping[RivalName, Mapping[str, Any]]] = {
    "celeba-table": {
        "groupdro": {"epochs": 50, "batch_size": 128, "lr": 1e-4, "weight_decay": 1e-4},
        "lff": {"optimizer": "adam", "batch_size": 256, "lr": 1e-4, "weight_decay": 1e-4},
        "sd": {"optimizer": "adam", "batch_size": 128, "lr": 1e-5, "weight_decay": 0.0},
        "jtt": {
            "epochs": 50,
            "batch_size": 64,
            "lr": 1e-5,
            "weight_decay": 0.1,
            "error_epochs": 1,
            "error_weight": 50,
        },
        "divdis": {"epochs": 10, "batch_size": 32, "lr": 1e-4},
    },
    "waterbirds-table": {
        "groupdro": {"epochs": 300, "batch_size": 128, "lr": 1e-3, "weight_decay": 1e-4}
    },
    # Theirs is one schedule for all three datasets.
    **{
        name: {"selectivenet": _SELECTIVENET}
        for name in ("selective-table", "selective-table-svhn", "selective-table-cats-vs-dogs")
    },
}
"""Values by the names of a run's options, by table and method."""


def figures_words(figures: Mapping[str, Any]) -> str:
    """Say figures in one line, by the names of a run's options.

    >>> figures_words({"epochs": 50, "lr": 1e-05, "decay_at": (25, 50)})
    '--epochs 50 --lr 1e-05 --decay-at 25,50'
    """
    return " ".join(
        f"--{name.replace('_', '-')} {','.join(map(str, v)) if isinstance(v, tuple) else v}"
        for name, v in figures.items()
    )
