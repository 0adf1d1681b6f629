"""What does not need PyTorch does not import it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import masktune

ROOT = Path(__file__).resolve().parents[3]
UNUSED = ("torchvision", "scipy", "sklearn", "mlxtend", "streamlit")
"""What a run on the small CNN has no use for."""

HEAVY = ("torch", "numpy", "cv2", "plotly", *UNUSED)
ASKED = """
import sys
{code}
sys.stderr.write("\\n" + " ".join(name for name in {heavy} if name in sys.modules))
"""
COMMAND = """
from masktune.cli.main import main
try:
    main({words})
except SystemExit:
    pass
"""


def imported(code: str, **environment: str) -> list[str]:
    """Run code in a process of its own; give the heavy packages it imported."""
    done = subprocess.run(
        [sys.executable, "-c", ASKED.format(code=code, heavy=HEAVY)],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stderr.splitlines()[-1].split()


@pytest.mark.parametrize(
    "code",
    [
        "import masktune",
        COMMAND.format(words=["--help"]),
        COMMAND.format(words=["--version"]),
        COMMAND.format(words=["datasets"]),
        COMMAND.format(words=["run", "--help"]),
        COMMAND.format(words=["run", "--dataset", "biased-mnist-5k", "--k", "nan"]),
        "import masktune.runs.queue",
    ],
    ids=["import", "--help", "--version", "datasets", "run --help", "a mistake", "queue"],
)
def test_it_is_said_without_importing_pytorch(code):
    assert imported(code) == []


def test_a_waiting_job_has_not_imported_pytorch():
    waiting = "import masktune.runs.queue; masktune.runs.queue.wait_for_turn = lambda _: exit()\n"

    words = ["run", "--dataset", "biased-mnist-5k", "--queue", "--out", "somewhere"]

    assert imported(waiting + COMMAND.format(words=words)) == []


@pytest.mark.slow
def test_what_carries_out_a_run_imports_nothing_that_the_small_cnn_has_no_use_for():
    assert {*UNUSED}.isdisjoint(imported("import masktune.pipeline"))


@pytest.mark.slow
def test_a_run_on_the_small_cnn_imports_nothing_that_it_has_no_use_for(tmp_path):
    words = ["run", "--dataset", "biased-mnist-5k", "--model", "bundled", "--out", str(tmp_path)]

    found = imported(COMMAND.format(words=words), OMP_NUM_THREADS="1")

    assert (tmp_path / "result.json").is_file()
    assert "torch" in found
    assert {*UNUSED}.isdisjoint(found)


def test_the_version_is_that_of_the_package(capsys):
    from masktune.cli.main import main

    with pytest.raises(SystemExit, match="0"):
        main(["--version"])

    assert capsys.readouterr().out == f"masktune {masktune.__version__}\n"


@pytest.mark.parametrize(("given", "used"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_threads_wait_passively_unless_somebody_wants_otherwise(given, used):
    given = {} if given is None else {"OMP_WAIT_POLICY": given}
    code = (
        COMMAND.format(words=["--help"])
        + "import os; sys.stderr.write(os.environ['OMP_WAIT_POLICY'])"
    )
    environment = {k: v for k, v in os.environ.items() if k != "OMP_WAIT_POLICY"}

    done = subprocess.run(
        [sys.executable, "-c", "import os, sys\n" + code],
        cwd=ROOT,
        env={**environment, **given},
        capture_output=True,
        text=True,
    )

    assert done.stderr == used


GARBAGE = """
import atexit, gc, sys
atexit.register(lambda: print(gc.get_freeze_count() > 1000))  # said last: registered first
from masktune.__main__ import main
sys.argv = ["masktune", "--version"]
try:
    main()
except SystemExit:
    print(gc.get_threshold()[0])
"""


def test_modules_are_not_looked_through_for_garbage_while_imported_nor_at_the_end():
    done = subprocess.run(
        [sys.executable, "-c", GARBAGE], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert done.stdout.splitlines()[-2:] == ["50000", "True"]
