"""The two models of a run at work: new pictures in, for each an answer or none."""

import json
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from accelerate import Accelerator

from masktune.checkpoints.checkpoint import (
    Checkpoint,
    ClassCountError,
    checkpoint_bytes,
    load_checkpoint,
)
from masktune.checkpoints.read import DAMAGED
from masktune.data.archive import FREE_BYTES, MOST_RATIO
from masktune.data.card import UNKNOWN, Skipped
from masktune.data.check import usable
from masktune.data.frame import Frame, frame, frame_of_files
from masktune.data.images import FileImages
from masktune.data.preprocess import Preprocess
from masktune.data.types import Split, first_skipped
from masktune.errors import DataError, RunFolderError
from masktune.files import Value, csv_bytes
from masktune.models.predict import predict
from masktune.progress import Watcher, unwatched
from masktune.runs.export import zipped
from masktune.runs.folder import BEFORE
from masktune.runs.open import OpenRun
from masktune.runs.resume import AFTER
from masktune.scores.json_types import as_type
from masktune.scores.selective import threshold_at

PAIR = "pair.json"
SCORES = ("before", "after", "joint")
"""What can be said of a picture without a label, and without what only training kept."""

READ_ME = """\
Two classifiers and a threshold, from MaskTune Studio.

before.safetensors, after.safetensors: the weights.
pair.json: class names, what a picture goes through ("frame", then (pixel / 255 - mean) / std), and
for each score the threshold gamma, null where every picture is answered.

joint: the largest product of the two models' class probabilities; answer its class if the product
is greater than gamma, else abstain. before, after: likewise with one model's probabilities.

    masktune predict THIS_FILE.zip --root PICTURES > answers.csv
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectivePair:
    """Both models of a run with what a picture goes through and when they abstain.

    Attributes:
        before: the model before.
        after: the model after.
        classes: names by number.
        frame: what the models see of a picture.
        preprocess: from bytes in the frame to the networks' input.
        coverage: the share of validation pictures that the thresholds answer.
        gammas: by score of ``SCORES``; a picture is answered iff its score is greater.
    """

    before: Checkpoint
    after: Checkpoint
    classes: tuple[str, ...]
    frame: Frame
    preprocess: Preprocess
    coverage: float
    gammas: Mapping[str, float]

    @classmethod
    def of(cls, run: OpenRun, *, coverage: float) -> "SelectivePair":
        """Return the models of a run, with thresholds found on its validation pictures."""
        card = run.bundle.card
        return cls(
            before=run.before,
            after=run.after,
            classes=card.classes,
            frame=frame_of_files(run.bundle.validation.images.frame, card.size),
            preprocess=run.preprocess,
            coverage=coverage,
            gammas=thresholds(run, coverage),
        )

    def stated_gammas(self) -> dict[str, float | None]:
        """Give the thresholds for JSON, which has no infinity: None answers every picture."""
        return {score: g if np.isfinite(g) else None for score, g in self.gammas.items()}

    def to_zip(self) -> bytes:
        """Return all of it as the content of a file that ``read_pair`` reads."""
        document = {
            "classes": self.classes,
            "frame": str(self.frame),
            "mean": self.preprocess.mean,
            "std": self.preprocess.std,
            "coverage": self.coverage,
            "gamma": self.stated_gammas(),
        }
        files = {
            BEFORE: checkpoint_bytes(self.before),
            AFTER: checkpoint_bytes(self.after),
            PAIR: json.dumps(document, indent=2, ensure_ascii=False).encode(),
            "README.txt": READ_ME.encode(),
        }
        return zipped(files.items())


def thresholds(run: OpenRun, coverage: float) -> dict[str, float]:
    """Return by score the gammas that answer a share of the validation pictures of a run."""
    validation = run.predictions.validation.ranked()
    return {score: threshold_at(validation[score], coverage) for score in SCORES}


def read_pair(path: Path, *, arch: str | None = None) -> SelectivePair:
    """Read what ``to_zip`` wrote.

    ``arch`` is for models of a class of the user's own, which no file may name by itself.
    """
    try:
        with _unpacked(path) as folder:
            said = json.loads((folder / PAIR).read_text("utf-8"))
            classes = as_type(tuple[str, ...], said["classes"])
            gammas = as_type(dict[str, float | None], said["gamma"])
            before, after = (
                load_checkpoint(folder / name, arch=arch, classes=len(classes))
                for name in (BEFORE, AFTER)
            )
            return SelectivePair(
                before=before,
                after=after,
                classes=classes,
                frame=frame(said["frame"]),
                preprocess=as_type(Preprocess, said),
                coverage=as_type(float, said["coverage"]),
                gammas={s: -np.inf if gammas[s] is None else gammas[s] for s in SCORES},
            )
    except (ClassCountError, *DAMAGED) as error:
        raise RunFolderError(
            f"{path.name} is no pair of models that a run exported, or it is damaged.",
            "Give the folder of a finished run, or a file that masktune weights --layout pair "
            "wrote.",
        ) from error


@contextmanager
def _unpacked(path: Path) -> Iterator[Path]:
    """Write the three files of a pair, and no other, into a folder that goes again."""
    with zipfile.ZipFile(path) as archive, tempfile.TemporaryDirectory() as folder:
        names = (PAIR, BEFORE, AFTER)
        held = sum(archive.getinfo(name).file_size for name in names)
        if held > max(FREE_BYTES, MOST_RATIO * path.stat().st_size):  # weights hardly shrink
            raise zipfile.BadZipFile(f"it unpacks to {held:,} bytes")
        for name in names:
            with archive.open(name) as packed, (Path(folder) / name).open("wb") as file:
                shutil.copyfileobj(packed, file)
        yield Path(folder)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What one score says of every picture: (N,) class numbers, (N,) scores, and its threshold."""

    answers: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float64]
    gamma: float

    @property
    def accepted(self) -> npt.NDArray[np.bool_]:
        """(N,), whether a picture is answered: iff its score is greater than gamma."""
        return self.scores > self.gamma


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What a pair says of new pictures.

    Attributes:
        classes: names by number.
        files: the pictures, by position.
        said: by score of ``SCORES``.
        skipped: files that cannot be used, with the reason.
    """

    classes: tuple[str, ...]
    files: tuple[str, ...]
    said: Mapping[str, Said]
    skipped: tuple[Skipped, ...]

    def at(self, gammas: Mapping[str, float]) -> "Answers":
        """Return what is said at other thresholds, by score: no model is asked for that."""
        said = {score: replace(one, gamma=gammas[score]) for score, one in self.said.items()}
        return replace(self, said=said)

    def rows(self) -> Iterator[dict[str, Value]]:
        """Give a row for every picture, then one for every file that cannot be used."""
        for position, file in enumerate(self.files):
            row: dict[str, Value] = {"file": file}
            for score, said in self.said.items():
                row[score] = self.classes[int(said.answers[position])]
                row[f"{score} score"] = float(said.scores[position])
                row[f"{score} decision"] = "accept" if said.accepted[position] else "abstain"
            yield {**row, "problem": None}
        for path, reason in self.skipped:
            unsaid = [f"{s}{each}" for s in self.said for each in ("", " score", " decision")]
            yield {"file": path, **dict.fromkeys(unsaid), "problem": reason}

    def csv(self) -> bytes:
        """Return ``rows`` as text, scores as fractions in [0, 1] at full precision."""
        rows = list(self.rows())
        return csv_bytes(tuple(rows[0]), (tuple(row.values()) for row in rows))


def answer_pictures(
    pair: SelectivePair,
    root: Path,
    paths: Sequence[Path],
    *,
    compute: Accelerator | None = None,
    watcher: Watcher = unwatched,
) -> Answers:
    """Ask both models about pictures, whose files lie somewhere under ``root``.

    Raises:
        DataError: none of them can be used.
    """
    checked = usable(paths, root=root, watcher=watcher)
    if not checked.kept:
        which = "The file given cannot" if len(paths) == 1 else f"None of {len(paths):,} files can"
        raise DataError(
            f"{which} be used: {first_skipped(checked.skipped)}.",
            "Give pictures that open in a picture viewer.",
        )
    kept = [paths[position] for position in checked.kept]
    split = unlabelled(kept, pair.frame)
    before, after = (
        predict(
            model.model, split, preprocess=pair.preprocess, compute=compute, watcher=watcher
        ).probabilities.astype(np.float64)
        for model in (pair.before, pair.after)
    )
    probabilities = {"before": before, "after": after, "joint": before * after}
    return Answers(
        classes=pair.classes,
        files=tuple(path.relative_to(root).as_posix() for path in kept),
        said={score: _said(each, pair.gammas[score]) for score, each in probabilities.items()},
        skipped=checked.skipped,
    )


def unlabelled(paths: Sequence[Path], seen: Frame) -> Split:
    """Return pictures of which nobody knows anything, in the frame that a model sees."""
    labels = torch.zeros(len(paths), dtype=torch.int64)
    return Split(
        name="new",
        images=FileImages(paths, seen),
        labels=labels,
        attributes=torch.full_like(labels, UNKNOWN),
    )


def _said(probabilities: npt.NDArray[np.float64], gamma: float) -> Said:
    return Said(answers=probabilities.argmax(axis=1), scores=probabilities.max(axis=1), gamma=gamma)
