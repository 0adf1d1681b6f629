"""The Load page's second card: which model, and the doctor's verdict on its file."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import streamlit as st

from app import loaded as cached
from app.load.does import numbered_only
from app.load.pictures import CHOICES, Check, Chosen, anew, turn
from app.load.train import (
    FOUND,
    SUFFIXES,
    TRAIN,
    choose_made,
    choose_training,
    known_architectures,
    models_made,
)
from app.shared.problems import explained_errors
from app.shared.run_menu import draw_undo
from app.state import subject
from app.uploads import keep_upload
from masktune.checkpoints.checkpoint import ClassCountError
from masktune.checkpoints.hugging_face import weights_file
from masktune.checkpoints.inspect import Diagnosis
from masktune.checkpoints.settings import settings
from masktune.checkpoints.trained import settings_of
from masktune.config import AUTO, RunConfig, Value
from masktune.config import BUNDLED as BUNDLED_MODEL
from masktune.data.normalisations import spelled
from masktune.datasets.catalogue import CATALOGUE, OWN
from masktune.errors import RunFolderError, shortened
from masktune.files import written_path
from masktune.runs import jobs
from masktune.scores.trained import TrainResult
from masktune.show.wording import count

BUNDLED, MADE, FILE = "Bundled", "Made here", "My checkpoint"
GIVEN = "weights"
"""What is asked for anew with other pictures, see ``app.load.pictures.anew``."""

NAMED = 4
"""Classes of a file that are named; the rest are counted."""


def choose_model(pictures: Chosen) -> Chosen:
    """Let somebody choose a model for the pictures that were chosen."""
    st.header("Model", anchor=False)
    if not pictures:
        st.caption("First choose pictures.")
        return {}
    dataset, root = str(pictures["dataset"]), pictures["root"]
    made = models_made(dataset, root)
    bundled = CATALOGUE[dataset].bundled
    sources = [*([BUNDLED] if bundled else []), *([MADE] if made else []), FILE, TRAIN]
    state, key = st.session_state, f"model_source_{dataset}"
    deleted = state.get(f"load_run_{dataset}") not in (None, *made)
    if (arrived := state.pop("arrived", None)) in made:
        state.update({key: MADE, f"load_run_{dataset}": arrived})
    elif state.get(key) not in sources or deleted:
        state[key] = _source_now(dataset, sources, made)
    source = st.segmented_control(
        "Which model",
        sources,
        required=True,
        label_visibility="collapsed",
        width="stretch",
        key=key,
    )
    with st.container():  # what is below keeps its place when this comes and goes
        draw_undo()
    if source == BUNDLED:
        st.caption("A small CNN trained the usual way (ERM), so that it fell for the clue.")
        if said := _other_exceptions(dataset, pictures):
            st.caption(said)
        return {"model": BUNDLED_MODEL}
    if source == TRAIN:
        return choose_training(dataset, root)
    if source == MADE:
        return choose_made(dataset, made)
    return _file(dataset, root)


def _other_exceptions(dataset: str, pictures: Chosen) -> str:
    """Say that the bundled model was trained with other exceptions than those chosen."""
    usual = settings({"dataset": dataset}).exceptions
    if pictures.get("exceptions", usual) == usual:
        return ""
    words = CHOICES["exceptions"][1]
    return (
        f"It was trained with the exceptions “{words[usual]}”. Choose {TRAIN} for a model that has "
        "seen those chosen above."
    )


def _file(dataset: str, root: Value) -> Chosen:
    """Ask for a checkpoint file, by upload or by path."""
    now = _given_now(dataset, root)
    if dataset == OWN and st.session_state.setdefault("weights_for", root) != root:
        # A model of other pictures has other classes, so it is not taken without being named.
        st.session_state.weights_for = root
        anew(GIVEN)
    upload = st.file_uploader(
        "Weights file",
        type=SUFFIXES,
        key=f"weights_{dataset}{turn(GIVEN)}",
        help="A state dict as PyTorch or safetensors keep it. It is read without executing "
        "anything in it.",
    )
    path = st.text_input(
        "or its path on this computer, a file or a folder of the Hugging Face hub",
        value="" if now is None else now.model or "",
        placeholder="model.pth",
        disabled=upload is not None,
        help="Take the uploaded file away first, if there is one.",
        key=f"weights_path_{dataset}{turn(GIVEN)}",
    )
    names = [FOUND, *known_architectures(now)]
    arch = st.selectbox(
        "Architecture",
        names,
        index=names.index(now.arch) if now is not None and now.arch in names else 0,
        key=f"arch_{dataset}",
        help="Only needed where several architectures fit the same weights.",
    )
    seen = len(CATALOGUE[dataset].tests) == 1 and st.checkbox(
        "It has seen all training pictures",
        value=now is not None and now.validation == "test",
        key=f"validation_{dataset}",
        help="Most public weights have. Validation pictures drawn from training would then be too "
        "easy, and Abstain would leave more unanswered than you ask for. Ticked, half of the test "
        "pictures validate instead, and the other half tests.",
    )
    if upload is not None:
        with explained_errors():
            path = str(keep_upload(upload.name, upload, upload=upload.file_id))
    if not path.strip():
        return {}
    return {
        "model": str(weights_file(written_path(path.strip()))),
        "arch": None if arch == FOUND else arch,
        "validation": "test" if seen else "own",
    }


def _source_now(dataset: str, sources: list[str], made: Mapping[str, jobs.Job]) -> str:
    now = subject()
    if now is None or now.dataset != dataset or now.model == BUNDLED_MODEL:
        return sources[0]
    wanted = TRAIN if now.model is None else FILE
    if now.model in made:
        wanted = MADE
    return wanted if wanted in sources else sources[0]


def _given_now(dataset: str, root: Value) -> RunConfig | None:
    """Give what is loaded if its model is a file for these pictures."""
    now = subject()
    if now is None or now.dataset != dataset or now.model in (BUNDLED_MODEL, None):
        return None
    return None if dataset == OWN and now.root != root else now


def file_checks(found: Diagnosis) -> list[Check]:
    """Say what the doctor found in a file that can be used."""
    rate = "not in the file" if found.lr is None else f"{found.lr:g}"
    epoch = "" if found.epoch is None else f", saved at epoch {found.epoch}"
    return [
        Check(
            True,
            f"{found.arch}, {found.classes} classes"
            if found.classes != 1
            else f"{found.arch}, one logit for two classes",
            f"all {count(found.matched)} tensors fit",
        ),
        *(
            [Check(True, f"Classes in the file: {shortened(found.class_names, most=NAMED)}")]
            if found.class_names
            else []
        ),
        Check(
            found.lr is not None,
            f"Last learning rate: {rate}{epoch}",
            "" if found.lr is not None else "The finetune takes the recipe's; change it there.",
        ),
    ]


def for_these_classes(error: ClassCountError) -> str:
    """Say in the words of this page what to do about a model of other classes."""
    if error.finer:
        return error.remedy
    return (
        "Use weights that were trained on these classes, or give these a new last layer and train "
        "it here."
    )


def model_checks(loaded: RunConfig) -> list[Check]:
    """Say how a model goes with the pictures it is asked about."""
    model, card = cached.checkpoint(loaded), cached.bundle(loaded).card
    height, width = card.size
    layer = cached.heat_layer(loaded, None)
    rows, columns = cached.heat_size(loaded, layer)
    weights = sum(p.numel() for p in model.model.parameters())
    checks = [
        Check(True, f"{count(weights)} parameters for {height} × {width} pixels"),
        Check(True, f"Layer for heat: {layer}", f"{rows} × {columns} places"),
    ]
    if loaded.model == BUNDLED_MODEL:
        return checks
    checks += _classes_check(loaded, card.classes)
    used = spelled(card.mean, card.std)
    if model.mean is None or model.std is None:
        return [*checks, Check(False, "Normalisation is not in the file", f"Using: {used}")]
    stored = spelled(model.mean, model.std)
    if stored == used:
        return [*checks, Check(True, f"Normalisation as the file says: {used}")]
    more = f"Using: {used}. Change it below"
    return [*checks, Check(False, f"The file says normalisation {stored}", more)]


def _classes_check(loaded: RunConfig, classes: Sequence[str]) -> list[Check]:
    """Say where a model was made for other classes than these pictures have.

    A number is no name: such classes are called as the file does by a click elsewhere.
    """
    if loaded.dataset != OWN or loaded.class_order is not None or numbered_only(classes):
        return []
    arch = None if loaded.arch == AUTO else loaded.arch
    path = cached.model_path(loaded)
    theirs = cached.diagnosis(str(path), arch).class_names or _trained_on(path, loaded)
    # Synonyms follow a comma, such as ImageNet's.
    names, ours = (
        sorted(name.partition(",")[0].casefold() for name in some) for some in (theirs, classes)
    )
    if not names or names == ours:
        return []
    made_for, these = shortened(theirs, most=NAMED), shortened(classes, most=NAMED)
    return [
        Check(
            False,
            f"Made for other classes: {made_for}",
            f"Here its answers are called {these}, in this order.",
        )
    ]


def _trained_on(model: Path, loaded: RunConfig) -> tuple[str, ...]:
    """Return the classes of other pictures that a model was trained on; none where nobody knows."""
    its = settings_of(model)
    if its is None or (its.dataset, its.root) == (loaded.dataset, loaded.root):
        return ()  # perhaps these classes, by names that somebody gave them since
    try:
        scores = TrainResult.read(model.parent).validation.scores
    except RunFolderError:
        return ()
    return tuple(dict.fromkeys(score.label for score in scores))
