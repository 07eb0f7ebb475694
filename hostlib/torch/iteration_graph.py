"""What an iteration of a job does, as policies take it: a profile, and a task graph of computation and transfers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hostlib.task_graph import Computation, TaskGraph, Transfer
from hostlib.torch.intervals import Interval, covered
from hostlib.torch.measurement import GroupTimes
from hostlib.types import Profile

_SHORTEST_S = 1e-6


@dataclass(frozen=True, slots=True)
class Sending:
    """When a flow group is sent.

    Attributes:
        times: Its release and slack.
        pipelined_until_s: When the pipeline that sends it needs its last transfer; None: it is no pipeline's.
    """

    times: GroupTimes
    pipelined_until_s: float | None = None


def pipelined_times(windows: Sequence[Interval]) -> GroupTimes:
    """Return the times of all that one rank of a pipeline sends another, one transfer after the other.

    An iteration has one flow for a connection, so all micro-batches are one transfer. It is released with the first of
    them. Its slack is the time in which at least one of them is there and not yet needed: as for other groups, so long
    they may take, all in all, without anybody waiting. Between equal stages that is nearly nothing, for each
    activation is needed as soon as it is there, and whoever keeps it waiting keeps the pipeline waiting.
    """
    return GroupTimes(windows[0][0], covered(windows))


def profile_of(compute_s: float, sendings: Sequence[Sending], work_s: float) -> Profile:
    """Return the profile of a job that would take ``compute_s`` without communication, and computes ``work_s``."""
    compute_s = max(compute_s, _SHORTEST_S)
    first_s = min(sending.times.release_s for sending in sendings)
    return Profile(compute_s, min(max(first_s / compute_s, 0.0), 1.0), max(work_s, _SHORTEST_S))


def task_graph_of(compute_s: float, sendings: Mapping[str, Sending]) -> TaskGraph:
    """Return what an iteration does: computation in a row, and transfers that it may have to wait for.

    A flow group is sent from its release on; what is computed later than its slack after that waits for it. The flow
    groups of a pipeline have rows of their own beside that, up to the last transfer. Several micro-batches are under
    way in a pipeline at the same time, so what one connection delays is not added to what another one does.
    """
    end_s = max(compute_s, _SHORTEST_S)
    releases: dict[str, float] = {}
    needs: dict[str, float] = {}
    joins: dict[str, float] = {}
    for name, sending in sendings.items():
        releases[name] = _rounded(min(max(sending.times.release_s, 0.0), end_s))
        needs[name] = _rounded(min(releases[name] + sending.times.slack_s, end_s))
        if sending.pipelined_until_s is not None:
            joins[name] = _rounded(min(max(sending.pipelined_until_s, needs[name]), end_s))
    tasks: list[Computation | Transfer] = []
    ended: dict[str, tuple[int, ...]] = {}
    for name in joins:
        ended[name] = _row(tasks, name, releases[name], needs[name], joins[name])
    times_s = {*(needs | joins).values(), *(releases[name] for name in releases.keys() - joins.keys()), _rounded(end_s)}
    computed: tuple[int, ...] = ()
    before_s = 0.0
    for time_s in sorted(times_s):
        if time_s > before_s:
            tasks.append(Computation(time_s - before_s, after=computed))
            computed, before_s = (len(tasks) - 1,), time_s
        for name, release_s in releases.items():
            if release_s == time_s and name not in joins:
                tasks.append(Transfer(name, after=computed))
                ended[name] = (len(tasks) - 1,)
        for name, need_s in (needs | joins).items():
            if need_s == time_s and time_s < end_s:
                computed += ended[name]
    return TaskGraph(tuple(tasks))


def _row(
    tasks: list[Computation | Transfer], name: str, release_s: float, need_s: float, end_s: float
) -> tuple[int, ...]:
    """Add a row of computation that sends a flow group, waits for it and goes on; return the tasks at its end."""

    def computed(duration_s: float, after: tuple[int, ...]) -> tuple[int, ...]:
        if duration_s <= 0.0:
            return after
        tasks.append(Computation(duration_s, after=after))
        return (len(tasks) - 1,)

    before = computed(release_s, ())
    tasks.append(Transfer(name, after=before))
    sent = len(tasks) - 1
    return computed(end_s - need_s, (*computed(need_s - release_s, before), sent))


def _rounded(time_s: float) -> float:
    return round(time_s, 6)
