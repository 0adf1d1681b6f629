"""Architectures by name, and the layer to look at."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from masktune.errors import ModelError
from masktune.modes import evaluating
from masktune.seeds import isolated

SMALL_STRIDES = {"small-cnn": 1, "small-cnn-stride2": 2}
"""Stride of the small CNN's first convolution: the paper's, and one for larger pictures."""

CIFAR_DEPTHS = {"resnet20": 3, "resnet32": 5, "resnet44": 7, "resnet56": 9, "resnet110": 18}
"""Blocks a stage of the CIFAR ResNets; torchvision has no networks of these depths."""


class SmallCNN(nn.Module):
    """The paper's network for MNIST: four convolutional layers and a head.

    The paper gives no widths; these are the ones its code uses. Unpadded convolutions take a
    28 x 28 picture to 26, 24, (pool) 12, 10 and 8, where the heat is read; the last pooling always
    ends at 4 x 4, so other sizes from 28 up fit too. A stride in the first convolution makes it
    four times as fast on larger pictures.
    """

    def __init__(self, classes: int = 2, *, channels: int = 3, stride: int = 1) -> None:
        super().__init__()
        self.features = nn.Sequential(
            *_conv(channels, 16, stride),
            *_conv(16, 16),
            nn.MaxPool2d(2),
            *_conv(16, 32),
            *_conv(32, 32),
        )
        self.hidden = nn.Linear(32 * 4 * 4, 256)
        self.head = nn.Linear(256, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Give the logits (N, K) of normalised images (N, C, H, W)."""
        maps = self.features(images)  # (N, 32, h, w)
        window = (maps.shape[2] // 4, maps.shape[3] // 4)
        cells = F.max_pool2d(maps, window, window)[:, :, :4, :4]  # (N, 32, 4, 4)
        hidden = F.relu(self.hidden(cells.flatten(1)))
        return self.head(hidden)  # type: ignore[no-any-return]


def _conv(inputs: int, outputs: int, stride: int = 1) -> tuple[nn.Module, ...]:
    convolution = nn.Conv2d(inputs, outputs, 3, stride)
    return convolution, nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)


class CifarBlock(nn.Module):
    """Two 3 x 3 convolutions and a shortcut without parameters."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self._stride = stride
        self._extra = outputs - inputs

    def forward(self, maps: Tensor) -> Tensor:
        """Take (N, C, H, W) to (N, C', H / stride, W / stride)."""
        shortcut = maps[:, :, :: self._stride, :: self._stride]
        # He et al.'s option A: new channels are zeros, half on each side.
        before = self._extra // 2
        shortcut = F.pad(shortcut, (0, 0, 0, 0, before, self._extra - before))
        out = F.relu(self.bn1(self.conv1(maps)))
        return F.relu(self.bn2(self.conv2(out)) + shortcut)


class CifarResNet(nn.Module):
    """He et al.'s ResNet for 32 x 32 pictures, of depth 6 n + 2.

    Names follow the public CIFAR ResNet checkpoints, which therefore load as they are.
    """

    def __init__(self, blocks: int, classes: int = 10, *, channels: int = 3) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 16, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = _stage(16, 16, 1, blocks)
        self.layer2 = _stage(16, 32, 2, blocks)
        self.layer3 = _stage(32, 64, 2, blocks)
        self.linear = nn.Linear(64, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                nn.init.kaiming_normal_(module.weight)

    def forward(self, images: Tensor) -> Tensor:
        """Give the logits (N, K) of normalised images (N, C, H, W)."""
        maps = F.relu(self.bn1(self.conv1(images)))
        maps = self.layer3(self.layer2(self.layer1(maps)))  # (N, 64, H / 4, W / 4)
        return self.linear(maps.mean(dim=(2, 3)))  # type: ignore[no-any-return]


def _stage(inputs: int, outputs: int, stride: int, blocks: int) -> nn.Sequential:
    first = CifarBlock(inputs, outputs, stride)
    return nn.Sequential(first, *(CifarBlock(outputs, outputs, 1) for _ in range(blocks - 1)))


def architectures() -> list[str]:
    """Name everything that ``build`` makes."""
    import torchvision  # here and below only: importing it takes longer than importing PyTorch

    own = [*SMALL_STRIDES, *CIFAR_DEPTHS]
    return own + torchvision.models.list_models(module=torchvision.models)  # type: ignore[no-any-return]


def build(arch: str, classes: int, *, channels: int = 3, seed: int = 0) -> nn.Module:
    """Make a model with fresh weights.

    Args:
        arch: one of ``architectures()``; a trailing "_v2" and the like as torchvision spells it.
        classes: number of logits.
        channels: colour channels of the pictures; torchvision's networks take 3.
        seed: the same seed gives the same weights.

    Returns:
        The model on the CPU, in training mode.
    """
    with isolated(seed, "weights"):
        if arch in SMALL_STRIDES:
            return SmallCNN(classes, channels=channels, stride=SMALL_STRIDES[arch])
        if arch in CIFAR_DEPTHS:
            return CifarResNet(CIFAR_DEPTHS[arch], classes, channels=channels)
        if arch not in architectures():
            raise ModelError(
                f"There is no architecture '{arch}'.",
                f"Use small-cnn, {', '.join(CIFAR_DEPTHS)} or a torchvision name such as resnet18.",
            )
        if channels != 3:
            raise ModelError(
                f"{arch} takes 3 colour channels, not {channels}.", "Give it RGB pictures."
            )
        return _torchvision(arch, classes)


def _torchvision(arch: str, classes: int) -> nn.Module:
    import torchvision

    maker = torchvision.models.get_model_builder(arch)
    extra: dict[str, bool] = {}
    # GoogLeNet and Inception return a tuple of logits while training unless told not to, and
    # start their weights with SciPy's slow truncated normal.
    if arch in ("googlenet", "inception_v3"):
        extra = {"aux_logits": False, "init_weights": False}
    return maker(weights=None, num_classes=classes, **extra)  # type: ignore[no-any-return]


def cam_layer(
    model: nn.Module, *, size: tuple[int, int] = (224, 224), channels: int = 3
) -> nn.Module:
    """Find the layer whose heat says most: the model's last spatial feature map.

    A probe picture shows which modules run in which order. The answer is the last module that
    gives a map as large as the last convolution's, so that it comes after batch norm, activation
    and shortcut, and before any pooling.

    Args:
        model: any convolutional network.
        size: (H, W) of the pictures it will see; small pictures leave no map in late layers.
        channels: colour channels of the pictures.

    Returns:
        A module of ``model``; its output is (N, C, h, w) with h * w > 1.
    """
    # Transformers first: given pictures of another size they assert instead of raising.
    attends = any("Attention" in type(m).__name__ for m in model.modules())
    calls = [] if attends else _trace(model, torch.zeros(1, channels, *size))
    maps = [(m, shape) for m, shape in calls if len(shape) == 4 and shape[2] * shape[3] > 1]
    convolutions = [i for i, (m, _) in enumerate(maps) if isinstance(m, nn.Conv2d)]
    if not convolutions:
        raise ModelError(
            f"{type(model).__name__} has no last convolutional feature map to look at.",
            "Name a layer whose output is (N, C, h, w), or use a convolutional network.",
        )
    last = convolutions[-1]
    area = maps[last][1][2:]
    candidates = [m for m, shape in maps[last:] if shape[2:] == area and not _pools(m)]
    return candidates[-1]


def _pools(module: nn.Module) -> bool:
    return "Pool" in type(module).__name__


def _trace(model: nn.Module, probe: Tensor) -> list[tuple[nn.Module, torch.Size]]:
    """Run the model once and list (module, output shape) in the order modules finish."""
    calls: list[tuple[nn.Module, torch.Size]] = []

    def note(module: nn.Module, _: object, output: object) -> None:
        if isinstance(output, Tensor) and module is not model:
            calls.append((module, output.shape))

    parameter = next(model.parameters(), None)
    if parameter is not None:
        probe = probe.to(parameter.device, parameter.dtype)
    hooks = [module.register_forward_hook(note) for module in model.modules()]
    try:
        with evaluating(model), torch.no_grad():
            model(probe)
    except (RuntimeError, ValueError) as error:
        side = "x".join(str(n) for n in probe.shape[2:])
        raise ModelError(
            f"{type(model).__name__} does not take {side} pictures: {error}",
            "Use another architecture or larger pictures.",
        ) from error
    finally:
        for hook in hooks:
            hook.remove()
    return calls


def spatial_layers(
    model: nn.Module, *, size: tuple[int, int] = (224, 224), channels: int = 3
) -> list[str]:
    """Name the layers whose output is a feature map (N, C, h, w) with h * w > 1, latest first.

    Of layers that give the same map (a block and its last activation) the outermost is named.
    """
    names = {module: name for name, module in model.named_modules()}
    found: dict[str, None] = {}
    for module, shape in reversed(_trace(model, torch.zeros(1, channels, *size))):
        if len(shape) == 4 and shape[2] * shape[3] > 1:
            found.setdefault(names[module])
    return list(found)


def layer_named(model: nn.Module, name: str) -> nn.Module:
    """Give the submodule called ``name``, such as "layer4.1"."""
    modules: dict[str, nn.Module] = dict(model.named_modules())
    if name not in modules or not name:
        ends = [n for n in modules if n][-5:]
        raise ModelError(
            f"The model has no layer '{name}'.", f"Its last layers are {', '.join(ends)}."
        )
    return modules[name]


def name_of(model: nn.Module, layer: nn.Module) -> str:
    """Give the name of a submodule, the inverse of ``layer_named``."""
    names: dict[nn.Module, str] = {module: name for name, module in model.named_modules()}
    return names[layer]
