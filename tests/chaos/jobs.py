"""Training jobs as fabric and controller see them: each uses the host library in a process of its own."""

import asyncio
from collections.abc import Sequence
from itertools import count
from random import Random

from hostlib.client import Client
from hostlib.types import FiveTuple, FlowGroup, Job, Profile
from tests.chaos.processes import Process
from tests.chaos.traffic import Traffic
from topologies.addressing import FiveTuple as WireFiveTuple

_MEAN_COMPUTE_S = 0.5


class LoopClock:
    """A clock with the time of the event loop, for controllers and hosts."""

    def now_s(self) -> float:
        return asyncio.get_running_loop().time()

    async def wait_until(self, time_s: float) -> None:
        await asyncio.sleep(max(0.0, time_s - self.now_s()))


class TrainingJob:
    """A job that registers, then computes and sends in turns until it ends or is killed.

    It sends on the 5-tuples that it received last, and waits for the first ones.
    """

    def __init__(
        self,
        job: Job,
        groups: tuple[FlowGroup, ...],
        owner_token: str,
        addresses: Sequence[str],
        traffic: Traffic,
        may_train: asyncio.Event,
        draws: Random,
    ) -> None:
        self.job = job
        self.groups = groups
        self.owner_token = owner_token
        self.process = Process(f"job {job.name}")
        self.client: Client | None = None
        self._addresses = addresses
        self._traffic = traffic
        self._may_train = may_train
        self._draws = draws
        self._ending = asyncio.Event()
        self.work = self.process.spawn(self._train())

    def end(self) -> None:
        """Withdraw the job and end it."""
        self._ending.set()

    def add_group(self, group: FlowGroup) -> None:
        """Register another flow group."""
        self.groups += (group,)
        if self.client is not None:
            self.client.register_flow_groups(self.job.name, [group])

    def report(self, profile: Profile) -> None:
        """Report another profile."""
        if self.client is not None:
            self.client.report_profile(self.job.name, profile)

    def five_tuples(self) -> dict[str, tuple[FiveTuple, ...]]:
        """The 5-tuples of its flows: as acknowledged, with the ports of the newest directives."""
        assert self.client is not None
        found = {name: list(assigned) for name, assigned in self.client.five_tuples(self.job.name).items()}
        newest = self.client.newest_directives(self.job.name)
        for flow in newest.flows if newest is not None else ():
            if flow.flow_group in found:
                known = found[flow.flow_group][flow.flow]
                found[flow.flow_group][flow.flow] = _with_port(known, flow.source_port)
        return {name: tuple(five_tuples) for name, five_tuples in found.items()}

    async def _train(self) -> None:
        async with Client(self._addresses, self.owner_token, LoopClock()) as client:
            self.client = client
            client.register_job(self.job)
            client.register_flow_groups(self.job.name, self.groups)
            training = asyncio.create_task(self._iterate(client))
            await self._ending.wait()
            training.cancel()
            client.deregister(self.job.name)
        self.process.kill()

    async def _iterate(self, client: Client) -> None:
        for iteration in count():
            await asyncio.sleep(self._draws.expovariate(1 / _MEAN_COMPUTE_S))
            await self._may_train.wait()
            known = self.five_tuples()
            for group in self.groups:
                if group.name in known:
                    client.start_flow_groups(self.job.name, [group.name], iteration)
                    transfers = [
                        self._traffic.send(on_the_wire(five_tuple), flow.size_bytes)
                        for flow, five_tuple in zip(group.flows, known[group.name], strict=True)
                    ]
                    await asyncio.wait([transfer.arrived for transfer in transfers])
                    client.end_flow_groups(self.job.name, [group.name], iteration)


def _with_port(five_tuple: FiveTuple, source_port: int) -> FiveTuple:
    ends = five_tuple.source_address, five_tuple.destination_address, five_tuple.protocol
    return FiveTuple(*ends, source_port, five_tuple.destination_port)


def on_the_wire(five_tuple: FiveTuple) -> WireFiveTuple:
    """Return a 5-tuple of the host library in the form that fabric and controller use."""
    addresses = int(five_tuple.source_address), int(five_tuple.destination_address)
    return WireFiveTuple(*addresses, five_tuple.protocol, five_tuple.source_port, five_tuple.destination_port)
