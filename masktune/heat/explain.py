"""Heat for a whole split, batch by batch, into coarse maps."""

import copy

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from masktune.compute import accelerator, laid_out, on_device
from masktune.data.batches import by_position, in_order
from masktune.data.preprocess import Keeper, Preprocess
from masktune.data.types import Split
from masktune.heat.explainers import explainer
from masktune.heat.layers import layer_named
from masktune.progress import Progress, Watcher, unwatched


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
) -> Tensor:
    """Find where a model looks in every picture of a split.

    Args:
        model: any classifier; it is not changed.
        split: the examples.
        layer: name of the module whose feature map is read.
        method: one of ``masktune.heat.explainers.METHODS``.
        preprocess: from bytes to the network's input.
        keep: hides pixels first, as later accumulative rounds need; None shows all.
        compute: device, precision and processes; by default what the machine offers.
        watcher: told after every batch.
        stage: the name the watcher hears.

    Returns:
        (N, h, w) float32 in [0, 1], on the CPU, in the split's order.
    """
    preprocess = preprocess or Preprocess()
    compute = compute or accelerator()
    model = on_device(copy.deepcopy(model), compute)
    heat: list[Tensor] = []
    positions: list[Tensor] = []

    def done(number: int, total: int) -> None:
        watcher(Progress(stage=stage, done=number, total=total))

    with explainer(method, model, layer_named(model, layer)) as look:
        for batch in in_order(split, compute=compute, done=done):
            with torch.no_grad():
                images = preprocess(batch.images, None if keep is None else keep(batch.positions))
            heat.append(compute.gather(look(laid_out(images, compute))).cpu())
            positions.append(compute.gather(batch.positions).cpu())
    return by_position(heat, positions, len(split))
