"""Names timm could have for a network, read off its tensors."""

from collections.abc import Iterator, Mapping

Shape = tuple[int, ...]

_WIDTHS = {192: "tiny", 384: "small", 768: "base", 1024: "large"}
_CONVNEXT = {
    40: ("atto",), 48: ("femto",), 64: ("pico",), 80: ("nano",),
    96: ("tiny", "small"), 128: ("base",), 192: ("large",), 256: ("xlarge",),
}  # fmt: skip
_SWIN = {96: ("tiny", "small"), 128: ("base",), 192: ("large",)}
_STEMS = ("efficientnet_b{}", "tf_efficientnet_b{}")


def timm_names(shapes: Mapping[str, Shape]) -> Iterator[str]:
    """Guess names of timm's for tensors of these shapes, at most a few.

    Args:
        shapes: of all tensors, by name without prefixes.

    >>> list(timm_names({"patch_embed.proj.weight": (192, 3, 16, 16), "cls_token": (1, 1, 192)}))
    ['vit_tiny_patch16_224', 'deit_tiny_patch16_224']
    """
    patch = shapes.get("patch_embed.proj.weight", ())
    if len(patch) == 4 and "cls_token" in shapes and patch[0] in _WIDTHS:
        width, distilled = _WIDTHS[patch[0]], "dist_token" in shapes
        for family in ("deit",) if distilled else ("vit", "deit"):
            yield f"{family}_{width}_{'distilled_' if distilled else ''}patch{patch[2]}_224"
    if len(patch) == 4 and "layers.0.blocks.0.attn.qkv.weight" in shapes:
        for width in _SWIN.get(patch[0], ()):
            yield f"swin_{width}_patch4_window7_224"
    stem = shapes.get("stem.0.weight", ())
    if len(stem) == 4 and "stages.0.blocks.0.conv_dw.weight" in shapes:
        for width in _CONVNEXT.get(stem[0], ()):
            yield f"convnext_{width}"
            yield f"convnextv2_{width}"
    if "conv_stem.weight" in shapes and not any(".se." in name for name in shapes):
        yield from (f"efficientnet_lite{number}" for number in range(5))  # without attention
        yield "mobilenetv2_100"
    elif "conv_stem.weight" in shapes:
        for number in range(8):
            yield from (name.format(number) for name in _STEMS)
        yield from (f"mobilenetv3_small_{width}" for width in ("050", "075", "100"))
        yield "mobilenetv3_large_100"
    if "conv1.0.weight" in shapes and "layer4.0.conv1.weight" in shapes:
        yield from ("resnet18d", "resnet26d", "resnet34d", "resnet50d", "resnet101d")
    if "conv1.weight" in shapes and any(".se.fc1." in name for name in shapes):
        yield from ("seresnet18", "seresnet34", "seresnet50")
