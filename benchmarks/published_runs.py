"""Iteration times of published training runs, from the shapes of their models and their parallelism.

One number is fitted for each table, the efficiency of computation, so that one named row is met.
``benchmarks.published_tables`` has the tables.
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import TypeAdapter

from workloads.combined.expansion import degrees_on, expand_combined, ranks_on
from workloads.combined.nccl import Collective
from workloads.combined.stages import StagePasses, cut
from workloads.combined.traffic import CollectiveTraffic
from workloads.combined_workload import CombinedWorkload
from workloads.described.timing import device_for
from workloads.placement import Placement
from workloads.task_graph import Computation, FlowSpec, TaskGraph

GPUS_PER_HOST = 8

_WORKLOAD: TypeAdapter[CombinedWorkload] = TypeAdapter(CombinedWorkload)


@dataclass(frozen=True, slots=True)
class PublishedRun:
    """A row of a table: its iteration time, its GPUs, and the keys of its workload without a device."""

    name: str
    num_gpus: int
    published_s: float
    workload: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PredictedRun:
    """A row with its published and its predicted time."""

    name: str
    published_s: float
    predicted_s: float

    @property
    def error(self) -> float:
        """Relative difference of the predicted time from the published one."""
        return self.predicted_s / self.published_s - 1


@dataclass(frozen=True)
class PublishedTable:
    """Runs on one kind of machine; ``device`` has all keys but the efficiency, which meets the run ``fitted``.

    A host has eight GPUs, and sends ``host_bps``. Gradients are exchanged after the backward passes; if they
    ``overlap`` with these, their exchange takes no time.
    """

    name: str
    source: str
    device: Mapping[str, Any]
    host_bps: float
    fitted: str
    assumptions: tuple[str, ...]
    runs: tuple[PublishedRun, ...]
    overlap: bool = False

    @cached_property
    def efficiency(self) -> float:
        """The efficiency with which the fitted run takes the published time."""
        (run,) = (run for run in self.runs if run.name == self.fitted)
        # Times are nearly linear in the inverse of the efficiency.
        before, inverse = 1.25, 1.75
        before_s = self.iteration_s(run, 1 / before)
        while 1 <= inverse < math.inf:
            time_s = self.iteration_s(run, 1 / inverse)
            if abs(time_s / run.published_s - 1) < 1e-9:
                return 1 / inverse
            step = (run.published_s - time_s) * (inverse - before) / (time_s - before_s)
            before, before_s, inverse = inverse, time_s, inverse + step
        raise ValueError(f"no efficiency meets the row {run.name} of {self.name}")

    @cached_property
    def rows(self) -> tuple[PredictedRun, ...]:
        """All runs with their predicted times."""
        return tuple(
            PredictedRun(run.name, run.published_s, self.iteration_s(run, self.efficiency)) for run in self.runs
        )

    @property
    def median_error(self) -> float:
        """The median of the errors, without their sign, of all runs but the fitted one."""
        return statistics.median(self._errors)

    @property
    def worst_error(self) -> float:
        """The largest of them."""
        return max(self._errors)

    @property
    def _errors(self) -> list[float]:
        return [abs(row.error) for row in self.rows if row.name != self.fitted]

    def iteration_s(self, run: PublishedRun, efficiency: float) -> float:
        """Return the predicted time: that of one pipeline, whose replicas all do the same, and the gradients'."""
        whole = self._workload(run, efficiency, {})
        degrees = degrees_on(whole, run.num_gpus)
        # The replicas of one pipeline's hosts.
        alike = max(1, GPUS_PER_HOST * degrees.data // run.num_gpus)
        one = self._workload(run, efficiency, {"batch": whole.batch * alike // degrees.data})
        alone_s = self._alone_s(expand_combined(one, _placement(alike * run.num_gpus // degrees.data)))
        return alone_s if self.overlap else alone_s + self._gradients_s(whole, run.num_gpus)

    def _workload(self, run: PublishedRun, efficiency: float, other: Mapping[str, Any]) -> CombinedWorkload:
        device = {**self.device, "efficiency": efficiency}
        return _WORKLOAD.validate_python({"type": "combined", "device": device, **run.workload, **other})

    def _gradients_s(self, workload: CombinedWorkload, num_gpus: int) -> float:
        placement = _placement(num_gpus)
        ranks = ranks_on(workload, tuple(placement.gpus), GPUS_PER_HOST)
        traffic = CollectiveTraffic(workload, ranks, placement)
        device = device_for(workload.description, workload.device)
        stages = cut(workload.description, device, workload.pipeline * workload.chunks_per_stage)
        longest_s = 0.0
        for place in range(workload.pipeline):
            gradient_bytes = sum(
                StagePasses(workload).gradient_bytes_of(blocks)[0] for blocks in stages[place :: workload.pipeline]
            )
            groups = list(ranks.gradient_groups(place))
            flows = traffic.between(Collective.ALL_REDUCE, groups, gradient_bytes)
            longest_s = max(longest_s, self._sending_s(flows))
        return longest_s

    def _alone_s(self, graph: TaskGraph) -> float:
        """Return the time of an iteration whose transfers have the hosts' links for themselves."""
        flows = {group.name: group.flows for group in graph.flow_groups}
        ends: list[float] = []
        for task in graph.tasks:
            begin_s = max((ends[earlier] for earlier in task.after), default=0.0)
            if isinstance(task, Computation):
                ends.append(begin_s + task.duration_s)
            else:
                of = flows[task.group]
                ends.append(begin_s + self._sending_s(tuple(of[number] for number in task.flows or range(len(of)))))
        return max(ends)

    def _sending_s(self, flows: tuple[FlowSpec, ...]) -> float:
        sent: defaultdict[str, float] = defaultdict(float)
        for flow in flows:
            sent[flow.source_host] += flow.size_bytes
        return max(sent.values(), default=0.0) * 8 / self.host_bps


def _placement(num_gpus: int) -> Placement:
    hosts = [str(number) for number in range(-(-num_gpus // GPUS_PER_HOST))]
    numbers = tuple(range(GPUS_PER_HOST))
    return Placement(dict.fromkeys(hosts, numbers), dict.fromkeys(hosts, numbers))
