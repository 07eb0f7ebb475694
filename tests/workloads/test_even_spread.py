"""The fluid bound with even spreading, compared with the one whose paths are free."""

import numpy as np
import pytest

from topologies.clos import ClosSpecification
from topologies.ecmp import hash_multipliers
from topologies.fat_tree import DoubleSidedSpecification
from topologies.graph import GraphSpecification
from topologies.routing import Routing
from topologies.specification import Topology
from workloads.even_spread import EvenSpread
from workloads.isolated_run import run_isolated
from workloads.jobs import TrainingJob
from workloads.schedulers.baselines import RandomPlacement
from workloads.schedulers.cluster import Cluster, ClusterState, GpuRequest
from workloads.traces.simulated_jobs import SimulatedJob, placed_job
from workloads.utilisation_bounds import fluid_bound_gpu_utilisation
from workloads.workload import Pattern, PhasesWorkload

THIN = ClosSpecification(
    kind="clos", tors=4, aggs=2, hosts_per_tor=3, gpus_per_host=2, nics_per_host=2, host_link_gbps=200, uplink_gbps=100
)
DOUBLE_SIDED = DoubleSidedSpecification(
    kind="double_sided", pods=2, tors=4, aggs=4, cores=4, hosts_per_pair=6, gpus_per_host=2, nics_per_host=2,
    host_link_gbps=200, uplink_gbps=50, core_link_gbps=50,
)  # fmt: skip


def random_jobs(topology: Topology, seed: int) -> tuple[list[TrainingJob], Routing]:
    """Place random jobs until the cluster is full; they send one to four times as long as they compute."""
    fabric, random = topology.build(), np.random.default_rng(seed)
    state, place = ClusterState.empty(Cluster.of_fabric(fabric)), RandomPlacement(seed)
    jobs: list[TrainingJob] = []
    while True:
        num_hosts = int(random.integers(2, 5))
        request = GpuRequest(f"job{len(jobs)}", num_hosts, 2, run_time_s=100.0)
        allocation = place(state, request)
        if allocation is None:
            return jobs, Routing(fabric, hash_multipliers(fabric.switches, seed))
        state = state.take(allocation)
        sent_bytes = float(25e9 * random.uniform(1.0, 4.0))
        workload = PhasesWorkload(
            type="phases", compute_s=1.0, comm_start=0.5, bytes=sent_bytes, pattern=Pattern.RING, flows_per_pair=None
        )
        jobs.append(placed_job(SimulatedJob(request, "made up", workload, 1.0), allocation, fabric, 0.0))


def most_gpu_utilisation(jobs: list[TrainingJob], routing: Routing) -> float:
    alone_s = np.array([run_isolated(job, routing).iteration_time_s for job in jobs])
    work = np.array([job.computing_gpu_seconds for job in jobs])
    return EvenSpread.of(jobs, routing).most(np.arange(len(jobs)), work, alone_s) / sum(job.gpus for job in jobs)


@pytest.mark.parametrize("topology", [THIN, DOUBLE_SIDED])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_where_paths_are_alike_it_is_the_fluid_bound(topology: Topology, seed: int) -> None:
    jobs, routing = random_jobs(topology, seed)
    assert len(jobs) > 2
    assert EvenSpread.of(jobs, routing).longest_s == pytest.approx(
        [run_isolated(job, routing).iteration_time_s - 0.5 for job in jobs]
    )
    bound = fluid_bound_gpu_utilisation(jobs, routing)
    assert bound < 0.99 * sum(
        job.computing_gpu_seconds / run_isolated(job, routing).iteration_time_s for job in jobs
    ) / sum(job.gpus for job in jobs)
    assert most_gpu_utilisation(jobs, routing) == pytest.approx(bound)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_where_they_are_not_it_is_no_less(seed: int) -> None:
    """One of two switches has cables of a quarter of the rate."""
    cables = [{"ends": (f"h{host}", f"t{host // 4}"), "gbps": 100} for host in range(8) for _ in range(2)]
    cables += [{"ends": (tor, agg), "gbps": gbps} for tor in ("t0", "t1") for agg, gbps in (("a0", 200), ("a1", 50))]
    document = {
        "kind": "graph",
        "hosts": tuple(f"h{host}" for host in range(8)),
        "switches": ("t0", "t1", "a0", "a1"),
        "links": tuple(cables),
        "gpus_per_host": 2,
    }
    jobs, routing = random_jobs(GraphSpecification.model_validate(document), seed)
    assert most_gpu_utilisation(jobs, routing) >= fluid_bound_gpu_utilisation(jobs, routing) * (1 - 1e-9)


def test_the_same_jobs_sending_more() -> None:
    jobs, routing = random_jobs(THIN, 1)
    spread = EvenSpread.of(jobs, routing)
    one, work = np.arange(1), np.array([2.0])
    assert spread.most(one, work, spread.longest_s[:1]) == pytest.approx(2.0 / spread.longest_s[0])
    assert spread.sending(2.0).longest_s == pytest.approx(2 * spread.longest_s)
