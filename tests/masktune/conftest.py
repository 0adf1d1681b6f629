"""Small worlds: datasets and runs that train in a second."""

import pytest
import torch

from masktune.data.card import DatasetCard
from masktune.data.images import TensorImages
from masktune.data.types import DatasetBundle, Split


def card(**changes) -> DatasetCard:
    values = {
        "key": "toy",
        "title": "Toy",
        "summary": "Bright against dark, with a spot.",
        "classes": ("dark", "bright"),
        "attributes": ("plain", "spot"),
        "size": (28, 28),
        "tests": ("turned",),
        "recipe": "biased-mnist-5k",
        "bundled": True,
        "layout": "",
        "source": "drawn by the test",
        "licence": "MIT",
    }
    return DatasetCard(**{**values, **changes})


def split(name: str, count: int, *, attribute_is_label: bool, seed: int = 0) -> Split:
    """Noise whose brightness is the label, with a white spot where the attribute is 1."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(count) % 2
    attributes = labels if attribute_is_label else 1 - labels
    pixels = torch.randint(0, 90, (count, 3, 28, 28), generator=generator)
    pixels += 60 * labels[:, None, None, None]
    pixels[attributes == 1, :, 2:6, 2:6] = 255
    return Split(
        name=name,
        images=TensorImages(pixels.to(torch.uint8)),
        labels=labels,
        attributes=attributes,
    )


@pytest.fixture(scope="session")
def toy() -> DatasetBundle:
    """96 training pictures in which spot and brightness agree; 'turned' has them disagree."""
    return DatasetBundle(
        card=card(),
        train=split("train", 96, attribute_is_label=True, seed=1),
        validation=split("validation", 40, attribute_is_label=True, seed=2),
        tests={"turned": split("turned", 40, attribute_is_label=False, seed=3)},
    )


@pytest.fixture
def no_report(monkeypatch) -> None:
    """Leave out the report of a run, which takes half the time of a small one; for other tests."""
    monkeypatch.setattr("masktune.pipeline.report_html", lambda _: "")


@pytest.fixture
def full_disk():
    """Give a context in which no file may grow beyond a few bytes, as on a full disk."""
    import contextlib
    import resource
    import signal

    @contextlib.contextmanager
    def full(room: int = 1000):
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            signal.signal(signal.SIGXFSZ, handler)

    return full
