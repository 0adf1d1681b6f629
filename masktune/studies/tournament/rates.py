"""At which rates the methods of a tournament learn: said before they do, and beside their table."""

import math
from collections.abc import Sequence
from typing import Any

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.config import BY_RECIPE, LAST_LAYER
from masktune.studies.tournament.plan import NONE, Request, title
from masktune.training.rates import FinetuneRate, suggest_rate


def learning(request: Request, before: Checkpoint | None, *, pictures: int) -> dict[str, Any]:
    """Return at which rates each kind of method learns, as a JSON document.

    "finetune" is that of MaskTune and its controls, "recipe" that of methods that train by it, each
    None where there is no such method; "words" says them in a sentence, and in a second one if the
    rule of advice finds the finetune's too small to move the model before.

    Args:
        request: what is set side by side.
        before: the model before; None where it is yet to be trained.
        pictures: of the training set.
    """
    last_layer = [name for name in request.methods if name in LAST_LAYER]
    by_recipe = [name for name in request.methods if name in BY_RECIPE]
    finetuned = [name for name in request.methods if name not in (*last_layer, *by_recipe)]
    finetune: dict[str, Any] | None = None
    recipe: dict[str, Any] | None = None
    said: list[str] = []
    warning: list[str] = []
    if finetuned:
        config = request.configs[NONE]
        rate = FinetuneRate.of(config, before, pictures=pictures)
        lrs = [factor * rate.lr for factor in request.rates]
        finetune = {"methods": finetuned, "lr": lrs, "steps": rate.steps or None}
        said.append(f"{_rates(lrs)} in the finetune of {_titles(finetuned)} ({rate.origin})")
        warning = _warning(lrs, usual=rate.lr, steps=rate.steps)
    if by_recipe:
        training = request.configs[by_recipe[0]].training
        lrs = [factor * training.lr for factor in request.rates]
        recipe = {"methods": by_recipe, "lr": lrs, "epochs": training.epochs}
        epochs = "epoch" if training.epochs == 1 else "epochs"
        said.append(
            f"{_rates(lrs)} at the start of {training.epochs} {epochs} of {_titles(by_recipe)}"
        )
    if last_layer:
        said.append(f"the method's own in the last layer of {_titles(last_layer)}")
    sentence = f"Learning rates: {'; '.join(said)}."
    return {"finetune": finetune, "recipe": recipe, "words": [sentence, *warning]}


def _warning(lrs: Sequence[float], *, usual: float, steps: int) -> list[str]:
    called = "The finetune's rate" if len(lrs) == 1 else "The finetune's largest rate"
    wanted, why = suggest_rate(max(lrs), steps, called=called)
    if wanted is None:
        return []
    factor = math.ceil(10 * wanted / usual) / 10
    why += f" Try a rate of {wanted:g}."
    return [f"{why} Rates are factors on the usual one: give {factor:g} for it."]


def _rates(lrs: Sequence[float]) -> str:
    return ", ".join(f"{lr:g}" for lr in lrs)


def _titles(methods: Sequence[str]) -> str:
    return ", ".join(map(title, methods))
