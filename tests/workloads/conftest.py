"""Fixtures of this package: small scenarios."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from topologies.ecmp import hash_multipliers
from topologies.routing import Routing
from workloads.jobs import TrainingJob, training_jobs
from workloads.loading import ScenarioError, load_scenario
from workloads.scenario import Scenario

Document = dict[str, Any]


@pytest.fixture
def document() -> Document:
    """A valid scenario: two switches, each with two hosts of four GPUs, and one job on the first host of each side."""
    return {
        "name": "small",
        "topology": {
            "kind": "dumbbell",
            "hosts_per_side": 2,
            "gpus_per_host": 4,
            "nics_per_host": 2,
            "host_link_gbps": 80,
            "bottleneck_gbps": 10,
        },
        "jobs": [
            {
                "name": "a",
                "hosts": ["h0", "h2"],
                "gpus_per_host": 4,
                "iterations": 3,
                "workload": {
                    "type": "phases",
                    "compute_s": 2.0,
                    "comm_start": 0.25,
                    "bytes": 1.25e9,
                    "pattern": "ring",
                },
            }
        ],
    }


@pytest.fixture
def load() -> Callable[[Document], tuple[tuple[TrainingJob, ...], Routing]]:
    """Return the jobs of a scenario document and the routing of its fabric."""

    def jobs_and_routing(document: Document) -> tuple[tuple[TrainingJob, ...], Routing]:
        scenario = Scenario.model_validate(document)
        fabric = scenario.topology.build()
        return training_jobs(scenario, fabric), Routing(fabric, hash_multipliers(fabric.switches, scenario.seed))

    return jobs_and_routing


@pytest.fixture
def refuse(tmp_path: Path) -> Callable[[str], list[str]]:
    """Return the messages of loading a text, without the file name that starts every line."""

    def messages(text: str) -> list[str]:
        path = tmp_path / "bad.yaml"
        path.write_text(text)
        with pytest.raises(ScenarioError) as raised:
            load_scenario(path)
        assert all(message.startswith(f"{path}: ") for message in raised.value.messages)
        return [message.removeprefix(f"{path}: ") for message in raised.value.messages]

    return messages
