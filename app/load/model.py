"""The Load page's second card: which model, and the doctor's verdict on its file."""

from pathlib import Path

import streamlit as st

from app import loaded as cached
from app.load.pictures import CHOICES, Check, Chosen
from app.shared.problems import explained_errors
from app.shared.run_rows import run_labels
from app.shared.training import EPOCH, RATE, START, draw_option, in_use
from app.state import start, subject
from app.uploads import keep_upload
from masktune.checkpoints.checkpoint import ClassCountError
from masktune.checkpoints.inspect import Diagnosis
from masktune.checkpoints.settings import NO_WEIGHTS, OPTIONS, settings
from masktune.config import AUTO, RunConfig, epochs_named, names_code
from masktune.config import BUNDLED as BUNDLED_MODEL
from masktune.data.augment import NONE
from masktune.data.normalisations import spelled
from masktune.datasets.catalogue import CATALOGUE, OWN
from masktune.errors import ConfigError
from masktune.files import written_path
from masktune.models.build import architectures
from masktune.runs import jobs
from masktune.runs.folder import BEFORE
from masktune.show.wording import count

BUNDLED, FROM_RUN, FILE, TRAIN = "Bundled", "From a run", "My checkpoint", "Train here"
FOUND = "As found in the file"
SUFFIXES = ["pt", "pth", "th", "ckpt", "bin", "safetensors"]


def choose_model(pictures: Chosen) -> Chosen:
    """Let somebody choose a model for the pictures that were chosen."""
    st.header("Model", anchor=False)
    if not pictures:
        st.caption("First choose pictures.")
        return {}
    dataset, root = str(pictures["dataset"]), pictures["root"]
    runs = [
        job
        for job in jobs.history()
        if job.config.dataset == dataset
        and (dataset != OWN or job.config.root == root)  # other folders hold other classes
        and (job.path / BEFORE).is_file()
    ]
    bundled = CATALOGUE[dataset].bundled
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
        if said := _other_exceptions(dataset, pictures):
            st.caption(said)
        return {"model": BUNDLED_MODEL}
    if source == TRAIN:
        return _to_train(dataset)
    if source == FROM_RUN:
        now = _given_now(dataset)
        models = {str(job.path / BEFORE): job for job in runs}
        labels = run_labels(runs, dataset=False)
        model = st.selectbox(
            "The model a run started from",
            list(models),
            index=list(models).index(now.model) if now and now.model in models else 0,
            format_func=lambda path: labels[models[path].id],
            key=f"load_run_{dataset}",
        )
        config = models[model].config
        # Of its seed, too, or it would be tested on what it was trained on.
        return {"model": model, "validation": config.validation, "seed": config.seed}
    return _file(dataset)


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


def late_words(falls: str, epochs: int) -> str:
    """Say after which epochs the rate cannot fall, since the training is over; else nothing.

    >>> late_words("2,999", 12)
    'The training is over after 12 epochs: the rate does not fall after epoch 999.'
    """
    try:
        late = [str(at) for at in epochs_named(falls or NONE) if at > epochs]
    except ConfigError:  # which is said under the model
        return ""
    if not late:
        return ""
    return (
        f"The training is over after {'1 epoch' if epochs == 1 else f'{count(epochs)} epochs'}: "
        f"the rate does not fall after epoch {', '.join(late)}."
    )


def _to_train(dataset: str) -> Chosen:
    """Ask what to train, starting from the dataset's recipe."""
    st.caption(
        "A run then trains the model by itself before it looks for the clue. "
        "Go on to Finetune to start it."
    )
    usual = settings({"dataset": dataset})
    now = start()
    same = now if now is not None and now.dataset == dataset else usual
    names = _architectures(same)
    arch = st.selectbox(
        "Architecture",
        names,
        index=names.index(same.arch if same.arch in names else usual.arch),
        key=f"train_arch_{dataset}",
        help=f"The recipe's is {usual.arch}.",
    )
    # Weights, and statistics that came with them, belong to a network.
    own = same if arch == same.arch else settings({"dataset": dataset, "arch": arch})
    weights = st.text_input(
        "Pretrained weights",
        value=own.weights or "",
        placeholder="none: it is trained afresh",
        key=f"train_weights_{dataset}_{arch}",
        help="A file, or a name: torchvision's such as ResNet18_Weights.IMAGENET1K_V1, or timm's "
        "such as timm/tf_efficientnet_lite0.in1k.",
    )
    left, right = st.columns(2)
    epochs = left.number_input(
        "Epochs",
        value=same.training.epochs,
        key=f"train_epochs_{dataset}",
        help=f"How often it sees every picture. The recipe's {usual.training.epochs} suit a "
        "GPU; Finetune says how long they take here once a run was made.",
    )
    rate = right.number_input(
        "Learning rate",
        value=same.training.lr,
        step=0.001,
        format="%g",
        key=f"train_lr_{dataset}",
        help=f"The recipe's is {usual.training.lr:g}.",
    )
    given: Chosen = {
        "model": None,
        "arch": arch,
        "weights": weights.strip() or NO_WEIGHTS,
        "epochs": int(epochs),
        "lr": rate,
    }
    with st.expander("More settings"):
        for name in (*RATE, *EPOCH, *START):
            frozen = {"freeze": own.training.freeze}
            if in_use([name], {"dataset": dataset, **frozen, **given}):
                key = f"train_{name}_{dataset}" + (f"_{arch}" if name in START else "")
                st.session_state.setdefault(key, OPTIONS[name].of(own if name in START else same))
                given[name] = draw_option(st.container(), name, holder={"key": key})
                if name == "decay_at" and (said := late_words(str(given[name]), int(epochs))):
                    st.caption(said)
        st.caption("Optimiser and frozen layers count in the finetune too: they are set there.")
    return given


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
        value="" if now is None else now.model or "",
        placeholder="model.pth",
        disabled=upload is not None,
        help="Take the uploaded file away first, if there is one.",
        key=f"weights_path_{dataset}",
    )
    names = [FOUND, *_architectures(now)]
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
        "model": str(written_path(path.strip())),
        "arch": None if arch == FOUND else arch,
        "validation": "test" if seen else "own",
    }


def _architectures(now: RunConfig | None) -> list[str]:
    """Name what can be chosen, and what is loaded where another package knows it."""
    names = architectures()
    if now is None or now.arch in (AUTO, *names) or names_code(now.arch):
        return names
    return [now.arch, *names]


def _source_now(dataset: str, sources: list[str]) -> str:
    now = subject()
    if now is None or now.dataset != dataset or now.model == BUNDLED_MODEL:
        return sources[0]
    wanted = TRAIN if now.model is None else FILE
    if now.model is not None and Path(now.model).parent.parent == jobs.runs_home():
        wanted = FROM_RUN
    return wanted if wanted in sources else sources[0]


def _given_now(dataset: str) -> RunConfig | None:
    """Give what is loaded if its model is a file for this dataset."""
    now = subject()
    given = now is not None and now.dataset == dataset and now.model not in (BUNDLED_MODEL, None)
    return now if given else None


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


def for_these_classes(error: ClassCountError) -> str:
    """Say in the words of this page what to do about a model of other classes."""
    if error.finer:
        return error.remedy
    return (
        "Use weights that were trained on these classes, or choose Train here with the "
        f"architecture {error.arch} and this file as pretrained weights; the last layer is then "
        "new."
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
    used = spelled(card.mean, card.std)
    if model.mean is None or model.std is None:
        return [*checks, Check(False, "Normalisation is not in the file", f"Using: {used}")]
    stored = spelled(model.mean, model.std)
    if stored == used:
        return [*checks, Check(True, f"Normalisation as the file says: {used}")]
    more = f"Using: {used}. Change it below"
    return [*checks, Check(False, f"The file says normalisation {stored}", more)]
