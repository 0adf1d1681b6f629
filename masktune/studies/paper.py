"""The paper's numbers, table by table, as it prints them (fractions here, percent there)."""

from dataclasses import dataclass
from typing import Literal

Moment = Literal["before", "after", "joint"]
"""The ERM model, the tuned one, or the product of both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number of the paper, and where a run of ours has the same.

    Attributes:
        arm: name of the recipe's arm.
        test: name of the test set.
        moment: of which model.
        measure: "average", "worst_group", or "error" or "coverage" at ``target``.
        value: as printed, a fraction in [0, 1].
        std: over the paper's runs, None where it prints none.
        source: the table.
        target: the coverage aimed at, of selective measures.
        rounds: how many rounds of masking, None for all of the arm's.
        tolerance: how far a repetition may be off, in absolute terms.
    """

    arm: str
    test: str
    moment: Moment
    measure: Literal["average", "worst_group", "error", "coverage"]
    value: float
    std: float | None = None
    source: str
    target: float | None = None
    rounds: int | None = None
    tolerance: float = 0.02


MEASURES = {
    "average": "accuracy",
    "worst_group": "worst-group accuracy",
    "error": "selective error",
    "coverage": "coverage",
}

MASKTUNE, RANDMASK, ONE_MORE, ACCUMULATIVE, SINGLE = (
    "MaskTune",
    "RandMask",
    "one more epoch",
    "accumulative",
    "non-accumulative",
)
"""Names of arms."""


def _accuracies(
    source: str, arm: str, moment: Moment, numbers: dict[str, tuple[float, float | None]]
) -> tuple[Figure, ...]:
    return tuple(
        Figure(
            arm=arm,
            test=test,
            moment=moment,
            measure="average",
            value=value / 100,
            std=None if std is None else std / 100,
            source=source,
        )
        for test, (value, std) in numbers.items()
    )


MNIST_SQUARE = _accuracies(
    "appendix, random masking",
    MASKTUNE,
    "after",
    {"biased": (98.26, 0.27), "original": (98.46, 0.21)},
)
MNIST_RANDMASK = _accuracies(
    "appendix, random masking",
    RANDMASK,
    "after",
    {"biased": (59.06, 9.25), "original": (91.02, 1.87)},
)


def _iterations(
    arm: str, rows: tuple[tuple[float, float, float, float], ...]
) -> tuple[Figure, ...]:
    """Rows of the appendix's table of iterations: biased, its std, original, its std."""
    return tuple(
        Figure(
            arm=arm,
            test=test,
            moment="before" if number == 0 else "after",
            measure="average",
            value=value / 100,
            std=std / 100,
            source="appendix, iterations",
            rounds=number or None,
        )
        for number, (biased, biased_std, original, original_std) in enumerate(rows)
        for test, value, std in (
            ("biased", biased, biased_std),
            ("original", original, original_std),
        )
    )


_TWO_SQUARES_ERM = (18.59, 0.75, 60.78, 0.74)
TWO_SQUARES = (
    *_iterations(
        ACCUMULATIVE,
        (
            _TWO_SQUARES_ERM,
            (24.68, 2.73, 59.93, 5.25),
            (97.01, 2.86, 98.61, 0.61),
            (98.88, 0.60, 99.00, 0.14),
        ),
    ),
    *_iterations(
        SINGLE,
        (
            _TWO_SQUARES_ERM,
            (28.08, 11.44, 64.38, 10.45),
            (30.69, 5.69, 62.07, 4.03),
            (24.91, 2.45, 58.76, 0.76),
        ),
    )[2:],
)


def _subgroups(
    source: str, erm: tuple[float, float], tuned: tuple[float, float]
) -> tuple[Figure, ...]:
    """Worst-group and average accuracy of the ERM model and of MaskTune."""
    moments: tuple[tuple[Moment, tuple[float, float]], ...] = (("before", erm), ("after", tuned))
    return tuple(
        Figure(
            arm=MASKTUNE,
            test="test",
            moment=moment,
            measure=measure,
            value=value / 100,
            source=source,
        )
        for moment, (worst, average) in moments
        for measure, value in _both(worst, average)
    )


def _both(
    worst: float, average: float
) -> tuple[tuple[Literal["worst_group", "average"], float], ...]:
    return ("worst_group", worst), ("average", average)


CELEBA = _subgroups("table 1, CelebA", (47.2, 95.6), (78.0, 91.3))
WATERBIRDS = _subgroups("table 2, corrected Waterbirds", (80.8, 94.0), (86.4, 93.0))
IMAGENET9 = (
    *_accuracies(
        "table 3, Background Challenge",
        MASKTUNE,
        "before",
        {
            "original": (96.3, None),
            "mixed_same": (89.8, None),
            "mixed_rand": (75.6, None),
            "only_fg": (85.6, None),
        },
    ),
    *_accuracies(
        "table 3, Background Challenge",
        MASKTUNE,
        "after",
        {
            "original": (95.6, None),
            "mixed_same": (91.1, None),
            "mixed_rand": (78.6, None),
            "only_fg": (88.1, None),
        },
    ),
)


def _selective(
    rows: dict[float, tuple[float, float, float, float]], softmax: dict[float, tuple[float, float]]
) -> tuple[Figure, ...]:
    """Coverage and error of the joint score, with std, and of softmax response, by target."""
    source = "table 4 and appendix, selective classification"
    joint = [
        Figure(
            arm=MASKTUNE,
            test="test",
            moment="joint",
            measure=measure,
            value=value / 100,
            std=std / 100,
            source=source,
            target=target,
            tolerance=0.01,
        )
        for target, (coverage, coverage_std, error, error_std) in rows.items()
        for measure, value, std in _covered(coverage, coverage_std, error, error_std)
    ]
    alone = [
        Figure(
            arm=MASKTUNE,
            test="test",
            moment="before",
            measure="error",
            value=error / 100,
            source=source,
            target=target,
            tolerance=0.01,
        )
        for target, (_, error) in softmax.items()
    ]
    return (*joint, *alone)


def _covered(
    coverage: float, coverage_std: float, error: float, error_std: float
) -> tuple[tuple[Literal["coverage", "error"], float, float], ...]:
    return ("coverage", coverage, coverage_std), ("error", error, error_std)


CIFAR10 = _selective(
    {
        1.0: (99.99, 0.02, 8.96, 0.48),
        0.95: (94.86, 0.18, 6.54, 0.39),
        0.9: (89.73, 0.22, 4.74, 0.31),
        0.85: (84.46, 0.07, 3.23, 0.20),
        0.8: (79.03, 0.44, 2.13, 0.11),
    },
    {1.0: (99.99, 9.58), 0.95: (95.2, 8.74), 0.9: (90.5, 6.52)},
)
SVHN = _selective(
    {
        1.0: (100.0, 0.0, 3.68, 0.16),
        0.95: (95.19, 0.09, 1.84, 0.23),
        0.9: (89.55, 0.26, 0.96, 0.11),
        0.85: (83.72, 0.71, 0.57, 0.04),
        0.8: (77.81, 0.75, 0.45, 0.05),
    },
    {1.0: (99.97, 3.86), 0.95: (95.1, 1.86), 0.9: (90.0, 1.04)},
)
CATS_VS_DOGS = _selective(
    {
        1.0: (99.98, 0.0, 4.83, 0.17),
        0.95: (95.01, 0.14, 2.96, 0.15),
        0.9: (90.78, 0.16, 1.94, 0.18),
        0.85: (86.33, 0.61, 1.24, 0.21),
        0.8: (81.98, 0.47, 0.89, 0.20),
    },
    {1.0: (100.0, 5.72), 0.95: (95.0, 3.46), 0.9: (90.0, 2.28)},
)
