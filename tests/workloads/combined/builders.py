"""Jobs with combined parallelism on hosts of eight GPUs, without a fabric."""

from typing import Any

from pydantic import TypeAdapter

from workloads.combined_workload import CombinedWorkload
from workloads.expansion import expand
from workloads.placement import Placement
from workloads.task_graph import Computation, TaskGraph

WORKLOAD: TypeAdapter[CombinedWorkload] = TypeAdapter(CombinedWorkload)
H100 = {"name": "h100", "efficiency": 0.5}
WIDTH, TOKENS, LAYERS = 64, 32, 8
MEASURED: dict[str, Any] = {
    "name": "measured",
    "tokens": TOKENS,
    "layers": [
        {"type": "embedding", "vocabulary": 10, "width": WIDTH},
        {
            "type": "block",
            "repeat": LAYERS,
            "forward_s": 1.0,
            "backward_s": 2.0,
            "layers": [{"type": "attention", "heads": 8}, {"type": "mlp", "hidden": 256}],
        },
    ],
}
"""Eight equal blocks of 1 s forward and 2 s backward for a sample."""
EXPERTS: dict[str, Any] = MEASURED | {
    "name": "experts",
    "layers": [
        MEASURED["layers"][0],
        {
            "type": "block",
            "repeat": LAYERS,
            "forward_s": 1.0,
            "backward_s": 2.0,
            "layers": [{"type": "attention", "heads": 8}, {"type": "moe", "experts": 8, "active": 2, "hidden": 256}],
        },
    ],
}
NO_TIME_INSIDE_HOSTS = 1e18
"""Gbit/s of NVLinks that take next to no time; latencies stay."""


def workload(**keys: Any) -> CombinedWorkload:
    given = {"type": "combined", "model": MEASURED, "nvlink_gbps": NO_TIME_INSIDE_HOSTS} | keys
    return WORKLOAD.validate_python(given)


def graph(num_hosts: int, **keys: Any) -> TaskGraph:
    hosts = [f"h{number}" for number in range(num_hosts)]
    eight = tuple(range(8))
    return expand(workload(**keys), Placement(dict.fromkeys(hosts, eight), dict.fromkeys(hosts, (0, 1))))


def sent_bytes(of: TaskGraph, group: str, source: str | None = None) -> float:
    return sum(
        flow.size_bytes
        for one in of.flow_groups
        for flow in one.flows
        if one.name.startswith(group) and source in (None, flow.source_host)
    )


def computed_s(of: TaskGraph, host: str) -> float:
    return sum(task.duration_s for task in of.tasks if isinstance(task, Computation) and host in task.hosts)
