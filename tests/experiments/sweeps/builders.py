"""A small scenario, and result lines that were never run."""

from pathlib import Path
from typing import Any

import yaml

from experiments.scenarios.backend import Backend
from experiments.sweeps.cases import CaseDescription, CaseResult, ResultLine
from policies.enforcement import Enforcement


def document(name: str = "small") -> dict[str, Any]:
    workload = {"type": "phases", "compute_s": 1.0, "comm_start": 0.5, "bytes": 1e9, "pattern": "ring"}
    return {
        "name": name,
        "topology": {"kind": "dumbbell", "hosts_per_side": 2, "host_link_gbps": 100, "bottleneck_gbps": 10},
        "jobs": [
            {"name": job, "hosts": hosts, "gpus_per_host": 8, "iterations": 3, "workload": workload}
            for job, hosts in (("a", ["h0", "h2"]), ("b", ["h1", "h3"]))
        ],
    }


def write(folder: Path, name: str = "small", **keys: object) -> Path:
    """Write the file of a scenario with these additional keys."""
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(document(name) | keys))
    return path


def asked(
    scenario: str = "small",
    policy: str = "crux",
    seed: int = 1,
    sha256: str = "0",
    settings: dict[str, Any] | None = None,
) -> CaseDescription:
    return CaseDescription(
        scenario=scenario,
        file=f"{scenario}.yaml",
        sha256=sha256,
        policy=policy,
        seed=seed,
        settings=settings or {},
        backend=Backend.SIMULATOR,
        enforcement=Enforcement.LEVELS,
        versions={"python": "3"},
    )


def finished(of: CaseDescription, gpu_utilisation: float = 0.5) -> ResultLine:
    measured = CaseResult(
        gpu_utilisation=gpu_utilisation,
        ideal_gpu_utilisation=0.9,
        fluid_bound_gpu_utilisation=0.8,
        starved_jobs=1,
        worst_speed=0.25,
        more="unnamed",
    )
    return ResultLine(**of.model_dump(), result=measured)


def failed(of: CaseDescription) -> ResultLine:
    return ResultLine(**of.model_dump(), error="no room")
