"""The project's own networks: the paper's small CNN and the CIFAR ResNets."""

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

SMALL: dict[str, dict[str, Any]] = {
    "small-cnn": {},
    "small-cnn-stride2": {"stride": 2},
    "small-cnn-bn": {"norm": True},
}
"""The small CNNs by name: one as the paper tells it, one for larger pictures, the authors'."""

CIFAR_DEPTHS = {"resnet20": 3, "resnet32": 5, "resnet44": 7, "resnet56": 9, "resnet110": 18}
"""Blocks a stage of the CIFAR ResNets; torchvision has no networks of these depths."""


class SmallCNN(nn.Module):
    """The paper's network for MNIST: four convolutional layers and a head.

    The paper gives no widths; these are the ones its code uses. Unpadded convolutions take a
    28 x 28 picture to 26, 24, (pool) 12, 10 and 8, where the heat is read; the last pooling always
    ends at 4 x 4, so other sizes from 28 up fit too. A stride in the first convolution makes it
    four times as fast on larger pictures. The paper does not tell of a norm in the head; its code
    has one, in the order linear, batch norm, ReLU, linear.
    """

    def __init__(
        self, classes: int = 2, *, channels: int = 3, stride: int = 1, norm: bool = False
    ) -> None:
        super().__init__()
        self.features = nn.Sequential(
            *_conv(channels, 16, stride),
            *_conv(16, 16),
            nn.MaxPool2d(2),
            *_conv(16, 32),
            *_conv(32, 32),
        )
        self.hidden = nn.Linear(32 * 4 * 4, 256)
        self.norm = nn.BatchNorm1d(256) if norm else nn.Identity()
        self.head = nn.Linear(256, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Give the logits (N, K) of normalised images (N, C, H, W)."""
        maps = self.features(images)  # (N, 32, h, w)
        window = (maps.shape[2] // 4, maps.shape[3] // 4)
        cells = F.max_pool2d(maps, window, window)[:, :, :4, :4]  # (N, 32, 4, 4)
        hidden = F.relu(self.norm(self.hidden(cells.flatten(1))))
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


class LastReLU(nn.Module):
    """Gives the map that the head of torchvision's DenseNet sees.

    Its last ReLU is no module: no layer gives what comes after it, and before it channels of both
    signs nearly cancel, which XGradCAM divides by. One more ReLU changes no answer and no name in
    the state dict.
    """

    def forward(self, maps: Tensor) -> Tensor:
        """Set what is negative to zero, (N, C, h, w)."""
        # The network's own ReLU then works in place, on what a ReLU would need for its gradient.
        return maps.clamp(min=0)
