"""The picture with its figures, to be saved."""

import json
from collections.abc import Mapping, Sequence

from app.picture.cards import heat_picture
from masktune.files import csv_bytes
from masktune.heat.one_picture import PictureAnswer
from masktune.runs.export import zipped
from masktune.show.painting import Picture, png_bytes

Answers = Mapping[str, tuple[PictureAnswer, PictureAnswer]]
"""By model what it says about the picture as it is now and as it was opened."""


def figures_csv(answers: Answers, classes: Sequence[str]) -> bytes:
    """Return the probability of every class: one row a model, picture and class."""
    rows = [
        (model, what, name, float(share), said.answer == number)
        for model, (now, opened) in answers.items()
        for what, said in (("now", now), ("as opened", opened))
        for number, (name, share) in enumerate(zip(classes, said.probabilities, strict=True))
    ]
    return csv_bytes(["model", "picture", "class", "probability", "answer"], rows)


def picture_zip(
    now: Picture,
    opened: Picture,
    answers: Answers,
    *,
    classes: Sequence[str],
    facts: Mapping[str, object],
) -> bytes:
    """Return both pictures pixel by pixel, the heat of each model, and the figures.

    Args:
        now: (H, W, 3) uint8 as the models were asked.
        opened: likewise, before anything was changed.
        answers: what each model says.
        classes: by number.
        facts: of the picture and the models, for figures.json.
    """
    said = {
        model: {
            what: {
                "answer": classes[one.answer],
                "confidence": one.confidence,
                "probabilities": dict(zip(classes, one.probabilities.tolist(), strict=True)),
            }
            for what, one in (("now", current), ("as opened", before))
        }
        for model, (current, before) in answers.items()
    }
    files = {"picture.png": png_bytes(now), "as-opened.png": png_bytes(opened)}
    for model, (current, _) in answers.items():
        if current.heat is not None:
            files[f"heat-{model}.png"] = png_bytes(heat_picture(now, current))
    files["figures.csv"] = figures_csv(answers, classes)
    text = json.dumps({**facts, "answers": said}, ensure_ascii=False, indent=2)
    files["figures.json"] = text.encode()
    return zipped(files.items())
