"""Flows that ranks send become transfers of the run loop, at the machine's time."""

import asyncio
import time
from collections.abc import Mapping
from typing import cast

import pytest

from experiments.scenarios.real_hosts.ranks import Ranks
from experiments.scenarios.real_hosts.real_flows import RealFlow, real_flows
from experiments.scenarios.real_hosts.real_network import RealNetwork
from experiments.scenarios.real_hosts.switches import SwitchesError
from experiments.scenarios.transfers import JobEnd, NetworkEvent, TransferEnd
from hostlib.types import Directives, FlowDirective
from tests.experiments.scenarios.real_hosts.jobs import CLOS, PHASES, jobs_of
from tests.patience import PATIENCE_S
from workloads.replay import StartTransfer

PATIENCE_PS = round(PATIENCE_S * 1e12)


class NotedRanks:
    """Ranks that only note what they are told."""

    def __init__(self) -> None:
        self.sent: dict[int, int] = {}
        self.queues: Mapping[int, int] = {}
        self.ended: list[str] = []

    def send(self, flows: Mapping[int, int]) -> None:
        """Note flows and their bytes."""
        self.sent |= flows

    def prioritise(self, queues: Mapping[int, int]) -> None:
        """Note the queues of flows."""
        self.queues = queues

    def end_job(self, job: str) -> None:
        """Note a job."""
        self.ended.append(job)


def _network(scale: float = 1000.0, size_bytes: float = 1e9) -> tuple[RealNetwork, NotedRanks, tuple[RealFlow, ...]]:
    """Two jobs whose hosts send to each other, and what their ranks are told; time has begun."""
    workload = PHASES | {"bytes": size_bytes}
    routing, jobs = jobs_of({"workload": workload}, {"hosts": ["h1", "h3"], "workload": workload})
    flows = real_flows(jobs, routing)
    network, ranks = RealNetwork(jobs, flows, scale), NotedRanks()
    network.ranks = cast(Ranks, ranks)
    network.begin()
    return network, ranks, flows


def _transfer(flows: tuple[RealFlow, ...], job: str) -> tuple[StartTransfer, list[RealFlow]]:
    """Return a transfer of all flows of a job's only group, and these flows."""
    own = [flow for flow in flows if flow.key[0] == job]
    return StartTransfer(3, own[0].key[1], tuple(flow.index for flow in own)), own


def _run(network: RealNetwork) -> list[NetworkEvent]:
    return asyncio.run(network.run(PATIENCE_PS))


def test_ranks_send_a_transfers_bytes_divided_by_the_scale() -> None:
    network, ranks, flows = _network(scale=1000.0)
    transfer, own = _transfer(flows, "job-1")
    network.start("job-1", [transfer])
    assert ranks.sent == {flow.number: round(flow.size_bytes / 1000) for flow in own}


def test_a_flow_that_the_scale_leaves_nothing_of_sends_a_byte() -> None:
    network, ranks, flows = _network(scale=1e12)
    network.start("job-0", [_transfer(flows, "job-0")[0]])
    assert set(ranks.sent.values()) == {1}


def test_a_transfer_ends_with_its_last_flow_and_is_as_late_as_that() -> None:
    before_ns = time.monotonic_ns()
    network, _, flows = _network()
    transfer, own = _transfer(flows, "job-0")
    begun_ns = time.monotonic_ns()
    network.start("job-0", [transfer])
    *others, last = own
    for flow in others:
        network.arrived(flow.number, begun_ns)
    assert network._events == []
    network.arrived(last.number, begun_ns + 7_000_000_000)
    (end,) = _run(network)
    assert isinstance(end, TransferEnd)
    assert (end.job, end.task, end.group) == ("job-0", 3, last.key[1])
    assert end.tardiness_s is not None
    assert 7.0 <= end.tardiness_s <= 7.0 + (begun_ns - before_ns) / 1e9


def test_a_job_that_fails_ends_once_and_its_flows_count_no_more() -> None:
    network, ranks, flows = _network()
    transfer, own = _transfer(flows, "job-0")
    network.start("job-0", [transfer])
    network.failed("job-0", "the rank at h0 has ended")
    network.failed("job-0", "the rank at h2 has ended")
    for flow in own:
        network.arrived(flow.number, time.monotonic_ns())
    assert _run(network) == [JobEnd("job-0", "the rank at h0 has ended")]
    assert set(ranks.ended) == {"job-0"}


def test_waiting_ends_at_its_time_when_nothing_happens() -> None:
    network, _, _ = _network()
    until_ps = round(network.now_s * 1e12) + 10**9
    assert asyncio.run(network.run(until_ps)) == []
    assert network.now_ps >= until_ps


def test_waiting_ends_when_the_emulator_is_lost() -> None:
    network, _, _ = _network()

    async def lost() -> None:
        asyncio.get_running_loop().call_later(0.01, network.lost, "it cannot be started again")
        await network.run(PATIENCE_PS)

    with pytest.raises(SwitchesError, match="it cannot be started again"):
        asyncio.run(lost())


def test_hosts_put_flows_of_all_jobs_into_queues_by_level_then_order() -> None:
    shared = {"gpus_per_host": 4}
    routing, jobs = jobs_of(shared, shared, topology=CLOS | {"nics_per_host": 1})
    flows = real_flows(jobs, routing)
    network, ranks = RealNetwork(jobs, flows, 1.0), NotedRanks()
    network.ranks = cast(Ranks, ranks)
    levels = {"job-0": 2, "job-1": 6}
    network.follow(
        {
            job: Directives(1, None, tuple(_directive(flow, level) for flow in flows if flow.key[0] == job))
            for job, level in levels.items()
        }
    )
    queues = {(flow.source, flow.key[0]): ranks.queues[flow.number] for flow in flows}
    assert queues == {("h0", "job-1"): 7, ("h0", "job-0"): 6, ("h2", "job-1"): 7, ("h2", "job-0"): 6}


def _directive(flow: RealFlow, level: int) -> FlowDirective:
    return FlowDirective(flow.key[1], flow.index, (), level, 0, flow.five_tuple.source_port)
