"""What somebody should hear before the epoch that can be known before any heat."""

from dataclasses import replace

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.config import BUNDLED, MASKTUNE
from masktune.scores.class_order import better_order
from masktune.scores.result import VALIDATION
from masktune.training.context import Context
from masktune.training.rates import FinetuneRate


def foretell(context: Context, before: Checkpoint) -> Context:
    """Tell the rate of a finetune, and an order of the classes in which a given model does better.

    The context that is returned knows what the model answered: nobody asks again.
    """
    config, bundle = context.config, context.bundle
    if config.rival == MASKTUNE:
        context.tell(FinetuneRate.of(config, before, pictures=len(bundle.train)))
    own = config.model in (None, BUNDLED)
    if own or config.class_order is not None or bundle.card.pool:
        return context
    said = context.said.get(VALIDATION)
    if said is None:
        with context.timed("evaluate"):
            said = context.ask(before.model, bundle.validation)
    if found := better_order(said):
        context.tell(found)
    return replace(context, said={**context.said, VALIDATION: said})
