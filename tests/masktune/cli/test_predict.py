import csv
import io
import json
import math
import zipfile
from pathlib import Path

import pytest

from masktune.cli import predict as cli_predict
from masktune.cli.main import main
from masktune.errors import MaskTuneError
from masktune.runs.pair import SCORES, read_pair


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture
def known(own_run, tmp_path):
    """What the run itself says about its validation and test pictures, by file."""
    assert main(["predictions", str(own_run / "run"), "--export", str(tmp_path / "p.csv")]) == 0
    return {Path(row["file"]): row for row in table((tmp_path / "p.csv").read_text())}


def predict(capsys, *words: object) -> str:
    capsys.readouterr()
    assert main(["predict", *map(str, words)]) == 0
    return capsys.readouterr().out


def test_new_pictures_get_the_answers_that_the_run_gave_to_them(own_run, known, capsys):
    pictures = own_run / "pictures"

    rows = table(predict(capsys, own_run / "run", "--root", pictures))

    answered = {pictures / row["file"]: row for row in rows if not row["problem"]}
    assert len(answered) == 24
    for file, row in known.items():
        found = answered[file]
        assert (found["before"], found["after"]) == (row["before"], row["after"])
        assert float(found["before score"]) == pytest.approx(float(row["before sure"]), abs=1e-6)
        product = max(
            float(row[f"before: {name}"]) * float(row[f"after: {name}"])
            for name in ("dark", "bright")
        )
        assert float(found["joint score"]) == pytest.approx(product, abs=1e-6)
    assert {row["joint decision"] for row in answered.values()} == {"accept"}


def test_a_file_that_cannot_be_read_has_its_row_and_its_reason(own_run, capsys):
    rows = table(predict(capsys, own_run / "run", "--root", own_run / "pictures"))

    (broken,) = [row for row in rows if row["problem"]]
    assert (broken["file"], broken["problem"]) == ("dark/broken.png", "it is empty")
    assert (broken["joint"], broken["joint score"], broken["joint decision"]) == ("", "", "")


def test_half_of_the_validation_pictures_are_accepted_at_half_the_coverage(
    own_run,
    known,
    capsys,
):
    said = json.loads(
        predict(
            capsys, own_run / "run", "--root", own_run / "pictures", "--coverage", 0.5, "--json"
        )
    )

    gamma = said["gamma"]["joint"]
    decisions = {own_run / "pictures" / row["file"]: row for row in said["answers"]}
    validation = [file for file, row in known.items() if row["test set"] == "validation"]
    accepted = [f for f in validation if decisions[f]["joint decision"] == "accept"]
    assert (len(validation), len(accepted)) == (4, 2)
    assert all((row["joint score"] > gamma) == (row["joint decision"] == "accept")
               for row in decisions.values())  # fmt: skip
    assert said["accepted"]["joint"] == sum(
        row["joint decision"] == "accept" for row in decisions.values()
    )


def test_an_exported_pair_says_the_same_without_the_run_or_its_pictures(
    own_run,
    tmp_path,
    capsys,
):
    run, pictures, pair = own_run / "run", own_run / "pictures", tmp_path / "pair.zip"
    assert main(["weights", str(run), "--layout", "pair", "--coverage", "0.5",
                 "--export", str(pair)]) == 0  # fmt: skip

    alone = predict(capsys, pair, "--root", pictures)

    assert alone == predict(capsys, run, "--root", pictures, "--coverage", 0.5)
    with zipfile.ZipFile(pair) as archive:
        noted = json.loads(archive.read("pair.json"))
    assert noted["classes"] == ["bright", "dark"]
    assert read_pair(pair).stated_gammas() == noted["gamma"]
    assert None not in noted["gamma"].values()
    assert (noted["frame"], noted["mean"]) == ("resize 32x32", [0.5, 0.5, 0.5])


def test_a_pair_that_answers_every_picture_still_does_so_once_it_is_read(own_run, tmp_path):
    pair = tmp_path / "pair.zip"
    assert main(["weights", str(own_run / "run"), "--layout", "pair", "--export", str(pair)]) == 0

    assert read_pair(pair).gammas == dict.fromkeys(SCORES, -math.inf)


def test_one_picture_and_a_zip_are_pictures_too(own_run, tmp_path, capsys):
    one = own_run / "pictures" / "bright" / "0.png"
    with zipfile.ZipFile(tmp_path / "new.zip", "w") as archive:
        archive.write(one, "inside/0.png")

    (alone,) = table(predict(capsys, own_run / "run", "--root", one))
    (packed,) = table(predict(capsys, own_run / "run", "--root", tmp_path / "new.zip"))

    assert (alone.pop("file"), packed.pop("file")) == ("0.png", "inside/0.png")
    assert alone == packed


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--root", "nowhere"], "does not exist"),
        (["--root", "a" * 300], "does not exist"),
        (["--root", "empty"], "holds no pictures"),
        (["--root", "broken"], "The file given cannot be used"),
        (["--root", "broken", "--coverage", "90"], "Coverage 90.0 is not in (0, 1]"),
    ],
)
def test_what_cannot_be_answered_is_said(own_run, words, problem, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "a.png").write_bytes(b"")

    assert main(["predict", str(own_run / "run"), *words]) == 2

    assert problem in capsys.readouterr().err


def test_a_pair_brings_its_own_thresholds_and_a_damaged_one_is_refused(
    own_run,
    tmp_path,
    capsys,
):
    pair = tmp_path / "pair.zip"
    pair.write_bytes(b"PK\x03\x04 nothing")

    assert main(["predict", str(pair), "--root", str(own_run / "pictures")]) == 2
    assert "no pair of models" in capsys.readouterr().err
    assert main(["predict", str(pair), "--root", str(tmp_path), "--coverage", "0.5"]) == 2
    assert "thresholds of an exported pair are in its file" in capsys.readouterr().err
    assert main(["weights", str(own_run / "run"), "--export", str(tmp_path / "w.pth"),
                 "--coverage", "0.5"]) == 2  # fmt: skip
    assert "have no coverage" in capsys.readouterr().err


def test_of_several_processes_the_first_writes(own_run, tmp_path, monkeypatch):
    monkeypatch.setattr(cli_predict, "first_process", lambda: False)
    words = ["--root", str(own_run / "pictures"), "--export", str(tmp_path / "answers.csv")]

    assert main(["predict", str(own_run / "run"), *words]) == 0

    assert not (tmp_path / "answers.csv").exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"gamma": {"joint": 0.5}},
        {"gamma": {"before": "no", "after": None, "joint": None}},
        {"classes": ["bright", "dark", "black"]},
        {"classes": [1, 2]},
        {"mean": [0.5]},
        {"std": "abc"},
        {"coverage": "half"},
        {"frame": 7},
    ],
)
def test_a_pair_that_does_not_fit_together_is_refused(own_run, tmp_path, changes):
    pair = tmp_path / "pair.zip"
    assert main(["weights", str(own_run / "run"), "--layout", "pair", "--export", str(pair)]) == 0
    with zipfile.ZipFile(pair) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    noted = {**json.loads(held["pair.json"]), **changes}
    with zipfile.ZipFile(pair, "w") as archive:
        for name, content in {**held, "pair.json": json.dumps(noted).encode()}.items():
            archive.writestr(name, content)

    with pytest.raises(MaskTuneError):
        read_pair(pair)


def test_a_pair_that_would_fill_the_disk_is_not_unpacked(tmp_path, monkeypatch):
    pair = tmp_path / "pair.zip"
    with zipfile.ZipFile(pair, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("pair.json", "{}")
        for name in ("before.safetensors", "after.safetensors"):
            archive.writestr(name, bytes(20 * 2**20))
    unpacked = []
    monkeypatch.setattr("shutil.copyfileobj", lambda packed, _: unpacked.append(packed.name))

    with pytest.raises(MaskTuneError, match="no pair of models"):
        read_pair(pair)

    assert unpacked == []
