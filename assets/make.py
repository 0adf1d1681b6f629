"""Make everything in this folder again: ``python assets/make.py`` (about ten minutes on two cores).

For each demo: the ERM checkpoint, what it and MaskTune score (golden.json), and for the first
screen four small pictures with their captions' numbers (start.json, start-*.png).
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

ASSETS = Path(__file__).resolve().parent
sys.path.insert(0, str(ASSETS.parent))

import numpy as np
import torch

from masktune.config import RunConfig
from masktune.datasets.catalogue import CATALOGUE
from masktune.heat.keep import keep_masks
from masktune.pipeline import run
from masktune.recipes import recipe
from masktune.runs.open import OpenRun
from masktune.show.contact_sheets import TILE, looks
from masktune.show.painting import enlarged, heat_over, hidden_over, png_bytes

DEMOS = [key for key, entry in CATALOGUE.items() if entry.card.bundled]


def main(keys: list[str]) -> None:
    """Make the demos named, or all of them."""
    golden_file = ASSETS / "golden.json"
    golden = json.loads(golden_file.read_text("utf-8")) if golden_file.exists() else {}
    for key in keys or DEMOS:
        base = recipe(CATALOGUE[key].card.recipe)
        config = RunConfig(
            dataset=key,
            recipe=base.name,
            arch=base.arch,
            training=base.training,
            masking=base.masking,
            device="cpu",
        )
        with tempfile.TemporaryDirectory() as folder:
            result = run(config, out=Path(folder) / "run")
            shutil.copy(result.folder / "before.safetensors", ASSETS / f"{key}.safetensors")
            golden[key] = {
                name: {
                    moment: {"average": s["average"], "worst_group": s["worst_group"]}
                    for moment, s in scores.items()
                }
                for name, scores in result.document["test"].items()
            }
            if key == "biased-mnist-5k":
                make_start(OpenRun(result.folder))
    golden_file.write_text(json.dumps(golden, indent=2) + "\n", "utf-8")


def make_start(shown: OpenRun) -> None:
    """Draw the four pictures of the first screen from a finished run."""
    test = shown.bundle.tests["biased"]
    pair = shown.predictions.tests["biased"]
    fixed = ~pair.before.correct() & pair.after.correct() & (pair.before.labels == 1)
    # The surest mistake that one epoch turns into a sure right answer.
    sureness = pair.before.probabilities[:, 0] * pair.after.probabilities[:, 1] * fixed
    position = int(np.argmax(sureness))
    seen = looks(shown, test, [position])
    picture = seen.pictures[0]
    keep = keep_masks(torch.from_numpy(seen.before), shown.config.masking.k)[0].numpy()
    large = enlarged(picture, TILE)
    tiles = {
        "picture": large,
        "heat": enlarged(heat_over(picture, seen.before[0]), TILE),
        "hidden": hidden_over(large, enlarged(keep, TILE)),
        "after": enlarged(heat_over(picture, seen.after[0]), TILE),
    }
    for name, tile in tiles.items():
        (ASSETS / f"start-{name}.png").write_bytes(png_bytes(tile))
    facts = {
        "label": shown.bundle.card.classes[int(pair.before.labels[position])],
        "before": shown.bundle.card.classes[int(pair.before.answers()[position])],
        "before_sure": float(pair.before.probabilities[position].max()),
        "after": shown.bundle.card.classes[int(pair.after.answers()[position])],
        "after_sure": float(pair.after.probabilities[position].max()),
        "hidden_fraction": float(1 - keep.mean()),
    }
    (ASSETS / "start.json").write_text(json.dumps(facts, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
