"""The agent of a job in a run: registers the job, follows its directives and withdraws it."""

import asyncio
from ipaddress import IPv4Address
from types import TracebackType
from typing import Self

from experiments.scenarios.connections import Connections
from hostlib.client import Client
from hostlib.errors import UnreachableError
from hostlib.start_shift import StartShift
from hostlib.task_graph import Computation, TaskGraph, Transfer
from hostlib.types import Directives, FiveTuple, Flow, FlowGroup, Job, Nic, Profile
from topologies.addressing import FiveTuple as WireFiveTuple
from topologies.steering import Steering
from workloads import task_graph
from workloads.jobs import TrainingJob
from workloads.scenario import ProfileSource

_ACKNOWLEDGEMENT_TIMEOUT_S = 300.0
"""Wall-clock time in which a running controller acknowledges every request."""


class JobAgent:
    """Uses the host library for one job, as an async context manager from registration to the end of the run.

    A real job would go on without a controller; here methods that wait for it raise RefusedError or UnreachableError.
    """

    def __init__(
        self,
        client: Client,
        job: TrainingJob,
        connections: Connections,
        steering: Steering,
        isolated_s: float,
        scale: float = 1.0,
    ) -> None:
        """Bytes are divided by ``scale``; ``isolated_s`` is how long an iteration takes with the fabric to itself."""
        self.job = job
        self.isolated_s = isolated_s
        self._client = client
        # With steering by source port, the controller assigns the ports.
        self._flow_groups = _flow_groups(job, connections, scale, opened=steering is Steering.RULE)
        self._newest: Directives | None = None
        self._followed: Directives | None = None
        self._start_shift = StartShift(job.specification.arrival_s)
        self._changed = asyncio.Condition()
        self._subscription: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._subscription is not None:
            self._subscription.cancel()
            await asyncio.gather(self._subscription, return_exceptions=True)

    async def register(self) -> None:
        """Register the job and subscribe to its directives.

        Its flow groups and its task graph are registered too, unless it is to be measured.
        """
        job = self.job
        if job.specification.profile is ProfileSource.MEASURED:
            self._client.register_job(Job(job.name, job.hosts, job.gpus))
        else:
            reported = job.reported_profile
            profile = Profile(reported.compute_s, reported.comm_start, reported.work)
            self._client.register_job(Job(job.name, job.hosts, job.gpus, profile))
            self._client.register_flow_groups(job.name, self._flow_groups, _task_graph(job))
        self._subscription = asyncio.create_task(self._follow())
        await self.wait_until_acknowledged()

    async def wait_until_acknowledged(self) -> None:
        """Wait until the controller has acknowledged every request and every heartbeat that was due."""
        if not await self._client.acknowledged(self.job.name, _ACKNOWLEDGEMENT_TIMEOUT_S):
            raise self._client.refusal(self.job.name) or UnreachableError(f"job {self.job.name!r} is not acknowledged")

    async def wait_until_lost(self) -> None:
        """Wait until the client notices that the controller is gone; its directives no longer count."""
        await self._client.lost(self.job.name)
        self._newest = None

    async def directives(self, plan_number: int) -> Directives:
        """Wait for the job's directives of this Plan or a later one, and follow them from now on."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._newest is not None and self._newest.plan_number >= plan_number)
            assert self._newest is not None
            self._followed = self._newest
            return self._followed

    async def directives_after(self, known: Directives | None) -> Directives:
        """Wait for other directives than those that are known, and follow them from now on."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._newest is not None and self._newest is not known)
            assert self._newest is not None
            self._followed = self._newest
            return self._followed

    def delay_s(self, now_s: float) -> float:
        """Return for how many seconds the job's directives hold an iteration that could begin now."""
        if self._followed is None:
            return 0.0
        return self._start_shift.delay_s(now_s, self._followed.time_shift_s, self.isolated_s)

    async def deregister(self) -> None:
        """Withdraw the job; return when the controller has ended its directives."""
        self._client.deregister(self.job.name)
        if self._subscription is not None:
            await self._subscription

    async def _follow(self) -> None:
        async for directives in self._client.directives(self.job.name):
            async with self._changed:
                self._newest = directives
                self._changed.notify_all()


def _flow_groups(job: TrainingJob, connections: Connections, scale: float, *, opened: bool) -> tuple[FlowGroup, ...]:
    return tuple(
        FlowGroup(
            group.name,
            tuple(
                Flow(
                    Nic(flow.source_host, flow.source_nic),
                    Nic(flow.destination_host, flow.destination_nic),
                    job.reporting_error.reported_bytes(flow.size_bytes / scale),
                    flow.offset_s,
                    _to_host(five_tuple) if opened else None,
                )
                for flow, five_tuple in zip(group.flows, connections[job.name][group.name], strict=True)
            ),
        )
        for group in job.graph.flow_groups
    )


def _task_graph(job: TrainingJob) -> TaskGraph:
    return TaskGraph(
        tuple(
            Computation(task.duration_s, task.after)
            if isinstance(task, task_graph.Computation)
            else Transfer(task.group, task.flows or (), task.after)
            for task in job.reported_tasks
        )
    )


def _to_host(five_tuple: WireFiveTuple) -> FiveTuple:
    return FiveTuple(
        IPv4Address(five_tuple.source_address),
        IPv4Address(five_tuple.destination_address),
        five_tuple.protocol,
        five_tuple.source_port,
        five_tuple.destination_port,
    )
