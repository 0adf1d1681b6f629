"""What is said about an answer, and about what would flip it."""

import numpy as np
import torch

from app.picture.cards import answer_html, flip_words, heat_picture
from masktune.heat.one_picture import Flip, PictureAnswer

CLASSES = ("cow", "camel", "<yak>")
PICTURE = np.zeros((4, 4, 3), dtype=np.uint8)


def said(*shares, heat=None):
    return PictureAnswer(probabilities=np.array(shares), heat=heat)


def test_a_changed_picture_says_what_the_answer_was_and_what_is_left_of_it():
    html = answer_html(
        PICTURE, said(0.2, 0.7, 0.1), said(0.9, 0.1, 0.0), classes=CLASSES, label="cow"
    )

    assert "As opened: cow, 90.0%. That answer now has 20.0%." in html
    assert "70.0% sure" in html
    assert "wrong" in html
    assert html.index("70.0%</span>") < html.index("20.0%</span>") < html.index("10.0%</span>")
    assert "&lt;yak&gt;" in html


def test_an_untouched_picture_has_no_earlier_answer_and_a_right_one_no_mark():
    html = answer_html(
        PICTURE, said(0.9, 0.1, 0.0), said(0.9, 0.1, 0.0), classes=CLASSES, label="cow"
    )

    assert "As opened" not in html
    assert "wrong" not in html


def test_nobody_knows_whether_the_answer_about_an_own_picture_is_right():
    html = answer_html(PICTURE, said(0.9, 0.1, 0.0), said(0.9, 0.1, 0.0), classes=CLASSES, label="")

    assert "wrong" not in html


def test_small_pictures_are_enlarged_pixel_by_pixel_and_large_ones_left():
    large = np.zeros((300, 300, 3), dtype=np.uint8)

    assert heat_picture(PICTURE, said(1.0, 0.0, 0.0, heat=np.eye(4))).shape == (224, 224, 3)
    assert heat_picture(large, said(1.0, 0.0, 0.0)).shape == (300, 300, 3)


def test_what_would_flip_an_answer_is_said_with_the_share_and_the_other_answer():
    flip = Flip(
        share=0.0312,
        image=torch.zeros(3, 4, 4, dtype=torch.uint8),
        probabilities=np.array([0.4, 0.6, 0.0]),
    )

    assert flip_words(flip, said(0.9, 0.1, 0.0), CLASSES) == (
        "Without the hottest 3.1% of its pixels the answer turns from cow to camel (60.0% sure)."
    )
    assert flip_words(None, said(0.9, 0.1, 0.0), CLASSES) == (
        "Nothing flips it: with all that has heat hidden, the answer is still cow."
    )
