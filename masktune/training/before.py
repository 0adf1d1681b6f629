"""The model before: given, or trained by ERM."""

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.checkpoints.start import given_model, start_model
from masktune.training.context import Context
from masktune.training.fit import Resume, train
from masktune.training.masktune import layer_of


def model_before(context: Context, *, resume: Resume | None = None) -> Checkpoint:
    """Load the model that a run starts from, or train it by ERM, interruptibly by ``resume``."""
    config, card = context.config, context.bundle.card
    if config.model is not None:
        return given_model(config.model, card, config=config)
    start = start_model(config, card)
    layer_of(context, start)  # a network without maps is refused here, not after its training
    model = train(
        start,
        context.bundle.train,
        config=config.training,
        preprocess=context.preprocess,
        seed=config.seed,
        compute=context.compute,
        watcher=context.watcher,
        resume=resume,
    )
    return Checkpoint(
        model=model,
        arch=config.arch,
        classes=len(card.classes),
        lr=config.training.last_lr,
        mean=card.mean,
        std=card.std,
    )
