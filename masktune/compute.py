"""Devices, precision and processes: Hugging Face Accelerate, and nothing beside it.

One process on a laptop and ``torchrun --nproc_per_node 8 -m masktune run ...`` (or ``accelerate
launch``) on a cluster take the same path. Batch sizes mean the whole batch, however many processes
share it.
"""

import os
from collections.abc import Callable, Iterator, Sequence

import torch
from accelerate import Accelerator, DataLoaderConfiguration
from accelerate.state import AcceleratorState, PartialState
from torch.utils.data import BatchSampler, DataLoader

from masktune.data.types import Batch, Split, TensorImages
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


def batches(
    split: Split, *, order: Sequence[int], batch_size: int, compute: Accelerator
) -> "DataLoader[Batch]":
    """Read a split in a given order, each process its share, on the device.

    Pictures in memory are sliced here; files are read by threads, beside a GPU by processes.

    Args:
        split: the examples.
        order: positions, the same in every process.
        batch_size: over all processes together.
        compute: from ``accelerator``.

    Returns:
        A loader of ``Batch``.
    """
    processes = compute.num_processes
    if batch_size % processes:
        raise ConfigError(
            f"A batch of {batch_size} cannot be shared by {processes} processes.",
            f"Make the batch size a multiple of {processes}.",
        )
    # On a GPU, processes of their own keep up with it; a CPU is better served by threads, which
    # ``FileImages`` has, than by processes that compete with the model.
    reading = compute.device.type == "cuda" and not isinstance(split.images, TensorImages)
    workers = min(8, os.cpu_count() or 1) if reading else 0
    loader: DataLoader[Batch] = DataLoader(
        split,  # type: ignore[arg-type]
        batch_sampler=BatchSampler(order, batch_size, drop_last=False),
        collate_fn=_as_it_is,
        num_workers=workers,
        pin_memory=compute.device.type == "cuda",
    )
    return compute.prepare_data_loader(loader)  # type: ignore[no-any-return]


def _as_it_is(batch: object) -> object:
    """``Split.__getitems__`` has collated already."""
    return batch


def in_order(
    split: Split, *, compute: Accelerator, done: Callable[[int, int], None] | None = None
) -> Iterator[Batch]:
    """Read a split once, first to last, in batches that suit the size of its pictures.

    Args:
        split: the examples.
        compute: from ``accelerator``.
        done: called with (batches finished, batches in all) after the caller has used each.
    """
    size = _evaluation_batch(split, compute.num_processes)
    loader = batches(split, order=range(len(split)), batch_size=size, compute=compute)
    total = len(loader)
    for number, batch in enumerate(loader, start=1):
        yield batch
        if done is not None:
            done(number, total)


def _evaluation_batch(split: Split, processes: int) -> int:
    height, width = split.images.batch([0]).shape[2:]
    # About 32 pictures of 224 x 224: enough to keep two cores or a GPU busy, flat in memory.
    count = max(16, min(512, 32 * 224 * 224 // (height * width)))
    return count * processes


def shuffled(count: int, generator: torch.Generator) -> list[int]:
    """Give the positions 0 .. count-1 in random order."""
    order: list[int] = torch.randperm(count, generator=generator).tolist()
    return order
