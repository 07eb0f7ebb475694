"""An unregistered sender loads an uplink; a job that arrives later takes another one."""

import asyncio
from typing import Any

import pytest

from experiments.scenarios.emulated import run_on_emulator
from experiments.scenarios.emulated_network import EmulatedNetwork
from experiments.scenarios.results import RunResult
from tests.controller.telemetry.probed import flow_between
from topologies.ecmp import hash_multipliers
from topologies.fabric import Fabric
from topologies.routing import Routing
from workloads.scenario import Scenario

_FOREIGN_BYTES = 100e9
_WORKLOAD = {"type": "phases", "compute_s": 0.5, "comm_start": 0.5, "bytes": 0.05 * 1e9 / 8, "pattern": "ring"}
_SCENARIO = Scenario.model_validate(
    {
        "name": "foreign",
        "topology": {
            **{"kind": "clos", "tors": 2, "aggs": 2, "hosts_per_tor": 3, "gpus_per_host": 1},
            **{"host_link_gbps": 1, "uplink_gbps": 1},
        },
        "jobs": [
            {"name": "first", "hosts": ("h0", "h3"), "iterations": 22, "gpus_per_host": 1, "workload": _WORKLOAD},
            {
                **{"name": "later", "hosts": ("h2", "h5"), "iterations": 3, "gpus_per_host": 1, "workload": _WORKLOAD},
                "arrival_s": 10.0,
            },
        ],
        "probes": True,
        "scale": 50,
    }
)


def _uplink(fabric: Fabric, number: int) -> int:
    [link] = fabric.links_between("t0", f"a{number}")
    return link


def _paths(result: RunResult, job: str) -> list[tuple[int, ...]]:
    """Return the paths from the first ToR to the second."""
    sent = [flow.path for flow in result.flows if flow.job == job]
    return [path for path in sent if result.fabric.links[path[1]].source == "t0"]


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("policy", ["crux", "trainyard"])
def test_a_later_job_avoids_the_loaded_uplink(number: int, policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fabric = _SCENARIO.topology.build()
    routing = Routing(fabric, hash_multipliers(fabric.switches, _SCENARIO.seed))
    ends = fabric.nics["h1"][0], fabric.nics["h4"][0]
    by_ports = (flow_between(*ends, source_port) for source_port in range(1000, 2000))
    stranger = next(flow for flow in by_ports if _uplink(fabric, number) in routing.hashed_path(flow))

    def with_stranger(*arguments: Any) -> EmulatedNetwork:
        traffic = EmulatedNetwork(*arguments)
        emulated = traffic.emulated
        emulated.start_transfer(emulated.add_flow(stranger), round(_FOREIGN_BYTES / traffic.scale))
        return traffic

    monkeypatch.setattr("experiments.scenarios.emulated.EmulatedNetwork", with_stranger)
    result = asyncio.run(run_on_emulator(_SCENARIO, policy, on_progress=lambda *_: None))
    [path] = _paths(result, "later")
    assert _uplink(fabric, 1 - number) in path
