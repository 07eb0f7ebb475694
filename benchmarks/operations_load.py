"""Clients of a controller: they register and withdraw jobs, send heartbeats and follow directives.

They speak the wire format directly, so that 2,000 jobs fit on one core. A call that fails is counted, never repeated.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import cycle
from typing import Any

import grpc
import grpc.aio

from hostlib.wire import methods
from hostlib.wire import trainyard_pb2 as wire
from hostlib.wire.methods import Method, RequestT, ResponseT
from topologies.fabric import Fabric

GROUPS_PER_JOB = 50
HOSTS_PER_JOB = 4
HEARTBEATS_PER_LEASE = 3
_DEADLINE_S = 120.0
_TOKEN = "benchmark"


class Load:
    """Jobs of several clients, each with a connection of its own.

    Attributes:
        registration_s: For every registration, the time until job and flow groups were acknowledged.
        failures: Calls that were not acknowledged, by method and status.
        lost: Jobs whose leases ended although they sent heartbeats.
        directives: How many messages with directives have come.
    """

    def __init__(self, address: str, fabric: Fabric, clients: int, seed: int) -> None:
        options = (("grpc.use_local_subchannel_pool", 1),)
        self.channels = [grpc.aio.insecure_channel(address, options) for _ in range(clients)]
        self.registration_s: list[float] = []
        self.failures: Counter[str] = Counter()
        self.lost: set[str] = set()
        self.directives = 0
        self._fabric = fabric
        self._chance = random.Random(seed)
        self._jobs: dict[str, grpc.aio.Channel] = {}
        self._next_channel = cycle(self.channels)
        self._numbers = iter(range(1 << 30))
        self._lease_s = 30.0

    @property
    def jobs(self) -> Sequence[str]:
        """The registered jobs, oldest first."""
        return tuple(self._jobs)

    async def close(self) -> None:
        """Close the connections."""
        for channel in self.channels:
            await channel.close()

    async def register(self) -> str | None:
        """Register another job with its flow groups; returns its name, None where that failed."""
        name = f"job-{next(self._numbers):06}"
        channel = next(self._next_channel)
        job, groups = self._requests(name)
        start_s = time.perf_counter()
        answer = await self._call(channel, methods.REGISTER_JOB, job)
        if answer is None:
            return None
        self._jobs[name] = channel
        self._lease_s = answer.lease_s
        if await self._call(channel, methods.REGISTER_FLOW_GROUPS, groups) is None:
            return None
        self.registration_s.append(time.perf_counter() - start_s)
        return name

    async def register_many(self, jobs: int) -> None:
        """Register jobs, every client one after the other."""
        left = iter(range(jobs))

        async def register() -> None:
            for _ in left:
                await self.register()

        await asyncio.gather(*(register() for _ in self.channels))

    async def withdraw(self, name: str) -> None:
        """Withdraw a job."""
        channel = self._jobs.pop(name)
        await self._call(channel, methods.DEREGISTER_JOB, wire.DeregisterJobRequest(job=name, owner_token=_TOKEN))

    async def churn(self, duration_s: float, per_s: float) -> None:
        """Register so many jobs a second, and withdraw as many of the oldest, whatever is still under way."""
        end_s = asyncio.get_running_loop().time() + duration_s
        async with asyncio.TaskGroup() as tasks:
            while (now_s := asyncio.get_running_loop().time()) < end_s:
                tasks.create_task(self.register())
                tasks.create_task(self.withdraw(next(iter(self._jobs))))
                await asyncio.sleep(max(0.0, now_s + 1 / per_s - asyncio.get_running_loop().time()))

    @asynccontextmanager
    async def heartbeats(self) -> AsyncIterator[None]:
        """Send heartbeats for all jobs, evenly over a third of the lease, while the context lasts."""
        async with asyncio.TaskGroup() as tasks:
            beating = tasks.create_task(self._beat(tasks))
            yield
            beating.cancel()

    @asynccontextmanager
    async def streams(self, count: int) -> AsyncIterator[None]:
        """Follow the directives of this many jobs while the context lasts."""
        following = [asyncio.create_task(self._follow()) for _ in range(count)]
        try:
            yield
        finally:
            for task in following:
                task.cancel()
            await asyncio.gather(*following, return_exceptions=True)

    async def _beat(self, tasks: asyncio.TaskGroup) -> None:
        while True:
            names = self.jobs
            interval_s = self._lease_s / HEARTBEATS_PER_LEASE / max(1, len(names))
            for name in names:
                if name in self._jobs:
                    tasks.create_task(self._heartbeat(name))
                await asyncio.sleep(interval_s)
            await asyncio.sleep(0.01)

    async def _heartbeat(self, name: str) -> None:
        request, channel = wire.HeartbeatRequest(job=name, owner_token=_TOKEN), self._jobs.get(name)
        if channel is None:
            return
        try:
            await _ask(channel, methods.HEARTBEAT, request)
        except grpc.aio.AioRpcError as error:
            if name not in self._jobs:
                return  # withdrawn meanwhile
            if error.code() is grpc.StatusCode.NOT_FOUND:
                self.lost.add(name)
            else:
                self.failures[f"Heartbeat: {error.code().name}"] += 1

    async def _follow(self) -> None:
        """Follow jobs one after the other, each until it is withdrawn."""
        while True:
            name = self._chance.choice(self.jobs)
            request = wire.DirectivesRequest(job=name, owner_token=_TOKEN)
            call = self._jobs[name].unary_stream(
                methods.DIRECTIVES.path, wire.DirectivesRequest.SerializeToString, _unread
            )
            with suppress(grpc.aio.AioRpcError):
                async for _ in call(request):
                    self.directives += 1
            await asyncio.sleep(0.1)

    async def _call(
        self, channel: grpc.aio.Channel, method: Method[RequestT, ResponseT], request: RequestT
    ) -> ResponseT | None:
        try:
            return await _ask(channel, method, request)
        except grpc.aio.AioRpcError as error:
            self.failures[f"{method.name}: {error.code().name}"] += 1
            return None

    def _requests(self, name: str) -> tuple[wire.RegisterJobRequest, wire.RegisterFlowGroupsRequest]:
        chance, num_nics = self._chance, len(self._fabric.nics[self._fabric.hosts[0]])
        hosts = chance.sample(self._fabric.hosts, HOSTS_PER_JOB)
        profile = wire.Profile(compute_s=chance.uniform(0.2, 2.0), comm_start=0.5, work=chance.uniform(10, 100))
        groups = []
        for number in range(GROUPS_PER_JOB):
            source, destination = chance.sample(hosts, 2)
            flow = wire.Flow(
                source=wire.Nic(host=source, nic=number % num_nics),
                destination=wire.Nic(host=destination, nic=number % num_nics),
                size_bytes=chance.randrange(10**6, 10**9),
            )
            groups.append(wire.FlowGroup(name=f"group-{number}", flows=[flow]))
        job = wire.RegisterJobRequest(
            protocol_version=methods.PROTOCOL_VERSION,
            name=name,
            hosts=hosts,
            gpus=HOSTS_PER_JOB,
            profile=profile,
            owner_token=_TOKEN,
        )
        return job, wire.RegisterFlowGroupsRequest(job=name, flow_groups=groups, owner_token=_TOKEN)


async def _ask(channel: grpc.aio.Channel, method: Method[RequestT, ResponseT], request: RequestT) -> ResponseT:
    call = channel.unary_unary(method.path, method.request.SerializeToString, method.response.FromString)
    return await call(request, timeout=_DEADLINE_S)


def _unread(message: bytes) -> Any:
    return message
