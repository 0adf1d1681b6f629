"""Train a model by ERM, and finetune one for exactly one epoch on hidden pixels."""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from accelerate import Accelerator
from torch import nn
from torch.optim import SGD, Adam, Optimizer
from torch.optim.lr_scheduler import MultiStepLR

from masktune.compute import accelerator, laid_out, on_device
from masktune.config import TrainConfig
from masktune.data.batches import batches, shuffled
from masktune.data.preprocess import Keeper, Preprocess
from masktune.data.types import Batch, Split
from masktune.errors import ModelError
from masktune.models.logits import class_loss, class_probabilities, logits_of
from masktune.progress import Progress, Watcher, unwatched
from masktune.seeds import isolated, stream

TrainingState = dict[str, Any]
"""What training needs to go on after an epoch: model, optimizer, scheduler, epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    """Lets a long training continue where it was interrupted.

    Attributes:
        state: the state saved last, None to start afresh.
        save: called with the state after every epoch.
    """

    state: TrainingState | None
    save: Callable[[TrainingState], None]


def train(
    model: nn.Module,
    split: Split,
    *,
    config: TrainConfig,
    preprocess: Preprocess | None = None,
    seed: int = 0,
    compute: Accelerator | None = None,
    watcher: Watcher = unwatched,
    resume: Resume | None = None,
) -> nn.Module:
    """Train by empirical risk minimisation.

    Args:
        model: where to start; it is copied, never changed.
        split: the training examples.
        config: optimiser, rate, schedule (stepped after every epoch), epochs.
        preprocess: from bytes to the network's input.
        seed: decides the order of the examples and dropout.
        compute: device, precision and processes; by default what the machine offers.
        watcher: told after every step.
        resume: where to read and save the state of an interruptible training.

    Returns:
        The trained copy, on the CPU, in evaluation mode.
    """
    return _fit(
        model,
        split,
        config=config,
        preprocess=preprocess or Preprocess(),
        keep=None,
        stage="train",
        seed=seed,
        compute=compute or accelerator(),
        watcher=watcher,
        resume=resume,
    )


def finetune(
    model: nn.Module,
    split: Split,
    *,
    keep: Keeper | None,
    lr: float,
    config: TrainConfig,
    preprocess: Preprocess | None = None,
    seed: int = 0,
    round_number: int = 1,
    compute: Accelerator | None = None,
    watcher: Watcher = unwatched,
) -> nn.Module:
    """Train for exactly one epoch on pictures whose pixels are hidden.

    Args:
        model: the model before; it is copied, never changed.
        split: the training examples, as they are; pixels are hidden on the way in.
        keep: what survives of each picture; None hides nothing (the extra-epoch control).
        lr: the rate; the paper's choice is the last one of the ERM schedule.
        config: optimiser and batch size of the ERM.
        preprocess: from bytes to the network's input.
        seed: decides the order of the examples and dropout.
        round_number: rounds see the examples in different orders.
        compute: device, precision and processes; by default what the machine offers.
        watcher: told after every step.

    Returns:
        The tuned copy, on the CPU, in evaluation mode.
    """
    once = TrainConfig(
        epochs=1,
        batch_size=config.batch_size,
        lr=lr,
        optimizer=config.optimizer,
        momentum=config.momentum,
        weight_decay=config.weight_decay,
    )
    return _fit(
        model,
        split,
        config=once,
        preprocess=preprocess or Preprocess(),
        keep=keep,
        stage="finetune" if round_number == 1 else f"finetune {round_number}",
        seed=seed,
        compute=compute or accelerator(),
        watcher=watcher,
        resume=None,
    )


def _fit(
    model: nn.Module,
    split: Split,
    *,
    config: TrainConfig,
    preprocess: Preprocess,
    keep: Keeper | None,
    stage: str,
    seed: int,
    compute: Accelerator,
    watcher: Watcher,
    resume: Resume | None,
) -> nn.Module:
    model = on_device(copy.deepcopy(model), compute).train()
    optimizer = make_optimizer(model, config)
    scheduler = MultiStepLR(optimizer, list(config.decay_at), config.decay_factor)
    first = 0
    if resume is not None and resume.state is not None:
        model.load_state_dict(resume.state["model"])
        optimizer.load_state_dict(resume.state["optimizer"])
        scheduler.load_state_dict(resume.state["scheduler"])
        first = int(resume.state["epoch"])
    # ``compute`` would keep a model that it prepares, so it is asked only where processes share it.
    wrapped = compute.prepare_model(model) if compute.num_processes > 1 else model
    for epoch in range(first, config.epochs):
        # Every epoch has streams of its own, so a resumed run draws what an unbroken one would.
        name = f"{stage}/{epoch}"
        order = shuffled(len(split), stream(seed, f"order/{name}"))
        size = config.batch_size
        loader = batches(split, order=order, batch_size=size, compute=compute, join_last=True)
        steps = len(loader)
        with isolated(seed, f"dropout/{name}"):
            for step, batch in enumerate(loader, start=1):
                loss, accuracy = _step(wrapped, optimizer, batch, keep, preprocess, compute)
                watcher(
                    Progress(
                        stage=stage,
                        done=epoch * steps + step,
                        total=config.epochs * steps,
                        loss=loss,
                        accuracy=accuracy,
                    )
                )
        scheduler.step()
        if resume is not None:
            resume.save(
                {
                    "model": model.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "scheduler": scheduler.state_dict(),
                    "epoch": epoch + 1,
                }
            )
    return model.to("cpu").to(memory_format=torch.contiguous_format).eval()


def _step(
    model: nn.Module,
    optimizer: Optimizer,
    batch: Batch,
    keep: Keeper | None,
    preprocess: Preprocess,
    compute: Accelerator,
) -> tuple[float, float]:
    """Learn from one batch; give its loss and the share answered right."""
    images = preprocess(batch.images, None if keep is None else keep(batch.positions))
    with compute.autocast():
        logits = logits_of(model(laid_out(images, compute)))
    loss = class_loss(logits.float(), batch.labels)
    if not math.isfinite(value := loss.item()):
        raise ModelError(
            f"The training loss became {value}.",
            "Use a smaller learning rate, or a checkpoint whose weights are all numbers.",
        )
    optimizer.zero_grad()
    compute.backward(loss)
    optimizer.step()
    right = class_probabilities(logits.detach()).argmax(dim=1) == batch.labels
    return value, right.float().mean().item()


def make_optimizer(model: nn.Module, config: TrainConfig) -> Optimizer:
    """Give the optimiser of a configuration for all parameters that are not frozen."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    if not parameters:
        raise ModelError(
            "Every parameter of the model is frozen.", "Unfreeze the layers that may learn."
        )
    if config.optimizer == "adam":
        return Adam(parameters, lr=config.lr, weight_decay=config.weight_decay)
    return SGD(parameters, lr=config.lr, momentum=config.momentum, weight_decay=config.weight_decay)
