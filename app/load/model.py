"""The Load page's second card: which model, and the doctor's verdict on its file."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import streamlit as st

from app import loaded as cached
from app.load.pictures import OWN, Check
from app.shared.problems import explained_errors, show_problem
from app.state import session
from app.uploads import keep_upload
from masktune.checkpoints.checkpoint import Checkpoint, ClassCountError
from masktune.checkpoints.inspect import Diagnosis
from masktune.config import names_code
from masktune.data.normalisations import spelled
from masktune.data.settings import Validation
from masktune.datasets.catalogue import CATALOGUE
from masktune.files import written_path
from masktune.models.build import architectures
from masktune.recipes import recipe
from masktune.runs import jobs
from masktune.runs.subject import Subject
from masktune.show.wording import count, method_words

BUNDLED, FROM_RUN, FILE, TRAIN = "Bundled", "From a run", "My checkpoint", "Train here"
FOUND = "As found in the file"
SUFFIXES = ["pt", "pth", "th", "ckpt", "bin", "safetensors"]


class Chosen(NamedTuple):
    """What was chosen.

    Attributes:
        model: "bundled", "train" or a path.
        arch: None for what the file fits, or the recipe's.
        epochs: of a training; None for the recipe's.
        validation: what validates.
    """

    model: str | None
    arch: str | None = None
    epochs: int | None = None
    validation: Validation = "own"


def choose_model(dataset: str | None, root: str | None) -> Chosen:
    """Let somebody choose a model for the pictures of a dataset."""
    st.header("Model", anchor=False)
    if dataset is None:
        st.caption("First choose pictures.")
        return Chosen(None)
    runs = [
        job
        for job in jobs.history()
        if job.config.dataset == dataset
        and (dataset != OWN or job.config.root == root)  # other folders hold other classes
        and (job.path / "before.safetensors").is_file()
    ]
    bundled = CATALOGUE[dataset].card.bundled
    sources = [*([BUNDLED] if bundled else []), *([FROM_RUN] if runs else []), FILE, TRAIN]
    source = st.segmented_control(
        "Which model",
        sources,
        default=_source_now(dataset, sources),
        required=True,
        label_visibility="collapsed",
        width="stretch",
        key=f"model_source_{dataset}",
    )
    if source == BUNDLED:
        st.caption("A small CNN trained the usual way (ERM), so that it fell for the clue.")
        return Chosen("bundled")
    if source == TRAIN:
        return _to_train(dataset)
    if source == FROM_RUN:
        now = _given_now(dataset)
        models = [str(job.path / "before.safetensors") for job in runs]
        chosen = st.selectbox(
            "The model a run started from",
            runs,
            index=models.index(now.model) if now is not None and now.model in models else 0,
            format_func=_run_name,
        )
        return Chosen(str(chosen.path / "before.safetensors"), validation=chosen.config.validation)
    return _file(dataset)


def _to_train(dataset: str) -> Chosen:
    """Ask what to train, starting from the dataset's recipe."""
    st.caption(
        "A run then trains the model by itself before it looks for the clue. "
        "Go on to Finetune to start it."
    )
    usual = recipe(CATALOGUE[dataset].card.recipe)
    now = session().subject
    same = now if now is not None and (now.dataset, now.model) == (dataset, "train") else None
    names = _architectures(same)
    now_arch = None if same is None else same.arch
    arch = st.selectbox(
        "Architecture",
        names,
        index=names.index(now_arch if now_arch in names else usual.arch),
        key=f"train_arch_{dataset}",
        help=f"The recipe's is {usual.arch}.",
    )
    epochs = st.number_input(
        "Epochs",
        min_value=1,
        value=usual.training.epochs if same is None or same.epochs is None else same.epochs,
        key=f"train_epochs_{dataset}",
        help=f"How often it sees every picture. The recipe's {usual.training.epochs} may take days "
        "without a GPU.",
    )
    return Chosen(
        "train",
        None if arch == usual.arch else arch,
        None if epochs == usual.training.epochs else int(epochs),
    )


def _run_name(job: jobs.Job) -> str:
    return job.name or f"{job.id[:15]}, {method_words(job.config.masking)}"


def _file(dataset: str) -> Chosen:
    """Ask for a checkpoint file, by upload or by path."""
    now = _given_now(dataset)
    upload = st.file_uploader(
        "Weights file",
        type=SUFFIXES,
        key=f"weights_{dataset}",
        help="A state dict as PyTorch or safetensors keep it. It is read without executing "
        "anything in it.",
    )
    path = st.text_input(
        "or its path on this computer, for files over 200 MB",
        value="" if now is None else now.model,
        placeholder="model.pth",
        disabled=upload is not None,
        help="Take the uploaded file away first, if there is one.",
        key=f"weights_path_{dataset}",
    )
    names = [FOUND, *_architectures(now)]
    named = st.selectbox(
        "Architecture",
        names,
        index=names.index(now.arch) if now is not None and now.arch in names else 0,
        key=f"arch_{dataset}",
        help="Only needed where several architectures fit the same weights.",
    )
    arch = None if named == FOUND else named
    validation = _validation(dataset, now)
    if upload is not None:
        with explained_errors():
            return Chosen(str(keep_upload(upload.name, upload)), arch, validation=validation)
    given = str(written_path(path.strip())) if path.strip() else None
    return Chosen(given, arch, validation=validation)


def _validation(dataset: str, now: Subject | None) -> Validation:
    """Ask whether the model has seen what would validate."""
    if len(CATALOGUE[dataset].card.tests) != 1:
        return "own"
    seen = st.checkbox(
        "It has seen all training pictures",
        value=now is not None and now.validation == "test",
        key=f"validation_{dataset}",
        help="Most public weights have. Validation pictures drawn from training would then be too "
        "easy, and Abstain would hold back more than you ask for. Ticked, half of the test "
        "pictures validate instead, and the other half tests.",
    )
    return "test" if seen else "own"


def _architectures(now: Subject | None) -> list[str]:
    """Name what can be chosen, and what is loaded where another package knows it."""
    names = architectures()
    if now is None or now.arch is None or now.arch in names or names_code(now.arch):
        return names
    return [now.arch, *names]


def _source_now(dataset: str, sources: list[str]) -> str:
    now = session().subject
    if now is None or now.dataset != dataset or now.model == "bundled":
        return sources[0]
    wanted = TRAIN if now.model == "train" else FILE
    if Path(now.model).parent.parent == jobs.runs_home():
        wanted = FROM_RUN
    return wanted if wanted in sources else sources[0]


def _given_now(dataset: str) -> Subject | None:
    """Give the subject if its model is a file for this dataset."""
    now = session().subject
    given = now is not None and now.dataset == dataset and now.model not in ("bundled", "train")
    return now if given else None


def seed_of(dataset: str, model: str) -> int:
    """Give the seed of the split; a run's model must not be tested on what it was trained on."""
    if Path(model).parent.parent == jobs.runs_home():
        job = jobs.find(Path(model).parent.name)
        return job.config.seed if job is not None and job.config.dataset == dataset else 0
    return 0


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
        Check(
            found.lr is not None,
            f"Last learning rate: {rate}{epoch}",
            "" if found.lr is not None else "The finetune takes the recipe's; change it there.",
        ),
    ]


@contextmanager
def explained_class_count() -> Iterator[None]:
    """Say in the words of this page what to do about a model of other classes."""
    try:
        yield
    except ClassCountError as error:
        show_problem(
            error.problem,
            error.remedy
            if error.finer
            else "Use weights that were trained on these classes, or choose Train here. On the "
            "command line a run can also start from this file with a new last layer.",
        )


def model_checks(subject: Subject) -> list[Check]:
    """Say how a model goes with the pictures it is asked about."""
    model: Checkpoint = cached.checkpoint(subject)
    card = cached.bundle(subject).card
    height, width = card.size
    layer = cached.heat_layer(subject, None)
    rows, columns = cached.heat_size(subject, layer)
    weights = sum(p.numel() for p in model.model.parameters())
    checks = [
        Check(True, f"{count(weights)} parameters for {height} × {width} pixels"),
        Check(True, f"Layer for heat: {layer}", f"{rows} × {columns} places"),
    ]
    if subject.model == "bundled":
        return checks
    used = spelled(card.mean, card.std)
    if model.mean is None or model.std is None:
        checks.append(Check(False, "Normalisation is not in the file", f"Using: {used}"))
        return checks
    stored = spelled(model.mean, model.std)
    checks.append(
        Check(True, f"Normalisation as the file says: {used}")
        if stored == used
        else Check(
            False, f"The file says normalisation {stored}", f"Using: {used}. Change it below"
        )
    )
    return checks
