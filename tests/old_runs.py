"""Run folders of an older version, put together as they were; see fixtures/runs/README.md."""

import hashlib
import json
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RUNS = ROOT / "tests" / "fixtures" / "runs"
MODEL = ROOT / "assets" / "biased-mnist-5k.safetensors"
DEMO = "20261101-080000-biased-mnist-5k-00000001"
OWN = "20261101-090000-folder-00000002"
BEFORE = {
    DEMO: "c105e60a6a3e608c7863f19c420dbb3eecf383b605687ed3c8e9d8e5170b7ae2",
    OWN: "5befbe0094d6a7862a3d4cf682d5378de7d6e723c7224adeb6b4aa7a45897404",
}
"""SHA-256 of the file that each run wrote."""


def put(run: str, folder: Path) -> Path:
    """Put an old run into a folder; its relative paths are those of ``put_pictures``."""
    path = shutil.copytree(RUNS / run, folder / run)
    head = path / "before.safetensors.head"
    model = MODEL.read_bytes()
    weights = model[8 + int.from_bytes(model[:8], "little") :]
    whole = head.read_bytes() + weights
    assert hashlib.sha256(whole).hexdigest() == BEFORE[run]
    (path / "before.safetensors").write_bytes(whole)
    head.unlink()
    return path


def put_pictures(folder: Path) -> None:
    """Put the pictures and the model of the run on own pictures where it was started."""
    shutil.copytree(RUNS / "pictures", folder / "pictures")
    shutil.copy(MODEL, folder / "model.safetensors")


def put_home(folder: Path, monkeypatch) -> Path:
    """Put both runs into a new home; give its folder of runs."""
    monkeypatch.setenv("MASKTUNE_HOME", str(folder / "home"))
    monkeypatch.chdir(folder)
    put_pictures(folder)
    for run in BEFORE:
        put(run, folder / "home" / "runs")
    return folder / "home" / "runs"


FOREIGN = {
    "another tool": '{"old": true}',
    "a newer version": '{"format": 99}',
    "half a file": '{"run": "x", "test": {"bi',
    "no object": "[]",
    "nothing": "",
    "a wrong type": None,
}
"""What may stand in a result.json that no version wrote; None for one wrong value."""


def spoil(path: Path, content: str | None) -> None:
    """Put another result into a run folder."""
    file = path / "result.json"
    if content is None:
        document = json.loads(file.read_text("utf-8"))
        next(iter(document["test"].values()))["after"]["average"] = "high"
        content = json.dumps(document)
    file.write_text(content)
