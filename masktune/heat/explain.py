"""Heat for a whole split, batch by batch, into coarse maps."""

import copy

from accelerate import Accelerator
from torch import nn

from masktune.compute import accelerator, on_device
from masktune.data.preprocess import Keeper, Preprocess
from masktune.data.types import Split
from masktune.heat.explainers import explainer
from masktune.heat.layers import layer_named
from masktune.heat.store import HeatStore
from masktune.models.predict import over_split
from masktune.progress import Watcher, unwatched


def explain(
    model: nn.Module,
    split: Split,
    *,
    layer: str,
    method: str = "xgradcam",
    preprocess: Preprocess | None = None,
    keep: Keeper | None = None,
    compute: Accelerator | None = None,
    watcher: Watcher = unwatched,
    stage: str = "heat",
) -> HeatStore:
    """Find where a model looks in every picture of a split.

    The arguments are those of ``predict``, and:
        layer: name of the module whose feature map is read.
        method: one of ``masktune.heat.explainers.METHODS``.
        keep: hides pixels first, as later accumulative rounds need; None shows all.
        stage: the name the watcher hears.

    Returns:
        Their heat as the first round of a store.
    """
    compute = compute or accelerator()
    model = on_device(copy.deepcopy(model), compute)
    heat = over_split(
        explainer(method, model, layer_named(model, layer)),
        split,
        preprocess=preprocess,
        keep=keep,
        compute=compute,
        watcher=watcher,
        stage=stage,
    )
    height, width = split.images.batch([0]).shape[2:]
    return HeatStore(rounds=(), size=(height, width), layer=layer, method=method).adding(heat)
