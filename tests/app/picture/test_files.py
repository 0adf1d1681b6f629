"""A picture is saved as it was asked about, with every figure."""

import csv
import io
import json
import zipfile

import numpy as np
from PIL import Image

from app.picture.files import figures_csv, picture_zip
from masktune.heat.one_picture import PictureAnswer

CLASSES = ("cow", "camel, wild")
NOW = PictureAnswer(probabilities=np.array([0.25, 0.75]), heat=np.eye(4))
OPENED = PictureAnswer(probabilities=np.array([0.9, 0.1]), heat=None)
ANSWERS = {"before": (NOW, OPENED)}


def test_every_class_of_every_model_has_a_row_for_now_and_for_as_opened():
    rows = list(csv.DictReader(io.StringIO(figures_csv(ANSWERS, CLASSES).decode())))

    found = [(r["picture"], r["class"], r["probability"], r["answer"]) for r in rows]
    assert found == [
        ("now", "cow", "0.25", "False"),
        ("now", "camel, wild", "0.75", "True"),
        ("as opened", "cow", "0.9", "True"),
        ("as opened", "camel, wild", "0.1", "False"),
    ]


def test_the_archive_holds_both_pictures_the_heat_and_the_figures():
    now = np.random.default_rng(0).integers(0, 256, (4, 4, 3), dtype=np.uint8)
    opened = now[::-1].copy()

    archive = zipfile.ZipFile(
        io.BytesIO(picture_zip(now, opened, ANSWERS, classes=CLASSES, facts={"run": None}))
    )

    names = ["picture.png", "as-opened.png", "heat-before.png", "figures.csv", "figures.json"]
    assert archive.namelist() == names
    for name, picture in (("picture.png", now), ("as-opened.png", opened)):
        assert np.array_equal(np.asarray(Image.open(io.BytesIO(archive.read(name)))), picture)
    figures = json.loads(archive.read("figures.json"))
    assert figures["run"] is None
    assert figures["answers"]["before"]["now"] == {
        "answer": "camel, wild",
        "confidence": 0.75,
        "probabilities": {"cow": 0.25, "camel, wild": 0.75},
    }
