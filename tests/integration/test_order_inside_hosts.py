"""Two jobs share a PCIe link: the host keeps the order of their ranks, and switches at message boundaries."""

import asyncio
from typing import Any

import pytest

from experiments.scenarios.emulated import run_on_emulator
from workloads.scenario import Scenario

PCIE_BPS = 200e9
SCALE = 2000.0
MESSAGE_S = SCALE * 4096 * 8 / PCIE_BPS
"""A packet of a run at this scale stands for a message of 8 MB, which is sent to its end once it is begun."""


def job(name: str, compute_s: float, comm_start: float, transfer_s: float) -> dict[str, Any]:
    workload = {"type": "phases", "compute_s": compute_s, "comm_start": comm_start, "pattern": "pairs"}
    workload["bytes"] = transfer_s * PCIE_BPS / 8
    return {"name": name, "hosts": ["h0", "h1"], "gpus_per_host": 4, "iterations": 1, "workload": workload}


def iteration_times_s(policy: str) -> dict[str, float]:
    """Return the times of one iteration each: the yielding job has sent for 0.1 s when the more urgent one begins."""
    document = {
        "name": "two on one PCIe link",
        "topology": {"kind": "star", "hosts": 2, "host_link_gbps": 400, "pcie": {"gbps": PCIE_BPS / 1e9}},
        "jobs": [job("yielding", 0.05, 0.0, 0.4), job("urgent", 0.1, 1.0, 0.05)],
        "scale": SCALE,
        "reaction_delay_s": 0.001,
    }
    result = asyncio.run(run_on_emulator(Scenario.model_validate(document), policy, on_progress=lambda *_: None))
    return {found.name: found.jct_s for found in result.jobs if found.jct_s is not None}


def test_the_urgent_job_waits_for_one_message_and_the_other_for_all_of_it() -> None:
    times_s = iteration_times_s("crux")
    assert 0.15 <= times_s["urgent"] <= 0.15 * 1.005 + 2 * MESSAGE_S
    # Whoever was held back begins again with a small window.
    assert times_s["yielding"] == pytest.approx(0.45, rel=0.02)
    # Without an order it has half of the link at most.
    assert iteration_times_s("ecmp")["urgent"] > 0.19
