"""What is looked at. Knows nothing of Streamlit, so that jobs can speak of it too."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Pictures and a trained model.

    Attributes:
        dataset: a key of the catalogue.
        root: folder of a dataset that is not bundled.
        model: "bundled", or the path of a checkpoint.
        seed: of the split.
    """

    dataset: str
    root: str | None = None
    model: str = "bundled"
    seed: int = 0
