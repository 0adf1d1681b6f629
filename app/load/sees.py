"""The Load page's third card: frame, normalisation, augmentation, and the input they make."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import streamlit as st
import torch
from markupsafe import Markup
from PIL import Image, ImageOps

from app import loaded as cached
from app.load.pictures import Chosen, turn
from app.shared.sheets import show
from app.state import start, subject
from masktune.checkpoints.inspect import Diagnosis
from masktune.checkpoints.settings import settings
from masktune.checkpoints.trained import settings_of
from masktune.config import BUNDLED, RunConfig, Value
from masktune.data.augment import NONE, augmentation, named
from masktune.data.frame import SMALL
from masktune.data.images import TensorImages
from masktune.data.normalisations import spelled
from masktune.data.picture import open_picture
from masktune.data.types import DatasetBundle, Split
from masktune.datasets.catalogue import CATALOGUE, OWN
from masktune.seeds import stream
from masktune.show.markup import rows_html
from masktune.show.painting import Picture, picture_of

TAKEN = "normalisation"
"""What may be taken by a click elsewhere, see ``app.load.pictures.anew``."""

USUAL, WRITE, STORED = "usual", "write", "stored"
FRAMES = {
    "shorter 256, crop 224x224": "Shorter side 256, crop 224 (ImageNet)",
    "resize 224x224": "Stretch to 224 × 224",
    "resize 256x256, crop 224x224": "Stretch to 256 × 256, crop 224 (Waterbirds)",
    "cut 178, resize 224x224": "Cut 178 from the centre, stretch to 224 (CelebA)",
    "resize 64x64": "Stretch to 64 × 64",
    "resize 32x32": "Stretch to 32 × 32",
}
NORMS = {
    "none": "None: pixels from 0 to 1",
    "imagenet": "ImageNet mean and deviation",
    "in9": "ImageNet-9 mean and deviation",
    "half": "Mean 0.5, deviation 0.5: pixels from −1 to 1",
}
FRAME_HELP = (
    "The steps from a picture file to the pixels the model sees. They must be those of the model's "
    "training, or its answers and its heat mean little. Write it out like: shorter 256, crop 224."
)
NORM_HELP = (
    "What is subtracted from and divided into the pixels, by channel. It must be what the model "
    "was trained with. Write it out like: 0.485 0.456 0.406 / 0.229 0.224 0.225."
)
AUGMENTATIONS = {
    "flip": "Flip left and right",
    "rotate15": "Turn, up to 15°",
    "shift10": "Shift, up to 10%",
    "crop4": "Shift, up to 4 pixels",
    "resized-crop": "Crop, at least 70%",
    "jitter": "Brightness, contrast, saturation, 10%",
    "lighting": "Lighting (PCA)",
}
AUGMENT_HELP = (
    "Changes every training picture by chance each time the model learns from it, after pixels are "
    "hidden. It counts in training and in the finetune; answers and heat are about the pictures as "
    "they are. What is chosen at first is the recipe's: the authors' own for datasets of the paper."
)
DRAWS = ("Augmented", "And again")
SHOWN = 3
TILE = 192


def choose_input(pictures: Chosen, model: Chosen, found: Diagnosis | None) -> Chosen:
    """Let somebody choose what a model sees; None for the usual frame and normalisation.

    What was chosen before counts, and so does what was ``found`` in the checkpoint file, and how
    a model that was made here was trained.
    """
    st.header("What the model sees", anchor=False)
    if not pictures:
        st.caption("First choose pictures.")
        return {}
    card = CATALOGUE[str(pictures["dataset"])]
    stored = None if found is None else found.normalisation
    now = subject()
    same = now if now is not None and now.dataset == card.key else None
    usual = f"Usual for these pictures ({card.size[0]} × {card.size[1]})"
    if card.bundled:
        usual = f"As they are ({card.size[0]} × {card.size[1]})"
    if card.key == OWN:
        usual = "224 × 224, small pictures as they are"
    frame = _frame(card.key, usual, model, same)
    if card.key == OWN and frame is None:
        st.caption(
            "Each picture is stretched to a square of 224 × 224 pixels. Where all have the "
            f"same size and it is {SMALL} × {SMALL} or smaller, nothing is done to them."
        )
    extra = {STORED: f"From the checkpoint: {stored}"} if stored is not None else {}
    # A file that says how its model was trained knows better than the dataset does, until somebody
    # chooses otherwise for this very file.
    now_normalise = None if same is None else same.normalise
    chosen_before = same is not None and same.model == model.get("model")
    if stored is not None and (now_normalise == stored or not chosen_before):
        now_normalise = STORED
    normalise = _choice(
        "Normalisation",
        {USUAL: f"Usual for these pictures: {spelled(card.mean, card.std)}", **extra, **NORMS},
        now=now_normalise,
        # Another key, so that a file that says more is asked about anew.
        key=f"normalise_{card.key}_{USUAL if stored is None else STORED}{turn(TAKEN)}",
        help_=NORM_HELP,
    )
    begun = start()
    learning = begun if begun is not None and begun.dataset == card.key else None
    augment = st.multiselect(
        "Augmentation",
        list(AUGMENTATIONS),
        default=named((learning or settings({"dataset": card.key})).training.augment),
        format_func=AUGMENTATIONS.__getitem__,
        placeholder="None",
        key=f"augment_{card.key}",
        help=AUGMENT_HELP,
    )
    return {
        "frame": frame,
        "normalise": stored if normalise == STORED else normalise,
        "augment": ",".join(augment) or NONE,
    }


def _frame(dataset: str, usual: str, model: Chosen, same: RunConfig | None) -> str | None:
    """Ask for the frame; a model that was made here begins with that of its training.

    So it does on the command line, where its folder is given. What somebody chooses for this very
    model goes on; the next model does not take the frame over.
    """
    chosen, now = model.get("model"), None if same is None else same.frame
    its = _trained(dataset, chosen)
    if chosen is not None and (same is None or same.model != chosen):
        earlier = None if same is None else _trained(dataset, same.model)
        if its is not None:
            now = its.frame
        elif earlier is not None and earlier.frame == now:
            now = None
    stored = None if its is None else its.frame
    frame = _choice(
        "Resize and crop",
        {
            USUAL: usual,
            **({} if stored is None else {STORED: f"As in its training: {stored}"}),
            **FRAMES,
        },
        now=STORED if now is not None and now == stored else now,
        # Another key, so that another model is asked about anew.
        key=f"frame_{dataset}" if its is None else f"frame_{dataset}_{chosen}",
        help_=FRAME_HELP,
    )
    return stored if frame == STORED else frame


def _trained(dataset: str, model: Value) -> RunConfig | None:
    """Return how a model was trained on these pictures; None where that is not known."""
    if model in (None, BUNDLED):
        return None
    found = settings_of(Path(str(model)))
    return found if found is not None and found.dataset == dataset else None


def _choice(
    label: str, options: Mapping[str, str], *, now: str | None, key: str, help_: str
) -> str | None:
    """Give what was chosen or written; None for what is usual."""
    names = {**options, WRITE: "Write it out"}
    at_first = USUAL if now is None else now if now in options else WRITE
    chosen = st.selectbox(
        label,
        list(names),
        index=list(names).index(at_first),
        format_func=lambda name: names[name],
        help=help_,
        key=key,
    )
    if chosen != WRITE:
        return None if chosen == USUAL else chosen
    written = st.text_input(
        f"{label}, written out",
        value=now or "",
        key=f"{key}_written",
        placeholder="resize 224" if label == "Resize and crop" else "0.5 / 0.5",
    )
    return written.strip() or None


def show_input(loaded: RunConfig) -> None:
    """Show some pictures as files, in the frame, and as the numbers that enter the model."""
    augment, draw = loaded.training.augment, st.session_state.get("input_draw", 0)
    sheet, words = cached.drawn(
        loaded, ("input", augment, draw), lambda: _drawn(cached.bundle(loaded), augment, draw)
    )
    show(sheet)
    st.caption(words)
    if augment != NONE:
        st.button("Draw again", icon=":material/shuffle:", on_click=_draw_again)


def _draw_again() -> None:
    st.session_state.input_draw = st.session_state.get("input_draw", 0) + 1


def _drawn(data: DatasetBundle, augment: str, draw: int) -> tuple[Markup, str]:
    positions = list(range(min(SHOWN, len(data.train))))
    names = [data.card.classes[data.train.labels[position]] for position in positions]
    images = data.train.images.batch(positions)
    inputs = cached.preprocess(data)(images)
    rows = {
        "File": _originals(data.train, positions),
        "In the frame": [picture_of(image) for image in images],
        "Normalised": [_stretched(image) for image in inputs],
    }
    more = ""
    if (change := augmentation(augment)) is not None:
        chance = stream(draw, "shown")
        for name in DRAWS:
            seen = change(images.float() / 255, chance) * 255
            rows[name] = [picture_of(image) for image in seen.round().to(torch.uint8)]
        more = (
            " While it learns, each picture is changed by chance, anew in every epoch: the last "
            f"two rows are two draws ({', '.join(AUGMENTATIONS[n] for n in named(augment))})."
        )
    tiles = {name: [_tile(picture) for picture in row] for name, row in rows.items() if row}
    height, width = data.card.size
    low, high, mean = (
        f"{float(value):.2f}".replace("-", "−")
        for value in (inputs.min(), inputs.max(), inputs.mean())
    )
    return rows_html(tiles, ["" for _ in names], labels=names), (
        f"Into the model go 3 × {height} × {width} numbers a picture, here from {low} to {high}, "
        f"mean {mean}. "
        f"The row 'Normalised' shows them from lowest (black) to highest (white).{more}"
    )


def _originals(split: Split, positions: list[int]) -> list[Picture]:
    """Give pictures as they were before the frame, empty where they were never different."""
    images = split.images
    if isinstance(images, TensorImages):
        return [] if images.frame is None else [picture_of(images.pixels[p]) for p in positions]
    return [np.array(open_picture(images.files[p])) for p in positions]


def _stretched(image: torch.Tensor) -> Picture:
    """Draw normalised numbers (3, H, W) from their lowest to their highest."""
    low, high = image.min(), image.max()
    levels = (image - low) / (high - low).clamp(min=1e-9) * 255
    return picture_of(levels.round().to(torch.uint8))


def _tile(picture: Picture) -> Picture:
    """Fit a picture of any shape into a square tile, on grey; small ones keep their pixels."""
    small = max(picture.shape) < TILE
    how = Image.Resampling.NEAREST if small else Image.Resampling.BOX
    return np.array(ImageOps.pad(Image.fromarray(picture), (TILE, TILE), how, color=(128,) * 3))
