"""Which parameters low rank sends as two thin matrices, and how many values that takes (Vogels et al. 2019).

A parameter of shape (rows, ...) counts as a matrix of so many rows. With a rank it becomes P of rows x rank and Q of
columns x rank. Vectors, and matrices of which that saves too little, travel as they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

Shape = tuple[int, ...]

MIN_COMPRESSION_RATE = 2
"""A matrix travels as it is unless low rank divides its values by more than that: the default of PyTorch's hook."""


@dataclass(frozen=True, slots=True)
class FactorSizes:
    """How many values a bucket of low rank sends, and of how many.

    Attributes:
        left: In all P.
        right: In all Q.
        matrices: How many P there are, and as many Q.
        elements: Of the parameters that they stand for.
    """

    left: int
    right: int
    matrices: int
    elements: int


def is_low_rank(shape: Shape, rank: int) -> bool:
    """Return whether a parameter of a shape is sent as two matrices of a rank."""
    if len(shape) < 2:
        return False
    rows, columns = shape[0], prod(shape[1:])
    return (rows + columns) * rank * MIN_COMPRESSION_RATE < rows * columns


def factor_sizes(shapes: Sequence[Shape], rank: int) -> FactorSizes:
    """Return what parameters of these shapes send at a rank."""
    factored = [(shape[0], prod(shape[1:])) for shape in shapes if is_low_rank(shape, rank)]
    return FactorSizes(
        left=rank * sum(rows for rows, _ in factored),
        right=rank * sum(columns for _, columns in factored),
        matrices=len(factored),
        elements=sum(rows * columns for rows, columns in factored),
    )
