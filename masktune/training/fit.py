"""The one loop: train by an objective, and finetune for exactly one epoch on hidden pixels."""

import copy
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice, repeat
from typing import Any, Protocol

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer

from masktune.compute import accelerator, laid_out, on_device
from masktune.config import BatchNorm, TrainConfig
from masktune.data.augment import NONE, augmentation
from masktune.data.batches import batches, shuffled
from masktune.data.preprocess import Keeper, Preprocess
from masktune.data.types import Batch, Split
from masktune.errors import ModelError
from masktune.models.logits import class_loss, class_probabilities, logits_of
from masktune.progress import Progress, Watcher, unwatched
from masktune.seeds import isolated, stream
from masktune.training.freeze import frozen_part, with_statistics

TrainingState = dict[str, Any]
"""What training needs to go on after an epoch: model, optimizer, epoch and such."""

READ_EVERY, READ_AFTER = 20, 0.5
"""Steps, or seconds if these pass first, after which loss and accuracy are read off the device."""


class Objective(Protocol):
    """What a training makes small; ``ERM`` is the usual one."""

    unlabelled: Split | None  # pictures without labels that are shown beside the others

    def draw(self, split: Split, generator: torch.Generator) -> Sequence[int]:
        """Return the positions of the examples that an epoch sees, in order."""

    def loss(
        self, model: nn.Module, images: Tensor, batch: Batch, unlabelled: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Return the loss of a batch, a scalar, and the logits that its answers are read off.

        The model is in training and may be called more than once. ``images`` are what it takes of
        the batch, (N, C, H, W) float, ``unlabelled`` as many others where the objective has some.
        """

    def modules(self) -> nn.ModuleDict:
        """Return what is trained, saved and resumed with the model: heads, other networks."""


class ERM:
    """Empirical risk minimisation: every example once an epoch, the mean cross entropy."""

    unlabelled: Split | None = None
    smoothing: float = 0.0

    def __init__(self, *, smoothing: float = 0.0) -> None:
        """Say which share of every label is given to all classes alike."""
        self.smoothing = smoothing

    def draw(self, split: Split, generator: torch.Generator) -> Sequence[int]:
        """Return all positions in random order."""
        return shuffled(len(split), generator)

    def loss(
        self, model: nn.Module, images: Tensor, batch: Batch, unlabelled: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Return the cross entropy of a batch and its logits."""
        del unlabelled
        logits = logits_of(model(images)).float()
        return class_loss(logits, batch.labels, smoothing=self.smoothing), logits

    def modules(self) -> nn.ModuleDict:
        """Return none."""
        return nn.ModuleDict()


@dataclass(slots=True)
class Best:
    """Scores the model after every epoch and keeps the best one, of equal ones the first.

    Attributes:
        score: such as the accuracy on validation; higher is better.
        patience: epochs without a better one after which training ends; None for never.
        epoch: of the best one so far, from 1; 0 before the first.
        value: its score.
        weights: its state dict.
        beside: the state dict of what the objective trained with it.
    """

    score: Callable[[nn.Module], float]
    patience: int | None = None
    epoch: int = 0
    value: float = -math.inf
    weights: dict[str, Tensor] = field(default_factory=dict)
    beside: dict[str, Tensor] = field(default_factory=dict)

    def look(self, model: nn.Module, extra: nn.Module, *, epoch: int) -> None:
        """Score the model after an epoch, and keep it if none was as good before."""
        value = self.score(model)
        if value > self.value:
            self.epoch, self.value = epoch, value
            self.weights, self.beside = (
                {name: each.clone() for name, each in part.state_dict().items()}
                for part in (model, extra)
            )

    def ends(self, *, after: int) -> bool:
        """Tell whether so many epochs are enough."""
        return self.patience is not None and after - self.epoch >= self.patience

    def state_dict(self) -> dict[str, Any]:
        """Return what an interrupted training needs to go on."""
        return {
            "epoch": self.epoch,
            "score": self.value,
            "model": self.weights,
            "objective": self.beside,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up what ``state_dict`` gave."""
        self.epoch, self.value, self.weights = (state[k] for k in ("epoch", "score", "model"))
        self.beside = state.get("objective", {})  # older versions trained nothing beside


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    """Lets a long training continue where it was interrupted."""

    state: TrainingState | None  # saved last; None to start afresh
    save: Callable[[TrainingState], None]  # called after every epoch


def train(
    model: nn.Module,
    split: Split,
    *,
    config: TrainConfig,
    preprocess: Preprocess | None = None,
    best: Best | None = None,
    seed: int = 0,
    compute: Accelerator | None = None,
    watcher: Watcher = unwatched,
    resume: Resume | None = None,
) -> nn.Module:
    """Train by empirical risk minimisation.

    Args:
        model: where to start; it is copied, never changed.
        split: the training examples.
        config: optimiser, rate, schedule, epochs, what is frozen, augmentation; ``config.best``
            and ``patience`` count where ``best`` is given.
        preprocess: from bytes to the network's input.
        best: the model of the best epoch is the result; None takes the last epoch's.
        seed: decides the order of the examples, their augmentation and dropout.
        compute: device, precision and processes; by default what the machine offers.
        watcher: told after every step.
        resume: where to read and save the state of an interruptible training.

    Returns:
        The trained copy, on the CPU, in evaluation mode.
    """
    return fit(
        model,
        split,
        objective=ERM(smoothing=config.label_smoothing),
        config=config,
        preprocess=preprocess or Preprocess(),
        stage="train",
        best=best,
        batch_norm=config.erm_batch_norm,
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
    batch_norm: BatchNorm = "learnt",
    seed: int = 0,
    round_number: int = 1,
    compute: Accelerator | None = None,
    watcher: Watcher = unwatched,
) -> nn.Module:
    """Train for exactly one epoch on pictures whose pixels are hidden.

    The arguments are those of ``train``, and:
        split: the training examples, as they are; pixels are hidden on the way in.
        keep: what survives of each picture; None hides nothing (the extra-epoch control).
        lr: the rate; the paper's choice is the last one of the ERM schedule.
        config: optimiser, batch size and what is frozen, of the ERM.
        batch_norm: "frozen" leaves the running statistics of batch norm as they are, and uses them.
        round_number: rounds see the examples in different orders.

    Returns:
        The tuned copy, on the CPU, in evaluation mode.
    """
    return fit(
        model,
        split,
        objective=ERM(smoothing=config.label_smoothing),
        config=replace(config, epochs=1, lr=lr, schedule="constant", warmup=0.0),
        preprocess=preprocess or Preprocess(),
        keep=keep,
        batch_norm=batch_norm,
        stage="finetune" if round_number == 1 else f"finetune {round_number}",
        seed=seed,
        compute=compute or accelerator(),
        watcher=watcher,
    )


def fit(
    model: nn.Module,
    split: Split,
    *,
    objective: Objective,
    config: TrainConfig,
    stage: str,
    preprocess: Preprocess,
    compute: Accelerator,
    keep: Keeper | None = None,
    best: Best | None = None,
    batch_norm: BatchNorm = "learnt",
    seed: int = 0,
    watcher: Watcher = unwatched,
    resume: Resume | None = None,
) -> nn.Module:
    """Train a copy of a model by an objective: the one loop of everything that learns here.

    Pictures are augmented after hiding, so that what is hidden stays hidden.

    The arguments are those of ``train``, and:
        objective: which examples an epoch sees, and what is made small.
        stage: the name the watcher hears, and of the random streams.
        keep: hides pixels first; None hides nothing.
        batch_norm: as for ``finetune``.
        watcher: told of every step, at the latest after ``READ_EVERY`` of them.

    Returns:
        The trained copy, on the CPU, in evaluation mode.
    """
    model = on_device(copy.deepcopy(model), compute).eval()
    extra = on_device(objective.modules(), compute).train()
    may_learn = [parameter for parameter in model.parameters() if parameter.requires_grad]
    still: list[nn.Module] = []  # whose statistics do not change
    if config.freeze != NONE:
        probe = preprocess(split.images.batch([0]).to(compute.device))
        with isolated(seed, f"freeze/{stage}"), compute.autocast():
            frozen = frozen_part(model, config.freeze, probe=laid_out(probe, compute))
        for parameter in chain.from_iterable(m.parameters(recurse=False) for m in frozen):
            parameter.requires_grad_(False)
        still = with_statistics(frozen)
    if batch_norm == "frozen":
        still = with_statistics(model.modules())
        if not still:
            raise ModelError(
                "The model has no batch norm whose statistics could be frozen.",
                "Let them be learnt: --batch-norm learnt and --erm-batch-norm learnt.",
            )
    optimizer = make_optimizer(nn.ModuleList([model, extra]), config)
    parts: dict[str, Any] = {"model": model, "objective": extra, "optimizer": optimizer}
    if best is not None:
        parts["best"] = best
    first = 0
    if resume is not None and resume.state is not None:
        for name, part in parts.items():
            part.load_state_dict(resume.state.get(name, {}))
        first = int(resume.state["epoch"])
    # ``compute`` would keep a model that it prepares, so it is asked only where processes share it.
    wrapped = compute.prepare_model(model) if compute.num_processes > 1 else model
    augment = augmentation(config.augment)
    read = partial(batches, batch_size=config.batch_size, compute=compute, join_last=True)

    def seen(batch: Batch, keep: Keeper | None, chance: torch.Generator) -> Tensor:
        change = None if augment is None else lambda pixels: augment(pixels, chance)
        return laid_out(preprocess.of(batch, keep, change=change), compute)

    for epoch in range(first, config.epochs):
        if best is not None and best.ends(after=epoch):
            break
        model.train()
        for module in still:
            module.eval()
        # Every epoch has streams of its own, so a resumed run draws what an unbroken one would.
        name = f"{stage}/{epoch}"
        order = objective.draw(split, stream(seed, f"order/{name}"))
        loader = read(split, order=order)
        beside: Iterable[Batch | None] = repeat(None)
        if objective.unlabelled is not None:
            again = _again_and_again(objective.unlabelled, stream(seed, f"unlabelled/{name}"))
            beside = read(objective.unlabelled, order=list(islice(again, len(order))))
        steps = len(loader)
        total = config.epochs * steps
        heard = _Heard(watcher, stage, epoch * steps, total, since=time.monotonic())
        # Processes have different pictures of a batch, so each draws for itself.
        rank = f"/{compute.process_index}" if compute.process_index else ""
        chance = stream(seed, f"augment/{name}{rank}")
        with isolated(seed, f"dropout/{name}"):
            for step, (batch, other) in enumerate(zip(loader, beside, strict=False)):
                for group in optimizer.param_groups:
                    group["lr"] = config.rate(epoch + step / steps, step=1 / steps)
                images = seen(batch, keep, chance)
                unlabelled = None if other is None else seen(other, None, chance)
                with compute.autocast():
                    loss, logits = objective.loss(wrapped, images, batch, unlabelled)
                optimizer.zero_grad()
                compute.backward(loss)
                _averaged(extra, compute)
                optimizer.step()
                heard.step(loss, logits, batch.labels)
        heard.read()
        for part in (model, extra):
            _agreed(part, compute)
        if best is not None:
            best.look(model, extra, epoch=epoch + 1)
        if resume is not None:
            states = {key: part.state_dict() for key, part in parts.items()}
            resume.save({**states, "epoch": epoch + 1})
    if best is not None:
        model.load_state_dict(best.weights)
        extra.load_state_dict(best.beside)
    for parameter in may_learn:
        parameter.requires_grad_(True)
    return model.to("cpu").to(memory_format=torch.contiguous_format).eval()


def _again_and_again(split: Split, chance: torch.Generator) -> Iterator[int]:
    """Yield the positions of a split without end, each time in another order."""
    while True:
        yield from shuffled(len(split), chance)


def _agreed(model: nn.Module, compute: Accelerator) -> None:
    """Give all processes the batch norm statistics of the first, which it goes on with anyway.

    Each has seen other pictures since the last step, and answers for its share of a split.
    """
    if compute.num_processes > 1:
        for buffer in model.buffers():
            buffer.copy_(broadcast(buffer))


def _averaged(extra: nn.Module, compute: Accelerator) -> None:
    """Average the gradients of an objective's own modules over all processes.

    Those of the model are averaged by its wrapper, which these do not have.
    """
    if compute.num_processes > 1:
        for parameter in extra.parameters():
            if parameter.grad is not None:
                parameter.grad = compute.reduce(parameter.grad, "mean")


@dataclass(slots=True)
class _Heard:
    """Tells a watcher of every step; loss and accuracy come from the device in one copy for many.

    Each copy waits for the device, which could have begun the next steps. Steps that take long
    are told at once: nobody waits 20 of them for a bar to move, or for a run to stop.
    """

    watcher: Watcher
    stage: str
    done: int
    total: int
    since: float
    values: list[Tensor] = field(default_factory=list)

    def step(self, loss: Tensor, logits: Tensor, labels: Tensor) -> None:
        right = class_probabilities(logits.detach()).argmax(dim=1) == labels
        self.values.append(torch.stack([loss.detach().float(), right.float().mean()]))
        if len(self.values) >= READ_EVERY or time.monotonic() - self.since >= READ_AFTER:
            self.read()

    def read(self) -> None:
        for loss, accuracy in torch.stack(self.values).tolist() if self.values else ():
            if not math.isfinite(loss):
                raise ModelError(
                    f"The training loss became {loss}.",
                    "Use a smaller learning rate, or a checkpoint whose weights are all numbers.",
                )
            self.done += 1
            step = Progress(
                stage=self.stage, done=self.done, total=self.total, loss=loss, accuracy=accuracy
            )
            self.watcher(step)
        self.values.clear()
        self.since = time.monotonic()


def make_optimizer(model: nn.Module, config: TrainConfig) -> Optimizer:
    """Give the optimiser of a configuration for all parameters that are not frozen."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    if not parameters:
        raise ModelError(
            "Every parameter of the model is frozen.",
            "Name an earlier layer by --freeze, or unfreeze the layers that may learn.",
        )
    if config.optimizer != "sgd":
        kind = Adam if config.optimizer == "adam" else AdamW
        return kind(parameters, lr=config.lr, weight_decay=config.weight_decay)
    return SGD(parameters, lr=config.lr, momentum=config.momentum, weight_decay=config.weight_decay)
