"""The choices that there are, from the least error to the fewest bytes, with an error model to order them by.

**The error of a choice** is the share of the gradients' energy that this step does not deliver.

- Gradients are heavy-tailed: the largest share r of them holds r^(1/4) of the energy, 18 % at 0.1 %, 32 % at 1 %, 56 %
  at 10 %. The exponent is an assumption, and moves no choice between ratios of the same collective.
- A sparse reduce-scatter selects again after the sum. Of W selections of which an element is in one at least with
  probability u = min(1, W r), the sum holds up to u/r times what is kept. Ranks' selections partly overlap, which is
  taken as half way, in logarithms: r delivers what an all-gather at r sqrt(r/u) would.
- Low rank counts as a sparse reduce-scatter in int4 of half its bytes. Its error depends on the gradients; that is from
  a measurement (``LOW_RANK_WORTH``).
- Rounding adds its own share: 1e-7 for fp16, 1e-6 for bf16, 1e-3 for int8 of selected values; of a whole bucket, which
  has blocks of unlike values, 1e-2 for int8 and 1e-1 for int4. Both are more than rounding takes of normal values.

What is not delivered stays in the residual and travels later (error feedback: Karimireddy et al., ICML 2019), so a
step's error delays gradients and does not lose them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hostlib.compression.choice import Choice, Collective, Precision, low_rank
from hostlib.compression.control.cost import VALUE_BITS, Bucket, Cost, MeasuredCosts, transmission_cost

RATIO_STEP = 0.8408964152537145
"""The fourth root of one half: neighbouring rungs differ by a sixth in bytes."""

LOW_RANK_WORTH = 0.5
"""Low rank counts as sparse int4 of so much of its bytes.

Measured with the tasks of ``experiments.compression``, 600 steps, 8 ranks. Of ``characters``, fold 0, dense ends at
60.96 %, and ranks 1, 2 and 4 at 57.84, 59.30 and 60.23 %. Sparse int4 of as many bytes ends at 59.99, 60.50 and
61.02 %. So rank 4 is worth a third to a half of its bytes in sparse int4, and rank 2 less than 0.58. Of ``digits`` all
end within 0.7 points of dense, and neither is always better.
"""

_BISECTIONS = 20
"""To find a ratio within a millionth."""

_ROUNDING = {
    Precision.FP32: 0.0,
    Precision.FP16: 1e-7,
    Precision.BF16: 1e-6,
    Precision.INT8: 1e-3,
    Precision.INT4: 5e-2,
}
_ROUNDING_DENSE = _ROUNDING | {Precision.INT8: 1e-2, Precision.INT4: 1e-1}


@dataclass(frozen=True, slots=True)
class Rung:
    """A choice for every bucket of a job.

    Attributes:
        choice: What each bucket is sent as.
        error: Share of the energy that it does not deliver.
        costs: What it costs, per bucket.
        link_bytes: Of all buckets.
    """

    choice: Choice
    error: float
    costs: tuple[Cost, ...]
    link_bytes: float


def lost_energy(choice: Choice, world_size: int) -> float:
    """Return the share of the gradients' energy that a choice does not deliver in its step."""
    rounding = _ROUNDING[choice.precision]
    if choice.ratio >= 1:
        return _ROUNDING_DENSE[choice.precision]
    delivered = choice.ratio
    if choice.collective == Collective.REDUCE_SCATTER:
        delivered *= math.sqrt(choice.ratio / min(1.0, world_size * choice.ratio))
    return 1 - math.sqrt(math.sqrt(delivered)) * (1 - rounding)


def rungs(
    buckets: Sequence[Bucket], measured: MeasuredCosts, lowest_ratio: float, low_ranks: Sequence[int] = ()
) -> tuple[Rung, ...]:
    """Return all choices for a job's buckets, the least error first; dense as plain DDP is the first.

    Where the lowest ratio is 1, nothing may stay in residuals, so int4 is none of them: it
    rounds too much for that.
    """
    native = buckets[0].precision
    choices = [buckets[0].dense_choice]
    if VALUE_BITS[native] > 16:
        choices.append(Choice(1, Precision.FP16, Collective.ALL_REDUCE))
    choices.append(Choice(1, Precision.INT8, Collective.REDUCE_SCATTER))
    if lowest_ratio < 1:
        choices.append(Choice(1, Precision.INT4, Collective.REDUCE_SCATTER))
        ratio = RATIO_STEP
        while ratio > lowest_ratio:
            choices.extend(_sparse(ratio))
            ratio *= RATIO_STEP
        choices.extend(_sparse(lowest_ratio))
    choices.extend(map(low_rank, low_ranks))
    first, *others = (_rung(choice, buckets, measured) for choice in choices)
    return (first, *sorted(others, key=lambda rung: rung.error))


def _rung(choice: Choice, buckets: Sequence[Bucket], measured: MeasuredCosts) -> Rung:
    costs = tuple(transmission_cost(choice, bucket, measured) for bucket in buckets)
    alike = _sparse_like(choice, buckets) if choice.rank else choice
    return Rung(
        choice,
        lost_energy(alike, buckets[0].world_size),
        costs,
        link_bytes=sum(one.link_bytes for one in costs),
    )


def _sparse_like(choice: Choice, buckets: Sequence[Bucket]) -> Choice:
    """Return the sparse reduce-scatter in int4 that a job's buckets as low rank count as, by bisection."""
    wanted = LOW_RANK_WORTH * _link_bytes(choice, buckets)
    low, high = 1 / (1 << _BISECTIONS), 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if _link_bytes(_in_int4(middle), buckets) <= wanted:
            low = middle
        else:
            high = middle
    return _in_int4(low)


def _in_int4(ratio: float) -> Choice:
    return Choice(ratio, Precision.INT4, Collective.REDUCE_SCATTER)


def _link_bytes(choice: Choice, buckets: Sequence[Bucket]) -> float:
    return sum(transmission_cost(choice, bucket, MeasuredCosts()).link_bytes for bucket in buckets)


def _sparse(ratio: float) -> list[Choice]:
    return [
        Choice(ratio, precision, collective)
        for precision in (Precision.FP16, Precision.INT8, Precision.INT4)
        for collective in (Collective.ALL_GATHER, Collective.REDUCE_SCATTER)
    ]
