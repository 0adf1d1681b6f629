"""Load: choose pictures and a trained model, see at once how it does in each group."""

from itertools import chain
from pathlib import Path

import streamlit as st

from app import cached, jobs
from app.components.frame import heading, page_file
from app.components.load_cards import (
    correlation_sentence,
    groups_csv,
    groups_html,
    groups_of,
    sample_positions,
    samples_html,
    scores_of,
    worst_sentence,
)
from app.components.problems import explained_errors, plain
from app.components.sheets import show
from app.state import choose_subject, session
from app.subject import Subject
from masktune.data.base import DatasetBundle
from masktune.data.catalogue import CATALOGUE
from masktune.wording import count, method_words

DEMO, CATALOGUED = "Demo", "Catalogue"
BUNDLED, FROM_RUN, FILE, TRAIN = "Bundled", "From a run", "Checkpoint file", "Train here"
PHOTO = 64
"""Pictures at least this wide are encoded as photographs."""


def render() -> None:
    """Draw the page."""
    heading("Load", "Choose pictures and a trained classifier. You see at once how it does.")
    choices, consequences = st.columns([1, 1.7], gap="medium")
    with choices:
        with st.container(key="card_pictures"):
            dataset, root = _pictures()
        with st.container(key="card_model"):
            model = _model(dataset)
        wanted = (
            None
            if dataset is None or model is None
            else Subject(dataset=dataset, root=root, model=model, seed=_seed(dataset, model))
        )
    facts = choices.container()
    with consequences, explained_errors():
        # What was loaded before stays loaded when the new choice cannot be read.
        if wanted is not None and wanted != session().subject:
            _check(wanted)
            choose_subject(wanted)
            st.rerun()
        if wanted is None or session().subject is None:
            show(
                "<i></i><p><b>Nothing to show yet</b></p><p>Choose pictures and a model at the "
                "left. The demos need neither download nor folder.</p>",
                kind="empty",
            )
        else:
            _consequences(wanted)
            with facts:
                _facts(wanted)


def _pictures() -> tuple[str | None, str | None]:
    """Let somebody choose pictures; give dataset key and root."""
    st.header("Pictures", anchor=False)
    now = session().subject
    bundled_now = now is None or CATALOGUE[now.dataset].card.bundled
    source = st.segmented_control(
        "Where from",
        [DEMO, CATALOGUED],
        default=DEMO if bundled_now else CATALOGUED,
        required=True,
        label_visibility="collapsed",
        width="stretch",
    )
    cards = [e.card for e in CATALOGUE.values() if e.card.bundled == (source == DEMO)]
    keys = [card.key for card in cards]
    key = st.selectbox(
        "Dataset",
        keys,
        index=keys.index(now.dataset) if now is not None and now.dataset in keys else 0,
        format_func=lambda k: CATALOGUE[k].card.title,
    )
    card = CATALOGUE[key].card
    st.caption(plain(card.summary))
    if card.bundled:
        return key, None
    st.caption(f"The folder must hold {plain(card.layout)}.")
    root = st.text_input(
        "Folder on this computer",
        value=(now.root or "") if now is not None and now.dataset == key else "",
        placeholder="/data",
        help="The pictures are read where they are. Nothing is moved, changed or uploaded.",
    )
    if not root:
        return None, None
    return key, str(Path(root).expanduser())


def _model(dataset: str | None) -> str | None:
    """Let somebody choose a model; give "bundled", "train" or a path."""
    st.header("Model", anchor=False)
    if dataset is None:
        st.caption("First choose pictures.")
        return None
    bundled = CATALOGUE[dataset].card.bundled
    runs = [
        job
        for job in jobs.history()
        if job.config.dataset == dataset and (job.path / "before.safetensors").is_file()
    ]
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
        return "bundled"
    if source == TRAIN:
        st.caption(
            "A run then trains the model by itself before it looks for the clue. "
            "Go on to Finetune to start it."
        )
        return "train"
    if source == FROM_RUN:
        chosen = st.selectbox(
            "The model a run started from",
            runs,
            format_func=lambda job: (
                job.name or f"{job.id[:15]}, {method_words(job.config.masking)}"
            ),
        )
        return str(chosen.path / "before.safetensors")
    path = st.text_input(
        "Weights file on this computer",
        value=_path_now(dataset),
        placeholder="model.safetensors",
        help="A safetensors file that a run wrote. It is read without executing anything in it.",
    )
    return str(Path(path).expanduser()) if path else None


def _run_name(job: jobs.Job) -> str:
    return job.name or f"{job.id[:15]}, {method_words(job.config.masking)}"


def _source_now(dataset: str, sources: list[str]) -> str:
    now = session().subject
    if now is None or now.dataset != dataset or now.model == "bundled":
        return sources[0]
    wanted = TRAIN if now.model == "train" else FILE
    if Path(now.model).parent.parent == jobs.runs_home():
        wanted = FROM_RUN
    return wanted if wanted in sources else sources[0]


def _path_now(dataset: str) -> str:
    now = session().subject
    given = now is not None and now.dataset == dataset and now.model not in ("bundled", "train")
    return now.model if now is not None and given else ""


def _seed(dataset: str, model: str) -> int:
    """Give the seed of the split; a run's model must not be tested on what it was trained on."""
    if Path(model).parent.parent == jobs.runs_home():
        job = jobs.find(Path(model).parent.name)
        return job.config.seed if job is not None and job.config.dataset == dataset else 0
    return 0


def _check(subject: Subject) -> None:
    """Read pictures and model once; what is wrong with them is raised with a remedy."""
    cached.bundle(subject)
    if subject.model != "train":
        cached.checkpoint(subject)


def _consequences(subject: Subject) -> None:
    data = cached.bundle(subject)
    asked = subject.model != "train"
    groups = groups_of(data)
    with st.container(key="card_groups"):
        st.header("Groups", anchor=False)
        part = st.segmented_control(
            "Accuracy on",
            [*data.tests, "validation"],
            default=next(iter(data.tests)),
            required=True,
            help="Which pictures the model is asked about. It was trained on none of them.",
        )
        scores = scores_of(data, cached.answers(subject, part)) if asked else None
        show(groups_html(groups, scores))
        sentences = [correlation_sentence(groups)]
        if scores:
            sentences.append(worst_sentence(scores, f"'{part}'"))
        st.caption(plain(" ".join(sentences)))
        st.download_button(
            "Groups (CSV)",
            groups_csv(groups, scores),
            file_name=f"{subject.dataset}-groups.csv",
            icon=":material/download:",
        )
    with st.container(key="card_samples"):
        _samples(subject, data, asked=asked)


def _samples(subject: Subject, data: DatasetBundle, *, asked: bool) -> None:
    st.header("Training pictures", anchor=False)
    groups = groups_of(data)
    chosen = sample_positions(data.train, groups)
    answers = cached.sample_answers(subject, tuple(chain.from_iterable(chosen))) if asked else None
    places = st.columns(2, gap="medium")
    start = 0
    for number, (group, positions) in enumerate(zip(groups, chosen, strict=True)):
        with places[number % 2]:
            st.markdown(f"**{plain(group.name[0])}** {plain(group.name[1])}")
            if positions:
                part = answers and cached.some(answers, range(start, start + len(positions)))
                photos = data.card.size[0] >= PHOTO
                show(samples_html(data, positions, part, photos=photos))
            else:
                st.caption("No training picture.")
        start += len(positions)
    if asked:
        st.caption("Captions: the model's answer and how sure it is. A cross marks a wrong answer.")


def _facts(subject: Subject) -> None:
    data, asked = cached.bundle(subject), subject.model != "train"
    sizes = {"train": data.train, "validation": data.validation, **data.tests}
    with st.container(key="card_facts"):
        st.header("Facts", anchor=False)
        lines = [
            "Splits: " + ", ".join(f"{name} {count(len(part))}" for name, part in sizes.items()),
            f"Frame: {data.card.size[0]} × {data.card.size[1]} pixels",
            f"Pictures: {data.card.source}. Licence: {data.card.licence}",
        ]
        if asked:
            model = cached.checkpoint(subject)
            weights = sum(p.numel() for p in model.model.parameters())
            lines += [
                f"Model: {model.arch}, {model.classes} classes, {count(weights)} parameters",
                f"Heat is read at layer {cached.heat_layer(subject, None)}",
            ]
        st.markdown("\n".join(f"- {plain(line)}" for line in lines))
        if asked:
            if st.button(
                "Look at the heat",
                type="primary",
                icon=":material/arrow_forward:",
                width="stretch",
            ):
                st.switch_page(page_file("mask"))
        elif st.button("Go to Finetune", type="primary", icon=":material/arrow_forward:"):
            st.switch_page(page_file("finetune"))


render()
