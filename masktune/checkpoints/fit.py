"""Which architecture do these weights belong to?"""

import importlib.util
import math
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from masktune.checkpoints.blueprint import (
    Blueprint,
    blueprints,
    digest,
    is_extra,
    newer,
    outline,
    roots,
    shapes,
)
from masktune.checkpoints.hugging_face import as_torchvision
from masktune.config import names_code
from masktune.errors import ModelError
from masktune.models.build import TIMM

NEAREST = 6
"""Architectures that are looked at closely where none fits."""

PREFIXES = (
    "module.", "_orig_mod.", "model.", "network.", "backbone.", "net.", "encoder.", "attacker.",
    "feature_extractor.", "featurizer.", "classifier.", "algorithm.", "0.", "1.",
)  # fmt: skip
"""What wrappers put before the names of the model inside them."""

_DENSE = re.compile(r"(denselayer\d+\.(?:norm|relu|conv))\.([12])\.")
"""Names in torchvision's DenseNet files, which are from 2017: norm.1 is norm1 today."""

_TIMM = {
    "patch_embed.proj.weight": {
        96: "swin_tiny_patch4_window7_224 swin_small_patch4_window7_224",
        128: "swin_base_patch4_window7_224",
        192: "vit_tiny_patch16_224 deit_tiny_patch16_224 deit_tiny_distilled_patch16_224 "
        "swin_large_patch4_window7_224",
        384: "vit_small_patch16_224 vit_small_patch32_224 deit_small_patch16_224 "
        "deit_small_distilled_patch16_224",
        768: "vit_base_patch16_224 vit_base_patch32_224 vit_base_patch8_224 deit_base_patch16_224 "
        "deit_base_distilled_patch16_224",
        1024: "vit_large_patch16_224 vit_large_patch32_224",
    },
    "stages.0.blocks.0.conv_dw.weight": {
        40: "convnext_atto convnextv2_atto", 48: "convnext_femto convnextv2_femto",
        64: "convnext_pico convnextv2_pico", 80: "convnext_nano convnextv2_nano",
        96: "convnext_tiny convnextv2_tiny convnext_small convnextv2_small",
        128: "convnext_base convnextv2_base", 192: "convnext_large convnextv2_large",
        256: "convnext_xlarge convnextv2_xlarge",
    },
    "conv_stem.weight": {
        16: "mobilenetv3_small_050 mobilenetv3_small_075 mobilenetv3_small_100 "
        "mobilenetv3_large_100",
        32: "efficientnet_b0 efficientnet_b1 efficientnet_b2 mobilenetv2_100 efficientnet_lite0 "
        "efficientnet_lite1 efficientnet_lite2 efficientnet_lite3 efficientnet_lite4",
        40: "efficientnet_b3", 48: "efficientnet_b4 efficientnet_b5", 56: "efficientnet_b6",
        64: "efficientnet_b7",
    },
    "conv1.0.weight": {32: "resnet18d resnet26d resnet34d resnet50d resnet101d"},
    "layer1.0.se.fc1.weight": {8: "seresnet18 seresnet34", 16: "seresnet50"},
}  # fmt: skip
"""A tensor that tells a family of timm's by its first dimension, and timm's names of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """How tensors fill an architecture.

    Attributes:
        arch: its name.
        classes: number of logits.
        channels: colour channels.
        size: (H, W) it is made for, None where it takes any.
        model: its layers; the weights may have no numbers yet.
        names: {name in the file: name in the model} of what fits.
        missing: names in the model that are not in the file, or there in another shape.
        unexpected: names in the file that the model has no place for.
    """

    arch: str
    classes: int
    channels: int
    size: tuple[int, int] | None
    model: nn.Module
    names: dict[str, str]
    missing: tuple[str, ...]
    unexpected: tuple[str, ...]

    @property
    def whole(self) -> bool:
        """Whether every tensor has its place and every place its tensor."""
        return not self.missing and not self.unexpected

    @property
    def headless(self) -> bool:
        """Whether all that is missing is the last layer."""
        plan = _blueprint(self.arch)
        return bool(plan and self.missing and set(self.missing) <= set(plan.heads))


def fits(tensors: dict[str, Tensor], *, hint: str | None) -> list[Fit]:
    """Find every architecture that these tensors, by their names in the file, fill exactly.

    ``hint`` is the architecture as the file says it; tried first, for it may tell apart what
    tensors cannot. Return all that fit, none or several of them too.
    """
    timm = importlib.util.find_spec("timm") is not None
    if hint is not None:
        named = [hint] if _blueprint(hint) else []
        if timm and not names_code(hint):
            named.append(TIMM + hint.removeprefix(TIMM))
        for arch in named:
            with suppress(ModelError):  # timm may not have the name
                if (found := fit(tensors, arch)).whole:
                    return [found]
    views = list(renamings(tensors))
    for known in (blueprints, newer):
        for view in views:
            names = digest(view.values())
            same = [arch for arch, plan in known().items() if plan.digest == names]
            if whole := [one for arch in same if (one := _fit(tensors, view, arch)).whole]:
                return whole
    for view in views:
        if headed := [one for one in _other_heads(tensors, view) if one.whole]:
            return headed
    for view, name in timm_guesses(tensors) if timm else ():
        with suppress(ModelError):  # not every version of timm has every name
            if (found := _fit(tensors, view, TIMM + name)).whole:
                return [found]
    return []


def fit(tensors: dict[str, Tensor], arch: str) -> Fit:
    """Fill one architecture as well as the tensors can; a ModelError where there is none."""
    found = []
    for view in renamings(tensors):
        found += [_fit(tensors, view, arch), *_other_heads(tensors, view, arch)]
    return max(found, key=lambda one: (one.whole, len(one.names)))


def nearest(tensors: dict[str, Tensor]) -> Fit | None:
    """Find the architecture that comes closest; None where nothing is alike."""
    near: list[tuple[float, int, str, dict[str, str]]] = []
    for view in renamings(tensors):
        mine, count = set(roots(view.values())), sum(not is_extra(n) for n in view.values())
        for arch, plan in blueprints().items():
            alike = len(mine & set(plan.roots)) / max(1, len(mine | set(plan.roots)))
            near.append((-alike, abs(plan.tensors - count), arch, view))
    near.sort(key=lambda row: row[:3])
    found = [_fit(tensors, view, arch) for alike, _, arch, view in near[:NEAREST] if alike < 0]
    best = max(found, key=lambda one: (len(one.names), -len(one.missing)), default=None)
    return best if best and best.names else None


def fill(found: Fit, tensors: dict[str, Tensor]) -> nn.Module:
    """Put the tensors of a whole fit into its model.

    It is on the CPU, in evaluation mode, with weights of its own in the model's precision.
    """
    wanted = found.model.state_dict()
    state = {
        ours: tensors[theirs].detach().to(wanted[ours].dtype, copy=True)
        for theirs, ours in found.names.items()
    }
    # Not strict, for old files do not count batches; what is missing was looked at before.
    bare = any(value.is_meta for value in wanted.values())
    found.model.load_state_dict(state, strict=False, assign=bare)
    return found.model.requires_grad_(True).eval()


def _blueprint(arch: str) -> Blueprint | None:
    if arch in blueprints():
        return blueprints()[arch]
    return None if names_code(arch) or arch.startswith(TIMM) else newer().get(arch)


def _fit(tensors: dict[str, Tensor], view: dict[str, str], arch: str) -> Fit:
    """Fill an architecture by names as ``view`` has them; the classes come off the head."""
    # A tensor without numbers can have any shape, such as that of a billion classes.
    found = {ours: tensors[theirs] for theirs, ours in view.items() if tensors[theirs].numel()}
    plan = _blueprint(arch)
    matrices = [value for name, value in found.items() if value.ndim == 2 and not is_extra(name)]
    head = found.get(plan.heads[0]) if plan else matrices[-1] if matrices else None
    classes = head.shape[0] if head is not None and head.ndim >= 2 else 1
    channels, size = _channels(found, plan), _size(found)
    if channels == 1 and plan is None and _stem_channels(found, arch, classes) != 1:
        channels = 3
    try:
        model = outline(arch, classes, channels=channels, size=size)
    except ModelError:
        # Names and shapes of another network may ask for a size this one cannot have.
        model, size = outline(arch, classes), None
    wanted = shapes(model)
    names: dict[str, str] = {}
    unexpected = []
    first: dict[str, str] = {}
    for theirs, ours in view.items():
        fits_here = wanted.get(ours) == tuple(tensors[theirs].shape)
        # Names that have become one must stand for one tensor.
        if fits_here and _same(tensors[first.setdefault(ours, theirs)], tensors[theirs]):
            names[theirs] = ours
        elif not is_extra(theirs):
            unexpected.append(theirs)
    left = wanted.keys() - names.values()
    return Fit(
        arch=arch,
        classes=classes,
        channels=channels,
        size=size,
        model=model,
        names=names,
        missing=tuple(name for name in wanted if name in left and not is_extra(name)),
        unexpected=tuple(unexpected),
    )


def _same(one: Tensor, other: Tensor) -> bool:
    return one is other or (one.dtype == other.dtype and torch.equal(one, other))


def _other_heads(tensors: dict[str, Tensor], view: dict[str, str], only: str = "") -> list[Fit]:
    """Try backbones with a last layer that somebody gave a name of his own."""
    count = len({ours for ours in view.values() if not is_extra(ours)})
    found = []
    for arch, plan in blueprints().items():
        if plan.tensors != count or len(plan.heads) != 2 or only not in ("", arch):
            continue
        for weight in view:
            bias = weight.removesuffix("weight") + "bias"
            if not weight.endswith(".weight") or tensors[weight].ndim != 2 or bias not in view:
                continue
            renamed = {**view, weight: plan.heads[0], bias: plan.heads[1]}
            if digest(renamed.values()) == plan.digest:
                found.append(_fit(tensors, renamed, arch))
    return found


def timm_guesses(tensors: dict[str, Tensor]) -> Iterator[tuple[dict[str, str], str]]:
    """Yield what timm may call a network with these tensors, and how their names are to be read."""
    for view in renamings(tensors):
        found = {ours: tensors[theirs].shape for theirs, ours in view.items()}
        for mark, names in _TIMM.items():
            told = names.get(found[mark][0], "") if found.get(mark) else ""
            yield from ((view, name) for name in told.split())


def renamings(names: Iterable[str]) -> Iterator[dict[str, str]]:
    """Guess how names in a file lose what wrappers added, most careful guess first.

    First a prefix is taken off only while all names have it, then from each name that has one.
    Two names may become one: robustness stores its network twice.

    Yields:
        {name in the file: name without prefix}; a caller takes the first that fits.
    """
    current = {name: as_torchvision(_DENSE.sub(r"\1\2.", name)) for name in names}
    yield current
    while prefix := next((p for p in PREFIXES if _all_have(current.values(), p)), None):
        current = {name: inner.removeprefix(prefix) for name, inner in current.items()}
        yield current
    # Transformers have an encoder of their own, and many networks a classifier: first without.
    own = ("encoder.", "classifier.", "0.", "1.")
    for prefixes in (tuple(p for p in PREFIXES if p not in own), PREFIXES):
        before = re.compile(f"^({'|'.join(map(re.escape, prefixes))})+")
        loose = {name: before.sub("", inner) for name, inner in current.items()}
        if loose != current:
            yield loose


def _all_have(names: Iterable[str], prefix: str) -> bool:
    judged = [name for name in names if not is_extra(name)]
    return bool(judged) and all(name.startswith(prefix) for name in judged)


def _channels(found: dict[str, Tensor], plan: Blueprint | None) -> int:
    kernels = (value for value in found.values() if value.ndim == 4)
    stem = found.get(plan.stem) if plan else next(kernels, None)
    channels = stem.shape[1] if stem is not None and stem.ndim == 4 else 3
    return channels if plan or channels == 1 else 3


def _stem_channels(found: dict[str, Tensor], arch: str, classes: int) -> int:
    """Return the colour channels of the first kernel in the order of the network, not of the file.

    A safetensors file has the order of the alphabet, where a depthwise kernel may come first.
    """
    names = (name for name, shape in shapes(outline(arch, classes)).items() if len(shape) == 4)
    stem = found.get(next(names, ""))
    return 3 if stem is None or stem.ndim != 4 else stem.shape[1]


def _size(found: dict[str, Tensor]) -> tuple[int, int] | None:
    """Read the picture size of a ViT off its places: a class token and a square of patches."""
    for places, patch in (
        ("encoder.pos_embedding", "conv_proj.weight"),
        ("pos_embed", "patch_embed.proj.weight"),
    ):
        held, kernel = found.get(places), found.get(patch)
        if held is not None and kernel is not None and held.ndim == 3 and kernel.ndim == 4:
            side = math.isqrt(held.shape[1] - 1) * kernel.shape[2]
            return (side, side) if side else None
    return None
