"""What the models before and after say about a picture, asked once for the same pixels."""

from collections.abc import Hashable
from dataclasses import dataclass

import streamlit as st
from torch import Tensor, nn

from app import loaded as cached
from app.opened import opened, written
from app.picture.easel import identity
from masktune.cache import Cache
from masktune.config import RunConfig
from masktune.data.fills import FillName
from masktune.data.preprocess import Preprocess
from masktune.errors import ModelError
from masktune.heat.one_picture import Flip, PictureAnswer, answer_picture, smallest_flip
from masktune.runs import jobs
from masktune.runs.load import same_pictures
from masktune.show.painting import picture_of

_ANSWERS = Cache(most=128)  # 0.4 MB each at 224 pixels
_FLIPS = Cache(most=64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Asked:
    """A model that is asked about pictures.

    Attributes:
        name: "before" or "after".
        content: what tells its weights and the pictures' normalisation apart.
        model: the network.
        layer: whose feature map is read; None where the network has none.
        method: the explainer.
        preprocess: from bytes to the network's input.
    """

    name: str
    content: Hashable
    model: nn.Module
    layer: str | None
    method: str
    preprocess: Preprocess

    @property
    def known(self) -> Hashable:
        """What tells its answers and heat from those of another."""
        return self.content, self.layer, self.method

    def answer(self, image: Tensor) -> PictureAnswer:
        """Return what it says about a picture, (3, H, W) uint8, and where it looks."""
        return _ANSWERS.get(
            (self.known, identity(picture_of(image))),
            lambda: answer_picture(
                self.model,
                image,
                layer=self.layer,
                method=self.method,
                preprocess=self.preprocess,
            ),
        )

    def flip(self, image: Tensor, *, fill: FillName) -> Flip | None:
        """Return the fewest hottest pixels that change its answer; None where none do."""
        heat = self.answer(image).heat
        if heat is None:
            return None
        return _FLIPS.get(
            (self.known, fill, identity(picture_of(image))),
            lambda: smallest_flip(self.model, image, heat, fill=fill, preprocess=self.preprocess),
        )


def asked(subject: RunConfig) -> list[Asked]:
    """Return the models that answer: before, and after where a finished run is open.

    That of a run on other pictures is not asked: it would call these by its own classes.
    """
    models = [_before(subject)]
    if (job := finished(subject)) is not None:
        run = opened(job.id)
        models.append(
            Asked(
                name="after",
                content=written(run.path),
                model=run.after.model,
                layer=run.layer,
                method=run.config.masking.method,
                preprocess=run.preprocess,
            )
        )
    return models


def finished(subject: RunConfig) -> jobs.Job | None:
    """Return the run that is open, if it is done and on these pictures."""
    run = st.session_state.run
    job = jobs.find(run) if run else None
    if job is None or job.state != "done" or not same_pictures(job.config, subject):
        return None
    return job


def _before(subject: RunConfig) -> Asked:
    layer = st.session_state.layer or None
    try:
        layer = cached.heat_layer(subject, layer)
    except ModelError:
        if layer is not None:
            raise
        # A network without a feature map answers all the same.
    return Asked(
        name="before",
        content=cached.known(subject),
        model=cached.checkpoint(subject).model,
        layer=layer,
        method=st.session_state.method,
        preprocess=cached.preprocess(cached.bundle(subject)),
    )
