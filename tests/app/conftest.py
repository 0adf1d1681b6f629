"""A home for runs that is thrown away, one finished run of the demo, and pages to look at."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qsl

import psutil
import pytest
from filelock import FileLock
from streamlit import config as streamlit_config
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from app import loaded as cached
from masktune.config import MaskingConfig, RunConfig
from masktune.datasets.catalogue import load
from masktune.pipeline import run
from masktune.recipes import recipe
from masktune.runs.folder import RunFolder, new_run_path
from masktune.runs.open import OpenRun

ROOT = Path(__file__).resolve().parents[2]
DEMO = "biased-mnist-5k"


def demo_config(**changes) -> RunConfig:
    """Give the settings of a finetune of the bundled demo, as the page would start it."""
    base = recipe(DEMO)
    values = {
        "dataset": DEMO,
        "recipe": base.name,
        "arch": base.arch,
        "training": base.training,
        "masking": MaskingConfig(),
        "model": "bundled",
    }
    return RunConfig(**{**values, **changes})


TRAINS = replace(demo_config(), model=None)
"""The demo with a model that must be trained first."""


@pytest.fixture(scope="session", autouse=True)
def packages_scanned_once() -> Iterator[None]:
    """Every AppTest reads the notes of all installed packages for components: more than a page."""
    with pytest.MonkeyPatch.context() as patch:
        scan = cache(manifest_scanner.scan_component_manifests)
        patch.setattr(manifest_scanner, "scan_component_manifests", scan)
        yield


@pytest.fixture(scope="session", autouse=True)
def garbage_is_left_to_python() -> Iterator[None]:
    """Streamlit has all garbage collected after every rerun: among all tests, longer than most."""
    streamlit_config.set_option("runner.postScriptGC", False)
    yield
    streamlit_config.set_option("runner.postScriptGC", True)


@pytest.fixture(autouse=True)
def no_advice_yet() -> None:
    """Forget what earlier tests asked about thresholds: the Finetune page shows what is known."""
    cached._THRESHOLDS.clear()


@pytest.fixture(autouse=True)
def no_time_passes(monkeypatch) -> None:
    """Let asking a model seem to take no time: what pages do at once follows from no clock."""
    monkeypatch.setattr(cached, "time", SimpleNamespace(monotonic=lambda: 0.0))


@pytest.fixture
def slow_looks(no_time_passes, monkeypatch) -> Iterator[None]:
    """Let every look take a second, so that no page looks at all pictures unasked."""
    kept = (cached._SAMPLES, cached._SOME_HEAT)  # which remember how long they took
    for one in kept:
        one.clear()
    monkeypatch.setattr(cached, "time", SimpleNamespace(monotonic=count().__next__))
    yield
    for one in kept:
        one.clear()


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    """Give an empty $MASKTUNE_HOME."""
    monkeypatch.setenv("MASKTUNE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory) -> Path:
    """Give the folder of one finished run of the demo; tests copy it, nobody changes it.

    It takes seconds: made by the first process of pytest-xdist that needs it, for all of them.
    """
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    home = shared / "finished"
    with FileLock(shared / "finished.lock"), pytest.MonkeyPatch.context() as patch:
        patch.setenv("MASKTUNE_HOME", str(home))
        made = next((home / "runs").glob("*/result.json"), None)  # which is written last
        config = demo_config()
        return made.parent if made else run(config, out=new_run_path(config)).folder


@pytest.fixture
def home_with_run(home, finished_run) -> Path:
    """Give a $MASKTUNE_HOME that holds the finished run, under its own id."""
    shutil.copytree(finished_run, home / "runs" / finished_run.name)
    return home


@pytest.fixture
def a_run(home):
    """Make a run folder in some state; this process stands in for those that work or wait."""

    def make(name="a-run", *, config=None, events=0, log="", **status):
        path = home / "runs" / name
        folder = RunFolder.claim(path, config or demo_config())
        known = {"stage": "", "step": 0, "total": 0}
        if status["state"] in ("queued", "running"):
            known |= {"pid": os.getpid(), "started": psutil.Process().create_time()}
        folder.write_json("status.json", {**known, **status})
        for step in range(1, events + 1):
            record = {"time": 100.0 + step / 4, "stage": "finetune", "step": step, "total": 55}
            folder.append("events.jsonl", json.dumps({**record, "loss": 1 / step, "accuracy": 0.5}))
        if log:
            (path / "log.txt").write_text(log)
        return path

    return make


def address(at: AppTest) -> dict[str, str]:
    """Give what a page writes into the address."""
    tabs = [e.proto for e in at.get("bidi_component") if e.proto.component_name == "tab"]
    # Fragments write it too, before what comes after them on the page is known.
    (written,) = (told for tab in tabs if "pages" in (told := json.loads(tab.json)))
    return dict(parse_qsl(written["query"]))


@pytest.fixture
def open_page() -> Callable[..., AppTest]:
    """Give what opens a page of the app: ``open_page("compare", dataset=DEMO, run=ID)``."""

    def opened(name: str, **address: str) -> AppTest:
        at = AppTest.from_file(str(ROOT / "app" / "main.py"), default_timeout=120)
        for key, value in address.items():
            at.query_params[key] = value
        # Before its first run AppTest knows a page by its file's name, and all are page.py.
        at._page_hash = calc_hash("" if name == "start" else name)
        return at.run()

    return opened


@pytest.fixture(scope="module")
def pictures_read_once() -> Iterator[None]:
    """Reading the digits takes seconds, and every run that is opened reads them anew."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("masktune.runs.load.load", cache(load))
        yield


@pytest.fixture(scope="module")
def every(finished_run, pictures_read_once):
    """Give the test sets of the finished run, by name."""
    return OpenRun(finished_run).tests


@pytest.fixture(scope="module")
def original(every):
    """Give the test set without squares."""
    return every["original"]
