"""At which rate a finetune learns, where that rate is from, and whether it can move the model."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from masktune.config import RunConfig

if TYPE_CHECKING:  # rules are read without PyTorch
    from masktune.checkpoints.checkpoint import Checkpoint

ENOUGH = 0.5
"""Rate times steps that moved a model in the studies: digits 0.55 and stamped cows 0.75 did, the
same cows at 0.19 did not (docs/results.md); two squares went on gaining up to 15."""

MOST_TIMES = 5.0
"""How many times the usual rate at most: photographs were repaired at five times, not at ten."""

RATE_RULE = (
    "The rate, by rule of thumb: rate times steps of the epoch decides how far the model can move. "
    f"Where the usual rate does not reach {ENOUGH:g}, the one that does is suggested, at most "
    f"{MOST_TIMES:g} times the usual rate; none where the verdict is not that hiding takes away "
    "what the model leans on: a larger rate makes harm larger too. It holds for SGD with momentum "
    "only."
)
"""How a rate is suggested, for people."""

NOT_STORED = "the recipe's last one, as the file of the model stores none"
"""Where a rate is from that has nothing to do with how the model was trained."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinetuneRate:
    """The rate of a finetune.

    Attributes:
        lr: the rate.
        origin: in words, where it is from.
        steps: of the epoch; 0 where they cannot be compared with SGD's: Adam's have a size of
            their own.
    """

    lr: float
    origin: str
    steps: int

    @classmethod
    def of(cls, config: RunConfig, before: "Checkpoint | None", *, pictures: int) -> "FinetuneRate":
        """Return that of a run on so many pictures: as set, else the last one of the model before.

        Where the file of the model stores none, or the model is yet to be trained (None), that is
        the last one of the recipe.
        """
        training = config.training
        steps = math.ceil(pictures / training.batch_size) if training.optimizer == "sgd" else 0
        if config.finetune_lr is not None:
            return cls(lr=config.finetune_lr, origin="as given", steps=steps)
        stored = None if before is None else before.lr
        if config.model is None:
            origin = "the last one of the ERM"
        elif stored:
            origin = "the last one that the model before was trained with"
        else:
            origin = NOT_STORED
        return cls(lr=stored or training.last_lr, origin=origin, steps=steps)


def suggest_rate(
    usual: float | None, steps: int, *, called: str = "The usual rate"
) -> tuple[float | None, str]:
    """Suggest a rate, whatever the verdict is, and say why; None where the usual one will do.

    Args:
        usual: rate of a finetune; None where its steps cannot be compared.
        steps: of its epoch.
        called: what that rate is to those who read why.

    >>> suggest_rate(0.01, 19)[0], suggest_rate(0.002, 16)[0], suggest_rate(0.01, 50)[0]
    (0.027, 0.01, None)
    """
    if usual is None or not steps or usual * steps >= ENOUGH:
        return None, ""
    wanted = min(ENOUGH / steps, MOST_TIMES * usual)
    # Rounded up to two digits: what is suggested reaches what the rule asks for.
    unit = 10.0 ** (math.floor(math.log10(wanted)) - 1)
    lr = float(f"{math.ceil(round(wanted / unit, 6)) * unit:.2g}")
    return lr, (
        f"{called}, {usual:g}, times {steps:,} steps is {usual * steps:.2g}: under "
        f"{ENOUGH:g} models hardly moved."
    )
