"""Release times and due times of a job's transfers within one iteration.

A transfer is the flows of one flow group that start together. A job that tells its task graph tells with it when each
may start, and from when on computation waits for it. One that does not tell reports only how the ideal finish times
within a group lie to each other (``Flow.offset_s``), and the fraction ``comm_start`` of the computation after which
communication starts. We guess that such a job releases its first flows at ``compute_s * comm_start``, and needs the
last flow of every group when the computation ends. In a group whose offsets reach from 0 to D, every flow then has a
window of ``compute_s * (1 - comm_start) - D`` from release to due time, and offset d delays both by d.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from policies.arrays import FloatArray, IntArray
from policies.flows import FlowGroup
from policies.task_graph import Computation, Task, TaskGraph, Transfer, duration_s, earliest_starts_s

if TYPE_CHECKING:
    from policies.job import Profile

MAX_TRANSFERS = 8
"""Of one group. Where a group has more, neighbours form one transfer."""
_LEAST_COMPUTE_S = 1e-9
"""Of a guessed graph: every iteration computes something."""


@dataclass(frozen=True, slots=True, eq=False)
class Transfers:
    """The transfers of one job, group after group.

    Times count from the start of the iteration without its stalls, and lie between 0 and ``compute_s``.

    Attributes:
        transfer_of: By flow, in the order of ``Job.flows``, the number of its transfer.
        group_of: By transfer, the number of its flow group.
        release_s: By transfer, the time at which its flows may start.
        due_s: By transfer, the time from which computation waits for it.
    """

    transfer_of: IntArray
    group_of: IntArray
    release_s: FloatArray
    due_s: FloatArray

    @classmethod
    def of(cls, groups: Iterable[FlowGroup], profile: "Profile") -> Self:
        """Guess the transfers of these groups; an empty group has none."""
        transfers: list[int] = []
        group_of: list[int] = []
        release_s: list[float] = []
        due_s: list[float] = []
        ready_s = profile.compute_s * profile.comm_start
        for number, group in enumerate(groups):
            if not group.flows:
                continue
            offsets = np.array([flow.offset_s for flow in group.flows])
            with np.errstate(over="ignore"):
                distinct, place = np.unique(offsets - offsets.min(), return_inverse=True)
            stages = min(len(distinct), MAX_TRANSFERS)
            stage_of = np.arange(len(distinct)) * stages // len(distinct)
            window_s = max(profile.compute_s - ready_s - float(distinct[-1]), 0.0)
            transfers += (len(group_of) + stage_of[place]).tolist()
            group_of += [number] * stages
            for stage in range(stages):
                of_stage = distinct[stage_of == stage]
                release_s.append(min(ready_s + float(of_stage[0]), profile.compute_s))
                due_s.append(min(ready_s + float(of_stage[-1]) + window_s, profile.compute_s))
        return cls(np.array(transfers, np.int64), np.array(group_of, np.int64), np.array(release_s), np.array(due_s))

    @classmethod
    def of_graph(cls, groups: Sequence[FlowGroup], graph: TaskGraph) -> Self:
        """Return the transfers of a task graph: the times are those of a run in which transfers take none.

        Neighbours that form one transfer have the windows of all of them together: what blocks has no slack.
        """
        starts_s, latest_s = _times_without_communication(graph.tasks)
        sent = [
            (task.flows, starts_s[number], latest_s[number])
            for number, task in enumerate(graph.tasks)
            if isinstance(task, Transfer)
        ]
        sent.sort(key=lambda each: (each[1], each[2]))
        group_of_flow = np.repeat(np.arange(len(groups)), [len(group.flows) for group in groups])
        of_group: list[list[tuple[tuple[int, ...], float, float]]] = [[] for _ in groups]
        for each in sent:
            of_group[group_of_flow[each[0][0]]].append(each)
        transfer_of = np.zeros(len(group_of_flow), dtype=np.int64)
        group_of: list[int] = []
        release_s: list[float] = []
        due_s: list[float] = []
        for number, members in enumerate(of_group):
            num_transfers = min(len(members), MAX_TRANSFERS)
            for transfer in range(num_transfers):
                first, last = (len(members) * end // num_transfers for end in (transfer, transfer + 1))
                for flows, _, _ in members[first:last]:
                    transfer_of[list(flows)] = len(group_of)
                group_of.append(number)
                release_s.append(members[first][1])
                due_s.append(members[first][1] + sum(latest - start for _, start, latest in members[first:last]))
        return cls(transfer_of, np.array(group_of, np.int64), np.array(release_s), np.array(due_s))


def guessed_graph(transfers: Transfers, profile: "Profile") -> TaskGraph:
    """Return the task graph of a job that has told none: one line of computation that waits for what is due."""
    flows_of: list[list[int]] = [[] for _ in transfers.group_of]
    for flow, transfer in enumerate(transfers.transfer_of.tolist()):
        flows_of[transfer].append(flow)
    releases_s, dues_s = transfers.release_s.tolist(), transfers.due_s.tolist()
    end_s = max(profile.compute_s, _LEAST_COMPUTE_S)
    times_s = sorted({0.0, *releases_s, *dues_s, end_s})
    tasks: list[Task] = []
    number_of: dict[int, int] = {}
    computed: tuple[int, ...] = ()
    for now_s, next_s in zip(times_s, [*times_s[1:], None], strict=True):
        for transfer, release_s in enumerate(releases_s):
            if release_s == now_s:
                number_of[transfer] = len(tasks)
                tasks.append(Transfer(tuple(flows_of[transfer]), computed))
        if next_s is not None:
            needed = [number_of[transfer] for transfer, due_s in enumerate(dues_s) if due_s == now_s]
            tasks.append(Computation(next_s - now_s, (*computed, *needed)))
            computed = (len(tasks) - 1,)
    return TaskGraph(tuple(tasks), is_guessed=True)


def windows_s(graph: TaskGraph) -> dict[int, float]:
    """Return by task that is a transfer how long after its release computation waits for it."""
    starts_s, latest_s = _times_without_communication(graph.tasks)
    return {
        number: latest_s[number] - starts_s[number]
        for number, task in enumerate(graph.tasks)
        if isinstance(task, Transfer)
    }


def _times_without_communication(tasks: Sequence[Task]) -> tuple[list[float], list[float]]:
    """Return by task its earliest start, and its latest end that delays no iteration, if transfers take no time."""
    durations_s, starts_s = list(map(duration_s, tasks)), earliest_starts_s(tasks)
    end_s = max((start + duration for start, duration in zip(starts_s, durations_s, strict=True)), default=0.0)
    latest_s = [end_s] * len(tasks)
    for number in range(len(tasks) - 1, -1, -1):
        for before in tasks[number].after:
            latest_s[before] = min(latest_s[before], latest_s[number] - durations_s[number])
    return starts_s, latest_s
