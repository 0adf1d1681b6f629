"""Released weights as rows of a paper's table: asked about the test sets, never trained."""

from collections.abc import Mapping
from dataclasses import replace

from accelerate import Accelerator

from masktune.checkpoints.settings import settings
from masktune.checkpoints.start import given_model
from masktune.errors import ConfigError
from masktune.progress import Watcher
from masktune.runs.load import load_for
from masktune.scores.groups import Summary
from masktune.scores.result import scorer
from masktune.studies.paper import printed
from masktune.studies.reproduce import Request
from masktune.training.context import Context

RELEASED = ", released weights"
"""How the name of such a row ends in the paper's figures."""

DATASET = "imagenet9-1000"
"""What they are asked about: they answer by ImageNet's 1000 classes."""

Given = Mapping[str, Mapping[str, Summary]]
"""What was found out about them, by the row's name and the test set's."""


def released(recipe: str) -> list[str]:
    """Return whose released weights an experiment prints figures of.

    >>> released("imagenet9-table"), released("celeba-table")
    (['SIN', 'IN+SIN'], [])
    """
    arms = dict.fromkeys(number.arm for number in printed(recipe))
    return [arm.removesuffix(RELEASED) for arm in arms if arm.endswith(RELEASED)]


def check_given(request: Request) -> None:
    """Refuse weights of which the experiment has no row."""
    known = released(request.recipe)
    for name, _ in request.given:
        if name not in known:
            raise ConfigError(
                f"'{request.recipe}' has no row of released weights called '{name}'.",
                f"Give {' or '.join(f'--given {one}=FILE' for one in known)}."
                if known
                else "Leave --given out; imagenet9-table has such rows.",
            )


def ask_given(request: Request, *, compute: Accelerator, watcher: Watcher) -> Given:
    """Return what every given checkpoint comes to on the test sets of the experiment."""
    found = {}
    for name, file in request.given:
        asked = {"dataset": DATASET, "model": file, "root": request.root, "strategy": "none"}
        config = replace(settings(asked), frame=request.asked().recipe.frame, device=request.device)
        bundle = load_for(config, watcher=watcher)
        model = given_model(file, bundle.card, config=config).model
        context = Context(config=config, bundle=bundle, compute=compute, watcher=watcher)
        sum_up = scorer(bundle)
        found[f"{name}{RELEASED}"] = {
            test: sum_up(context.ask(model, split, watcher=watcher))
            for test, split in bundle.tests.items()
        }
    return found
