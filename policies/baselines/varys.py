"""Varys: the coflow with the smallest bottleneck first (SEBF), its flows just as fast as that bottleneck (MADD).

Objective: the least mean coflow completion time. Source: Chowdhury, Zhong and Stoica, *Efficient Coflow Scheduling with
Varys*, SIGCOMM 2014, section 5. Inputs: bytes by link, link rates. Under ideal enforcement the allocator is MADD with
backfill at group events, and SEBF orders the open flow groups by the bytes they still have. With levels, at job events,
a job is one coflow of its bytes per iteration. Times are compared as rational numbers (``exact_order``), so that ties,
and only ties, keep the order given. O(h + n log n) for n jobs and h pairs of job and link.

Differences from the paper:

- Links of a whole fabric instead of the ports of one big switch; every flow takes the path of the fabric's hash.
- A training job's coflow returns every iteration, which Varys does not know.
- Weights are ours: bottleneck time over weight (Smith's rule).
- Varys has no levels. Here they are classes of equal size, as Crux compresses it in figure 13.
- Deadlines, and the time slots that keep coflows from starving, are left out.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from policies.arrays import FloatArray
from policies.baselines.exact_order import bottleneck_error, exact_bottleneck_s, exact_order
from policies.coflows import JobCoflow, JobWeight, job_coflows, seconds_by_link, weights_of
from policies.enforcement import Allocator, Cadence, RateControl, Tiers
from policies.open_groups import OpenGroups
from policies.plan import Plan
from policies.plan_builder import equal_classes, plan_in_order
from policies.policy import Policy
from policies.snapshot import Snapshot


def varys(snapshot: Snapshot, weight: JobWeight = JobWeight.ONE) -> Plan:
    """Serve the jobs by their bottleneck time per iteration, shortest first; ties by name."""
    rates_bps = snapshot.links.rates_bps

    def order(coflows: Sequence[JobCoflow]) -> Sequence[int]:
        weights = weights_of(coflows, weight)

        def exact_key(position: int) -> Fraction:
            return exact_bottleneck_s(coflows[position], rates_bps) / Fraction(weights[position])

        keys = bottleneck_times(seconds_by_link(coflows)) / weights
        positions: list[int] = exact_order(keys, exact_key, max(map(bottleneck_error, coflows), default=0.0)).tolist()
        return positions

    return plan_in_order(
        "varys",
        snapshot.num_levels,
        job_coflows(snapshot),
        order=order,
        levels=equal_classes,
        reason=lambda coflow: f"An iteration's bytes take its bottleneck link {coflow.iteration.comm_s:.4g} s.",
    )


def bottleneck_times(seconds_by_link: csr_array) -> FloatArray:
    """Return Gamma of every coflow (row): the longest time for which it occupies a link (column); 0 without any."""
    ends = seconds_by_link.indptr
    times = np.zeros(len(ends) - 1)
    used = np.flatnonzero(np.diff(ends))
    times[used] = np.maximum.reduceat(seconds_by_link.data, ends[used]) if len(used) else 0.0
    return times


def sebf(bottleneck_times: FloatArray, weights: FloatArray) -> npt.NDArray[np.int64]:
    """Return the coflows by bottleneck time over weight, shortest first; ties in the order given, weight 0 last.

    The quotients of these floats are compared exactly.

    Raises:
        ValueError: A time or weight is negative or NaN; the message names the coflow.
    """
    for name, values in (("bottleneck time", bottleneck_times), ("weight", weights)):
        if not (values >= 0).all():
            coflow = int((~(values >= 0)).argmax())
            raise ValueError(f"coflow {coflow}: its {name} must not be negative, not {values[coflow]}")
    weighed = np.full(len(weights), np.inf)
    np.divide(bottleneck_times, weights, out=weighed, where=weights > 0)
    if (weights == 1).all():
        return weighed.argsort(kind="stable")
    return exact_order(weighed, lambda coflow: Fraction(bottleneck_times[coflow]) / Fraction(weights[coflow]))


def _order_groups(groups: OpenGroups) -> npt.NDArray[np.int64]:
    """Order groups by SEBF of the bytes they still have, all of one weight."""
    return sebf(bottleneck_times(groups.seconds_by_link), np.ones(len(groups.started_s)))


VARYS = Policy(
    "varys",
    "Varys: the job whose bottleneck needs least time first, levels in classes of equal size",
    varys,
    ideal_rates=RateControl(Allocator.MADD, Tiers.GROUPS, Cadence.GROUP_EVENT),
    order_groups=_order_groups,
)
