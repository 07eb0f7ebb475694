"""What stands beside a job on its hosts: registers it, follows its directives, withdraws it."""

import asyncio
from ipaddress import IPv4Address
from types import TracebackType
from typing import Self

from experiments.scenarios.connections import Connections
from hostlib.client import Client
from hostlib.errors import UnreachableError
from hostlib.start_shift import StartShift
from hostlib.types import Directives, FiveTuple, Flow, FlowGroup, Job, Nic, Profile
from topologies.addressing import FiveTuple as WireFiveTuple
from topologies.steering import Steering
from workloads.jobs import TrainingJob
from workloads.scenario import ProfileSource

_PATIENCE_S = 300.0
"""Of wall time, in which a controller that is there has acknowledged what it was told."""


class JobAgent:
    """The host library at work for one job. An async context manager, from registration on to the end of the run.

    Here the controller has to be there: what waits for it raises RefusedError or UnreachableError where a real job
    would go on without.
    """

    def __init__(
        self, client: Client, job: TrainingJob, connections: Connections, steering: Steering, alone_s: float
    ) -> None:
        """``alone_s`` is how long an iteration takes with the fabric to itself."""
        self.job = job
        self.alone_s = alone_s
        self._client = client
        # Where ports steer, the controller assigns them.
        self._flow_groups = _flow_groups(job, connections, opened=steering is Steering.RULE)
        self._newest: Directives | None = None
        self._followed: Directives | None = None
        self._start_shift = StartShift(job.specification.arrival_s)
        self._changed = asyncio.Condition()
        self._following: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)

    async def register(self) -> None:
        """Register the job with the flow groups it repeats, or alone where it is to be measured.

        It listens to its directives from now on.
        """
        job = self.job
        if job.specification.profile is ProfileSource.MEASURED:
            self._client.register_job(Job(job.name, job.hosts, job.gpus))
        else:
            told = job.reported_profile
            profile = Profile(told.compute_s, told.comm_start, told.work)
            self._client.register_job(Job(job.name, job.hosts, job.gpus, profile))
            self._client.register_flow_groups(job.name, self._flow_groups)
        self._following = asyncio.create_task(self._follow())
        await self.acknowledged()

    async def acknowledged(self) -> None:
        """Wait until the controller has acknowledged all that was said, and every heartbeat that was due."""
        if not await self._client.acknowledged(self.job.name, _PATIENCE_S):
            raise self._client.refusal(self.job.name) or UnreachableError(f"job {self.job.name!r} is not acknowledged")

    async def lost(self) -> None:
        """Wait until the controller is found to be gone, whose directives count no longer."""
        await self._client.lost(self.job.name)
        self._newest = None

    async def directives(self, plan_number: int) -> Directives:
        """The job's directives of this plan or a later one, as soon as they have come; it follows them from now on."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._newest is not None and self._newest.plan_number >= plan_number)
            assert self._newest is not None
            self._followed = self._newest
            return self._followed

    def delay_s(self, now_s: float) -> float:
        """Seconds for which the directives that the job follows have it hold an iteration that could begin now."""
        if self._followed is None:
            return 0.0
        return self._start_shift.delay_s(now_s, self._followed.time_shift_s, self.alone_s)

    async def deregister(self) -> None:
        """Withdraw the job; its directives end when the controller knows."""
        assert self._following is not None
        self._client.deregister(self.job.name)
        await self._following

    async def _follow(self) -> None:
        async for directives in self._client.directives(self.job.name):
            async with self._changed:
                self._newest = directives
                self._changed.notify_all()


def _flow_groups(job: TrainingJob, connections: Connections, *, opened: bool) -> tuple[FlowGroup, ...]:
    return tuple(
        FlowGroup(
            group.name,
            tuple(
                Flow(
                    Nic(flow.source_host, flow.source_nic),
                    Nic(flow.destination_host, flow.destination_nic),
                    job.reporting_error.reported_bytes(flow.size_bytes),
                    flow.offset_s,
                    _to_host(five_tuple) if opened else None,
                )
                for flow, five_tuple in zip(group.flows, connections[job.name][group.name], strict=True)
            ),
        )
        for group in job.graph.flow_groups
    )


def _to_host(five_tuple: WireFiveTuple) -> FiveTuple:
    return FiveTuple(
        IPv4Address(five_tuple.source_address),
        IPv4Address(five_tuple.destination_address),
        five_tuple.protocol,
        five_tuple.source_port,
        five_tuple.destination_port,
    )
