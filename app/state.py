"""All that survives a rerun: one Session a browser tab, mirrored in the address where it can be."""

from dataclasses import dataclass, field, replace

import streamlit as st

from masktune.config import MaskingConfig, names_code
from masktune.datasets.catalogue import CATALOGUE
from masktune.errors import ConfigError
from masktune.recipes import recipe
from masktune.runs.subject import Subject

KEY = "masktune"
MOST_DIGITS = 10
OPTIONAL = ("root", "arch", "frame", "normalise")
"""What the address says about a subject only where it was chosen."""


@dataclass(slots=True, kw_only=True)
class Session:
    """What one person has chosen so far.

    Attributes:
        subject: pictures and model; None until something is loaded.
        masking: what is hidden, with the k of the slider.
        finetune_lr: None for the rate of the ERM's last epoch.
        controls: whether a finetune also runs RandMask and the epoch without masks.
        run: id of the run that Finetune, Compare and Abstain show.
        compared: ids of the runs that were chosen to be seen side by side.
        test: name of the test set that Compare shows; None for a run's first.
        coverage: target coverage on the Abstain page.
        draw: how often other pictures were asked for on the Mask page.
    """

    subject: Subject | None = None
    masking: MaskingConfig = field(default_factory=MaskingConfig)
    finetune_lr: float | None = None
    controls: bool = False
    run: str | None = None
    compared: tuple[str, ...] = ()
    test: str | None = None
    coverage: float = 0.9
    draw: int = 0


def session() -> Session:
    """Give this tab's session; a new tab takes what the address carries."""
    if KEY not in st.session_state:
        st.session_state[KEY] = _from_address()
    found: Session = st.session_state[KEY]
    return found


def choose_subject(subject: Subject) -> None:
    """Look at other pictures or another model; the run of the earlier ones is put aside."""
    chosen = session()
    if chosen.subject is None or chosen.subject.dataset != subject.dataset:
        chosen.masking = replace(_usual_masking(subject), k=chosen.masking.k)
        chosen.compared = ()
    if chosen.subject != subject:
        _look_at(subject)
        chosen.run = None


def _look_at(subject: Subject) -> None:
    """Take a subject; another model may not have the layer that was chosen."""
    chosen, earlier = session(), session().subject
    if earlier is None or (earlier.model, earlier.arch) != (subject.model, subject.arch):
        chosen.masking = replace(chosen.masking, layer=None)
    chosen.subject = subject


def _usual_masking(subject: Subject) -> MaskingConfig:
    """Give what the recipe of a dataset hides; two clues take two rounds."""
    return recipe(CATALOGUE[subject.dataset].card.recipe).masking


def choose_masking(masking: MaskingConfig) -> None:
    """Take other settings of what is hidden."""
    session().masking = masking


def choose_run(run: str | None, subject: Subject | None = None) -> None:
    """Show a run; with its pictures and model, if they are given."""
    chosen = session()
    chosen.run = run
    if subject is not None:
        _look_at(subject)


def keep_address() -> None:
    """Write run, pictures and k into the address, so that a reload or a link shows the same."""
    chosen = session()
    wanted: dict[str, str] = {}
    if chosen.subject is not None:
        wanted["dataset"] = chosen.subject.dataset
        if chosen.subject.model != "bundled":
            wanted["model"] = chosen.subject.model
        if chosen.subject.seed:
            wanted["seed"] = str(chosen.subject.seed)
        if chosen.subject.epochs is not None:
            wanted["epochs"] = str(chosen.subject.epochs)
        if chosen.subject.validation != "own":
            wanted["validation"] = chosen.subject.validation
        for name in OPTIONAL:
            if (value := getattr(chosen.subject, name)) is not None:
                wanted[name] = value
        wanted["k"] = f"{chosen.masking.k:g}"
    if chosen.run is not None:
        wanted["run"] = chosen.run
    if dict(st.query_params) != wanted:
        st.query_params.from_dict(wanted)


def _whole_number(name: str) -> int | None:
    text = st.query_params.get(name, "")
    return int(text) if text.isdecimal() and len(text) < MOST_DIGITS else None


def _carried_model(dataset: str) -> str:
    model = st.query_params.get("model", "bundled")
    return "train" if model == "bundled" and not CATALOGUE[dataset].card.bundled else model


def _from_address() -> Session:
    """Read the address; what cannot be used in it is left out rather than shown as an error."""
    carried = st.query_params
    chosen = Session(run=carried.get("run"))
    if carried.get("dataset") in CATALOGUE:
        chosen.subject = Subject(
            dataset=carried["dataset"],
            model=_carried_model(carried["dataset"]),
            seed=_whole_number("seed") or 0,
            epochs=_whole_number("epochs") or None,
            validation="test" if carried.get("validation") == "test" else "own",
            **{name: carried.get(name) for name in OPTIONAL},
        )
        # An address may come from anybody: it names no code that is to be run.
        if chosen.subject.arch is not None and names_code(chosen.subject.arch):
            chosen.subject = replace(chosen.subject, arch=None)
        chosen.masking = _usual_masking(chosen.subject)
    try:
        chosen.masking = replace(chosen.masking, k=round(min(float(carried["k"]), 3.0), 2))
    except (KeyError, ValueError, ConfigError):
        return chosen
    return chosen
