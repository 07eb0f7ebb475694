"""What a bucket of gradients is sent as."""

from dataclasses import dataclass
from enum import StrEnum


class Precision(StrEnum):
    """In which format the values travel."""

    FP32 = "fp32"
    BF16 = "bf16"
    FP16 = "fp16"
    INT8 = "int8"
    """8-bit integers with one scale for each 256 values, rounded stochastically."""
    INT4 = "int4"
    """Likewise, in 4 bits."""


class Collective(StrEnum):
    """How the ranks' gradients become their sum."""

    ALL_REDUCE = "all-reduce"
    ALL_GATHER = "all-gather"
    """Every rank's payload travels to every rank, and each adds them up."""
    REDUCE_SCATTER = "reduce-scatter"
    """Sparse reduce-scatter: each rank adds up its share of the elements and selects again; an all-gather follows."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What a bucket is sent as.

    Attributes:
        ratio: Share of the elements that are sent; 1: dense.
        precision: Format of the values.
        collective: How they become a sum.
        prune_share: Share of the elements, those of the smallest weights, that this transmission leaves out
            (NetSenseML, Algorithm 2, step 2).
        rank: Each matrix is sent as two thin ones of so many columns, by all-reduces in fp32 (Vogels et al. 2019);
            0: elements are sent. The ratio is 1 then, for all elements are approximated.

    Raises:
        ValueError: The rank is negative, or low rank goes with none of the rest.
    """

    ratio: float
    precision: Precision
    collective: Collective
    prune_share: float = 0
    rank: int = 0

    def __post_init__(self) -> None:
        if self.rank < 0:
            raise ValueError(f"rank: expected 0 or more, got {self.rank}")
        if self.rank and (self.ratio, self.precision, self.collective, self.prune_share) != _OF_LOW_RANK:
            raise ValueError(f"rank: low rank is of all elements, in fp32, by all-reduce and unpruned, got {self}")

    @property
    def is_dense(self) -> bool:
        """Whether each element is sent."""
        return self.ratio >= 1 and not self.rank


_OF_LOW_RANK = (1, Precision.FP32, Collective.ALL_REDUCE, 0)


def low_rank(rank: int) -> Choice:
    """Return the choice of a rank."""
    return Choice(1, Precision.FP32, Collective.ALL_REDUCE, rank=rank)
