"""Networks that come from elsewhere: the optional package timm, and the user's own code."""

import importlib
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from torch import nn

from masktune.errors import ModelError

CODE_FAILURES = (
    ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, NameError, OSError,
    RuntimeError, SyntaxError, TypeError, ValueError,
)  # fmt: skip
"""What somebody else's code may raise for reasons of its own; a bug of ours is none of it."""

CLASS_COUNTS = ("classes", "num_classes", "n_classes", "nclasses", "num_labels")
"""What people call the number of classes."""


def timm_network(
    name: str, classes: int, *, channels: int, size: tuple[int, int] | None
) -> nn.Module:
    """Make a network of timm's, without weights from the network."""
    timm = _timm(name)
    # Also keeps away names such as "hf-hub:...", which timm would download.
    if not timm.is_model(name):
        raise ModelError(
            f"timm has no architecture '{name}'.", "Choose a name that timm.list_models() gives."
        )
    create = partial(
        timm.create_model, name, pretrained=False, num_classes=classes, in_chans=channels
    )
    try:
        model: nn.Module = create()
        made_for = getattr(getattr(model, "patch_embed", None), "img_size", None)
        if size is not None and made_for is not None and tuple(made_for) != size:
            # Only networks with weights for every place know the word.
            model = create(img_size=size)
    except CODE_FAILURES as error:
        wanted = "" if size is None else f" for {size[0]}x{size[1]} pictures"
        raise ModelError(
            f"timm could not build {name}{wanted}: {error}",
            "Choose another architecture, or the picture size it was published with.",
        ) from error
    return model


def timm_address(name: str) -> str:
    """Return the web address of weights of timm's, such as "tf_efficientnet_lite0.in1k"."""
    timm = _timm(name)
    if not timm.is_model_pretrained(name):
        raise ModelError(
            f"timm has no weights '{name}'.", "Choose a name that timm.list_pretrained() gives."
        )
    held = timm.get_pretrained_cfg(name)
    if not held.hf_hub_id:
        return str(held.url)
    # Safetensors, which cannot run code; timm itself would also take a pickle.
    hub = importlib.import_module("huggingface_hub")  # timm needs it, so it is there
    return str(hub.hf_hub_url(held.hf_hub_id, held.hf_hub_filename or "model.safetensors"))


def _timm(name: str) -> Any:  # noqa: ANN401 - a module, which has no type of its own
    try:
        return importlib.import_module("timm")
    except ModuleNotFoundError as error:
        raise ModelError(
            f"timm/{name} needs the package timm, which is not installed.",
            "Install it with: pip install timm.",
        ) from error


def users_network(make: Callable[..., object], arch: str, classes: int) -> nn.Module:
    """Call a factory that ``imported`` gave for ``arch``.

    A factory with a parameter named like a number of classes is given it by that name. Otherwise
    its first parameter gets it, unless a default that is no whole number shows that it means
    something else. A factory without such a parameter is called with nothing.
    """
    try:
        model = _called(make, classes)
    except CODE_FAILURES as error:
        raise ModelError(
            f"{arch} failed with {type(error).__name__}: {error}",
            f"Make it run by itself first, as {arch.partition(':')[2]}({classes}).",
        ) from error
    if not isinstance(model, nn.Module):
        raise ModelError(
            f"{arch} gave a {type(model).__name__}, not a torch.nn.Module.",
            "Return the model from the function, or name its class.",
        )
    return model.train()


def imported(arch: str) -> Callable[..., object]:
    """Import "package.module:factory"."""
    module_name, _, name = arch.partition(":")
    if not all(part.isidentifier() for part in [*module_name.split("."), *name.split(".")]):
        raise ModelError(
            f"'{arch}' names no class or function.", "Write it as package.module:factory."
        )
    try:
        found: Any = importlib.import_module(module_name)
    except CODE_FAILURES as error:
        # The module may be there and import another that is not.
        absent = error.name if isinstance(error, ModuleNotFoundError) else None
        if absent is not None and f"{module_name}.".startswith(f"{absent}."):
            raise ModelError(
                f"There is no Python module '{absent}'.",
                "Start the command in the folder that holds it, or put that on PYTHONPATH.",
            ) from error
        raise ModelError(
            f"Importing {module_name} failed with {type(error).__name__}: {error}",
            f"Make it import by itself first: python -c 'import {module_name}'.",
        ) from error
    for part in name.split("."):
        if not hasattr(found, part):
            makers = [n for n, value in vars(found).items() if callable(value) and n[:1] != "_"]
            raise ModelError(
                f"{module_name} has no '{name}'.",
                f"It has {', '.join(makers[:8])}." if makers else "Define it there.",
            )
        found = getattr(found, part)
    if isinstance(found, nn.Module) or not callable(found):
        raise ModelError(
            f"{arch} is a {type(found).__name__}, not a class or function.",
            "Name the class, or a function that returns the model.",
        )
    return found  # type: ignore[no-any-return]


def _called(make: Callable[..., object], classes: int) -> object:
    parameters = inspect.signature(make).parameters
    for name in CLASS_COUNTS:
        if name in parameters and parameters[name].kind is not inspect.Parameter.POSITIONAL_ONLY:
            return make(**{name: classes})
    first = next(iter(parameters.values()), None)
    if first is None or first.kind in (first.KEYWORD_ONLY, first.VAR_KEYWORD):
        return make()
    counts = first.default is first.empty or type(first.default) is int
    return make(classes) if counts else make()
