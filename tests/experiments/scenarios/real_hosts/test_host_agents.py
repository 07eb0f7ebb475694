"""Agents of hosts get the hosts' own interfaces, are started again, and are gone when the run is over."""

import asyncio
from pathlib import Path

import pytest

from experiments.scenarios.real_hosts import host_agents
from experiments.scenarios.real_hosts.host_agents import HostAgents
from tests.experiments.scenarios.real_hosts.here import Here
from tests.patience import until
from topologies.clos import StarSpecification

FABRIC = StarSpecification(kind="star", hosts=2, host_link_gbps=0.1).build()


class Recorded(Here):
    """A laboratory whose agents only write their process's number; the first of them cannot be started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked: list[str] = []

    def interface(self, host: str, nic: int) -> str:
        """Return a name that depends on the host, as Mininet's do."""
        return f"{host}-eth{nic}"

    def command(self, host: str, *arguments: str) -> list[str]:
        """Return a command that waits to be ended."""
        self.asked += [argument for argument in arguments if argument.startswith("--nic")]
        if len(self.asked) == 1:
            return [str(self.folder / "absent")]
        script = f"echo $$ > started-{host}; mv started-{host} {host}; exec sleep 1000"
        return ["sh", "-c", f"cd {self.folder}; {script}"]

    def pids(self) -> list[str]:
        """Return the processes of the agents that have been started."""
        return [(self.folder / host).read_text().strip() for host in FABRIC.hosts if (self.folder / host).exists()]


def test_agents_get_their_interfaces_and_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_agents, "_STARTS_AGAIN_AFTER_S", 0.01)
    laboratory = Recorded(tmp_path)

    async def run() -> None:
        async with HostAgents(FABRIC, laboratory, "10.0.0.1:1", tmp_path):
            await until(lambda: len(laboratory.pids()) == len(FABRIC.hosts))
        assert not [pid for pid in laboratory.pids() if Path("/proc", pid).exists()]

    asyncio.run(run())
    assert set(laboratory.asked) == {"--nic=h0-eth0@0.1", "--nic=h1-eth0@0.1"}
