"""The time of an iteration without playing it: every transfer takes the least time that the fabric allows.

It goes through the same expansion as the task graph and adds up times instead of tasks. Lines that lie alike on their
hosts do the same at the same time, so that one of them stands for all.
"""

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from topologies.fabric import Fabric
from workloads.combined.expansion import Expansion, degrees_on
from workloads.combined_workload import CombinedWorkload
from workloads.placement import Placement
from workloads.task_graph import Done, FlowSpec

_PS_PER_S = 10**12
_LOOKED_AT = (3, 4)
"""Micro-batches for each stage in the two looks at a long iteration."""

DATA_GROUPS = ("gradients", "parameters")
"""First words of the flow groups of data parallelism."""


Loads = Mapping[Hashable, float]
"""Seconds by what is occupied: a link by its number, what joins a switch to others, or a NIC's share of that."""


@dataclass(frozen=True, slots=True)
class EdgeSwitches:
    """The switches that a job's NICs are cabled to.

    Attributes:
        fabric: The fabric.
        up_bps: By switch, what it can send to other switches, and receive from them.
        num_nics: By switch, how many NICs of the job are cabled to it.
    """

    fabric: Fabric
    up_bps: Mapping[str, float]
    num_nics: Mapping[str, int]

    @classmethod
    def of(cls, fabric: Fabric, placement: Placement) -> Self:
        """Return the switches of a job."""
        num_nics: defaultdict[str, int] = defaultdict(int)
        for host, nics in placement.nics.items():
            for nic in nics:
                num_nics[_switch(fabric, host, nic)] += 1
        up_bps = {
            switch: sum(link.rate_bps for link in fabric.links_from[switch] if link.destination not in fabric.nics)
            for switch in num_nics
        }
        return cls(fabric, up_bps, dict(num_nics))

    def loads(self, flows: Sequence[FlowSpec]) -> Loads:
        """Return how long flows occupy what all of their paths cross."""
        fabric = self.fabric
        seconds: defaultdict[Hashable, float] = defaultdict(float)
        for flow in flows:
            source = fabric.nics[flow.source_host][flow.source_nic]
            destination = fabric.nics[flow.destination_host][flow.destination_nic]
            arrives = fabric.reverse(destination.link)
            bits = flow.size_bytes * 8
            for link in (source.link, arrives, *fabric.host_links_between(source, destination)):
                seconds[link] += bits / fabric.rates_bps[link]
            leaves, enters = fabric.links[source.link].destination, fabric.links[arrives].source
            if leaves != enters:
                seconds["from", leaves] += bits / self.up_bps[leaves]
                seconds["to", enters] += bits / self.up_bps[enters]
                seconds["share of", source.link] += bits * self.num_nics[leaves] / self.up_bps[leaves]
                seconds["share of", arrives] += bits * self.num_nics[enters] / self.up_bps[enters]
        return seconds

    def least_s(self, loads: Loads, *, shared: bool) -> float:
        """Return the least time in which flows with these loads can be sent together, on whatever paths.

        Args:
            loads: How long they occupy what.
            shared: Whether all NICs of the job under a switch share what leaves it, because they send at the same time.
                Otherwise the fabric is empty, and nothing can be faster.
        """
        return max((each for key, each in loads.items() if shared or not _is_share(key)), default=0.0)


class Timeline:
    """Takes the tasks of an expansion; what waits for a task gets its end in picoseconds.

    ``num_flows`` counts those of the line, ``num_data_flows`` those that all lines send together.
    """

    def __init__(self, switches: EdgeSwitches) -> None:
        self.num_flows = self.num_data_flows = 0
        self._end_ps = 0
        self._switches = switches
        self._known: dict[int, _Known] = {}

    def compute(
        self, _name: str, _hosts: Sequence[str], duration_s: float, after: Done = (), _share: float = 1.0
    ) -> Done:
        """Add a computation; return its end."""
        return self._end(round(duration_s * _PS_PER_S), after)

    def send(self, group: str, flows: tuple[FlowSpec, ...], after: Done = ()) -> Done:
        """Add a transfer; return its end."""
        if not flows:
            return after
        known = self._known.get(id(flows))
        if known is None:
            loads = self._switches.loads(flows)
            known = _Known(flows, loads, round(self._switches.least_s(loads, shared=True) * _PS_PER_S))
            self._known[id(flows)] = known
        known.times += 1
        if group.split()[0] in DATA_GROUPS:
            self.num_data_flows += len(flows)
        else:
            self.num_flows += len(flows)
        return self._end(known.duration_ps, after)

    @property
    def duration_s(self) -> float:
        """The time of an iteration: its longest chain of tasks, or that of the busiest link if this is longer."""
        seconds: defaultdict[Hashable, float] = defaultdict(float)
        for known in self._known.values():
            for key, each in known.loads.items():
                seconds[key] += known.times * each
        return max(self._end_ps / _PS_PER_S, self._switches.least_s(seconds, shared=True))

    def _end(self, duration_ps: int, after: Done) -> Done:
        end_ps = max(after, default=0) + duration_ps
        self._end_ps = max(self._end_ps, end_ps)
        return (end_ps,)


@dataclass(slots=True)
class _Known:
    """Flows that are sent so many ``times``. They are kept, so that no others can have their address."""

    flows: tuple[FlowSpec, ...]
    loads: Loads
    duration_ps: int
    times: int = 0


@dataclass(frozen=True, slots=True)
class Prediction:
    """What an iteration is predicted to take.

    Attributes:
        iteration_s: Its time, where everything that leaves a switch is shared by the job's NICs under it.
        inside_s: Seconds of collectives inside hosts by dimension, the mean over all pipeline stages.
        num_flows: Flows of an iteration.
    """

    iteration_s: float
    inside_s: Mapping[str, float]
    num_flows: int


def predicted(workload: CombinedWorkload, placement: Placement, switches: EdgeSwitches) -> Prediction:
    """Predict an iteration of a job that has the fabric for itself.

    Of many micro-batches, only the first few of each stage are looked at; the others repeat the middle of the schedule.
    """
    num_gpus = sum(map(len, placement.gpus.values()))
    of_one = workload.micro_batch * degrees_on(workload, num_gpus).data
    num_micro_batches = workload.batch // of_one
    few, more = (times * workload.pipeline for times in _LOOKED_AT)
    if num_micro_batches <= few + more:
        return _whole(workload, placement, switches)
    first, second = (
        _whole(workload.model_copy(update={"batch": number * of_one}), placement, switches) for number in (few, more)
    )
    rounds = (num_micro_batches - more) / (more - few)

    def continued(before: float, after: float) -> float:
        return after + rounds * (after - before)

    return Prediction(
        continued(first.iteration_s, second.iteration_s),
        {name: continued(first.inside_s[name], inside_s) for name, inside_s in second.inside_s.items()},
        round(continued(first.num_flows, second.num_flows)),
    )


def _whole(workload: CombinedWorkload, placement: Placement, switches: EdgeSwitches) -> Prediction:
    timeline = Timeline(switches)
    expansion = Expansion(workload, placement, timeline, of_each_kind=True)
    expansion.build()
    inside_s: defaultdict[str, float] = defaultdict(float)
    for (_, dimension), seconds in expansion.inside_s.items():
        inside_s[dimension] += seconds / workload.pipeline
    num_flows = timeline.num_data_flows + timeline.num_flows * expansion.num_alike
    return Prediction(timeline.duration_s, dict(inside_s), num_flows)


def _is_share(key: Hashable) -> bool:
    return isinstance(key, tuple) and key[0] == "share of"


def _switch(fabric: Fabric, host: str, nic: int) -> str:
    return fabric.links[fabric.nics[host][nic].link].destination
