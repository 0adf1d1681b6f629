"""What each model says about the picture as it is now, and what would change its mind."""

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from app.picture.easel import identity
from app.picture.models import Asked
from app.shared.pieces import card
from app.shared.sheets import say, show
from masktune.cache import Cache
from masktune.heat.one_picture import Flip, PictureAnswer
from masktune.show.contact_sheets import NO_MAPS, TILE
from masktune.show.markup import piece
from masktune.show.painting import (
    SMALL,
    Picture,
    data_uri,
    enlarged,
    heat_over,
    jpeg_bytes,
    png_bytes,
)
from masktune.show.wording import percent

CLASSES = 5
"""Classes whose probability is drawn, the most probable first."""

# Beside the cache of all pages: a hand that paints would push out all that is in there.
_DRAWN = Cache(most=32)

TITLES = {"before": "Before", "after": "After"}


def heat_picture(picture: Picture, said: PictureAnswer) -> Picture:
    """Paint heat over the picture, large enough to look at; the picture itself without heat."""
    shown = picture if said.heat is None else heat_over(picture, said.heat)
    return enlarged(shown, TILE) if max(picture.shape) < TILE else shown


def answer_html(
    picture: Picture,
    now: PictureAnswer,
    opened: PictureAnswer,
    *,
    classes: Sequence[str],
    label: str,
) -> Markup:
    """Draw what a model says about a picture, with what it said before somebody changed it."""
    answer = classes[now.answer]
    note = ""
    if not np.array_equal(now.probabilities, opened.probabilities):
        was = float(now.probabilities[opened.answer])
        note = f"As opened: {classes[opened.answer]}, {percent(opened.confidence)}."
        if opened.answer != now.answer:
            note += f" That answer now has {percent(was)}."
    order = np.argsort(-now.probabilities, kind="stable")[:CLASSES]
    shown = heat_picture(picture, now)
    encoded = png_bytes(shown) if max(picture.shape) <= SMALL else jpeg_bytes(shown)
    return piece(
        "asked",
        uri=data_uri(encoded),
        words=f"Where the model looks for “{answer}”" if now.heat is not None else "The picture",
        answer=answer,
        wrong=bool(label) and answer != label,
        sure=percent(now.confidence),
        note=note,
        rows=[
            (classes[n], float(now.probabilities[n]), percent(float(now.probabilities[n])))
            for n in order.tolist()
        ],
    )


def show_answer(
    model: Asked,
    picture: Picture,
    now: PictureAnswer,
    opened: PictureAnswer,
    *,
    classes: Sequence[str],
    label: str,
) -> None:
    """Draw a model's card."""
    hint = None if model.layer is None else f"Heat by {model.method} at layer {model.layer}."
    with card(f"picture_{model.name}", TITLES[model.name], hint=hint):
        said = (identity(picture), opened.probabilities.tobytes(), label)
        drawn = _DRAWN.get(
            (model.known, said),
            lambda: answer_html(picture, now, opened, classes=classes, label=label),
        )
        show(drawn, kind=model.name)
        if now.heat is None:
            say(NO_MAPS, kind="muted")


def flip_words(flip: Flip | None, now: PictureAnswer, classes: Sequence[str]) -> str:
    """Say what would flip an answer."""
    answer = classes[now.answer]
    if flip is None:
        return f"Nothing flips it: with all that has heat hidden, the answer is still {answer}."
    other = int(flip.probabilities.argmax())
    return (
        f"Without the hottest {percent(flip.share)} of its pixels the answer turns from {answer} "
        f"to {classes[other]} ({percent(float(flip.probabilities[other]))} sure)."
    )
