"""What PyTorch's own profiler says of an iteration."""

from collections.abc import Callable, Sequence

from torch.profiler import ProfilerActivity, profile

from experiments.scenarios.timeline import ProfiledRange

PROFILED_OF = 10
"""The last of so many iterations is profiled, which takes about two milliseconds more.

The host library measures a job's first ones, and nothing should prolong these.
"""
_SHORTEST_S, _MOST_RANGES = 0.0005, 100
"""The longest are enough: nobody reads a thousand operations."""
_AUTOGRAD = "autograd::engine::evaluate_function: "


def profiled(step: Callable[[], None]) -> Sequence[ProfiledRange]:
    """Do a step; return the ranges of its profile that are in no other, seconds after its begin."""
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        step()
    found: list[ProfiledRange] = []
    for event in profiler.events():
        begin_s, end_s = event.time_range.start / 1e6, event.time_range.end / 1e6
        if event.cpu_parent is None and end_s - begin_s >= _SHORTEST_S:
            found.append(ProfiledRange(event.name.removeprefix(_AUTOGRAD), round(begin_s, 4), round(end_s, 4)))
    longest = sorted(found, key=lambda each: each.begin_s - each.end_s)[:_MOST_RANGES]
    return sorted(longest, key=lambda each: each.begin_s)
