from pathlib import Path

import pytest
import torch
from PIL import Image

from masktune.cli.main import main
from masktune.models.build import build


def own_folder(root: Path) -> Path:
    """Twelve dark and twelve bright pictures, one folder a class, and one broken file."""
    for name, shade in (("dark", 40), ("bright", 200)):
        (root / name).mkdir(parents=True)
        for number in range(12):
            Image.new("RGB", (32, 32), (shade, shade, 10 * number)).save(
                root / name / f"{number}.png"
            )
    (root / "dark" / "broken.png").write_bytes(b"")
    return root


@pytest.fixture(scope="module")
def own_run(tmp_path_factory):
    """A run on somebody's own folder from somebody's own checkpoint, by the command line alone."""
    place = tmp_path_factory.mktemp("own")
    state = {f"module.{k}": v for k, v in build("resnet20", 2).state_dict().items()}
    torch.save(
        {"state_dict": state, "epoch": 3, "mean": [0.5] * 3, "std": [0.25] * 3}, place / "w.pth"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MASKTUNE_HOME", str(place / "home"))
        code = main([
            "run", "--dataset", "folder", "--root", str(own_folder(place / "pictures")),
            "--model", str(place / "w.pth"), "--normalise", "checkpoint", "--frame", "resize 32",
            "--out", str(place / "run"), "--device", "cpu",
        ])  # fmt: skip
        assert code == 0
        yield place
