"""Small jobs on a small fabric."""

from collections.abc import Mapping
from typing import Any

from topologies.ecmp import hash_multipliers
from topologies.routing import Routing
from workloads.jobs import TrainingJob, training_jobs
from workloads.scenario import Scenario

CLOS = {
    "kind": "clos",
    "tors": 2,
    "aggs": 2,
    "hosts_per_tor": 2,
    "nics_per_host": 2,
    "host_link_gbps": 100,
    "uplink_gbps": 25,
}
PHASES = {"type": "phases", "compute_s": 0.5, "comm_start": 0.5, "bytes": 1e9, "pattern": "ring"}


def jobs_of(*jobs: Mapping[str, Any], topology: Mapping[str, Any] = CLOS) -> tuple[Routing, tuple[TrainingJob, ...]]:
    """Return the routing of a fabric, and jobs on it: what is not said of a job is said here."""
    usual = {"gpus_per_host": 8, "iterations": 2, "hosts": ["h0", "h2"], "workload": PHASES}
    named = [{"name": f"job-{number}"} | usual | dict(job) for number, job in enumerate(jobs)]
    scenario = Scenario.model_validate({"name": "small", "topology": topology, "jobs": named})
    fabric = scenario.topology.build()
    return Routing(fabric, hash_multipliers(fabric.switches, 1)), training_jobs(scenario, fabric)
