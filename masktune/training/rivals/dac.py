"""DaC (Noohdani et al., CVPR 2024): hot parts of pictures on the cold parts of other classes.

The heat of the model before tells what it answers by, and where it answers well that is taken to
be the thing itself. The ``easy_share`` of every class that it answers best, by cross entropy, are
the easy pictures. From each two more are made:

    kept: its hot part, and around it one colour;
    pasted: its hot part, and around it the cold part of an easy picture of another class.

A new last layer learns from plain, kept and pasted pictures; the loss of a batch is the mean cross
entropy of its pictures, plus ``ALPHA`` times that of those kept, plus ``ALPHA`` times that of those
pasted, each labelled as its hot part is. It needs nothing but labels. Where the model before leans
on the clue, as MaskTune supposes, the hot part is the clue, and this teaches it the clue again.

How large the hot part of a picture is, is found for each: the hot shares ``HOT`` are tried from
the largest to the smallest, and that is taken after which the loss of the kept picture begins to
rise steeply, the point farthest below the straight line from the first to the last; the smallest
where there is none. As the authors do, who find that point by kneedle. Rates, epochs, batches and
``ALPHA`` are theirs for Waterbirds.

Decided here: the easy share is of each class, theirs of all pictures together, which can leave a
class out. Around a kept part stands that part's mean colour, and where both hot parts have been,
the mean colour of the other's cold part; theirs is the mean of the batch. A pixel without heat is
never hot. Pairs are drawn anew whenever the rate falls, not in every batch, and the body's batch
norm does not move, so that each picture goes through the network a few times instead of twenty.
The last epoch's layer is taken, theirs is chosen by the groups of validation pictures.
"""

from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor, nn
from torch.optim import Adam

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.data.batches import shuffled
from masktune.data.fills import filled
from masktune.data.preprocess import Keeper
from masktune.data.splits import part
from masktune.data.types import Split
from masktune.heat.keep import keep_all_but_top
from masktune.heat.layers import heat_layer
from masktune.heat.store import HeatStore
from masktune.models.logits import class_loss
from masktune.progress import Progress, Steps, Watcher
from masktune.seeds import isolated, stream
from masktune.training.by_recipe import finished
from masktune.training.context import Context, Tuned
from masktune.training.last_layer import LastLayer, last_layer, logits_by
from masktune.training.masktune import look

ALPHA = 10.0
HOT = (0.7, 0.6, 0.5, 0.4, 0.3, 0.2)
"""Shares of a picture's pixels that its hot part may have."""

RATE, RATES, EPOCHS, BATCH = 5e-3, 4, 5, 64
"""Adam's first rate, how many there are, each half of the one before, and the epochs of each."""


def tune(context: Context, before: Checkpoint) -> Tuned:
    """Retrain the last layer on plain, kept and pasted training pictures."""
    config, train = context.config, context.bundle.train
    layer = last_layer(context, before)
    at = heat_layer(before.model, config.masking.layer, size=context.bundle.card.size)
    steps = Steps(context.watcher, "finetune", total=2 + len(HOT) + 2 * RATES)
    with context.timed("finetune"):
        plain = layer.features(train, watcher=steps.next())
        chosen = easy(
            _losses(layer, plain, train.labels),
            train.labels,
            share=config.rival_settings.easy_share,
        )
        few = part(train, chosen)
    with context.timed("heat"):
        # Of all pictures, not of the few: a batch of other pictures rounds otherwise, and a run
        # on its own would not be bit for bit the one that takes the heat from another.
        every = context.known_heat(at) or look(context, before.model, at)
        store = replace(every, rounds=(every.rounds[0][chosen],))
    with context.timed("finetune"):
        shares = _hot_shares(layer, few, store, steps)

        def made(fill: Literal["mean", "another"], stage: str) -> Tensor:
            keep = filled(hot_parts(store, shares), fill, split=few, seed=config.seed, stage=stage)
            return layer.features(few, keep=keep, watcher=steps.next())

        kept = made("mean", "dac")
        with isolated(config.seed, "weights/dac"):
            head = _fresh(layer)
        optimizer = Adam(head.parameters(), lr=RATE)
        for number in range(RATES):
            optimizer.param_groups[0]["lr"] = RATE / 2**number
            learn(
                head,
                optimizer,
                plain=plain,
                labels=train.labels,
                easy=chosen,
                more=(kept, made("another", f"dac/{number}")),
                generator=stream(config.seed, f"order/dac/{number}"),
                watcher=steps.next(),
            )
    bias = None if head.bias is None else head.bias.detach()
    facts = {"easy pictures": len(few), "hot share": round(float(shares.mean()), 4)}
    return finished(context, layer.after((head.weight.detach(), bias)), facts=facts)


def easy(losses: Tensor, labels: Tensor, *, share: float) -> Tensor:
    """Return the positions of the best answered share of every class, at least one, in order.

    ``losses`` and ``labels`` are (N,).
    """
    found: list[Tensor] = []
    for label in set(labels.tolist()):
        members = (labels == label).nonzero()[:, 0]
        count = max(1, round(share * len(members)))
        found.append(members[losses[members].argsort(stable=True)[:count]])
    return torch.cat(found).sort().values


def hot_parts(store: HeatStore, shares: Tensor) -> Keeper:
    """Return what keeps the hottest share of each picture, (N,); one without heat stays whole."""

    def keep(index: Tensor) -> Tensor:
        # On the CPU: Apple's GPUs have no double precision.
        hot = ~keep_all_but_top(store.fine(index), shares[index.cpu()])
        return (hot | ~hot.any(dim=2).any(dim=1)[:, None, None]).to(index.device)

    return keep


def elbow(losses: Tensor) -> Tensor:
    """Return after which of the columns a loss begins to rise steeply, (N,) int64.

    Of losses (N, C) it is the column farthest below the line from the lowest at the first to the
    highest at the last; the last where none is below.
    """
    low, high = losses.amin(dim=1, keepdim=True), losses.amax(dim=1, keepdim=True)
    line = torch.linspace(0, 1, losses.shape[1], dtype=losses.dtype)
    below = line - (losses - low) / (high - low).clamp(min=torch.finfo(losses.dtype).tiny)
    none = below.amax(dim=1) <= 0
    return torch.where(none, losses.shape[1] - 1, below.argmax(dim=1))


def learn(
    head: nn.Linear,
    optimizer: Adam,
    *,
    plain: Tensor,
    labels: Tensor,
    easy: Tensor,
    more: tuple[Tensor, ...],
    generator: torch.Generator,
    watcher: Watcher,
) -> None:
    """Train a last layer for ``EPOCHS`` epochs, in place.

    Args:
        head: the layer.
        optimizer: of its parameters.
        plain: features of the pictures, (N, D).
        labels: theirs, (N,).
        easy: positions of the easy ones, (n,).
        more: features of what was made of these, (n, D) each.
        generator: draws the order.
        watcher: told after every epoch.
    """
    row = torch.full_like(labels, -1)  # of a picture among the easy ones
    row[easy] = torch.arange(len(easy))
    for epoch in range(1, EPOCHS + 1):
        order = torch.tensor(shuffled(len(labels), generator))
        for batch in torch.split(order, BATCH):
            loss = class_loss(head(plain[batch]), labels[batch])
            rows = row[batch][row[batch] >= 0]
            if len(rows):
                answers = labels[easy[rows]]
                loss = loss + ALPHA * sum(class_loss(head(f[rows]), answers) for f in more)
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            optimizer.step()
        watcher(Progress(stage="finetune", done=epoch, total=EPOCHS))


def _hot_shares(layer: LastLayer, few: Split, store: HeatStore, steps: Steps) -> Tensor:
    """Find the share of each picture that is its hot part, (n,) float64."""
    seed = layer.context.config.seed
    losses: list[Tensor] = []
    for share in HOT:
        keep = hot_parts(store, torch.full((len(few),), share, dtype=torch.float64))
        keep = filled(keep, "mean", split=few, seed=seed, stage="dac")
        features = layer.features(few, keep=keep, watcher=steps.next())
        losses.append(_losses(layer, features, few.labels))
    return torch.tensor(HOT, dtype=torch.float64)[elbow(torch.stack(losses, dim=1))]


def _losses(layer: LastLayer, features: Tensor, labels: Tensor) -> Tensor:
    """Return the cross entropy of the model before for every picture, (N,)."""
    return class_loss(logits_by(layer.numbers, features), labels, reduction="none")


def _fresh(layer: LastLayer) -> nn.Linear:
    """Return a last layer that begins anew, as the authors' does."""
    weight, bias = layer.numbers
    head = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
    nn.init.xavier_uniform_(head.weight)
    if head.bias is not None:
        nn.init.zeros_(head.bias)
    return head
