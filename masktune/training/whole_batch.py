"""Sums over a batch that several processes share."""

from accelerate import Accelerator
from torch import Tensor


def whole(part: Tensor, compute: Accelerator) -> Tensor:
    """Return the sum of every process's part, and with it a loss that is no mean over pictures.

    A ratio or a logarithm of such sums is that of the whole batch, not of a share of it. The
    gradient is that of this process's part times the number of processes: those of all of them
    are averaged afterwards, which makes it the gradient of the sum.
    """
    everywhere: Tensor = compute.reduce(part.detach(), "sum")
    return everywhere + (part - part.detach()) * int(compute.num_processes)
