"""Orders by rational numbers: floats sort what they can tell apart, and rationals the rest.

Rounding makes ties of numbers that differ, and parts numbers that tie. A policy that keeps the order given where two
jobs need the same time must compare what they need, not what rounding leaves of it. O(n log n) for n keys, and one
rational for each key that floats leave in doubt.
"""

from collections import Counter, defaultdict
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from policies.arrays import FloatArray, IntArray
from policies.coflows import JobCoflow
from policies.flows import Flow

_SPARE = 4
"""Of a float's error: one for each of two keys that are compared, and two for terms of higher order."""
_ROUNDINGS = 4
"""Beside those of a sum: of the rate, of two quotients, and one to spare."""
_UNIT_ROUNDOFF = 2.0**-53


def exact_order(keys: FloatArray, exact_key: Callable[[int], Fraction], relative_error: float = 0.0) -> IntArray:
    """Return the positions of keys, smallest first, ties in the order given.

    Args:
        keys: The keys, rounded. Infinite ones come last, in the order given.
        exact_key: Returns the key at a position. Only keys that floats leave in doubt are asked for.
        relative_error: How far a rounded key may be from the exact one, as a share of it. 0 where rounding is monotone,
            as that of a single operation: then only equal floats are in doubt.
    """
    order: IntArray = keys.argsort(kind="stable")
    ranked = keys[order]
    is_apart = ranked[1:] > ranked[:-1] * (1.0 + _SPARE * relative_error)
    for run in np.split(order, np.flatnonzero(is_apart) + 1):
        if len(run) > 1 and np.isfinite(keys[run]).all():
            run[:] = sorted(sorted(run.tolist()), key=exact_key)
    return order


def bottleneck_error(coflow: JobCoflow) -> float:
    """Return how far the bottleneck time of a job, or its quotient by a weight, may be off, as a share of it."""
    return (len(coflow.job.flows) + _ROUNDINGS) * _UNIT_ROUNDOFF


def exact_bottleneck_s(coflow: JobCoflow, rates_bps: FloatArray) -> Fraction:
    """Return the longest time in seconds for which a job's iteration occupies a link, on the paths of the hash.

    Args:
        coflow: The job; it sends.
        rates_bps: By link, its rate.
    """
    least_s = coflow.iteration.comm_s * (1.0 - _SPARE * bottleneck_error(coflow))
    near = set(coflow.links[coflow.seconds >= least_s].tolist())
    sizes_of: defaultdict[int, Counter[float]] = defaultdict(Counter)
    for flow in coflow.job.flows:
        for link in _links(flow):
            if link in near:
                sizes_of[link][flow.size_bytes] += 1
    # Most links of a job carry the same flow sizes at the same rate.
    demands = {(rates_bps[link], frozenset(sizes.items())) for link, sizes in sizes_of.items()}
    return max(
        sum((Fraction(size_bytes) * number for size_bytes, number in sizes), Fraction(0)) * 8 / Fraction(rate_bps)
        for rate_bps, sizes in demands
    )


def _links(flow: Flow) -> tuple[int, ...]:
    return (*flow.hashed_path, *flow.host_links) if flow.sends else ()
