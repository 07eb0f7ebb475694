"""A fabric under traffic: its senders go on while switches are written to, so that a write that breaks a path shows."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import astuple
from typing import Any

import pytest

from benchmarks.controlled_fabric import ControlledFabric, controlled
from controller.southbound.p4runtime.access import SwitchAccess
from controller.southbound.p4runtime.states import Update
from topologies.addressing import FiveTuple
from workloads.scenario import Scenario

CLOS = {"kind": "clos", "tors": 3, "aggs": 3, "hosts_per_tor": 2, "nics_per_host": 1}
FAT_TREE = {"kind": "fat_tree", "k": 4}
BETWEEN_WRITES_S = 0.0002
"""Some sixty packets of every sender."""
TRANSFER_BYTES = 400_000


def scenario(topology: dict[str, Any], hosts: Sequence[str]) -> Scenario:
    """Return a mix of a ring over all hosts, and one over every second one."""
    workload = {"type": "phases", "compute_s": 0.1, "comm_start": 0.5, "bytes": 5e7, "pattern": "ring"}
    job = {"gpus_per_host": 1, "duration_s": 1, "workload": workload}
    document = {
        "name": "busy",
        "topology": topology | {"gpus_per_host": 2, "host_link_gbps": 10, "uplink_gbps": 10},
        "jobs": [job | {"name": "even", "hosts": hosts[::2]}, job | {"name": "all", "hosts": hosts}],
    }
    return Scenario.model_validate(document)


class Traffic:
    """All flows of a fabric's jobs, and others that nobody has registered, each sending without a pause."""

    def __init__(self, fabric: ControlledFabric) -> None:
        self.fabric = fabric
        nics = [nic.address for nic in fabric.emulated.fabric.nic_by_address.values()]
        pairs = zip(nics, nics[3:] + nics[:3], strict=True)
        others = (FiveTuple(source, destination, 17, 40_000, 4791) for source, destination in pairs)
        self.delivered_bytes = 0
        for five_tuple in (*(flow.five_tuple for flow in fabric.flows), *others):
            self._send(fabric.sender(five_tuple))

    def run(self, duration_s: float) -> None:
        """Let packets flow; virtual time passes at no other moment."""
        emulated = self.fabric.emulated
        until_ps = emulated.now_ps + round(duration_s * 1e12)
        while completions := emulated.run(until_ps):
            for completion in completions:
                self.delivered_bytes += TRANSFER_BYTES
                self._send(completion.flow)

    def rate_gbps(self, duration_s: float) -> float:
        """Let packets flow, and return how fast all of them together were."""
        before = self.delivered_bytes
        self.run(duration_s)
        return (self.delivered_bytes - before) * 8 / duration_s / 1e9

    def lost(self) -> dict[str, Any]:
        """Return the switches and hosts that have dropped packets."""
        emulated = self.fabric.emulated
        drops = {name: emulated.drops(name) for name in emulated.switches} | {"hosts": emulated.host_drops()}
        return {name: each for name, each in drops.items() if any(astuple(each))}

    def _send(self, flow: int) -> None:
        self.fabric.emulated.start_transfer(flow, TRANSFER_BYTES)


@asynccontextmanager
async def busy(
    topology: dict[str, Any], hosts: int, monkeypatch: pytest.MonkeyPatch, policy: str = "crux"
) -> AsyncIterator[tuple[ControlledFabric, Traffic]]:
    """Yield a fabric whose senders go on while switches are written to."""
    write = SwitchAccess.write
    async with controlled(scenario(topology, [f"h{number}" for number in range(hosts)]), policy, seed=1) as fabric:
        traffic = Traffic(fabric)

        async def interrupted(access: SwitchAccess, updates: Sequence[Update]) -> None:
            await write(access, updates)
            traffic.run(BETWEEN_WRITES_S)

        monkeypatch.setattr(SwitchAccess, "write", interrupted)
        traffic.run(0.002)
        yield fabric, traffic
