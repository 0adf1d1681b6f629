"""Released weights stand in a paper's table by what they answer, without any training."""

from dataclasses import replace

import pytest
import torch

from masktune.checkpoints.checkpoint import Checkpoint, checkpoint_bytes
from masktune.cli.main import main
from masktune.compute import accelerator
from masktune.models.build import build
from masktune.progress import unwatched
from masktune.studies.given import ask_given
from masktune.studies.reproduce import Request, plan
from masktune.studies.results_page import markdown
from masktune.studies.tables import command, document
from tests import layouts, results

CHIHUAHUA, GOLDFISH = 151, 1
SIN, BOTH = "SIN, released weights", "IN+SIN, released weights"


def always(answer, path):
    """Save a network that answers one of ImageNet's 1000 classes whatever it is shown."""
    model = build("resnet20", 1000, seed=0)
    last = [module for module in model.modules() if isinstance(module, torch.nn.Linear)][-1]
    with torch.no_grad():
        last.weight.zero_()
        last.bias.zero_()[answer] = 1.0
    path.write_bytes(
        checkpoint_bytes(Checkpoint(model=model, arch="resnet20", classes=1000, lr=0.1))
    )
    return str(path)


@pytest.fixture
def request_(tmp_path):
    root = layouts.imagenet9(tmp_path / "root")
    given = (
        ("SIN", always(CHIHUAHUA, tmp_path / "sin.safetensors")),
        ("IN+SIN", always(GOLDFISH, tmp_path / "both.safetensors")),
    )
    return Request(recipe="imagenet9-table", scale="tiny", seeds=1, root=str(root), given=given)


def test_given_weights_are_asked_through_the_thousand_classes(request_):
    found = ask_given(request_, compute=accelerator("cpu"), watcher=unwatched)

    # The dog is right in one class of nine, and so is the fish.
    assert {*found} == {SIN, BOTH}
    for tests in found.values():
        assert {*tests} == {"original", "mixed_same", "mixed_rand", "only_fg"}
        assert [one.average for one in tests.values()] == [pytest.approx(1 / 9)] * 4
    right = {
        name: [group.label for group in tests["original"].scores if group.accuracy == 1]
        for name, tests in found.items()
    }
    assert right == {SIN: ["dog"], BOTH: ["fish"]}


def test_the_table_has_given_weights_beside_the_papers_figures_and_else_those_alone(
    request_, tmp_path
):
    sin = replace(request_, given=request_.given[:1])
    given = ask_given(sin, compute=accelerator("cpu"), watcher=unwatched)
    tests = {name: results.both(0.5, 0.5) for name in ("original", "mixed_same", "mixed_rand")}
    done = [(planned, results.a_result(tests, rounds=[])) for planned in plan(sin, out=tmp_path)]

    table = document(sin, done, given=given)

    rows = {(row["arm"], row["test"]): row for row in table["rows"] if row["moment"] == "after"}
    assert rows[SIN, "mixed_rand"]["values"] == [pytest.approx(1 / 9)]
    assert rows[SIN, "mixed_rand"]["paper"]["value"] == 0.637
    assert rows[SIN, "only_fg"]["paper"] is None
    assert rows[BOTH, "mixed_rand"]["values"] == []
    assert rows[BOTH, "mixed_rand"]["paper"]["value"] == 0.785
    assert command(sin).endswith("--given SIN=sin.safetensors")
    assert str(tmp_path) not in str(table)
    assert f"| {SIN} | accuracy | – | **11.1** | 89.20 ≠ |" in markdown(table)


@pytest.mark.slow
def test_a_table_with_given_weights_is_made_by_one_command(request_, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("MASKTUNE_HOME", str(tmp_path / "home"))
    words = [f"--given={name}={file}" for name, file in request_.given]
    usual = ("--scale", "tiny", "--seeds", "1", "--device", "cpu", "--root", request_.root)

    assert main(["reproduce", "imagenet9-table", *usual, *words]) == 0

    said = capsys.readouterr().out
    assert f"| {SIN} | accuracy | – | **11.1** |" in said
    assert f"| {BOTH} | accuracy | – | **11.1** |" in said
    assert "CGN, printed only | accuracy | – | – |" in said


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("imagenet9-table", "--given", "CGN=x.pth"), "no row of released weights called 'CGN'"),
        (("imagenet9-table", "--given", "CGN=x.pth"), "--given SIN=FILE or --given IN+SIN=FILE"),
        (("celeba-table", "--given", "SIN=x.pth"), "imagenet9-table has such rows"),
    ],
)
def test_weights_that_no_row_is_of_are_refused_before_anything_is_read(words, problem, capsys):
    assert main(["reproduce", *words]) == 2

    assert problem in capsys.readouterr().err


def test_given_weights_are_a_name_and_a_file(capsys):
    assert main(["reproduce", "imagenet9-table", "--given", "SIN"]) == 2

    assert "'SIN' is not NAME=FILE" in capsys.readouterr().err
