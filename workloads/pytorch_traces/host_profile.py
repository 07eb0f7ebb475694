"""The profile of a rank without a GPU, whose collectives are gloo's.

The rank computes on one line of time. It waits where no operation runs and a collective ends; what comes behind waits
for that. Nobody may have waited for a collective that ended in time: the optimizer's step waits for all.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence

from workloads.chakra.wire import ChakraError
from workloads.pytorch_traces.collectives import collective_type, plain_name
from workloads.pytorch_traces.described_collectives import by_shapes
from workloads.pytorch_traces.nodes import Collective
from workloads.pytorch_traces.profile import Event, Profile
from workloads.pytorch_traces.timeline import Issued, Stall, timeline_trace

_STEP = "Optimizer.step"
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
    ends = sorted((run.end, run.number) for run in runs if any(each.number == run.number for each in issued))
    stalls = [stall for begin, end in quiet if (stall := _stall(begin, end, ends)) is not None]
    stalls += [
        Stall(event.begin, event.begin, tuple(each.number for each in issued))
        for event in job
        if event.name.startswith(_STEP)
    ]
    return timeline_trace(
        min(event.begin for event in job),
        max(event.end for event in job),
        issued,
        stalls,
        {group: groups[group]} if group else {},
        profile.num_events,
    )


def _is_of_the_job(event: Event) -> bool:
    return event.name.startswith(("ProfilerStep", _STEP)) or event.category == "cpu_op"


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
    """Return gloo's collectives, each from the operation that began it, which is the last one not taken before it."""
    issued = []
    free = [call for call in calls if collective_type(plain_name(call.name)) is not None]
    for run in runs:
        found = by_shapes(run)
        if found is None:
            problem = "nothing says what it moves; profile with record_shapes=True"
            raise ChakraError(f"{profile.where(run.number)}: {run.name[:40]!r}: {problem}")
        before = [call for call in free if call.begin <= run.begin]
        call = before[0] if before else run
        free = [each for each in free if each is not call]
        issued.append(Issued(call.begin, run.number, Collective(found.type, found.size_bytes, group)))
    return issued


def _quiet(job: Sequence[Event]) -> list[tuple[float, float]]:
    """Return the times between operations that have none within themselves."""
    leaves: list[tuple[float, float]] = []
    last: dict[tuple[str, str], Event] = {}
    for event in job:
        if event.category != "cpu_op":
            continue
        before = last.get(event.thread)
        if before is not None and event.begin < before.end and leaves and leaves[-1] == (before.begin, before.end):
            leaves.pop()
        leaves.append((event.begin, event.end))
        last[event.thread] = event
    gaps, now = [], None
    for begin, end in sorted(leaves):
        if now is not None and begin > now:
            gaps.append((now, begin))
        now = end if now is None else max(now, end)
    return gaps


def _stall(begin: float, end: float, ends: Sequence[tuple[float, int]]) -> Stall | None:
    """Return the stall in a quiet time: until the last collective that ends in it."""
    first = bisect_right(ends, (begin, -1))
    until = bisect_right(ends, (end, -1))
    awaited = ends[first:until]
    return Stall(begin, awaited[-1][0], tuple(number for _, number in awaited)) if awaited else None
