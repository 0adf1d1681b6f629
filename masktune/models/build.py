"""Architectures by name: the project's own, torchvision's, timm's and the user's."""

from torch import nn

from masktune.config import names_code
from masktune.errors import ModelError
from masktune.models.channels import one_channel, takes_grey
from masktune.models.makers import imported, timm_network, users_network
from masktune.models.networks import CIFAR_DEPTHS, SMALL, CifarResNet, LastReLU, SmallCNN
from masktune.seeds import isolated

TIMM = "timm/"
"""What the name of an architecture of the optional package timm starts with."""

SIDE_EXITS = ("googlenet", "inception_v3")
"""Networks that can have more heads than one; their checkpoints may hold them or not."""


def architectures() -> list[str]:
    """Name everything that ``build`` makes without another package or the user's code."""
    import torchvision  # here and below only: importing it takes longer than importing PyTorch

    own = [*SMALL, *CIFAR_DEPTHS]
    return own + torchvision.models.list_models(module=torchvision.models)  # type: ignore[no-any-return]


def build(
    arch: str,
    classes: int,
    *,
    channels: int = 3,
    size: int | tuple[int, int] | None = None,
    aux: bool = False,
    seed: int = 0,
) -> nn.Module:
    """Make a model with fresh weights.

    A model made for one channel takes RGB pictures all the same: it looks at their luma.

    Args:
        arch: one of ``architectures()``; "timm/NAME" when the package timm is installed; or
            "package.module:factory" for a class or function of the user's, which is imported and
            called: see ``names_code``.
        classes: number of logits; 1 is a sigmoid head for two classes.
        channels: colour channels the first layer sees; 1 or 3 for all but the own networks.
        size: (H, W) of the pictures or one side of square ones, for transformers with weights for
            every place; others take any. By default what the architecture was published with.
        aux: give GoogLeNet and Inception their side exits, as checkpoints of torchvision have.
        seed: the same seed gives the same weights.

    Returns:
        The model on the CPU, in training mode.
    """
    if classes < 1:
        raise ModelError(f"A model cannot have {classes} logits.", "Give it one or more.")
    if aux and arch not in SIDE_EXITS:
        raise ModelError(f"{arch} has no side exits.", "Leave aux out.")
    if isinstance(size, int):
        size = (size, size)
    # Before the seed is set: importing the user's code may draw random numbers too.
    code = imported(arch) if names_code(arch) and not arch.startswith(TIMM) else None
    with isolated(seed, "weights"):
        if code is not None:
            model = users_network(code, arch, classes)
        elif arch in SMALL:
            model = SmallCNN(classes, channels=channels, **SMALL[arch])
        elif arch in CIFAR_DEPTHS:
            model = CifarResNet(CIFAR_DEPTHS[arch], classes, channels=channels)
        elif arch.startswith(TIMM):
            name = arch.removeprefix(TIMM)
            model = timm_network(name, classes, channels=channels, size=size)
        else:
            model = _torchvision(arch, classes, channels=channels, size=size, aux=aux)
        return takes_grey(model, channels=channels)


def _torchvision(
    arch: str, classes: int, *, channels: int, size: tuple[int, int] | None, aux: bool
) -> nn.Module:
    if arch not in architectures():
        raise ModelError(
            f"There is no architecture '{arch}'.",
            f"Use small-cnn, {', '.join(CIFAR_DEPTHS)} or a torchvision name such as resnet18.",
        )
    if channels not in (1, 3):
        raise ModelError(
            f"{arch} takes 1 or 3 colour channels, not {channels}.", "Give it RGB pictures."
        )
    import torchvision

    maker = torchvision.models.get_model_builder(arch)
    extra: dict[str, object] = {}
    # With side exits they return a tuple of logits while training, and torchvision's default is
    # to start their weights with SciPy's slow truncated normal.
    if arch in SIDE_EXITS:
        extra = {"aux_logits": aux, "init_weights": False}
    if size is not None and arch.startswith("vit_"):
        if size[0] != size[1]:
            raise ModelError(
                f"{arch} takes square pictures, not {size[0]}x{size[1]}.",
                "Choose a square size, or a network that takes any such as swin_t.",
            )
        extra = {"image_size": size[0]}
    if size is not None and arch.startswith("maxvit"):
        extra = {"input_size": size}
    try:
        model: nn.Module = maker(weights=None, num_classes=classes, **extra)
    except (AssertionError, ValueError) as error:  # torchvision's words for sizes that do not fit
        if size is None:
            raise
        raise ModelError(
            f"{arch} cannot be built for {size[0]}x{size[1]} pictures: {error}",
            "Use 224x224 pictures, or a convolutional network such as resnet18.",
        ) from error
    if arch.startswith("densenet"):
        model.get_submodule("features").add_module("relu5", LastReLU())
    return one_channel(model) if channels == 1 else model
