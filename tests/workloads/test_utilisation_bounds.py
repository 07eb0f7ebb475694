from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from topologies.ecmp import hash_multipliers
from topologies.routing import Routing
from workloads.isolated_run import run_isolated
from workloads.jobs import TrainingJob, training_jobs
from workloads.loading import SHIPPED_SCENARIOS, load_scenario
from workloads.utilisation_bounds import fluid_bound_gpu_utilisation, ideal_gpu_utilisation

Document = dict[str, Any]
Load = Callable[[Document], tuple[tuple[TrainingJob, ...], Routing]]


@pytest.mark.parametrize(
    ("bytes_sent", "time_s"),
    [
        (1.25e9, 2.0),  # 1 s over the 10 Gbit/s bottleneck from 0.5 s on: hidden behind computation
        (2.5e9, 2.5),
        (12.5e9, 10.5),
    ],
)
def test_a_job_alone_waits_for_its_most_loaded_link(
    bytes_sent: float, time_s: float, document: Document, load: Load
) -> None:
    document["jobs"][0]["workload"]["bytes"] = bytes_sent
    (job,), routing = load(document)
    assert run_isolated(job, routing).iteration_time_s == pytest.approx(time_s)
    assert ideal_gpu_utilisation([job], routing) == pytest.approx(2.0 / time_s)


def test_parallel_links_share_the_flows(document: Document, load: Load) -> None:
    document["topology"]["bottleneck_links"] = 4
    document["jobs"][0]["workload"]["bytes"] = 10e9
    (job,), routing = load(document)
    assert run_isolated(job, routing).iteration_time_s == pytest.approx(0.5 + 80e9 / 40e9)


def test_the_nics_bound_a_job_when_the_fabric_does_not(document: Document, load: Load) -> None:
    document["topology"]["bottleneck_links"] = 16
    document["jobs"][0]["workload"] |= {"bytes": 10e9, "flows_per_pair": 1}
    (job,), routing = load(document)
    assert run_isolated(job, routing).iteration_time_s == pytest.approx(0.5 + 80e9 / 40e9)


def two_jobs(document: Document, gigabits: float) -> Document:
    """Add job b: like job a, but from h1 to h3 and with all communication after its computation."""
    workload = {**document["jobs"][0]["workload"], "comm_start": 1.0, "bytes": gigabits * 1e9 / 8}
    document["jobs"][0]["workload"] = workload
    document["jobs"].append({**document["jobs"][0], "name": "b", "hosts": ["h1", "h3"]})
    return document


def test_the_fluid_bound_is_the_ideal_where_links_suffice(document: Document, load: Load) -> None:
    jobs, routing = load(two_jobs(document, gigabits=20))  # each sends for half of its 4 s
    assert fluid_bound_gpu_utilisation(jobs, routing) == pytest.approx(0.5)
    assert ideal_gpu_utilisation(jobs, routing) == pytest.approx(0.5)


def test_the_fluid_bound_serves_the_more_intense_job_first(document: Document, load: Load) -> None:
    document = two_jobs(document, gigabits=60)  # each alone: 2 s computation, 6 s transfer, 3/4 of the link
    document["jobs"][1]["workload"] = {**document["jobs"][1]["workload"], "bytes": 75e9 / 8 * 2}  # 2 + 15 s
    jobs, routing = load(document)
    # a runs at 1/8 iterations per second and leaves a quarter of the link: b at (1/4) / 15.
    assert fluid_bound_gpu_utilisation(jobs, routing) == pytest.approx((2 / 8 + 2 / 60) / 2)


@pytest.mark.parametrize(("wide_gigabits", "wide_rate"), [(10, 1.0), (15, 2 / 3)])
def test_the_fluid_bound_may_use_paths_unevenly(
    wide_gigabits: float, wide_rate: float, document: Document, load: Load
) -> None:
    """Two paths of 10 Gbit/s: one job needs one of them, the other job can use the other."""
    job = document["jobs"][0]
    document["topology"] = {
        "kind": "graph",
        "gpus_per_host": 4,
        "hosts": ["h0", "h1", "h2"],
        "switches": ["s", "u", "v", "t"],
        "links": [
            {"ends": ends, "gbps": gbps}
            for ends, gbps in [
                (("h0", "s"), 100),
                (("h1", "u"), 100),
                (("h2", "t"), 100),
                (("s", "u"), 10),
                (("s", "v"), 10),
                (("u", "t"), 10),
                (("v", "t"), 10),
            ]
        ],
    }
    workload = {"type": "phases", "compute_s": 1.0, "comm_start": 0.0}
    flow = {"destination": "h2", "bytes": 10e9 / 8}
    document["jobs"] = [
        {**job, "name": "wide", "hosts": ["h0", "h2"], "gpus_per_host": 2, "workload": workload},
        {**job, "name": "narrow", "hosts": ["h1", "h2"], "gpus_per_host": 2, "workload": workload},
    ]
    document["jobs"][0]["workload"] = {
        **workload,
        "flows": [{**flow, "source": "h0", "bytes": wide_gigabits * 1e9 / 8}],
    }
    document["jobs"][1]["workload"] = {**workload, "flows": [{**flow, "source": "h1"}]}
    jobs, routing = load(document)
    assert [run_isolated(one, routing).iteration_time_s for one in jobs] == [1.0, 1.0]
    assert fluid_bound_gpu_utilisation(jobs, routing) == pytest.approx((1 + wide_rate) / 2)


def test_ideal_utilisation_weighs_jobs_by_what_they_hold(document: Document, load: Load) -> None:
    document = two_jobs(document, gigabits=20)
    document["jobs"][0]["workload"] = {**document["jobs"][0]["workload"], "bytes": 0.0}
    jobs, routing = load(document)
    assert ideal_gpu_utilisation(jobs, routing) == pytest.approx(0.75)
    assert ideal_gpu_utilisation(jobs, routing, {"a": 30.0, "b": 10.0}) == pytest.approx(0.875)


def test_figure_19_has_the_papers_ideals() -> None:
    scenario = load_scenario(Path(SHIPPED_SCENARIOS, "fig19-n4.yaml"))
    fabric = scenario.topology.build()
    jobs = training_jobs(scenario, fabric)
    routing = Routing(fabric, hash_multipliers(fabric.switches, scenario.seed))
    alone = {job.name: ideal_gpu_utilisation([job], routing) for job in jobs}
    assert alone == pytest.approx({"gpt": 1.0} | {f"bert-{number}": 0.53 for number in range(1, 5)}, abs=0.01)
    assert ideal_gpu_utilisation(jobs, routing) == pytest.approx(0.77, abs=0.01)
    assert fluid_bound_gpu_utilisation(jobs, routing) <= ideal_gpu_utilisation(jobs, routing) + 1e-9


@pytest.mark.parametrize(("nics_per_switch", "time_s"), [(1, 0.5 + 40e9 / 8e9), (2, 0.5 + 80e9 / 8e9)])
def test_a_pcie_link_that_nics_share_bounds_a_job(
    nics_per_switch: int, time_s: float, document: Document, load: Load
) -> None:
    document["topology"] |= {"bottleneck_links": 16, "pcie": {"gbps": 8, "nics_per_switch": nics_per_switch}}
    document["jobs"][0]["workload"]["bytes"] = 10e9
    (job,), routing = load(document)
    assert run_isolated(job, routing).iteration_time_s == pytest.approx(time_s)
    assert fluid_bound_gpu_utilisation([job], routing) == pytest.approx(2.0 / time_s)
