"""Devices, precision and processes: Hugging Face Accelerate, and nothing beside it.

One process on a laptop and ``torchrun --nproc_per_node 8 -m masktune run ...`` (or ``accelerate
launch``) on a cluster take the same path. Batch sizes mean the whole batch, however many processes
share it.
"""

import os
from threading import Lock

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, PartialState
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from masktune.errors import ConfigError, check_choice

DEVICES = ("auto", "cpu", "cuda", "mps")

_made: dict[str, Accelerator] = {}
_making = Lock()


def accelerator(device: str = "auto") -> Accelerator:
    """Return the device, precision and process layer of a run: one for each device of a process.

    "auto" takes CUDA, else Apple's MPS, else the CPU; choose among several GPUs with
    CUDA_VISIBLE_DEVICES. CUDA devices that compute in bfloat16 autocast to it.
    """
    kind = _kind(device)
    with _making:
        if kind not in _made:
            _made[kind] = _make(kind)
        return _made[kind]


def _here() -> str:
    found = torch.accelerator.current_accelerator(check_available=True)
    return "cpu" if found is None else found.type


def devices() -> tuple[str, ...]:
    """Return the devices of this machine that a run can ask for."""
    return tuple(device for device in DEVICES if device in ("auto", "cpu", _here()))


def _kind(device: str) -> str:
    check_choice("device", device, DEVICES)
    here = _here()
    if device not in ("auto", "cpu", here):
        raise ConfigError(
            f"This machine has no device '{device}' that PyTorch can use.",
            "Choose --device auto, or install the PyTorch build for it.",
        )
    return here if device == "auto" else device


def _make(kind: str) -> Accelerator:
    # Accelerate remembers the first device of a process. Another one gets a memory beside it, so
    # that whoever works with the first goes on.
    if PartialState._shared_state:
        PartialState._shared_state, AcceleratorState._shared_state = {}, {}
    bf16 = kind == "cuda" and torch.cuda.is_bf16_supported()
    made = Accelerator(cpu=kind == "cpu", mixed_precision="bf16" if bf16 else "no")
    launched = int(os.environ.get("WORLD_SIZE", "1"))
    if launched > made.num_processes:
        raise ConfigError(
            f"A launcher started {launched} processes, but on the device '{kind}' they cannot "
            "share a run: each would do all of it.",
            "Choose --device cpu, or start one process without a launcher.",
        )
    return made


def end() -> None:
    """End what binds the processes of a launcher, once a command is through.

    Gloo's threads that still run while Python shuts down abort the process now and then, and the
    launcher calls a finished run a failure.
    """
    for made in _made.values():
        made.end_training()


def on_device(model: nn.Module, compute: Accelerator) -> nn.Module:
    """Move a model to the device, in the memory layout that is quick there."""
    if compute.device.type == "cuda":
        return model.to(compute.device).to(memory_format=torch.channels_last)
    return model.to(compute.device)


def unwrapped(model: nn.Module) -> nn.Module:
    """Return the network itself of one that several processes may train together.

    By what wraps it, not by its attribute ``module``, which networks have too.
    """
    inner: nn.Module = model.module if isinstance(model, DistributedDataParallel) else model
    return inner


def laid_out(images: Tensor, compute: Accelerator) -> Tensor:
    """Give the images in the memory layout that ``on_device`` chose for the model."""
    if compute.device.type == "cuda":
        return images.contiguous(memory_format=torch.channels_last)
    return images
