"""Measures an iteration of one process: how long it computes, and from when to when its transfers may take.

Time is counted as computation time: the machine's, without the stalls in which the process waits for the network. A
collective is released where it begins, and needed where the process waits for it. What a process group may take without
anybody waiting is the time covered by at least one of its collectives: all of the backward pass for DDP's buckets,
nothing for the all-reduces of tensor parallelism, which are waited for at once.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import median_low

from hostlib.torch.events import Completion, Issue, StagePass, StepBegin, Wait
from hostlib.torch.intervals import Interval, covered, union
from hostlib.torch.iterations import Iteration
from hostlib.torch.pipelines import Action, median_table

_ONE_SIDED = frozenset({"send"})
"""Nobody waits for these at the sender: they are needed elsewhere."""
_FUTURES = frozenset({"allreduce_", "allreduce_coalesced_", "reduce_scatter_", "_reduce_scatter_base_"})
"""What C++ may wait for, by its future: gradients, before the optimizer's step."""


@dataclass(frozen=True, slots=True)
class GroupTimes:
    """When the collectives of a process group happen, in seconds of computation after the iteration's begin.

    Attributes:
        release_s: The first one begins.
        slack_s: So long computation goes on, all in all, while some of them are under way and nobody waits.
    """

    release_s: float
    slack_s: float


@dataclass(frozen=True, slots=True)
class Measurement:
    """An iteration of one process.

    Attributes:
        iteration_s: How long it takes.
        compute_s: How long of that it does not wait for collectives.
        groups: By process group.
        passes: By the process group of a pipeline, what this process computes for it, in order.
    """

    iteration_s: float
    compute_s: float
    groups: dict[str, GroupTimes]
    passes: dict[str, tuple[Action, ...]] = field(default_factory=dict)


def measured(iteration: Iteration) -> Measurement:
    """Measure an iteration that was recorded while waits were."""
    issues = {issue.number: issue for issue in iteration.issues}
    waits = waits_by_collective(iteration)
    stalls: list[Interval] = [(event.begin_ns, event.end_ns) for event in iteration.events if isinstance(event, Wait)]
    stall = stall_for_futures(iteration, issues, waits)
    if stall is not None:
        stalls.append(stall)
    stalls = union(stalls)

    def computed_s(time_ns: float) -> float:
        stalled = sum(min(end, time_ns) - begin for begin, end in stalls if begin < time_ns)
        return (time_ns - iteration.begin_ns - stalled) / 1e9

    end_s = computed_s(iteration.end_ns)
    spans: dict[str, list[Interval]] = {}
    for number, issue in issues.items():
        if number in waits:
            needed_s = computed_s(waits[number].begin_ns)
        elif issue.operation in _ONE_SIDED or stall is None:
            needed_s = end_s
        else:
            needed_s = computed_s(stall[0])
        spans.setdefault(issue.group, []).append((computed_s(issue.time_ns), needed_s))
    groups = {name: GroupTimes(min(begin for begin, _ in found), covered(found)) for name, found in spans.items()}
    passes: dict[str, list[Action]] = {}
    for event in iteration.events:
        if isinstance(event, StagePass):
            action = Action(
                event.kind, event.stage, event.micro_batch, computed_s(event.begin_ns), computed_s(event.end_ns)
            )
            passes.setdefault(event.group, []).append(action)
    return Measurement(
        (iteration.end_ns - iteration.begin_ns) / 1e9,
        end_s,
        groups,
        {name: tuple(found) for name, found in passes.items()},
    )


def combined_iterations(measurements: Sequence[Measurement]) -> Measurement:
    """Return the medians over iterations of one process, with its passes."""
    passes = {
        name: median_table([each.passes[name] for each in measurements if name in each.passes])
        for name in measurements[-1].passes
    }
    return replace(combined(measurements), passes=passes)


def combined(measurements: Sequence[Measurement]) -> Measurement:
    """Return the medians over iterations, or over processes, of which there is at least one; the lower one of two.

    What delays an iteration, such as the first ones of a job, is no part of what it computes. Passes are left out.
    """
    names = {name for each in measurements for name in each.groups}
    groups = {}
    for name in sorted(names):
        found = [each.groups[name] for each in measurements if name in each.groups]
        groups[name] = GroupTimes(median_low(one.release_s for one in found), median_low(one.slack_s for one in found))
    return Measurement(
        median_low(each.iteration_s for each in measurements),
        median_low(each.compute_s for each in measurements),
        groups,
    )


def waits_by_collective(iteration: Iteration) -> dict[int, Wait]:
    """Return the wait for each collective that has one.

    One that names none, of a functional collective, is for the oldest that nobody has waited for.
    """
    waits: dict[int, Wait] = {}
    named = {event.number for event in iteration.events if isinstance(event, Wait)}
    begun: deque[int] = deque()
    for event in iteration.events:
        if isinstance(event, Issue) and event.number not in named:
            begun.append(event.number)
        elif isinstance(event, Wait) and event.number is not None:
            waits[event.number] = event
        elif isinstance(event, Wait) and begun:
            waits[begun.popleft()] = event
    own = {issue.number for issue in iteration.issues}
    return {number: wait for number, wait in waits.items() if number in own}


def stall_for_futures(iteration: Iteration, issues: dict[int, Issue], waits: dict[int, Wait]) -> Interval | None:
    """Return the stall before the optimizer computes, for gradients that nobody has waited for in Python.

    DDP waits for the futures of all buckets when the last one has begun, which is when the backward pass has ended.
    A step that was given a closure, as Lightning does it, has the backward pass within itself.
    """
    silent = {number for number, issue in issues.items() if number not in waits and issue.operation in _FUTURES}
    steps = [event.time_ns for event in iteration.events if isinstance(event, StepBegin)]
    ends: dict[int, int] = {}
    for event in iteration.events:
        if isinstance(event, Completion) and event.number in silent:
            ends[event.number] = min(event.time_ns, ends.get(event.number, event.time_ns))
    if not silent or not steps or not ends:
        return None
    begin_ns, end_ns = max(issues[number].time_ns for number in silent), max(ends.values())
    needed_ns = steps[-1] if steps[-1] >= begin_ns else iteration.end_ns
    if end_ns > needed_ns:
        return None  # the step has not waited for them
    return begin_ns, max(begin_ns, end_ns)
