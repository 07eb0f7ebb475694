"""The profile of a rank without a GPU, whose collectives are gloo's.

The rank computes on one line of time. It waits where no operation runs and a collective ends; what comes behind waits
for that. Nobody may have waited for a collective that ended in time: the optimizer's step waits for all.
"""

from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise

from workloads.chakra.wire import ChakraError
from workloads.pytorch_traces.collectives import collective_type, plain_name
from workloads.pytorch_traces.described_collectives import by_shapes
from workloads.pytorch_traces.nodes import Collective
from workloads.pytorch_traces.profile import OPTIMIZER_STEP, Event, Profile
from workloads.pytorch_traces.timeline import Issued, Stall, timeline_trace

_POINT_TO_POINT = frozenset({"send", "recv", "recv_any_source"})


def host_trace(profile: Profile, known: Mapping[str, tuple[int, ...]]) -> bytes:
    """Return the trace of a rank. Raises ChakraError for communication that is not described."""
    runs = [event for event in profile.cpu if event.name.startswith("gloo:")]
    threads = {event.thread for event in runs} - {event.thread for event in profile.cpu if _is_of_the_job(event)}
    job = [event for event in profile.cpu if event.thread not in threads]
    groups = {**known, **profile.groups}
    group = _only_group(profile, groups, runs)
    calls = [event for event in job if event.name.startswith("c10d::")]
    _refuse_transfers(profile, calls)
    issued = _issued(profile, runs, calls, group)
    quiet = _quiet(job)
    ends = sorted((run.end, run.number) for run in runs)
    stalls = [stall for begin, end in quiet if (stall := _stall(begin, end, ends)) is not None]
    stalls += [
        Stall(event.begin, event.begin, tuple(each.number for each in issued))
        for event in job
        if event.name.startswith(OPTIMIZER_STEP)
    ]
    return timeline_trace(
        min(event.begin for event in job),
        max(event.end for event in job),
        issued,
        stalls,
        {group: groups[group]} if group else {},
        profile.num_events,
        profile.where,
    )


def _is_of_the_job(event: Event) -> bool:
    return event.name.startswith(("ProfilerStep", OPTIMIZER_STEP)) or event.category == "cpu_op"


def _only_group(profile: Profile, groups: Mapping[str, tuple[int, ...]], runs: Sequence[Event]) -> str:
    """Return the process group of gloo's collectives, which do not record it; "": that of all ranks."""
    if len(groups) > 1 and runs:
        names = ", ".join(sorted(groups))
        where = profile.where(runs[0].number)
        raise ChakraError(f"{where}: gloo does not say which process group it is of, and there are several: {names}")
    return next(iter(groups), "")


def _refuse_transfers(profile: Profile, calls: Sequence[Event]) -> None:
    for call in calls:
        if plain_name(call.name) in _POINT_TO_POINT:
            raise ChakraError(f"{profile.where(call.number)}: {call.name}: gloo does not record the other rank")


def _issued(profile: Profile, runs: Sequence[Event], calls: Sequence[Event], group: str) -> list[Issued]:
    """Return gloo's collectives, each from the operation that began it: the first one before it that is not taken."""
    issued = []
    free = deque(call for call in calls if collective_type(plain_name(call.name)) is not None)
    for run in runs:
        found = by_shapes(run)
        if found is None:
            problem = "nothing says what it moves; profile with record_shapes=True"
            raise ChakraError(f"{profile.where(run.number)}: {run.name[:40]!r}: {problem}")
        call = free.popleft() if free and free[0].begin <= run.begin else run
        issued.append(Issued(call.begin, run.number, Collective(found.type, found.size_bytes, group)))
    return issued


def _quiet(job: Sequence[Event]) -> list[tuple[float, float]]:
    """Return the times between operations that have none within themselves."""
    by_thread: defaultdict[tuple[str, str], list[Event]] = defaultdict(list)
    for event in job:
        if event.category == "cpu_op":
            by_thread[event.thread].append(event)
    leaves = []
    for events in by_thread.values():
        leaves += [event for event, following in pairwise(events) if following.begin >= event.end]
        leaves.append(events[-1])
    leaves.sort(key=lambda event: event.begin)
    ends = accumulate((event.end for event in leaves), max)
    return [(end, event.begin) for end, event in zip(ends, leaves[1:], strict=False) if event.begin > end]


def _stall(begin: float, end: float, ends: Sequence[tuple[float, int]]) -> Stall | None:
    """Return the stall in a quiet time: until the last collective that ends in it."""
    first = bisect_right(ends, (begin, -1))
    until = bisect_right(ends, (end, -1))
    awaited = ends[first:until]
    return Stall(begin, awaited[-1][0], tuple(number for _, number in awaited)) if awaited else None
