"""The Load page's models that are made here: those that are there, and the training of one."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import streamlit as st

from app import loaded as cached
from app.load.pictures import Chosen
from app.shared.pages import page_file
from app.shared.pieces import download, draw_stopped
from app.shared.problems import explained_errors, plain
from app.shared.run_menu import draw_about, draw_delete
from app.shared.run_rows import few_of_studies, run_labels
from app.shared.training import EPOCH, RATE, START, STEP, draw_option, freezable, in_use
from app.shared.untrained import draw_under_way, latest
from app.state import START as DECIDED
from app.state import start, subject
from app.uploads import keep_upload, plain_name
from masktune.checkpoints.blueprint import outline
from masktune.checkpoints.checkpoint import ClassCountError
from masktune.checkpoints.hugging_face import weights_file
from masktune.checkpoints.settings import NO_WEIGHTS, OPTIONS, given_by, settings
from masktune.checkpoints.start import arch_of_weights, named_weights
from masktune.config import AUTO, RunConfig, epochs_named, names_code
from masktune.data.augment import NONE
from masktune.data.normalisations import IMAGENET, spelled
from masktune.datasets.catalogue import OWN, card
from masktune.errors import ConfigError, ModelError
from masktune.files import is_file, written_path
from masktune.models.build import TIMM, architectures
from masktune.recipes import recipe
from masktune.runs import jobs
from masktune.runs.folder import BEFORE
from masktune.runs.jobs import Job
from masktune.show.wording import count, method_words

TRAIN = "Train here"
FRESH, NAMED, FROM_FILE = "Fresh", "By name", "From a file"
BEGINS = {
    FRESH: "A new network that has learnt nothing yet.",
    NAMED: "A network that has learnt ImageNet, fetched by its name, with a new last layer.",
    FROM_FILE: "Your own weights, also for other classes: then the last layer is new.",
}
"""What a training starts from, and what that is."""

PRESSED = "train_pressed"
"""Says that a training is to be started. A run of the page that takes up what was typed last begins
again, and knows nothing of the click that came with it."""

FOUND = "As found in the file"
SUFFIXES = ["pt", "pth", "th", "ckpt", "bin", "safetensors"]


def models_made(dataset: str, root: object) -> dict[str, Job]:
    """Return what has trained or taken a model for these pictures, by the model's path.

    What is in the archive is left out unless it is loaded, and so are copies of a study's model.
    """
    now = subject()
    loaded = None if now is None else now.model
    made = [
        job
        for job in jobs.every()
        if job.config.dataset == dataset
        and (dataset != OWN or job.config.root == root)  # other folders hold other classes
        and not (job.of_study and job.config.model is not None)
        and (job.path / BEFORE).is_file()
        and not (job.archived and str(job.path / BEFORE) != loaded)
    ]
    kept = few_of_studies(made, named={job.id for job in made if str(job.path / BEFORE) == loaded})
    return {str(job.path / BEFORE): job for job in kept}


def choose_made(dataset: str, made: Mapping[str, Job]) -> Chosen:
    """Let somebody choose a model that was made here, name it and save it."""
    state, key, now = st.session_state, f"load_run_{dataset}", subject()
    if state.get(key) not in made:
        state[key] = now.model if now is not None and now.model in made else next(iter(made))
    labels = run_labels(list(made.values()), dataset=False)
    model = st.selectbox(
        "Trained here, or what a run started from",
        list(made),
        format_func=lambda path: labels[made[path].id],
        key=key,
    )
    job = made[model]
    with st.container(horizontal=True):
        name = plain_name(f"{job.name or job.id}.safetensors")
        download("Weights", lambda: Path(model).read_bytes(), name, prominent=True)
        with st.popover("Name", icon=":material/edit:", help="Name, note, tags, delete"):
            draw_about(job)
            if job.config.only_before:  # a run is deleted where its results are listed
                draw_delete(job)
    # Of its seed, too, or it would be tested on what it was trained on.
    return {"model": model, "validation": job.config.validation, "seed": job.config.seed}


def known_architectures(now: RunConfig | None) -> list[str]:
    """Name what can be chosen, and what is loaded where another package knows it."""
    names = architectures()
    if now is None or now.arch in (AUTO, *names) or names_code(now.arch):
        return names
    return [now.arch, *names]


def choose_training(dataset: str, root: object) -> Chosen:
    """Ask what to train and what from; while it is being trained, show how far that is."""
    job = latest()
    if job is not None and (job.config.dataset, job.config.root) != (dataset, root):
        job = None
    if job is not None and job.active:
        st.markdown(f"**{plain(job.name or method_words(job.config))}**")
        draw_under_way(job, here="It is then the model on every page.")
        told = given_by(job.config, *DECIDED)
        return {n: v for n, v in told.items() if n not in ("dataset", "root", "title")}
    if job is not None and job.state != "done":
        draw_stopped("the training", job, jobs.resume)
    return _settings(dataset, root)


def _settings(dataset: str, root: object) -> Chosen:
    """Ask for the settings of a training, starting from the dataset's recipe."""
    usual, now = settings({"dataset": dataset}), start()
    same = now if now is not None and now.dataset == dataset else usual
    state, key = st.session_state, f"train_start_{dataset}"
    if key not in state:
        state[key] = _begins(same)
    st.segmented_control("Starts from", list(BEGINS), required=True, key=key, width="stretch")
    begins = str(state[key])
    st.caption(BEGINS[begins])
    with explained_errors():
        if begins == FRESH:
            given = _fresh(dataset, same, usual)
        elif begins == NAMED:
            given = _by_name(dataset, same)
        else:
            given = _from_file(dataset, root, same)
        if given:
            return _learning(dataset, given, same=same, usual=usual)
    return {}


def _begins(config: RunConfig) -> str:
    if config.weights is None or config.model is not None:
        return FRESH
    return FROM_FILE if is_file(config.weights) else NAMED


def _fresh(dataset: str, same: RunConfig, usual: RunConfig) -> Chosen:
    names, key = known_architectures(same), f"train_arch_{dataset}"
    st.session_state.setdefault(key, same.arch if same.arch in names else usual.arch)
    arch = st.selectbox("Architecture", names, key=key, help=f"The recipe's is {usual.arch}.")
    return {"model": None, "arch": arch, "weights": NO_WEIGHTS}


def _by_name(dataset: str, same: RunConfig) -> Chosen:
    names, key = _torchvision(), f"train_weights_{dataset}"
    st.session_state.setdefault(key, None if same.model or _begins(same) != NAMED else same.weights)
    weights = st.selectbox(
        "Pretrained weights",
        list(dict.fromkeys((*names, *filter(None, [st.session_state[key]])))),
        index=None,
        placeholder="Choose torchvision's, or type timm's",
        accept_new_options=True,
        key=key,
        help="torchvision's names, such as ResNet18_Weights.IMAGENET1K_V1; or type one of timm's, "
        "such as timm/tf_efficientnet_lite0.in1k, where timm is installed. They are downloaded "
        "once, when the training begins.",
    )
    if not weights:
        return {}
    arch = arch_of_weights(weights, likely="")
    if not arch:
        raise ModelError(
            f"There are no weights '{weights}', neither of torchvision's nor of timm's.",
            "Choose one from the list; timm's begin with timm/.",
        )
    if said := normalisation_words(weights, same):
        st.caption(said)
    return {"model": None, "arch": arch, "weights": weights}


def normalisation_words(weights: str, same: RunConfig) -> str:
    """Say what pictures named weights are used to; nothing where they are shown these already."""
    base = recipe(same.recipe)
    if (weights, same.normalise) == (base.weights, base.normalise):
        return ""
    if weights.startswith(TIMM):
        return (
            "They are used to the normalisation that timm's page of them names: choose it under "
            "What the model sees."
        )
    pictures = card(same.dataset)
    usual = spelled(pictures.mean, pictures.std)
    if (same.normalise or usual) == IMAGENET:
        return ""
    return "They are used to ImageNet's normalisation: choose it under What the model sees."


@cache
def _torchvision() -> tuple[str, ...]:
    return tuple(named_weights())


def _from_file(dataset: str, root: object, same: RunConfig) -> Chosen:
    state, key = st.session_state, f"train_path_{dataset}"
    upload = st.file_uploader(
        "Weights to start from",
        type=SUFFIXES,
        key=f"train_file_{dataset}",
        help="A state dict as PyTorch or safetensors keep it. It is read without executing "
        "anything in it.",
    )
    state.setdefault(key, (same.weights or "") if _begins(same) == FROM_FILE else "")
    path = st.text_input(
        "or their path on this computer, for files over 200 MB",
        placeholder="model.pth",
        disabled=upload is not None,
        key=key,
    )
    if upload is not None:
        path = str(keep_upload(upload.name, upload, upload=upload.file_id))
    if not path.strip():
        return {}
    path = str(weights_file(written_path(path.strip())))
    names, key = [FOUND, *architectures()], f"train_file_arch_{dataset}_{path}"
    if key not in state and path == same.weights and same.arch in names:
        found = cached.diagnosis(path, None)
        state[key] = FOUND if found.ok and found.arch == same.arch else same.arch
    arch = st.selectbox(
        "Architecture",
        names,
        key=key,
        help="Only needed where several architectures fit the same weights.",
    )
    found = cached.diagnosis(path, None if arch == FOUND else arch)
    if not found.ok:
        # The recipe's network may be meant; and a body that cannot answer can still be trained.
        arch = cached.body_of(path, settings({"dataset": dataset}).arch if arch == FOUND else arch)
        found = cached.diagnosis(path, arch)
    if not found.ok:
        st.caption(plain(f"{arch} without its last layer: it gets a new one."))
        return {"model": None, "arch": arch, "weights": path, "head": "new"}
    told: Chosen = {"model": None, "arch": found.arch, "weights": path, "head": "new"}
    classes = _classes(dataset, root)
    if classes is None or found.classes is None:
        return told
    has = "one logit" if found.classes == 1 else f"{count(found.classes)} classes"
    if found.classes != classes:
        st.caption(
            plain(
                f"{found.arch} for {has}; these pictures have {count(classes)}, so its last layer "
                "is new. All others keep what they have learnt."
            )
        )
        return told
    st.caption(plain(f"{found.arch} for {has}, as these pictures have."))
    head = f"train_head_{dataset}_{path}"
    state.setdefault(head, same.head if same.weights == path else "new")
    return told | {"head": draw_option(st.container(), "head", holder={"key": head})}


def _classes(dataset: str, root: object) -> int | None:
    """Count the classes of the pictures, once they are loaded."""
    now = subject()
    if now is None or (now.dataset, now.root) != (dataset, root):
        return None
    return len(cached.bundle(now).card.classes)


def _learning(dataset: str, given: Chosen, *, same: RunConfig, usual: RunConfig) -> Chosen:
    """Ask how a network of some start learns; return that with the start."""
    state, arch = st.session_state, str(given["arch"])
    if names_code(arch):
        raise ConfigError(
            f"{arch} names code of its own.", "Train it on the command line: masktune train."
        )
    # What is frozen, and statistics that came with weights, belong to what it starts from.
    weights = given["weights"]
    usual_here = settings({"dataset": dataset, "arch": arch, "weights": weights})
    own = same if (arch, weights) == (same.arch, same.weights or NO_WEIGHTS) else usual_here
    key = f"train_freeze_{dataset}_{arch}_{weights}"
    nothing_learnt = weights == NO_WEIGHTS and own is not same
    state.setdefault(key, NONE if nothing_learnt else own.training.freeze)
    given["freeze"] = draw_option(st.container(), "freeze", holder={"key": key}, more=_layers(arch))
    left, right = st.columns(2)
    state.setdefault(f"train_epochs_{dataset}", same.training.epochs)
    epochs = left.number_input(
        "Epochs",
        step=1,
        key=f"train_epochs_{dataset}",
        help=f"How often it sees every picture. The recipe's {usual.training.epochs} suit a GPU; "
        "fewer may do for a start that has learnt already.",
    )
    given["epochs"] = int(epochs)
    state.setdefault(f"train_lr_{dataset}", same.training.lr)
    given["lr"] = right.number_input(
        "Learning rate",
        step=0.001,
        format="%g",
        key=f"train_lr_{dataset}",
        help=f"The recipe's is {usual.training.lr:g}.",
    )
    with st.expander("More settings", key=f"train_more_{dataset}"):
        for name in (*RATE, *EPOCH, *START, *STEP):
            if in_use([name], {"dataset": dataset, **given}):
                key = f"train_{name}_{dataset}" + (f"_{arch}_{weights}" if name in START else "")
                state.setdefault(key, OPTIONS[name].of(own if name in START else same))
                given[name] = draw_option(st.container(), name, holder={"key": key})
                if name == "decay_at" and (said := late_words(str(given[name]), int(epochs))):
                    st.caption(said)
        st.caption("Optimiser and frozen layers count in the finetune too, until changed there.")
    return given


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


@cache
def _layers(arch: str) -> list[str]:
    """Name the parts of an architecture up to which it may be frozen; none where it is unknown."""
    try:
        return freezable(outline(arch, 2))
    except ModelError:  # which is said where it is built
        return []


def draw_start() -> None:
    """Draw what starts the training of the model that is chosen, and nothing while it runs."""
    wanted, job = start(), latest()
    if wanted is None or (job is not None and job.active):
        return
    key = f"train_name_{wanted.dataset}"
    name = st.text_input(
        "Name of the model",
        placeholder=method_words(replace(wanted, only_before=True)),
        key=key,
        help="What it is called in lists; it can be changed later.",
    )
    st.button(
        "Start the training",
        type="primary",
        icon=":material/model_training:",
        width="stretch",
        on_click=lambda: st.session_state.update({PRESSED: True}),
    )
    busy = sum(other.active for other in jobs.alone())
    if busy:
        runs = "run is" if busy == 1 else "runs are"
        st.caption(f"{busy} other {runs} under way. Yours waits its turn.")
    if st.session_state.pop(PRESSED, False):
        with explained_errors():
            path = jobs.start(replace(wanted, only_before=True), name=name.strip())
            st.session_state.training = path.name
            st.rerun()
    st.page_link(
        page_file("finetune"),
        label="Or train and finetune in one run",
        icon=":material/arrow_forward:",
    )


def offer_new_head(error: ClassCountError, dataset: str) -> None:
    """Offer to train weights for other classes with a new last layer."""
    st.button(
        "Give it a new last layer",
        type="primary",
        icon=":material/model_training:",
        on_click=_take_up,
        args=(str(error.file), dataset),
        key=f"new_head_{dataset}",
    )


def _take_up(path: str, dataset: str) -> None:
    st.session_state.update(
        {
            f"model_source_{dataset}": TRAIN,
            f"train_start_{dataset}": FROM_FILE,
            f"train_path_{dataset}": path,
        }
    )
