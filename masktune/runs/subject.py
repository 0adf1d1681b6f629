"""What is looked at. Knows nothing of Streamlit, so that jobs can speak of it too."""

from dataclasses import dataclass

from masktune.data.settings import Validation


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Pictures and a trained model.

    Attributes:
        dataset: a key of the catalogue.
        root: where a dataset that is not bundled lies.
        model: "bundled", "train", or the path of a checkpoint.
        seed: of the split.
        arch: architecture; None takes what the checkpoint file says or fits, and the recipe's for a
            model that is to be trained.
        epochs: of a model that is to be trained; None takes the recipe's.
        frame: what the model sees of a picture; None for the dataset's usual frame.
        normalise: name or "mean / std"; None for the dataset's usual one.
        validation: "test" where the model has seen all but the test pictures, half of which then
            validate.
    """

    dataset: str
    root: str | None = None
    model: str = "bundled"
    seed: int = 0
    arch: str | None = None
    epochs: int | None = None
    frame: str | None = None
    normalise: str | None = None
    validation: Validation = "own"
