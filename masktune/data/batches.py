"""From a split to batches on the device, each process its share."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from accelerate import Accelerator
from accelerate.data_loader import prepare_data_loader
from torch import Tensor
from torch.utils.data import BatchSampler, DataLoader

from masktune.data.images import TensorImages
from masktune.data.types import Batch, Split
from masktune.errors import ConfigError, MaskTuneError


def batches(
    split: Split,
    *,
    order: Sequence[int],
    batch_size: int,
    compute: Accelerator,
    join_last: bool = False,
) -> "Batches":
    """Read a split in a given order, each process its share, on the device.

    Pictures in memory are sliced here; files are read by threads, beside a GPU by processes.

    Args:
        split: the examples.
        order: positions, the same in every process.
        batch_size: over all processes together.
        compute: from ``accelerator``.
        join_last: let a single picture that is left over at the end join the batch before it:
            batch norm cannot learn from one value. Several processes fill up the last batch.
    """
    processes = compute.num_processes
    if batch_size % processes:
        raise ConfigError(
            f"A batch of {batch_size} cannot be shared by {processes} processes.",
            f"Make the batch size a multiple of {processes}.",
        )
    # On a GPU, processes of their own keep up with it; a CPU is better served by threads, which
    # ``FileImages`` has, than by processes that compete with the model.
    beside_gpu = compute.device.type == "cuda"
    reading = beside_gpu and not isinstance(split.images, TensorImages)
    workers = min(8, os.cpu_count() or 1) if reading else 0
    parts: BatchSampler | list[list[int]] = BatchSampler(order, batch_size, drop_last=False)
    left_over = len(order) % batch_size
    if join_last and left_over == 1 < batch_size < len(order) and processes == 1:
        *whole, before, last = parts
        parts = [*whole, before + last]
    made = loader(split, parts, workers=workers, pinned=beside_gpu)
    # Not by a method of ``compute``: it would keep every loader, and with it the pictures.
    return Batches(
        prepare_data_loader(
            made,
            compute.device,
            num_processes=processes,
            process_index=compute.process_index,
            split_batches=processes > 1,
            put_on_device=True,
        )
    )


def loader(
    split: Split, parts: Iterable[list[int]], *, workers: int, pinned: bool = False
) -> "DataLoader[Batch | MaskTuneError]":
    """Return a loader of batches and of the errors met while reading them, see ``Batches``."""
    return DataLoader(
        _Read(split),  # type: ignore[arg-type]
        batch_sampler=parts,
        collate_fn=_as_it_is,
        num_workers=workers,
        pin_memory=pinned,
    )


@dataclass(frozen=True, slots=True)
class _Read:
    """A split that hands errors back: PyTorch would make text of them on the way from a worker."""

    split: Split

    def __len__(self) -> int:
        return len(self.split)

    def __getitems__(self, positions: Sequence[int]) -> Batch | MaskTuneError:
        try:
            return self.split.__getitems__(positions)
        except MaskTuneError as error:
            return error


@dataclass(frozen=True, slots=True)
class Batches:
    """Batches of a loader; an error met while reading one is raised in its place."""

    loader: "DataLoader[Batch | MaskTuneError]"

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[Batch]:
        for batch in self.loader:
            if isinstance(batch, MaskTuneError):
                raise batch
            yield batch


def _as_it_is(batch: object) -> object:
    """``Split.__getitems__`` has collated already."""
    return batch


def in_order(
    split: Split, *, compute: Accelerator, done: Callable[[int, int], None] | None = None
) -> Iterator[Batch]:
    """Read a split once, first to last, in batches that suit the size of its pictures.

    ``done`` is called with (batches finished, batches in all) after the caller has used each.
    """
    height, width = split.images.batch([0]).shape[2:]
    # About 32 pictures of 224 x 224: enough to keep two cores or a GPU busy, flat in memory.
    size = max(16, min(512, 32 * 224 * 224 // (height * width))) * compute.num_processes
    parts = batches(split, order=range(len(split)), batch_size=size, compute=compute)
    total = len(parts)
    for number, batch in enumerate(parts, start=1):
        yield batch
        if done is not None:
            done(number, total)


def shuffled(count: int, generator: torch.Generator) -> list[int]:
    """Give the positions 0 .. count-1 in random order."""
    order: list[int] = torch.randperm(count, generator=generator).tolist()
    return order


def by_position(rows: list[Tensor], positions: list[Tensor], count: int) -> Tensor:
    """Put gathered batches of (B, ...) rows back into the split's order, (count, ...).

    Several processes interleave their batches and repeat examples to fill the last one.
    """
    joined = torch.cat(rows)
    ordered = torch.empty((count, *joined.shape[1:]), dtype=joined.dtype)
    ordered[torch.cat(positions)] = joined
    return ordered
