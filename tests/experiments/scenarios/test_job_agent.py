"""Agents of jobs use the host library's client with the run's clock."""

import asyncio

import pytest

from experiments.scenarios.connections import open_connections
from experiments.scenarios.driven.clock import DrivenClock
from experiments.scenarios.job_agent import JobAgent
from hostlib.client import Client
from hostlib.errors import RefusedError
from tests.driven import DrivenConnection
from tests.hostlib.served import LEASE_S, served
from topologies.steering import Steering
from workloads.jobs import training_jobs
from workloads.scenario import Scenario

_JOB = {
    "name": "gpt",
    "hosts": ["h0", "h2"],
    "gpus_per_host": 8,
    "iterations": 1,
    "workload": {"type": "phases", "compute_s": 1.0, "comm_start": 0.5, "bytes": 1e9, "pattern": "ring"},
}
_TOPOLOGY = {"kind": "clos", "tors": 2, "aggs": 2, "hosts_per_tor": 2, "host_link_gbps": 100, "uplink_gbps": 100}


def _agent(client: Client, name: str = "gpt") -> JobAgent:
    scenario = Scenario.model_validate({"name": "one", "topology": _TOPOLOGY, "jobs": [_JOB | {"name": name}]})
    fabric = scenario.topology.build()
    (job,) = training_jobs(scenario, fabric)
    return JobAgent(client, job, open_connections([job], fabric), Steering.RULE, isolated_s=1.0)


async def _outlive_two_leases() -> tuple[bool, bool, int]:
    clock = DrivenClock()
    async with (
        served(plans_by_itself=False) as controller,
        DrivenConnection(controller.address) as connection,
        Client(controller.address, clock=clock) as client,
        _agent(client) as agent,
    ):
        await agent.register()
        for time_s in range(1, round(2 * LEASE_S)):
            await connection.settle(time_s)
            clock.advance_to(time_s)
            await agent.wait_until_acknowledged()
        was_there = "gpt" in controller.registry
        directives = await agent.directives(1)
        await agent.deregister()
        return was_there, "gpt" in controller.registry, len(directives.flows)


def test_an_agent_renews_its_lease_and_withdraws_its_job() -> None:
    assert asyncio.run(_outlive_two_leases()) == (True, False, 2)


async def _take_the_name_of_another() -> None:
    async with (
        served(plans_by_itself=False) as controller,
        Client(controller.address, clock=DrivenClock()) as first,
        Client(controller.address, clock=DrivenClock()) as second,
        _agent(first) as own,
        _agent(second) as foreign,
    ):
        await own.register()
        await foreign.register()


def test_a_refused_agent_raises_the_reason() -> None:
    with pytest.raises(RefusedError, match="gpt"):
        asyncio.run(_take_the_name_of_another())
