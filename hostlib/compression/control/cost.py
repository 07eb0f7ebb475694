"""What a choice costs: bytes on a rank's link, hops, and seconds of encoding and decoding.

Collectives are rings, as gloo's and NCCL's: an all-reduce moves 2(W-1)/W of the bucket in and out of each of W ranks,
an all-gather W-1 payloads. A reduce-scatter of our own is an exchange, in which each rank sends to all others at once,
and an all-gather of the sums: each moves (W-1)/W of a payload. Low rank takes three all-reduces: of what it does not
factor, of all P, of all Q.

Every rank computes these numbers for itself and all must agree to the last bit. So they are made of correctly rounded
operations alone; the logarithm, which libraries round differently, is one of these here.
"""

import math
from dataclasses import dataclass

from hostlib.compression.choice import Choice, Collective, Precision
from hostlib.compression.shapes import FactorSizes, Shape, factor_sizes

VALUE_BITS = {Precision.FP32: 32, Precision.BF16: 16, Precision.FP16: 16, Precision.INT8: 8, Precision.INT4: 4}

HEADER_BYTES = 16
"""Of a sparse payload."""

_FACTOR_BYTES = 4
"""Of a value of P or Q, whatever the gradient's format."""

INDEX_EXCESS = 1.03
"""What indices take over their entropy; within 3 % of what ``codecs.indices`` writes."""

_LN_2 = 0.6931471805599453
_SQRT_HALF = 0.7071067811865476


@dataclass(frozen=True, slots=True)
class Linear:
    """Seconds as a linear function, as it was measured when the job started.

    Attributes:
        fixed_s: Whatever the size.
        element_s: Per element of the bucket.
        value_s: Per value that is sent or received.
    """

    fixed_s: float = 0
    element_s: float = 0
    value_s: float = 0

    def seconds(self, elements: float, values: float = 0) -> float:
        """Return how long so many elements and values take."""
        return self.fixed_s + self.element_s * elements + self.value_s * values


@dataclass(frozen=True, slots=True)
class MeasuredCosts:
    """What codecs and hops take on this job's machines, measured when it started; all ranks hold the same table.

    Attributes:
        select: To select the largest values of a bucket and to pack them.
        scatter: To unpack values and to add them to a bucket.
        convert: To convert a dense bucket to another precision, or back.
        hop_s: From one rank to the next, for a message without content.
        quantise: To write a dense bucket in 8 or 4 bits, or to add one.
        factor: To factor matrices, a third of what low rank computes: fixed per matrix, and as values the multiply-adds
            of one product with a thin matrix.
    """

    select: Linear = Linear()
    scatter: Linear = Linear()
    convert: Linear = Linear()
    hop_s: float = 0
    quantise: Linear = Linear()
    factor: Linear = Linear()


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket of a job.

    Attributes:
        elements: Its gradients.
        world_size: Ranks that add up theirs.
        precision: The format in which DDP hands them over.
        has_remainder: Whether what it leaves out can travel while the next step computes.
        shapes: Of its parameters; without them there is no low rank.
    """

    elements: int
    world_size: int
    precision: Precision = Precision.FP32
    has_remainder: bool = False
    shapes: tuple[Shape, ...] = ()

    @property
    def dense_choice(self) -> Choice:
        """As plain DDP sends it."""
        return Choice(1, self.precision, Collective.ALL_REDUCE)


@dataclass(frozen=True, slots=True)
class Cost:
    """What one transmission of a bucket costs each rank.

    Attributes:
        in_bytes: Received.
        out_bytes: Sent.
        hops: Messages that wait for each other.
        encode_s: Before the first byte is sent.
        decode_s: After the last has arrived, and between the two halves of a sparse reduce-scatter.
        has_exchange: Whether half of the bytes and of the hops are an exchange's, with a flow to each other rank. All
            else travels in rings, with one flow to the next rank.
    """

    in_bytes: float
    out_bytes: float
    hops: int
    encode_s: float
    decode_s: float
    has_exchange: bool = False

    @property
    def link_bytes(self) -> float:
        """Of the direction that takes longer; links are full duplex."""
        return max(self.in_bytes, self.out_bytes)

    @property
    def exchange_bytes(self) -> float:
        """Those of them that an exchange moves."""
        return self.link_bytes / 2 if self.has_exchange else 0.0

    @property
    def ring_bytes(self) -> float:
        """Those of them that rings move."""
        return self.link_bytes / 2 if self.has_exchange else self.link_bytes


def log2(number: float) -> float:
    """Return the logarithm to base 2, the same on every machine; within 1e-15, relative, of the true one."""
    mantissa, exponent = math.frexp(number)
    if mantissa < _SQRT_HALF:
        mantissa, exponent = 2 * mantissa, exponent - 1
    ratio = (mantissa - 1) / (mantissa + 1)
    square, power, total = ratio * ratio, ratio, 0.0
    for odd in range(1, 25, 2):
        total += power / odd
        power *= square
    return exponent + 2 * total / _LN_2


def binary_entropy(share: float) -> float:
    """Return the bits that say of one element whether it is among this share of all, 0 to 1."""
    if share <= 0 or share >= 1:
        return 0.0
    return -share * log2(share) - (1 - share) * log2(1 - share)


def values_sent(choice: Choice, elements: int) -> int:
    """Return how many of a bucket's elements a rank sends: at least one, if there are any."""
    return min(elements, max(1, round(choice.ratio * elements)))


def share_sent(choice: Choice, bucket: Bucket) -> float:
    """Return the ratio of a bucket: of low rank its values over its elements."""
    if not choice.rank or not bucket.elements:
        return choice.ratio
    sizes = factor_sizes(bucket.shapes, choice.rank)
    return (bucket.elements - sizes.elements + sizes.left + sizes.right) / bucket.elements


def payload_bytes(choice: Choice, elements: int) -> float:
    """Return what one rank's payload takes: its values and, where it is sparse, a header and its indices.

    The indices take the binary entropy of the ratio per element, which is log2 C(n, k) from above, and what the code
    adds to it.
    """
    if not elements:
        return 0.0
    values = values_sent(choice, elements)
    bits = float(values * VALUE_BITS[choice.precision])
    if choice.ratio >= 1:
        return bits / 8
    return HEADER_BYTES + (bits + INDEX_EXCESS * elements * binary_entropy(values / elements)) / 8


def transmission_cost(choice: Choice, bucket: Bucket, measured: MeasuredCosts) -> Cost:
    """Return what sending a bucket as ``choice`` costs each rank."""
    elements, ranks = bucket.elements, bucket.world_size
    if not elements or ranks == 1:
        return Cost(0, 0, 0, 0, 0)
    if choice.rank:
        return _low_rank_cost(bucket, factor_sizes(bucket.shapes, choice.rank), choice.rank, measured)
    payload, others = payload_bytes(choice, elements), ranks - 1
    by_ring = 2 * others / ranks * payload
    if choice.ratio >= 1 and choice.collective != Collective.ALL_GATHER:
        if choice.precision in (Precision.INT8, Precision.INT4):
            # It is added up by its owners, who write the sum in as many bits again.
            quantised_s = measured.quantise.seconds(elements)
            return Cost(by_ring, by_ring, 2 * others, quantised_s, 2 * quantised_s, has_exchange=True)
        converted_s = 0.0 if choice.precision == bucket.precision else measured.convert.seconds(elements)
        return Cost(by_ring, by_ring, 2 * others, converted_s, converted_s)
    values = values_sent(choice, elements)
    selected_s = measured.select.seconds(elements, values)
    if choice.collective == Collective.ALL_GATHER:
        gathered = others * payload
        return Cost(gathered, gathered, others, selected_s, measured.scatter.seconds(elements, ranks * values))
    again_s = measured.select.seconds(elements / ranks, values / ranks)
    added_s = measured.scatter.seconds(elements / ranks, values) + measured.scatter.seconds(elements, values)
    return Cost(by_ring, by_ring, 2 * others, selected_s, again_s + added_s, has_exchange=True)


def low_rank_bytes(bucket: Bucket, sizes: FactorSizes) -> tuple[float, float, float]:
    """Return the bytes of what is not factored, of all P, and of all Q: of the three all-reduces."""
    rest = bucket.elements - sizes.elements
    return (
        rest * VALUE_BITS[bucket.precision] / 8,
        float(_FACTOR_BYTES * sizes.left),
        float(_FACTOR_BYTES * sizes.right),
    )


def _low_rank_cost(bucket: Bucket, sizes: FactorSizes, rank: int, measured: MeasuredCosts) -> Cost:
    """Charge one third of the computation before the first byte, and two behind and between the collectives."""
    sent = [size_bytes for size_bytes in low_rank_bytes(bucket, sizes) if size_bytes]
    others = bucket.world_size - 1
    by_ring = 2 * others / bucket.world_size * sum(sent)
    factor = measured.factor
    third_s = sizes.matrices * factor.fixed_s + (factor.element_s + rank * factor.value_s) * sizes.elements
    return Cost(by_ring, by_ring, 2 * others * len(sent), third_s, 2 * third_s)
