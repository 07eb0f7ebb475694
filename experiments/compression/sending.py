"""How a bucket of real size is sent: its collectives with their bytes, and what encoding and decoding it take.

Bytes are exactly those of the product's payloads (``hostlib.compression.codecs``). Times are those of its cost model
with the numbers of a stated table.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from experiments.compression.real_models import ModelBucket
from experiments.compression.star import HOP_S, HOSTS, Transfer, all_gather, all_reduce, exchange
from hostlib.compression.choice import Choice, Collective, Precision
from hostlib.compression.codecs import dense, sparse
from hostlib.compression.codecs.payload import Form
from hostlib.compression.control.cost import (
    VALUE_BITS,
    Bucket,
    Linear,
    MeasuredCosts,
    low_rank_bytes,
    transmission_cost,
    values_sent,
)
from hostlib.compression.shapes import factor_sizes

GPU_SPEEDUP = 20
"""A GPU is taken to encode so many times faster than one core of the measured CPU."""


@dataclass(frozen=True, slots=True)
class CodecTable:
    """What codecs take on a device, and how they write indices there.

    Attributes:
        name: Of the device.
        costs: Of the product's codecs, as its cost model takes them.
        form: Of the indices of sparse payloads.
    """

    name: str
    costs: MeasuredCosts
    form: Form


CPU = CodecTable(
    "CPU",
    MeasuredCosts(
        select=Linear(100e-6, 0.8e-9, 60e-9),
        scatter=Linear(500e-6, 0.1e-9, 5.5e-9),
        convert=Linear(10e-6, 0.15e-9),
        hop_s=HOP_S,
        quantise=Linear(100e-6, 3e-9),
        factor=Linear(0, 0, 0.3e-9),
    ),
    form=Form.ELIAS_FANO,
)
"""The best of forty on one core of an AMD EPYC with numba 0.68.1 and torch 2.13.0, for 4 million elements and ratios of
0.1 % to 10 %, without momentum; a bucket has 8 payloads to decode. What low rank takes is assumed, and in its favour: a
multiply-add took some 1 ns there."""


def faster(costs: MeasuredCosts, times: float) -> MeasuredCosts:
    """Return the costs of a device that computes, and of hosts that send a message, so many times faster."""

    def over(cost: Linear) -> Linear:
        return Linear(cost.fixed_s / times, cost.element_s / times, cost.value_s / times)

    return MeasuredCosts(
        over(costs.select),
        over(costs.scatter),
        over(costs.convert),
        costs.hop_s / times,
        over(costs.quantise),
        over(costs.factor),
    )


GPU = CodecTable("GPU", replace(faster(CPU.costs, GPU_SPEEDUP), hop_s=HOP_S), form=Form.ELIAS_FANO)
PLAIN_INDICES = replace(GPU, name="GPU, plain indices", form=Form.PLAIN)
"""The GPU with what the product's codec writes there today: indices of 32 bits."""
TABLES = {table.name: table for table in (GPU, CPU, PLAIN_INDICES)}


StepPlan = tuple[Choice, ...]
"""What each bucket of a step is sent as."""


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
    return tuple(sending_of(choice, bucket, table, form) for choice, bucket in zip(plan, buckets, strict=True))


def sending_of(choice: Choice, bucket: ModelBucket, table: CodecTable, form: Form | None = None) -> Sending:
    """Return how one bucket is sent; ``form`` replaces the table's."""
    costed = bucket_of(bucket)
    charged = transmission_cost(choice, costed, table.costs)
    return Sending(_transfers(choice, costed, form or table.form), charged.encode_s, charged.decode_s)


def bucket_of(bucket: ModelBucket, *, has_remainder: bool = False) -> Bucket:
    """Return a model's bucket as the product's cost model has it."""
    return Bucket(bucket.elements, HOSTS, has_remainder=has_remainder, shapes=bucket.shapes)


def _transfers(choice: Choice, bucket: Bucket, form: Form) -> tuple[Transfer, ...]:
    elements = bucket.elements
    if choice.rank:
        sizes_bytes = low_rank_bytes(bucket, factor_sizes(bucket.shapes, choice.rank))
        return tuple(all_reduce(size_bytes) for size_bytes in sizes_bytes if size_bytes)
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


def dense_plan(buckets: Sequence[ModelBucket], precision: Precision = Precision.FP32) -> tuple[Choice, ...]:
    """Return the plan of all-reduces of everything."""
    return tuple(Choice(1, precision, Collective.ALL_REDUCE) for _ in buckets)
