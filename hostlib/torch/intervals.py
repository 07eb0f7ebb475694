"""Intervals of time."""

from collections.abc import Iterable

Interval = tuple[float, float]
"""Begin and end."""


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """Return disjoint intervals that cover the same, in order."""
    joined: list[Interval] = []
    for begin, end in sorted(intervals):
        if joined and begin <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], end)
        else:
            joined.append((begin, max(begin, end)))
    return joined


def covered(intervals: Iterable[Interval]) -> float:
    """Return how much time at least one of them covers."""
    return sum(end - begin for begin, end in union(intervals))
