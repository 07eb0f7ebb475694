"""How a bucket of real size is sent: its collectives with their bytes, and what encoding and decoding it take.

Bytes are exactly those of the product's payloads (``hostlib.compression.codecs``). Times are those of its cost model
with the numbers of a stated table.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from experiments.compression.real_models import ModelBucket, Shape
from experiments.compression.star import HOP_S, HOSTS, Transfer, all_gather, all_reduce, exchange
from hostlib.compression.choice import Choice, Collective, Precision
from hostlib.compression.codecs import dense, sparse
from hostlib.compression.codecs.payload import Form
from hostlib.compression.control.cost import (
    VALUE_BITS,
    Bucket,
    Linear,
    MeasuredCosts,
    transmission_cost,
    values_sent,
)

_FP32_BYTES = 4
MIN_COMPRESSION_RATE = 2
"""PowerSGD sends a matrix as it is where low rank saves less: the default of PyTorch's hook."""
GPU_SPEEDUP = 20
"""A GPU is taken to encode so many times faster than one core of the measured CPU."""


@dataclass(frozen=True, slots=True)
class CodecTable:
    """What codecs take on a device, and how they write indices there.

    Attributes:
        name: Of the device.
        costs: Of the product's codecs, as its cost model takes them.
        multiply_add_s: Of one multiply-add of PowerSGD's products of matrices.
        form: Of the indices of sparse payloads.
    """

    name: str
    costs: MeasuredCosts
    multiply_add_s: float
    form: Form


CPU = CodecTable(
    "CPU",
    MeasuredCosts(
        select=Linear(100e-6, 0.8e-9, 60e-9),
        scatter=Linear(500e-6, 0.1e-9, 5.5e-9),
        convert=Linear(10e-6, 0.15e-9),
        hop_s=HOP_S,
        quantise=Linear(100e-6, 3e-9),
    ),
    multiply_add_s=0.3e-9,
    form=Form.ELIAS_FANO,
)
"""The best of forty on one core of an AMD EPYC with numba 0.68.1 and torch 2.13.0, for 4 million elements and ratios of
0.1 % to 10 %, without momentum; a bucket has 8 payloads to decode."""


def _faster(linear: Linear) -> Linear:
    return Linear(linear.fixed_s / GPU_SPEEDUP, linear.element_s / GPU_SPEEDUP, linear.value_s / GPU_SPEEDUP)


GPU = CodecTable(
    "GPU",
    MeasuredCosts(
        _faster(CPU.costs.select),
        _faster(CPU.costs.scatter),
        _faster(CPU.costs.convert),
        HOP_S,
        _faster(CPU.costs.quantise),
    ),
    CPU.multiply_add_s / GPU_SPEEDUP,
    form=Form.ELIAS_FANO,
)
PLAIN_INDICES = replace(GPU, name="GPU, plain indices", form=Form.PLAIN)
"""The GPU with what the product's codec writes there today: indices of 32 bits."""
TABLES = {table.name: table for table in (GPU, CPU, PLAIN_INDICES)}


@dataclass(frozen=True, slots=True)
class LowRank:
    """PowerSGD (Vogels et al. 2019) of a rank, as PyTorch's hook sends it."""

    rank: int


StepPlan = tuple[Choice, ...] | LowRank
"""What all buckets of a step are sent as."""


@dataclass(frozen=True, slots=True)
class Sending:
    """One bucket on its way: encoded, then its transfers one after the other, then decoded."""

    transfers: tuple[Transfer, ...]
    encode_s: float = 0.0
    decode_s: float = 0.0


def sendings(
    plan: StepPlan, buckets: Sequence[ModelBucket], table: CodecTable, form: Form | None = None
) -> tuple[Sending, ...]:
    """Return how each bucket of a model is sent; ``form`` replaces the table's."""
    if isinstance(plan, LowRank):
        return tuple(_low_rank(plan.rank, bucket, table) for bucket in buckets)
    return tuple(sending_of(choice, bucket.elements, table, form) for choice, bucket in zip(plan, buckets, strict=True))


def sending_of(choice: Choice, elements: int, table: CodecTable, form: Form | None = None) -> Sending:
    """Return how one bucket of so many elements is sent; ``form`` replaces the table's."""
    transfers = _transfers(choice, elements, form or table.form)
    charged = transmission_cost(choice, Bucket(elements, HOSTS), table.costs)
    return Sending(transfers, charged.encode_s, charged.decode_s)


def _transfers(choice: Choice, elements: int, form: Form) -> tuple[Transfer, ...]:
    if choice.collective is Collective.REDUCE_SCATTER:
        # The longest of the ranges that the ranks own.
        part_bytes = _payload_bytes(choice, -(-elements // HOSTS), form)
        return exchange(part_bytes), all_gather(part_bytes)
    if choice.ratio < 1:
        return (all_gather(_payload_bytes(choice, elements, form)),)
    return (all_reduce(elements * VALUE_BITS[choice.precision] / 8),)


def _payload_bytes(choice: Choice, elements: int, form: Form) -> int:
    if choice.ratio >= 1:
        return dense.wire_bytes(elements, choice.precision)
    return sparse.wire_bytes(elements, values_sent(choice, elements), choice.precision, form)


def is_low_rank(shape: Shape, rank: int) -> bool:
    """Return whether PowerSGD sends a parameter of a shape as two matrices of a rank."""
    rows, columns = shape[0], prod(shape[1:])
    return len(shape) > 1 and (rows + columns) * rank * MIN_COMPRESSION_RATE < rows * columns


def low_rank_values(bucket: ModelBucket, rank: int) -> tuple[int, int, int]:
    """Return how many values of a bucket PowerSGD sends as they are, in all P, and in all Q."""
    factors = _factors(bucket, rank)
    return (
        bucket.elements - sum(rows * columns for rows, columns in factors),
        rank * sum(rows for rows, _ in factors),
        rank * sum(columns for _, columns in factors),
    )


def _factors(bucket: ModelBucket, rank: int) -> list[tuple[int, int]]:
    return [(shape[0], prod(shape[1:])) for shape in bucket.shapes if is_low_rank(shape, rank)]


def _low_rank(rank: int, bucket: ModelBucket, table: CodecTable) -> Sending:
    """Charge three all-reduces: of what is sent as it is, of all P, of all Q. Each matrix has three products."""
    product_s = table.multiply_add_s * rank * sum(rows * columns for rows, columns in _factors(bucket, rank))
    transfers = tuple(all_reduce(_FP32_BYTES * count) for count in low_rank_values(bucket, rank) if count)
    return Sending(transfers, encode_s=product_s, decode_s=2 * product_s)


def dense_plan(buckets: Sequence[ModelBucket], precision: Precision = Precision.FP32) -> tuple[Choice, ...]:
    """Return the plan of all-reduces of everything."""
    return tuple(Choice(1, precision, Collective.ALL_REDUCE) for _ in buckets)
