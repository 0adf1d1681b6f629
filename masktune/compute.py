"""Devices, precision and processes: Hugging Face Accelerate, and nothing beside it.

One process on a laptop and ``torchrun --nproc_per_node 8 -m masktune run ...`` (or ``accelerate
launch``) on a cluster take the same path. Batch sizes mean the whole batch, however many processes
share it.
"""

import os

import torch
from accelerate import Accelerator, DataLoaderConfiguration
from accelerate.state import AcceleratorState, PartialState
from torch import Tensor, nn

from masktune.errors import ConfigError

DEVICES = ("auto", "cpu", "cuda", "mps")


def accelerator(device: str = "auto") -> Accelerator:
    """Give the device, precision and process layer of a run.

    Args:
        device: "auto" takes CUDA, else Apple's MPS, else the CPU. Choose among several GPUs with
            CUDA_VISIBLE_DEVICES.

    Returns:
        An Accelerator; on CUDA devices that compute in bfloat16 it autocasts to it.
    """
    here = {
        "auto": True,
        "cpu": True,
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
    }
    if device not in here:
        raise ConfigError(f"There is no device '{device}'.", f"Choose {', '.join(DEVICES)}.")
    if not here[device]:
        raise ConfigError(
            f"This machine has no device '{device}' that PyTorch can use.",
            "Choose --device auto, or install the PyTorch build for it.",
        )
    cuda = here["cuda"] and device in ("auto", "cuda")
    # Accelerate remembers the first device of a process; a caller may want another one later.
    if PartialState._shared_state and PartialState().num_processes == 1:
        AcceleratorState._reset_state(reset_partial_state=True)
    return Accelerator(
        cpu=device == "cpu",
        mixed_precision="bf16" if cuda and torch.cuda.is_bf16_supported() else "no",
        dataloader_config=DataLoaderConfiguration(split_batches=True),
    )


def first_process() -> bool:
    """Tell whether this is the process that speaks for a distributed run (or the only one)."""
    return os.environ.get("RANK", "0") == "0"


def on_device(model: nn.Module, compute: Accelerator) -> nn.Module:
    """Move a model to the device, in the memory layout that is quick there."""
    if compute.device.type == "cuda":
        return model.to(compute.device).to(memory_format=torch.channels_last)
    return model.to(compute.device)


def laid_out(images: Tensor, compute: Accelerator) -> Tensor:
    """Give the images in the memory layout that ``on_device`` chose for the model."""
    if compute.device.type == "cuda":
        return images.contiguous(memory_format=torch.channels_last)
    return images
