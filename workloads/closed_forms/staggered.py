"""Flows that are needed one after the other at equal distances (EchelonFlow, equation 6)."""

from workloads.closed_forms.arguments import check_count, check_seconds


def staggered(num_flows: int, step_s: float) -> tuple[float, ...]:
    """The j-th flow, or coflow, is due j steps after the first; a step is what its consumer computes on one.

    Of GPipe, forward and backward: the receiving stage's time for a micro-batch. Of 1F1B backward: both its times
    together. Of ring attention: attention to one block. Of experts in chunks, dispatched: one chunk's computation. Of a
    matrix product over a ring: one part of it. Raises ValueError, naming the argument, for what cannot be meant.
    """
    check_count("num_flows", num_flows)
    check_seconds("step_s", step_s)
    return tuple(number * step_s for number in range(num_flows))
