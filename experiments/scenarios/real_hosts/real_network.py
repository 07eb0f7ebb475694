"""The network of a run on real hosts: the machine's clock, and flows that ranks send over TCP."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from experiments.scenarios.connections import GroupKey
from experiments.scenarios.event_queue import PS_PER_S
from experiments.scenarios.outages import Outages
from experiments.scenarios.real_hosts.ranks import Ranks
from experiments.scenarios.real_hosts.real_flows import RealFlow
from experiments.scenarios.real_hosts.switches import Switches, SwitchesError
from experiments.scenarios.results import LoadSample
from experiments.scenarios.transfers import Instances, JobEnd, NetworkEvent
from hostlib.types import Directives
from policies.model.tiers import host_queues
from workloads.jobs import TrainingJob
from workloads.replay import StartTransfer

_PS_PER_NS = 1000


class RealNetwork:
    """Carries the flows of a run's jobs as bytes that ranks send; ``run`` takes as long as it says.

    Set ``ranks`` and ``switches`` before the first ``run``, and call ``begin`` when time is to start.

    Args:
        jobs: The jobs.
        flows: Their flows, by number.
        scale: Divides bytes.
    """

    ranks: Ranks
    switches: Switches

    def __init__(self, jobs: Sequence[TrainingJob], flows: Sequence[RealFlow], scale: float) -> None:
        self.scale = scale
        self.now_ps = 0
        self._flows = flows
        self._numbers = {(flow.key, flow.index): flow.number for flow in flows}
        self._instances = Instances(
            {(job.name, group.name): group.flows for job in jobs for group in job.graph.flow_groups}
        )
        self._began_ns = time.monotonic_ns()
        self._events: list[NetworkEvent] = []
        self._has_events = asyncio.Event()
        self._over: set[str] = set()
        self._sample: LoadSample | None = None
        self._loss: str | None = None

    def begin(self) -> None:
        """Let time start."""
        self._began_ns = time.monotonic_ns()

    # ---- for the run loop -------------------------------------------------------------------------------------------

    def start(self, job: str, transfers: Sequence[StartTransfer]) -> None:
        """Start sending the flows of transfers now."""
        self._instances.start(job, transfers, self.now_ps / PS_PER_S)
        numbers = [self._numbers[(job, transfer.group), index] for transfer in transfers for index in transfer.flows]
        self.ranks.send({number: max(1, round(self._flows[number].size_bytes / self.scale)) for number in numbers})

    async def run(self, until_ps: int) -> list[NetworkEvent]:
        """Wait until something arrives or ends, at most to ``until_ps``; return what has.

        Raises:
            SwitchesError: The switches have ended for good.
        """
        left_s = (until_ps - self._clock_ps()) / PS_PER_S
        if not self._events and left_s > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._has_events.wait()
        else:
            await asyncio.sleep(0)  # others' turn, although this run is late
        self._has_events.clear()
        if self._loss is not None:
            raise SwitchesError(self._loss)
        events, self._events = self._events, []
        self.now_ps = self._clock_ps()
        return events

    def apply(self, outages: Outages) -> None:
        """Take these elements' links down, and bring all others up, soon."""
        self.switches.want_links_down(outages.links)

    def sample_loads(self) -> LoadSample | None:
        """Return the newest sample of the links' counters, once."""
        sample, self._sample = self._sample, None
        return sample

    # ---- for ranks, programs and the controller ---------------------------------------------------------------------

    @property
    def now_s(self) -> float:
        """The time that it is."""
        return self._clock_ps() / PS_PER_S

    def arrived(self, number: int, at_ns: int) -> None:
        """All bytes of a flow's transfer have been read, at a time of the machine's monotonic clock."""
        flow = self._flows[number]
        if flow.key[0] in self._over:
            return
        end = self._instances.arrive(flow.key, flow.index, (at_ns - self._began_ns) / 1e9)
        if end is not None:
            self.happened(end)

    def failed(self, job: str, reason: str) -> None:
        """A rank of a job has ended by itself."""
        self.ranks.end_job(job)
        self.happened(JobEnd(job, reason))

    def happened(self, event: NetworkEvent) -> None:
        """Hand an event to the run loop."""
        if isinstance(event, JobEnd):
            if event.job in self._over:
                return
            self._over.add(event.job)
        self._events.append(event)
        self._has_events.set()

    def lost(self, reason: str) -> None:
        """The switches have ended for good."""
        self._loss = reason
        self._has_events.set()

    @property
    def has_sample(self) -> bool:
        """Whether the run loop has not taken the newest sample yet."""
        return self._sample is not None

    def sampled(self, sample: LoadSample) -> None:
        """Keep a sample of the links' counters."""
        self._sample = sample

    def follow(self, directives: Mapping[str, Directives]) -> None:
        """Have hosts send in the order of all jobs' directives; packets do not show it."""
        orders: dict[int, tuple[int, int]] = {}
        senders: dict[int, int] = {}
        for job, own in directives.items():
            for directive in own.flows:
                key: GroupKey = job, directive.flow_group
                number = self._numbers[key, directive.flow]
                orders[number] = directive.level, directive.order
                senders[number] = self._flows[number].five_tuple.source_address
        self.ranks.prioritise(host_queues(orders, senders))

    def _clock_ps(self) -> int:
        return (time.monotonic_ns() - self._began_ns) * _PS_PER_NS
