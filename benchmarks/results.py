"""The measured ratios and the goals they are held against."""

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch


@dataclass(frozen=True, slots=True)
class Goal:
    """What a figure should be.

    Attributes:
        figure: a field of ``Ratios``.
        part: a name in that figure; empty for a figure that is one number.
        relation: on which side of the limit it should lie.
        limit: the limit itself is good enough.
    """

    figure: str
    part: str
    relation: Literal["<=", ">="]
    limit: float

    def __str__(self) -> str:
        return f"{self.relation} {self.limit:g}"

    def met(self, value: float) -> bool:
        """Tell whether a value is good enough."""
        return value <= self.limit if self.relation == "<=" else value >= self.limit


GOALS = (
    Goal("heat_over_forward", "resnet18@224", "<=", 1.05),
    Goal("heat_over_forward", "small-cnn@28", "<=", 1.3),
    Goal("gradcam_over_heat", "resnet18@224", ">=", 3),
    Goal("mask_seconds_over_forward", "resnet18@224", "<=", 0.1),
    Goal("mask_seconds_over_forward", "small-cnn@28", "<=", 0.1),
    Goal("store_bytes_per_image", "", "<=", 256),
    Goal("finetune_over_plain_epoch", "", "<=", 1.1),
    Goal("peak_bytes_per_image", "ratio", "<=", 1),
    # The ratio falls by itself while one batch's working set is shared by more pictures. This does
    # not: a picture more may take less memory than its own 3 x 28 x 28 bytes.
    Goal("peak_bytes_per_image", "each_further", "<=", 3 * 28 * 28),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratios:
    """What was measured; times are CPU time on one thread.

    Attributes:
        heat_over_forward: XGradCAM of a batch over a plain forward pass of it, by network.
        gradcam_over_heat: pytorch-grad-cam's XGradCAM of a batch over ours with upsampling.
        mask_seconds_over_forward: the way from coarse heat to keep over a forward pass.
        store_bytes_per_image: size of ``heat.safetensors`` for 7 x 7 maps.
        finetune_over_plain_epoch: an epoch with hidden pixels over one without.
        peak_bytes_per_image: by how much heat for a whole split raises the peak of memory, for two
            counts of pictures; "ratio" is the larger count's figure over the smaller's, and
            "each_further" what one picture more adds between them.
        notes: how it was measured.
    """

    heat_over_forward: Mapping[str, float]
    gradcam_over_heat: Mapping[str, float]
    mask_seconds_over_forward: Mapping[str, float]
    store_bytes_per_image: float
    finetune_over_plain_epoch: float
    peak_bytes_per_image: Mapping[str, float]
    notes: Mapping[str, Any]

    def figures(self) -> dict[tuple[str, str], float]:
        """Give every number by (figure, part); the part is empty for figures of one number."""
        every: dict[tuple[str, str], float] = {}
        for figure in _FIGURES:
            value = getattr(self, figure)
            if isinstance(value, Mapping):
                every |= {(figure, part): number for part, number in value.items()}
            else:
                every[figure, ""] = value
        return every

    def to_json(self) -> dict[str, Any]:
        """Give the figures, plain, and under "detail" the goals with their verdicts."""
        document: dict[str, Any] = {}
        verdicts: dict[str, Any] = {}
        goals = {(goal.figure, goal.part): goal for goal in GOALS}
        for (figure, part), value in self.figures().items():
            number = round(value, 4)
            _put(document, figure, part, number)
            if (goal := goals.get((figure, part))) is not None:
                verdict = {"value": number, "goal": str(goal), "met": goal.met(value)}
                _put(verdicts, figure, part, verdict)
        return {**document, "detail": {"goals": verdicts, **self.notes, "machine": _machine()}}

    def __str__(self) -> str:
        goals = {(goal.figure, goal.part): goal for goal in GOALS}
        lines = []
        for (figure, part), value in self.figures().items():
            line = f"{figure:26} {part:14} {value:12,.3f}"
            if (goal := goals.get((figure, part))) is not None:
                line += f"   goal {goal}: {'met' if goal.met(value) else 'missed'}"
            lines.append(line)
        return "\n".join(lines)


_FIGURES = (
    "heat_over_forward",
    "gradcam_over_heat",
    "mask_seconds_over_forward",
    "store_bytes_per_image",
    "finetune_over_plain_epoch",
    "peak_bytes_per_image",
)


def _put(document: dict[str, Any], figure: str, part: str, value: object) -> None:
    if part:
        document.setdefault(figure, {})[part] = value
    else:
        document[figure] = value


def _machine() -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "processor": platform.machine(),
        "python": platform.python_version(),
        "torch": torch.__version__,
    }
