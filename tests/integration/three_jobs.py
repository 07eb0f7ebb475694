"""Scenarios of three jobs on nine hosts under three ToRs; others come and go at once at times that a test chooses."""

from collections.abc import Sequence

from workloads.scenario import Scenario

MIX = ("job-0", "job-1", "job-2")


def three_jobs(duration_s: float, visits: Sequence[tuple[str, str, float]]) -> Scenario:
    """Return a scenario of the mix. A run asks the controller at each visit: the name of a job, its host and when."""
    workload = {"type": "phases", "compute_s": 0.1, "comm_start": 0.5, "bytes": 1e7, "pattern": "ring"}
    job = {"gpus_per_host": 1, "duration_s": duration_s, "workload": workload}
    brief = {"gpus_per_host": 1, "iterations": 1, "workload": workload | {"bytes": 0}}
    document = {
        "name": "three jobs",
        "topology": {
            "kind": "clos",
            "tors": 3,
            "aggs": 3,
            "hosts_per_tor": 3,
            "gpus_per_host": 4,
            "host_link_gbps": 1,
            "uplink_gbps": 1,
        },
        "jobs": [job | {"name": name, "hosts": [f"h{n}", f"h{n + 3}", f"h{n + 6}"]} for n, name in enumerate(MIX)]
        + [brief | {"name": name, "hosts": [host], "arrival_s": arrival_s} for name, host, arrival_s in visits],
    }
    return Scenario.model_validate(document)
