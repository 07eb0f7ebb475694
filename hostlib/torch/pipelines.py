"""Pipelines: when each rank computes what, and when each activation and gradient is there and is needed.

A table has the passes of a rank in the order in which its schedule runs them, as they were seen while the job was
profiled. So the order is right for every schedule, also one of the user's own. The tables that schedules of PyTorch
print are not read: that of the last rank of 1F1B has other steps than those that run.

``simulated`` plays the tables of all ranks as if transfers took no time. The activations that one rank sends to another
then are an EchelonFlow, and so are the gradients (Pan et al., HotNets 2022, section 3): each is there when its producer
has ended, and ideally arrives when its consumer begins.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median_low
from typing import NamedTuple

from hostlib.torch.intervals import Interval


class Pass(StrEnum):
    """What a stage does with a micro-batch."""

    FORWARD = "forward"
    BACKWARD = "backward"
    """All of it, or the part that yields the gradient of the stage's input."""

    WEIGHTS = "weights"
    """The gradients of the stage's weights, where a schedule computes them later."""


class Action(NamedTuple):
    """A pass of a stage over a micro-batch, in seconds of the rank's computation after the iteration's begin."""

    kind: Pass
    stage: int
    micro_batch: int
    begin_s: float
    end_s: float


Table = Sequence[Action]
"""The passes of a rank, in their order."""
Pair = tuple[int, int]
"""A rank that sends, and one that receives."""
_Step = tuple[Pass, int, int, int]
"""A pass, its stage and micro-batch, and how often the iteration has had it before."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """When a rank does what where transfers take no time.

    Attributes:
        computed_s: Begins and ends of its passes, in seconds of its computation.
        simulated_s: When that is, in seconds after the iteration's begin.
    """

    computed_s: tuple[float, ...]
    simulated_s: tuple[float, ...]

    def at(self, computed_s: float) -> float:
        """Return when the rank has computed for so long."""
        place = bisect_right(self.computed_s, computed_s) - 1
        return computed_s if place < 0 else self.simulated_s[place] + computed_s - self.computed_s[place]


@dataclass(frozen=True, slots=True)
class Simulation:
    """An iteration of a pipeline in which transfers take no time.

    Attributes:
        timelines: By rank.
        windows: For each rank that sends to another, when each transfer is there, and when it is needed, in order.
    """

    timelines: Mapping[int, Timeline]
    windows: Mapping[Pair, tuple[Interval, ...]]

    @property
    def last_need_s(self) -> float:
        """When the last transfer is needed."""
        return max(need_s for windows in self.windows.values() for _, need_s in windows)


def simulated(tables: Mapping[int, Table]) -> Simulation:
    """Return what the ranks of a pipeline do where transfers take no time.

    A forward pass needs that of the stage before, a backward pass that of the stage behind. Between two passes a rank
    computes as long as it did when it was measured.

    Raises:
        ValueError: Two ranks have the same pass; or a pass needs one that no rank has, or that waits for it.
    """
    steps = {rank: _steps(table) for rank, table in tables.items()}
    rank_of = {step: rank for rank, own in steps.items() for step in own}
    if len(rank_of) < sum(map(len, steps.values())):
        raise ValueError("two ranks have the same pass")
    last_stage = max((stage for _, stage, _, _ in rank_of), default=0)
    ended_s: dict[_Step, float] = {}
    times: dict[int, list[float]] = {rank: [] for rank in tables}
    windows: dict[Pair, list[Interval]] = {}
    waiting: dict[_Step, list[int]] = {}
    running = list(tables)
    while running:
        rank = running.pop()
        table, own = tables[rank], times[rank]
        for number in range(len(own) // 2, len(table)):
            step, action = steps[rank][number], table[number]
            needed = _needed(step, last_stage)
            if needed is not None and needed not in ended_s:
                waiting.setdefault(needed, []).append(rank)
                break
            begin_s = own[-1] + action.begin_s - table[number - 1].end_s if own else action.begin_s
            if needed is not None:
                begin_s = max(begin_s, ended_s[needed])
                if rank_of[needed] != rank:
                    windows.setdefault((rank_of[needed], rank), []).append((ended_s[needed], begin_s))
            own += [begin_s, begin_s + action.end_s - action.begin_s]
            ended_s[step] = own[-1]
            running += waiting.pop(step, ())
    if waiting:
        step, (rank, *_) = next(iter(waiting.items()))
        raise ValueError(f"rank {rank} waits for the {step[0]} pass of stage {step[1]}, micro-batch {step[2]}, forever")
    timelines = {
        rank: Timeline(tuple(time_s for action in table for time_s in action[-2:]), tuple(times[rank]))
        for rank, table in tables.items()
    }
    return Simulation(timelines, {pair: tuple(sorted(found)) for pair, found in windows.items()})


def median_table(tables: Sequence[Table]) -> tuple[Action, ...]:
    """Return the medians over iterations of a rank, the lower one of two; of those only that end as the last one."""
    alike = [table for table in tables if _steps(table) == _steps(tables[-1])]
    return tuple(
        same[0]._replace(
            begin_s=median_low(each.begin_s for each in same), end_s=median_low(each.end_s for each in same)
        )
        for same in zip(*alike, strict=True)
    )


def _steps(table: Table) -> list[_Step]:
    """Return the passes of a table. Where gradients are accumulated, an iteration has each of them several times."""
    seen: Counter[tuple[Pass, int, int]] = Counter()
    steps = []
    for kind, stage, micro_batch, _, _ in table:
        steps.append((kind, stage, micro_batch, seen[kind, stage, micro_batch]))
        seen[kind, stage, micro_batch] += 1
    return steps


def _needed(step: _Step, last_stage: int) -> _Step | None:
    """Return the pass whose result a pass needs; None for what the rank has itself."""
    kind, stage, micro_batch, repetition = step
    if kind is Pass.FORWARD and stage > 0:
        return kind, stage - 1, micro_batch, repetition
    if kind is Pass.BACKWARD and stage < last_stage:
        return kind, stage + 1, micro_batch, repetition
    return None
