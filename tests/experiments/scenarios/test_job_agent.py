"""Agents of jobs use the host library's client with the run's clock."""

import asyncio
from dataclasses import replace

import pytest

from experiments.scenarios.connections import open_connections
from experiments.scenarios.driven.clock import DrivenClock
from experiments.scenarios.in_process import InProcessController
from experiments.scenarios.job_agent import JobAgent
from hostlib.client import Client
from hostlib.errors import RefusedError
from policies.baselines.ecmp import ecmp
from policies.task_graph import TaskGraph
from tests.driven import DrivenConnection
from tests.hostlib.served import LEASE_S, served
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing
from topologies.steering import Steering
from workloads.jobs import training_jobs
from workloads.perturbations import ReportingError
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


@pytest.mark.parametrize("overlap", [1.0, 0.5])
def test_an_agent_and_the_in_process_controller_tell_the_same_graph(overlap: float) -> None:
    """The policy sees it, with the error that the job makes in its profile."""
    workload = {"type": "pp", "model": "bert", "micro_batches": 2, "schedule": "1f1b"}
    scenario = Scenario.model_validate({"name": "one", "topology": _TOPOLOGY, "jobs": [_JOB | {"workload": workload}]})
    fabric = scenario.topology.build()
    job = replace(training_jobs(scenario, fabric)[0], reporting_error=ReportingError(overlap=overlap))
    connections = open_connections([job], fabric)
    routing = Routing(fabric, hash_multipliers(fabric.switches, 1))
    in_process = InProcessController(routing, connections, ecmp, Steering.RULE, 1)
    in_process.register(job)
    snapshot, _ = in_process.plan(0.0)
    assert snapshot.jobs[0].task_graph == job.reported_graph

    async def told() -> TaskGraph | None:
        async with (
            served() as controller,
            Client(controller.address, clock=DrivenClock()) as client,
            JobAgent(client, job, connections, Steering.RULE, isolated_s=1.0) as agent,
        ):
            await agent.register()
            registered = controller.registry.job("gpt")
            return None if registered is None else registered.task_graph

    assert asyncio.run(told()) == job.reported_graph
    assert (job.reported_graph == job.played_graph) == (overlap == 1.0)


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
