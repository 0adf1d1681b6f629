"""The paper's theory on the smallest model there is: min-norm linear regression.

With more features than examples many linear models fit the training data exactly; least squares
takes the one with the smallest norm. Train one with the clue s among the features and one without
it, as if it had been masked. Proposition 1: the second is never simpler. Proposition 2: on a new
example the two agree if and only if s is what the other features say it should be, s = beta^T z,
as it was in training.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from masktune.errors import DataError

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearModel:
    """A linear model of z and s.

    Theta, (d - 1,) float64, weighs the features that stay, w the clue; a model that was trained
    without it has 0.
    """

    theta: Array
    w: float

    @property
    def complexity(self) -> float:
        """The squared norm of all weights, which training keeps as small as it can."""
        return float(self.theta @ self.theta + self.w**2)

    def predict(self, z: Array, s: Array) -> Array:
        """Give the outputs (m,) for features z (m, d - 1) and clues s (m,)."""
        return np.asarray(z @ self.theta + self.w * s)


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoRounds:
    """The models before and after the clue was masked, and what ties the clue to the rest.

    Beta, (d - 1,) float64, are the min-norm weights that predict the clue from the rest.
    """

    before: LinearModel
    after: LinearModel
    beta: Array

    def shift(self, z: Array, s: Array) -> Array:
        """Give s - beta^T z, (m,): how far each clue is from what training would expect."""
        return np.asarray(s - z @ self.beta)

    def disagreement(self, z: Array, s: Array) -> Array:
        """Give before minus after, (m,); it equals w times ``shift``."""
        return np.asarray(self.before.predict(z, s) - self.after.predict(z, s))


def two_rounds(z: Array, s: Array, y: Array) -> TwoRounds:
    """Train with and without the clue by min-norm least squares.

    Args:
        z: (n, d - 1) float64 with n <= d - 1 and independent rows, so that both rounds fit.
        s: (n,) float64, the clue.
        y: (n,) float64, the targets.

    Raises:
        DataError: the examples are too many or not independent: the data cannot be fitted exactly.
    """
    if z.ndim != 2 or s.shape != (len(z),) or y.shape != (len(z),):
        raise DataError(
            f"z is {z.shape}, s {s.shape} and y {y.shape}.",
            "Give z as (n, d - 1), s and y as (n,).",
        )
    if len(z) == 0 or np.linalg.matrix_rank(z) < len(z):
        raise DataError(
            f"{z.shape[1]} features cannot fit {len(z)} examples exactly.",
            "Give more features than examples, none of which repeats others.",
        )
    both = _min_norm(np.column_stack([z, s]), y)
    return TwoRounds(
        before=LinearModel(theta=both[:-1], w=float(both[-1])),
        after=LinearModel(theta=_min_norm(z, y), w=0.0),
        beta=_min_norm(z, s),
    )


def _min_norm(features: Array, targets: Array) -> Array:
    """Give the shortest weights that fit: features^T (features features^T)^-1 targets."""
    return np.asarray(features.T @ np.linalg.solve(features @ features.T, targets))
