"""Every broken or hostile file ends in one problem and one remedy, and nothing else happens."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save

from masktune.checkpoints.checkpoint import load_checkpoint
from masktune.checkpoints.inspect import diagnose
from masktune.errors import ModelError
from masktune.models.build import build
from tests.hostile import checkpoints

ROOT = Path(__file__).resolve().parents[3]

EXPECTED = {
    "empty.pt": "is empty",
    "cut-zip.pt": "is cut off or damaged (torch zip)",
    "cut-legacy.pth": "is cut off or damaged (torch legacy)",
    "cut-legacy-pickle.pth": "is cut off or damaged (torch legacy)",
    "cut-safetensors.safetensors": "is cut off or damaged (safetensors)",
    "cut-header.safetensors": "is cut off or damaged (safetensors)",
    "noise.safetensors": "noise.safetensors is not a PyTorch or safetensors file.",
    "noise.pt": "noise.pt is not a PyTorch or safetensors file.",
    "module-zip.pt": "is a whole pickled model (torch.nn.modules.conv.Conv2d)",
    "module-legacy.pt": "is a whole pickled model (torch.nn.modules.conv.Conv2d)",
    "script.pt": "is a TorchScript model",
    "canary-zip.pt": "holds objects beside the weights (posix.system)",
    "canary-legacy.pt": "holds objects beside the weights (posix.system)",
    "canary-plain.pkl": "it looks like a pickle that PyTorch did not write",
    "canary-open.pt": "holds objects beside the weights (io.open)",
    "canary-new-protocol.pt": "holds objects beside the weights (posix.system)",
    "foreign.ckpt": "holds objects beside the weights (collections.ChainMap)",
    "codec-doubling.pt": "holds objects beside the weights (_codecs.encode with a codec)",
    "locked.zip": "is a zip file with a password",
    "openssl.pt": "it looks like an encrypted file",
    "age.pt": "it looks like an encrypted file",
    "gpg.pt": "it looks like an encrypted file",
    "page.pt": "it looks like a web page",
    "pointer.pt": "it looks like a git-LFS pointer",
    "bomb.pt": "holds compressed records",
    "giant-header.safetensors": "claims 10 GiB, far more than the file can hold (safetensors)",
    "giant-tensor.safetensors": "claims 10 GiB, far more than the file can hold (safetensors)",
    "giant-storage.pt": "claims 10 GiB, far more than the file can hold (torch legacy)",
    "giant-bytes.pt": "claims 10 GiB, far more than the file can hold (torch zip)",
    "giant-number.pt": "is cut off or damaged (torch zip)",
    "decoy.pt": "holds more than one list of weights",
    "capital-decoy.pt": "holds more than one list of weights",
    "giant-view.pt": "claims 10 GiB, far more than the file can hold (torch zip)",
    "giant-memo.pt": "giant-memo.pt holds nothing",
    "overlapping.pt": "lists records that overlap",
    "laughing.pt": "no architecture that we know resembles them",
    "plain.pkl": "it looks like a pickle that PyTorch did not write",
    "arrays.npz": "it looks like a NumPy archive",
    "array.npy": "it looks like a NumPy array",
    "keras.h5": "it looks like HDF5, as Keras writes it",
    "model.keras": "it looks like a Keras model",
    "model.onnx": "it looks like ONNX",
    "start-of.onnx": "it looks like ONNX",
    "graph.pb": "it looks like a TensorFlow graph",
    "model.tflite": "it looks like TensorFlow Lite",
    "model.gguf": "it looks like GGUF, quantised weights",
    "files.zip": "it looks like a zip archive of other files",
    "weights.tar": "it looks like a tar archive",
    "weights.pt.gz": "it looks like a gzip archive",
    "picture.pt": "it looks like a picture",
    "config.json": "it looks like JSON",
    "notes.txt": "it looks like text",
    "nothing.pt": "nothing.pt holds nothing",
    "numbers.pt": "holds no weights that we recognise, only 'epoch', 'accuracy'",
    "one-tensor.pt": "holds one bare tensor",
    "optimizer.pt": "holds the state of an optimizer but no weights",
    "nan.pt": "infinite or not a number, first in linear.bias",
    "partial.pt": "holds 104 of the 114 tensors of resnet20; layer3.2.conv1.weight, "
    "layer3.2.bn1.weight, layer3.2.bn1.bias and 7 more are missing",
    "headless.pt": "is resnet20 without its last layer (linear.weight, linear.bias)",
    "ambiguous.pt": "fits small-cnn and small-cnn-stride2 equally well",
    "unlike.pt": "no architecture that we know resembles them",
    "sparse.pt": "holds a tensor that is sparse",
    "code-in-note.safetensors": "was made with code of its own",
}

SCRIPT = """
import json, os, resource, sys
from pathlib import Path
import torchvision, masktune.checkpoints.checkpoint
from masktune.checkpoints.inspect import diagnose

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

folder = Path(sys.argv[1])
diagnose(folder / "headless.pt")  # imports and tables, once
before, found, grown = peak(), {}, {}
for path in sorted(folder.iterdir()):
    found[path.name] = diagnose(path).to_json()
    grown[path.name] = peak() - before
    before = peak()
print(json.dumps({"found": found, "grown": grown, "left": sorted(os.listdir())}))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    checkpoints.make(folder)
    return folder


@pytest.fixture(scope="module")
def outcome(folder, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT, str(folder)],
        cwd=elsewhere,
        env={"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_table_speaks_of_every_file_that_is_made(folder):
    assert sorted(EXPECTED) == sorted(path.name for path in folder.iterdir())
    assert len(EXPECTED) >= 25


@pytest.mark.parametrize("name", EXPECTED)
def test_a_bad_file_gets_one_problem_and_one_remedy(name, outcome):
    found = outcome["found"][name]

    assert found["verdict"] == "refused"
    assert EXPECTED[name] in found["problem"]
    assert found["problem"].endswith(".")
    assert found["remedy"].endswith(".")


def test_no_code_of_any_file_ran(outcome):
    assert outcome["left"] == []


def test_no_file_takes_more_memory_than_a_small_one_needs(outcome):
    assert {name: grown for name, grown in outcome["grown"].items() if grown > 40} == {}


def test_a_canary_does_sing_where_pickles_are_run(folder, tmp_path, monkeypatch):
    import pickle

    monkeypatch.chdir(tmp_path)
    pickle.loads((folder / "canary-plain.pkl").read_bytes())  # noqa: S301 (it shall sing)

    assert (tmp_path / checkpoints.CANARY).exists()


def test_sentences_differ_where_files_differ(outcome):
    told = {name: EXPECTED[name].split("(")[0] for name in EXPECTED}
    assert len(set(told.values())) >= 38


@pytest.mark.parametrize("name", ["page.pt", "canary-zip.pt", "headless.pt"])
def test_loading_refuses_with_the_same_words(name, folder):
    diagnosis = diagnose(folder / name)

    with pytest.raises(ModelError) as caught:
        load_checkpoint(folder / name)

    assert (caught.value.problem, caught.value.remedy) == (diagnosis.problem, diagnosis.remedy)


def test_what_is_no_file_is_said_to_be_none(tmp_path, monkeypatch):
    (tmp_path / "shut.pt").touch()
    real = Path.open
    monkeypatch.setattr(Path, "open", lambda p, *a: shut(p) if p.stem == "shut" else real(p, *a))

    assert "no checkpoint" in diagnose(tmp_path / "none.pt").problem
    assert "no checkpoint" in diagnose("a\0b").problem
    assert "no checkpoint" in diagnose("a" * 5000).problem
    assert "is a folder" in diagnose(tmp_path).problem
    assert "device or a pipe" in diagnose("/dev/zero").problem
    assert "not allowed to read" in diagnose(tmp_path / "shut.pt").problem


def shut(path):
    raise PermissionError(13, "Permission denied", str(path))


SMALL = {
    "zip": checkpoints.saved({"state_dict": {"fc.weight": torch.ones(2, 3)}, "epoch": 3}),
    "legacy": checkpoints.legacy({"state_dict": {"fc.weight": torch.ones(2, 3)}, "epoch": 3}),
    "safetensors": save({"fc.weight": torch.ones(2, 3)}, {"arch": "resnet18"}),
}


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), kind=st.sampled_from(sorted(SMALL)))
def test_whatever_bytes_change_there_is_a_verdict(data, kind, tmp_path_factory):
    content = bytearray(SMALL[kind])
    places = st.integers(0, len(content) - 1)
    for place, byte in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), max_size=6)):
        content[place] = byte
    end = data.draw(st.one_of(st.just(len(content)), places))
    path = tmp_path_factory.getbasetemp() / f"fuzzed.{kind}"
    path.write_bytes(content[:end])

    diagnosis = diagnose(path)

    assert diagnosis.verdict == "refused"  # even whole, it is no architecture
    assert diagnosis.problem
    assert diagnosis.remedy


def test_names_in_a_file_cannot_steer_the_terminal(tmp_path):
    weights = build("resnet20", 10).state_dict()
    weights["conv1.wei\x1b[J"] = weights.pop("conv1.weight")
    torch.save(weights, tmp_path / "a.pt")

    diagnosis = diagnose(tmp_path / "a.pt")

    assert "conv1.wei\x1b[J" in diagnosis.unexpected
    assert "conv1.wei?[J" in diagnosis.text()
    assert "\x1b" not in diagnosis.text()
    torch.save({"odd\x1b.weight": torch.ones(2, 2, dtype=torch.int8)}, tmp_path / "b.pt")
    assert "(odd?.weight)" in diagnose(tmp_path / "b.pt").problem
