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
    """

    ratio: float
    precision: Precision
    collective: Collective
    prune_share: float = 0
