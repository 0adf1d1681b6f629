"""All that survives a rerun: ``st.session_state``, keyed by the names of a run's options.

A widget of an option has the option's name as its key and ``persist_state="session"``. So what is
chosen is there before the script runs, and nothing is copied. The address carries it all.
"""

import contextlib
import json
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from masktune.checkpoints.settings import NO_WEIGHTS, OPTIONS, same, settings
from masktune.config import AUTO, BUNDLED, Part, RunConfig, Value, idle, names_code
from masktune.datasets.catalogue import CATALOGUE, card
from masktune.errors import ConfigError, MaskTuneError
from masktune.runs import jobs
from masktune.runs.load import same_parts

RUNS_PAGE: Mapping[str, str] = {
    "ticked": "",  # ids of the runs that are set side by side, with commas between
    "runs_search": "",  # words that name, note, tags, dataset or method must hold
    "runs_dataset": "",  # as app/runs/table.py tells pictures apart; "" for all, likewise below
    "runs_method": "",
    "runs_state": "",
    "runs_test": "",  # name of the test set whose numbers are shown; "" for each run's first
    "runs_sort": "created",
    "runs_order": "down",
    "runs_against": "",  # id of the run that the others are weighed against; "" for the first
    "runs_curve": "loss",  # what the chart shows
}
"""What the page Runs shows."""

USUAL: Mapping[str, Any] = {
    **dict.fromkeys(OPTIONS),
    "training": None,  # id of the training whose model is to be taken once it is there
    "run": None,  # id of the run that Finetune, Compare and Abstain show
    "test": None,  # name of the test set; None for a run's first
    "coverage": 90,  # target coverage in percent
    "controls": False,  # whether a finetune also runs both controls
    "tournament": None,  # id of the tournament that Finetune shows; None for the newest
    "tournament_methods": None,  # that one would set side by side; None until somebody chose
    "tournament_ks": "",  # thresholds that it would try, with commas between
    "tournament_rates": "1",  # factors on the usual rate, likewise
    "tournament_tries": "",  # settings of methods and the values that it would try them at
    "tournament_seeds": 1,  # how often it would do all of it
    "compared": None,  # ids of the runs to be seen side by side; None until somebody chose
    "together": False,  # whether Compare sets the answers and heat of several runs side by side
    "mask_pictures": 24,  # how many Mask shows
    "mask_by": -1,  # how they are chosen, see app/mask/sheet.py
    "mask_order": "training",  # which of them come first, see app/mask/order.py
    "mask_order_k": 2.0,  # at which they are hidden where they are ordered by what that takes away
    "draw": 0,  # how often other pictures were asked for on Mask
    "columns": (),  # of Mask beside the first, see app/mask/columns.py
    "picture": None,  # the one under the lens: "SPLIT/NUMBER", or an uploaded file
    "picture_other": "",  # likewise, the one that patches are cut from; "" for none
    "picture_flips": "",  # identity of the picture whose flips were asked for; "" for none
    "shown": None,  # the mark whose pictures lie open, see masktune/scores/marks.py
    "shown_group": -1,  # of which group, and so on; -1 for all
    "shown_class": -1,
    "shown_only": "all",  # what became of their answers
    "shown_order": "data",
    "shown_page": 1,
    "scrub_view": "hidden",  # what the pictures of Mask show, see app/shared/scrubber/
    "scrub_selected": 0,  # which of the sheet is in the loupe
    "scrub_column": 0,  # in which column
    "scrub_every": False,  # whether by every explainer
    "scrub_group": "",  # the only group on the sheet, by name; "" for all
    "scrub_order": "given",
    "load_part": "",  # which pictures Load asks the model about; "" for the first test set
    "compare_looks_kind": "Most changed",  # which pictures "Where it looks" shows
    "compare_looks_group": -1,  # of which group; -1 for all, likewise below
    "compare_looks_page": 1,
    "compare_looks_position": 0,  # the first of them, where they are shown from a position
    "compare_flips_view": "Hidden",  # how answers that changed are shown
    "compare_flips_group": -1,
    "compare_flips_fixed_page": 1,
    "compare_flips_broken_page": 1,
    "compare_methods_page": 1,
    "compare_between": "",  # id of the run whose answers are set against; "" for the first
    "compare_between_mine_page": 1,
    "compare_between_theirs_page": 1,
    "abstain_kind": "Abstained",  # which pictures Abstain shows
    "abstain_group": -1,
    "abstain_page": 1,
    "abstain_intervals": False,  # whether areas under curves are shown with intervals
    "abstain_score": None,  # that sureness is measured by; None for the method's own way
    **RUNS_PAGE,
    "grid_strategies": ["heat"],  # what a grid on Runs would hide
    "grid_ks": "1,2,3",  # thresholds that it would try, with commas between
    "grid_rates": "",  # learning rates of its finetunes, likewise; "" for the usual one
    "grid_seeds": "0,1",  # likewise
    "runs_list_page": 1,  # of the list of runs
    "looked": frozenset(),  # pages on which a run's result was looked at, with the run
}
"""What a session knows at first."""

CARRIED = (
    *(
        "run",
        "training",
        "test",
        "coverage",
        "mask_pictures",
        "mask_by",
        "mask_order",
        "mask_order_k",
        "draw",
    ),
    *("columns", "picture", "picture_other", "picture_flips", "compared", "together", "controls"),
    *("abstain_score", "abstain_kind", "abstain_intervals"),
    *("shown", "shown_group", "shown_class", "shown_only", "shown_order", "shown_page"),
    *(name for name in USUAL if name.startswith(("scrub_", "compare_", "grid_"))),
    *("load_part", "abstain_group", "abstain_page", "runs_list_page"),
    *("tournament", "tournament_methods", "tournament_ks", "tournament_rates"),
    *("tournament_tries", "tournament_seeds"),
    *RUNS_PAGE,
)
"""What the address carries beside a run's options; a page takes what is usual for odd ones."""

MOST_SEEDS = 20
"""How often a page does all of a tournament, at most."""

TRAIN = "train"
"""Stands in an address for a model that is yet to be trained."""

MOST = {
    "epochs": ("number of epochs", 10_000),
    "lr": ("learning rate", 100),
    "batch_size": ("batch size", 65_536),
    "finetune_lr": ("finetuning rate", 100),
    "rounds": ("number of rounds", 20),
    "patience": ("patience", 10_000),
    "weight_decay": ("weight decay", 10),
}
"""Settings beyond which nothing sensible lies: a slip, or an address that somebody made up."""

LONGEST = 4000
"""Letters of a value in an address, at most."""

SHOWN = 40
"""Letters that are shown of a value in an address that cannot be used."""

START: tuple[Part, ...] = ("pictures", "model", "training")
"""What Load decides."""


def begin(page: str) -> None:
    """Make the state whole before a page is drawn; a new tab takes what the address carries."""
    state = st.session_state
    if "looked" not in state:
        state.update(USUAL)
        state.unread = _read_address()
    state.aside = False
    if state.get("page") != page:
        if "page" in state:
            state.unread = []  # it was said on the page that the link opened
            # A drawer belongs to its page. Who comes back to it by Back finds it open.
            back = not state.pop("went", False)
            show_pictures(st.query_params.get("shown") if back else None)
        # A widget of the same name on another page is another widget: it takes over what is set.
        state.update({name: state[name] for name in USUAL})
        state.page = page
    _take_trained()


def show_pictures(mark: str | None) -> None:
    """Open the pictures behind a mark, all of them, or none; call it before a page is drawn."""
    st.session_state.update({name: USUAL[name] for name in USUAL if name.startswith("shown")})
    st.session_state.shown = mark or None


def keep(name: str, among: Container[Any] | None = None) -> dict[str, Any]:
    """Return what makes a widget the holder of a name in the state.

    What is not among its choices, if they are given, is as usual: an address may say anything.
    """
    if among is not None and st.session_state[name] not in among:
        st.session_state[name] = USUAL[name]
    return {"key": name, "persist_state": "session"}


def hold(name: str, whose: str) -> None:
    """Let a choice be as usual once it is of something else: a group of one run is none of another.

    What an address says is of the first that asks. Call it before the widget is drawn.
    """
    state = st.session_state
    if state.setdefault(f"{name}_of", whose) != whose:
        state.update({name: USUAL[name], f"{name}_of": whose})


def subject() -> RunConfig | None:
    """Return pictures and model, all else as usual; None until something is loaded."""
    return _chosen("pictures", "model")


def start() -> RunConfig | None:
    """Return pictures and model and how it is trained; None until something is loaded."""
    return _chosen(*START)


def planned() -> RunConfig:
    """Return the settings of the run that a finetune would start, once something is loaded.

    Raises:
        ConfigError: somebody typed what cannot be used.
    """
    return sensible({name: st.session_state[name] for name in OPTIONS})


def sensible(given: Mapping[str, Value]) -> RunConfig:
    """Return what was asked for on a page or by an address; what has no effect is left out.

    Raises:
        ConfigError: it cannot be used, or lies beyond all that makes sense.
    """
    config = settings(given, without_effect="left out")
    for name, (label, most) in MOST.items():
        value = OPTIONS[name].of(config)
        if isinstance(value, int | float) and value > most:
            raise ConfigError(f"The {label} is {value:,.12g}.", f"Give {most:,.12g} at most.")
    return config


def usable() -> bool:
    """Tell whether a finetune could start with what is chosen."""
    try:
        planned()
    except ConfigError:
        return False
    return True


def _chosen(*parts: Part) -> RunConfig | None:
    some = {name: st.session_state[name] for name in OPTIONS if OPTIONS[name].part in parts}
    return _some(some, parts)


def _some(given: Mapping[str, Value], parts: Sequence[Part]) -> RunConfig | None:
    found = {name: value for name, value in given.items() if OPTIONS[name].part in parts}
    return settings(found, without_effect="left out") if found["dataset"] else None


def take(config: RunConfig, *parts: Part) -> None:
    """Take settings; of some parts only, if they are named.

    Widgets that hold them must not be drawn yet: call it in callbacks.
    """
    for name, value in _held(config).items():
        if not parts or OPTIONS[name].part in parts:
            st.session_state[name] = value


def _held(config: RunConfig) -> dict[str, Value]:
    """Return settings as widgets hold them: a text that says nothing is empty."""
    held = {name: option.of(config) for name, option in OPTIONS.items()}
    held["weights"] = config.weights or NO_WEIGHTS
    empty = {name for name in held if held[name] is None and OPTIONS[name].kind is str}
    return held | dict.fromkeys(empty, "")


def look_at(wanted: RunConfig) -> None:
    """Look at other pictures or another model; the run of the earlier ones is put aside.

    What is hidden goes on only for the same pictures, and the layer and what becomes of batch norm
    only for the same model.
    """
    earlier = start()
    if earlier == wanted:  # perhaps by another name
        take(wanted, "pictures")
        return
    _put_aside(earlier, wanted)
    if earlier is None or _elsewhere(earlier, wanted):
        take(wanted)
    else:
        take(wanted, *START)
        if (earlier.model, earlier.arch) != (wanted.model, wanted.arch):
            st.session_state.update(layer="", batch_norm=wanted.batch_norm)
    st.session_state.run = None


def open_demo() -> None:
    """Look at the first demo with its bundled model."""
    look_at(settings({"dataset": next(iter(CATALOGUE)), "model": BUNDLED}))


def open_run(job: jobs.Job) -> None:
    """Show a run, with all its settings."""
    _put_aside(subject(), job.config)
    take(jobs.opened(job))
    st.session_state.run = job.id


def _put_aside(earlier: RunConfig | None, wanted: RunConfig) -> None:
    """Put aside what was chosen for other pictures than those that are wanted.

    A link may name the pictures through a run, and what is chosen for them beside it: nothing is
    put aside before anything is loaded.
    """
    if earlier is None:
        return
    if _elsewhere(earlier, wanted):
        chosen = ("compared", "columns", "mask_by", "mask_order")  # groups go by their numbers
        st.session_state.update({name: USUAL[name] for name in chosen})
    if not same_parts(earlier, wanted):  # by their numbers they are other ones
        st.session_state.update(picture=None, picture_other="")


def _elsewhere(one: RunConfig, other: RunConfig) -> bool:
    """Tell whether two runs have other pictures, and so perhaps other classes."""
    return (one.dataset, one.root) != (other.dataset, other.root)


def ticked_ids() -> list[str]:
    """Return the ids of the runs that are ticked on Runs, in the order of ticking."""
    return [run for run in st.session_state.ticked.split(",") if run]


def let_go(job: jobs.Job) -> None:
    """Let go of a deleted run wherever it is shown, ticked or set beside others.

    Also of its model: what that was made from and how counts again.
    """
    state = st.session_state
    state.ticked = ",".join(run for run in ticked_ids() if run != job.id)
    state.compared = state.compared and [run for run in state.compared if run != job.id]
    state.columns = [name for name in state.columns if not name.startswith(f"model:{job.id}/")]
    if state.run == job.id:
        state.run = None
    if not (state.model or "").startswith(f"{job.path}/"):  # None before anything is loaded
        return
    left = jobs.opened(jobs.find(state.run or "") or job)
    if left.model not in (None, BUNDLED) and not Path(left.model).is_file():
        left = settings({"dataset": left.dataset, "model": _usual_model(left.dataset)})
    take(left, "model", "training")


def _take_trained() -> None:
    """Take the model that a training, or the run on the page, has trained, once there is one."""
    state = st.session_state
    if not state.dataset or state.model:
        return
    for run in filter(None, (state.training, state.run)):
        job = jobs.find(run)
        if job is None or job.config.model is not None:
            continue
        if job.config.only_before and job.state != "done":  # it is still asked how good it is
            continue
        found, now = jobs.opened(job), start()
        if found.model is not None and now is not None and same(job.config, now, *START):
            state.update({"model": found.model, "arch": AUTO})
            if job.config.only_before:
                # Load, where somebody may wait for it, shows it in place of its settings.
                state.update({"training": None, "arrived": found.model})
            return


def address(*, shown: bool = True) -> str:
    """Return the query that brings a new tab to this state: all that is not as usual.

    With ``shown`` false without the pictures that lie open, for links that open others; also where
    a page has said that these are not the pictures of the address (``aside``).
    """
    state = st.session_state
    options = tuple(state[name] for name in OPTIONS)
    leave = () if shown and not state.aside else tuple(n for n in CARRIED if n.startswith("shown"))
    names = [name for name in CARRIED if name not in leave]
    return _query(options, tuple((name, _written(state[name])) for name in names))


@lru_cache(maxsize=64)  # every chart of a page asks for it
def _query(options: tuple[Value, ...], choices: tuple[tuple[str, str], ...]) -> str:
    """Write an address.

    Args:
        options: a value for each of ``OPTIONS``.
        choices: other names and what they are, as an address has it.
    """
    given = dict(zip(OPTIONS, options, strict=True))
    carried: dict[str, str] = {}
    if (now := _some(given, START)) is not None:
        with contextlib.suppress(ConfigError):
            now = sensible(given)
        usual = _held(settings({"dataset": now.dataset, "model": now.model}))
        carried["dataset"] = now.dataset
        if now.model != _usual_model(now.dataset):
            carried["model"] = now.model or TRAIN
        unused = idle(now)
        for name, value in _held(now).items():
            if name not in unused and value != usual[name]:
                carried[name] = str(value)
    carried |= {name: said for name, said in choices if said != _written(USUAL[name])}
    # Reading would refuse what is too long: then a new tab has it as usual.
    return urlencode({name: text for name, text in carried.items() if len(text) < LONGEST})


def _written(value: object) -> str:
    """Write a value of the state into an address; several names as JSON, for a path may hold all.

    >>> _written(["layer:conv1"]), _written(24)
    ('["layer:conv1"]', '24')
    """
    return json.dumps(list(value)) if isinstance(value, list | tuple) else str(value)


def _names(text: str) -> list[str]:
    found = json.loads(text)
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise ValueError
    return found


def _usual_model(dataset: str) -> str | None:
    return BUNDLED if card(dataset).bundled else None


def _read_address() -> list[str]:
    """Take what the address carries; return what cannot be used in it, which is left out."""
    said = dict(st.query_params.items())
    carried = {name: text for name, text in said.items() if len(text) < LONGEST}
    known = {name for name in carried if name in OPTIONS}
    for name in CARRIED:
        with contextlib.suppress(KeyError, ValueError, RecursionError):
            st.session_state[name] = _read(name, carried[name])
            known.add(name)
    if not 1 <= st.session_state.tournament_seeds <= MOST_SEEDS:
        st.session_state.tournament_seeds = USUAL["tournament_seeds"]
        known.discard("tournament_seeds")
    if not 50 <= st.session_state.coverage <= 100:
        st.session_state.coverage = USUAL["coverage"]
        known.discard("coverage")
    dataset = carried.pop("dataset", "")
    if dataset in CATALOGUE:
        config, unusable = _carried(dataset, carried)
        take(config)
        known -= unusable
    else:
        known -= {*OPTIONS}
        job = jobs.find(carried.get("run", ""))
        if job is not None and job.config.dataset in CATALOGUE:
            open_run(job)
    return [f"{name}={text[:SHOWN]}" for name, text in said.items() if name not in known]


def _read(name: str, text: str) -> bool | float | str | list[str]:
    """Read one of ``CARRIED``."""
    usual = USUAL[name]
    if name in ("compared", "tournament_methods") or isinstance(usual, list | tuple):
        return _names(text)
    if isinstance(usual, bool):
        return text == str(True)
    return type(usual)(text) if isinstance(usual, int | float) else text


def _carried(dataset: str, carried: Mapping[str, str]) -> tuple[RunConfig, set[str]]:
    """Return the settings that an address carries, and the names of those that it cannot."""
    unusable: set[str] = set()
    model = carried.get("model", _usual_model(dataset))
    given: dict[str, Value] = {"dataset": dataset, "model": None if model == TRAIN else model}
    for name, option in OPTIONS.items():
        # An address may come from anybody: it names no code that is to be run.
        code = name == "arch" and names_code(carried.get(name, ""))
        if code:
            unusable.add(name)
        elif name in carried and name not in given:
            try:
                wanted = {**given, name: option.read(carried[name])}
                sensible(wanted)
            except (ValueError, MaskTuneError):
                unusable.add(name)
                continue
            given = wanted
    config = settings(given, without_effect="left out")
    k = round(config.masking.k, 2)  # as the sliders have it
    return replace(config, masking=replace(config.masking, k=k)), unusable
