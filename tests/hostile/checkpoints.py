"""Broken and hostile checkpoints, made on the spot: none of them is stored."""

import collections
import io
import json
import os
import pickle
import struct
import zipfile
from pathlib import Path

import numpy as np
import torch
from torch import nn

CANARY = "canary-was-here"
"""A file that appears in the working directory when code of a checkpoint runs."""

GIANT = 10 * 2**30


class Canary:
    def __reduce__(self):
        return (os.system, (f"touch {CANARY}",))


class Opener:
    def __reduce__(self):
        return (open, (CANARY, "w"))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, images):
        return self.conv(images).mean(dim=(2, 3))


def saved(content, **kwargs) -> bytes:
    file = io.BytesIO()
    torch.save(content, file, **kwargs)
    return file.getvalue()


def legacy(content) -> bytes:
    return saved(content, _use_new_zipfile_serialization=False)


def rezipped(content: bytes, change) -> bytes:
    """Write a torch zip again, each record as ``change(archive, name, data)`` does it."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(file, "w") as new:
        for name in old.namelist():
            change(new, name, old.read(name))
    return file.getvalue()


def with_pickle(stream: bytes) -> bytes:
    """Give a torch zip whose pickle is ``stream``."""
    whole = saved({"a": torch.zeros(2)})
    return rezipped(whole, lambda z, n, d: z.writestr(n, stream if n.endswith("/data.pkl") else d))


def with_decoy(content: bytes) -> bytes:
    """Put another pickle before the one that PyTorch reads: that beside the first record."""
    harmless = pickle.dumps({}, protocol=2)

    def change(archive, name, data):
        if name.endswith("/data.pkl"):
            archive.writestr(name.replace("data.pkl", "first"), b"")
            archive.writestr("x/data.pkl", harmless)
        archive.writestr(name, data)

    return rezipped(content, change)


def safetensors_file(
    header: dict | bytes, data: bytes = b"", *, length: int | None = None
) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def deflated(content: bytes) -> bytes:
    def change(archive, name, data):
        data = bytes(64 * 2**20) if name.endswith("/data/0") else data
        archive.writestr(name, data, zipfile.ZIP_DEFLATED)

    return rezipped(content, change)


def encrypted(content: bytes) -> bytes:
    """Set the flag that says a record needs a password, in both places a zip has it."""
    changed = bytearray(content)
    for magic, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = -1
        while (at := content.find(magic, at + 1)) >= 0:
            changed[at + place] |= 1
    return bytes(changed)


def giant_storage(content: bytes, count: int) -> bytes:
    """Let the first storage of 2 numbers in a legacy file or a pickle claim ``count``."""
    claim = b"\x8a\x08" + struct.pack("<q", count)
    return content.replace(b"cpuq\x06K\x02", b"cpuq\x06" + claim, 1)


def laughing(depth: int = 60) -> dict:
    """Lists that hold each other twice: 60 of them, 2**60 when unfolded."""
    lists: list = ["ha"]
    for _ in range(depth):
        lists = [lists, lists]
    return {"laughs": lists, "state_dict": {"odd.weight": torch.zeros(2, 2)}}


def traced() -> bytes:
    """Give what the records of a TorchScript file are called; its code does not matter here."""
    whole = saved({"a": torch.zeros(2)})

    def change(archive, name, data):
        archive.writestr(name, data)
        if name.endswith("/data.pkl"):
            archive.writestr(name.replace("data.pkl", "constants.pkl"), b"\x80\x02).")

    return rezipped(whole, change)


def zipped(**files: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "."), content)
    return file.getvalue()


def npz() -> bytes:
    file = io.BytesIO()
    np.savez(file, a=np.zeros(3), b=np.ones(2))
    return file.getvalue()


def npy() -> bytes:
    file = io.BytesIO()
    np.save(file, np.zeros(3))
    return file.getvalue()


def contents() -> dict[str, bytes]:
    """Give the content of every file by name."""
    from masktune.models.build import build

    weights = build("resnet20", 10).state_dict()
    whole, old = saved(weights), legacy(weights)
    tensor = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
    giant = {"dtype": "F32", "shape": [GIANT // 4], "data_offsets": [0, GIANT]}
    nan = {**weights, "linear.bias": torch.full((10,), float("nan"))}
    partial = {key: value for key, value in weights.items() if not key.startswith("layer3.2")}
    headless = {key: value for key, value in weights.items() if not key.startswith("linear")}
    room = b"\x80\x02cbuiltins\nbytearray\n\x8a\x05" + struct.pack("<q", GIANT)[:5] + b"\x85R."
    number = b"\x80\x02cbuiltins\nbytearray\n\x8a\xc8" + b"\x01" * 200 + b"\x85R."
    doubling = b"\x80\x02c_codecs\nencode\nX\x02\x00\x00\x00abX\x03\x00\x00\x00hex\x86R."
    return {
        "empty.pt": b"",
        "cut-zip.pt": whole[: len(whole) // 2],
        "cut-legacy.pth": old[: len(old) // 2],
        "cut-legacy-pickle.pth": old[:900],
        "cut-safetensors.safetensors": safetensors_file({"a": tensor}, bytes(4)),
        "cut-header.safetensors": safetensors_file({"a": tensor}, length=5000),
        "noise.safetensors": b"\xff" * 200,
        "noise.pt": bytes(range(128, 256)) * 4,
        "module-zip.pt": saved(Net()),
        "module-legacy.pt": legacy(Net()),
        "script.pt": traced(),
        "canary-zip.pt": with_pickle(pickle.dumps({"state_dict": Canary()}, protocol=2)),
        "canary-legacy.pt": legacy({"a": torch.zeros(2), "state_dict": Canary()}),
        "canary-plain.pkl": pickle.dumps(Canary(), protocol=2),
        "canary-open.pt": with_pickle(pickle.dumps(Opener(), protocol=2)),
        "canary-new-protocol.pt": with_pickle(pickle.dumps(Canary(), protocol=4)),
        "foreign.ckpt": saved({"state_dict": weights, "when": collections.ChainMap({})}),
        "codec-doubling.pt": with_pickle(doubling),
        "locked.zip": encrypted(whole),
        "openssl.pt": b"Salted__" + bytes(range(256)),
        "age.pt": b"age-encryption.org/v1\n-> X25519 abc\n",
        "gpg.pt": b"\x8c\x0d\x04\x09\x03\x02" + bytes(range(200)),
        "page.pt": b"<!DOCTYPE html><html><body>404 not found</body></html>",
        "pointer.pt": b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
        "bomb.pt": deflated(whole),
        "giant-header.safetensors": safetensors_file(b"{}", length=GIANT),
        "giant-tensor.safetensors": safetensors_file({"a": giant}, bytes(8)),
        "giant-storage.pt": giant_storage(legacy({"a": torch.zeros(2)}), GIANT // 4),
        "giant-bytes.pt": with_pickle(room),
        "giant-number.pt": with_pickle(number),
        "decoy.pt": with_decoy(with_pickle(room)),
        "capital-decoy.pt": rezipped(
            whole,
            lambda z, n, d: (
                z.writestr(n, d),
                n.endswith("/data.pkl") and z.writestr(n.upper(), room),
            ),
        ),
        "giant-view.pt": saved({"state_dict": {"a.weight": torch.zeros(1).expand(GIANT // 4)}}),
        "giant-memo.pt": with_pickle(b"\x80\x02}r" + struct.pack("<I", 2**32 - 1) + b"."),
        "overlapping.pt": doubled_records(whole),
        "laughing.pt": saved(laughing()),
        "plain.pkl": pickle.dumps({"a": [1.0, 2.0]}),
        "arrays.npz": npz(),
        "array.npy": npy(),
        "keras.h5": b"\x89HDF\r\n\x1a\n" + bytes(200),
        "model.keras": zipped(config__json=b"{}", **{"model__weights__h5": b"\x89HDF"}),
        "model.onnx": b"\x08\x08\x12\x07pytorch\x1a\x052.1.0:" + bytes(80),
        "start-of.onnx": b"\x08\x08\x12",
        "graph.pb": b"\x08\x01\x12\xff\x01\x0a\x08saved tensorflow" + bytes(80),
        "model.tflite": b"\x1c\x00\x00\x00TFL3" + bytes(80),
        "model.gguf": b"GGUF\x03\x00\x00\x00" + bytes(80),
        "files.zip": zipped(weights__pt=whole[:100], readme__txt=b"hello"),
        "weights.tar": bytes(257) + b"ustar\x0000" + bytes(300),
        "weights.pt.gz": b"\x1f\x8b\x08" + bytes(80),
        "picture.pt": b"\x89PNG\r\n\x1a\n" + bytes(80),
        "config.json": b'{"arch": "resnet18"}',
        "notes.txt": b"trained on Tuesday\n",
        "nothing.pt": saved({}),
        "numbers.pt": saved({"epoch": 3, "accuracy": 0.5}),
        "one-tensor.pt": saved(torch.zeros(3)),
        "optimizer.pt": saved({"optimizer": {"state": {}, "param_groups": [{"lr": 0.1}]}}),
        "nan.pt": saved(nan),
        "partial.pt": saved(partial),
        "headless.pt": saved(headless),
        "ambiguous.pt": saved(build("small-cnn", 2).state_dict()),
        "unlike.pt": saved({"alpha.beta": torch.zeros(2, 2)}),
        "sparse.pt": saved({"a": torch.eye(3).to_sparse()}),
        "code-in-note.safetensors": safetensors_file(
            {"a": tensor, "__metadata__": {"arch": "os:abort"}}, bytes(8)
        ),
    }


def doubled_records(content: bytes) -> bytes:
    """List the first record a second time under another name, over the same bytes."""
    entry = content.index(b"PK\x01\x02")
    end = content.rindex(b"PK\x05\x06")
    name, extra, note = struct.unpack("<HHH", content[entry + 28 : entry + 34])
    record = bytearray(content[entry : entry + 46 + name + extra + note])
    record[20:28] = struct.pack("<II", len(content), len(content))
    record[46:47] = b"Z"
    total, size = struct.unpack("<H", content[end + 10 : end + 12])[0], len(record)
    length = struct.unpack("<I", content[end + 12 : end + 16])[0]
    tail = bytearray(content[end:])
    tail[8:16] = struct.pack("<HHI", total + 1, total + 1, length + size)
    start = struct.unpack("<I", content[end + 16 : end + 20])[0]
    return content[: start + length] + bytes(record) + bytes(tail)


def make(folder: Path) -> dict[str, Path]:
    """Write every hostile file into ``folder``; give their paths by name."""
    paths = {}
    for name, content in contents().items():
        paths[name] = folder / name
        paths[name].write_bytes(content)
    return paths
