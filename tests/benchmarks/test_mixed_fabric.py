"""A mix on fabrics that are not all ours: every job progresses, and what is ours alone is as without the benchmark."""

import pytest

from benchmarks.fabric_ways import run, ways
from benchmarks.mixed_fabric import figures
from experiments.scenarios.simulated import run_on_simulator
from workloads.scenario import Scenario

MIX = {
    "name": "mix",
    "seed": 1,
    "topology": {"kind": "fat_tree", "k": 4, "gpus_per_host": 8, "host_link_gbps": 200, "uplink_gbps": 100},
    "jobs": [
        {
            "name": name,
            "hosts": hosts,
            "gpus_per_host": 4,
            "duration_s": 12,
            "workload": {
                "type": "phases",
                "compute_s": compute_s,
                "comm_start": 0.5,
                "bytes": 9e9 * compute_s,
                "pattern": "ring",
            },
        }
        for name, hosts, compute_s in (
            ("large", ["h0", "h4", "h8", "h12"], 0.6),
            ("small", ["h1", "h5", "h9", "h13"], 0.2),
            ("middle", ["h0", "h6", "h8", "h14"], 0.4),
        )
    ],
    "measure": {"from_s": 2, "to_s": 12},
}


@pytest.mark.parametrize("policy", ["crux", "trainyard"])
def test_all_jobs_progress_on_every_fabric(policy: str) -> None:
    scenario = Scenario.model_validate(MIX)
    runs = {name: run(scenario, way, policy) for name, way in ways(scenario.topology.build()).items()}
    for name, result in runs.items():
        print(f"{policy} {name}: {100 * result.gpu_utilisation:.2f} %")
        assert all(len(job.iterations) > 0 for job in result.jobs), name
        assert result.starved_jobs == 0, name
    as_it_is = run_on_simulator(scenario, policy, on_progress=lambda *_: None)
    assert runs["ours"].gpu_utilisation == as_it_is.gpu_utilisation
    # Rules lead flows past the hash of others, whatever that is.
    assert runs["other_routing"].gpu_utilisation >= 0.97 * as_it_is.gpu_utilisation
    assert runs["dscp_only_cores"].gpu_utilisation == as_it_is.gpu_utilisation


def test_figures_have_every_way_beside_ours() -> None:
    scenario = Scenario.model_validate(MIX | {"measure": {"from_s": 1, "to_s": 4}})
    all_ways = ways(scenario.topology.build())
    mix = {
        policy: {name: [run(scenario, way, "ecmp")] for name, way in all_ways.items()}
        for policy in ("ecmp", "crux", "trainyard")
    }
    found = figures([mix])
    assert found["ecmp_ours"] == found["crux_ours"]
    assert {f"trainyard_{name}" for name in all_ways} <= found.keys()
