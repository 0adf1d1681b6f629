"""The wheel: installed into an empty environment it has the command, the demo and the pages."""

import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import expect

from masktune import __version__
from tests.e2e.conftest import Server, free_port, wait_for_script, wait_until_healthy

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def names_in(file: str) -> set[str]:
    lines = (ROOT / file).read_text("utf-8").splitlines()
    return {line.split("==")[0] for line in lines if "==" in line}


def named(requirements: list[str]) -> set[str]:
    return {re.split(r"[<>=~!]", requirement)[0] for requirement in requirements}


def test_the_wheel_needs_what_the_requirements_pin():
    assert named(PROJECT["dependencies"]) == names_in("requirements.txt")
    assert named(PROJECT["optional-dependencies"]["dev"]) == names_in("requirements-dev.txt")


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """The programs of an environment that has the wheel, and the heavy packages of this one."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
    subprocess.run([*build, str(ROOT)], check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "env", with_pip=True, symlinks=True)
    programs = folder / "env" / "bin"
    install = [programs / "python", "-m", "pip", "install", "--no-deps", "--no-index", wheel]
    subprocess.run(install, check=True, capture_output=True)
    (packages,) = (folder / "env" / "lib").glob("python*/site-packages")
    # PyTorch and its kin are gigabytes: they are read where this test has them.
    (packages / "heavy.pth").write_text(sysconfig.get_path("purelib"))
    return programs


def clean(folder: Path) -> dict[str, str]:
    """An environment that does not lead back to the clone, with a home of its own."""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return {**kept, "MASKTUNE_HOME": str(folder / "home"), "OMP_NUM_THREADS": "1"}


def said(installed: Path, folder: Path, *words: str) -> str:
    """What the installed command prints, run in a folder of its own."""
    done = subprocess.run(
        [installed / "masktune", *words],
        cwd=folder,
        env=clean(folder),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_installed_command_says_its_version_and_its_datasets(installed, tmp_path):
    assert said(installed, tmp_path, "--version").split() == ["masktune", __version__]
    assert "biased-mnist-5k" in said(installed, tmp_path, "datasets")


def test_the_installed_command_runs_the_demo(installed, tmp_path):
    words = ["run", "--dataset", "biased-mnist-5k", "--model", "bundled", "--out", "demo", "--json"]

    document = json.loads(said(installed, tmp_path, *words))

    assert document["test"]["original"]["after"]["average"] > 0.5
    assert (tmp_path / "demo" / "report.html").is_file()


def test_the_installed_command_measures_the_ratios(installed, tmp_path):
    found = json.loads(said(installed, tmp_path, "bench", "--quick", "--json"))

    for figure in ("heat_over_forward", "gradcam_over_heat", "mask_seconds_over_forward"):
        assert set(found[figure]) == {"resnet18@224", "small-cnn@28"}
        assert all(ratio > 0 for ratio in found[figure].values())
    assert found["finetune_over_plain_epoch"] > 0
    assert found["store_bytes_per_image"] <= 256
    assert found["peak_bytes_per_image"]["ratio"] > 0


def test_the_installed_studio_serves_its_pages(installed, tmp_path, watched):
    port = free_port()
    command = [installed / "masktune", "studio", "--port", str(port)]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(
        command, cwd=tmp_path, env=clean(tmp_path), stdout=quiet, stderr=quiet, process_group=0
    )
    try:
        server = Server(f"http://127.0.0.1:{port}", process)
        wait_until_healthy(server)
        watched.page.goto(f"{server.url}/load?dataset=biased-mnist-5k")
        wait_for_script(watched.page)

        expect(watched.page.get_by_role("heading", level=1)).to_have_text("Load")
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)


def test_site_packages_gets_no_package_called_app(installed):
    (wheel,) = installed.parents[1].glob("*.whl")

    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}

    assert {name for name in tops if not name.endswith(".dist-info")} == {
        *("masktune", "masktune_studio")
    }
