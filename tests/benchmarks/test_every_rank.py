"""What a run plays together ends as every task and every flow by itself, and jobs alone as a plain version has them."""

import random

import pytest

from benchmarks.every_rank import bundled_error, described, drawn_case, llama_on_1024
from experiments.scenarios.simulated import run_on_simulator
from tests.workloads.plain_isolated_run import plain_iteration_s
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing
from workloads.isolated_run import run_isolated
from workloads.jobs import training_jobs
from workloads.scenario import Scenario


def small_case(seed: str) -> tuple[Scenario, str]:
    """The next drawn case whose jobs have few tasks and flows."""
    chance = random.Random(seed)
    while True:
        scenario, policy = drawn_case(chance, seed)
        graphs = [job.graph for job in training_jobs(scenario, scenario.topology.build())]
        num_tasks = sum(len(graph.tasks) for graph in graphs)
        num_flows = sum(len(group.flows) for graph in graphs for group in graph.flow_groups)
        if num_tasks < 3_000 and num_flows < 30_000:
            return scenario, policy


@pytest.mark.parametrize("seed", ["one", "two", "three", "four"])
def test_every_task_and_flow_by_itself_gives_the_same_iterations(seed: str) -> None:
    scenario, policy = small_case(seed)
    assert bundled_error(scenario, policy) < 1e-9, described(scenario)


@pytest.mark.parametrize("seed", ["five", "six"])
def test_a_job_alone_takes_as_long_as_in_the_plain_version(seed: str) -> None:
    scenario, _ = small_case(seed)
    fabric = scenario.topology.build()
    routing = Routing(fabric, hash_multipliers(fabric.switches, 1))
    for job in training_jobs(scenario, fabric):
        assert run_isolated(job, routing).iteration_time_s == pytest.approx(plain_iteration_s(job, routing), rel=1e-9)


def test_ranks_that_do_the_same_are_reported_one_by_one() -> None:
    """Two replicas of an eight-stage pipeline: every host has its own computations, which end when the others' do."""
    result = run_on_simulator(llama_on_1024(2, hosts=16), "ecmp", on_progress=lambda *_: None)
    (job,) = result.jobs
    by_host: dict[str, list[tuple[float, float]]] = {}
    for interval in job.computing:
        for host in interval.hosts:
            by_host.setdefault(host, []).append((interval.start_s, interval.end_s))
    assert len(by_host) == 16
    assert len({tuple(spans) for spans in by_host.values()}) <= 8
