"""Whether a controller that is killed takes packets with it, and what it writes once it has started again."""

import asyncio
import re
import tempfile
import urllib.request
from pathlib import Path
from threading import Event

from benchmarks.operations_load import Load
from benchmarks.pinned_controller import wait_until_ready
from controller.config import ControllerConfig
from experiments.scenarios.controller_process import ControllerProcess
from tests.controller.southbound.openflow.injected import PortSockets
from tests.controller.southbound.openflow.switched import add_bridges, addresses_of, flows_of, use_controller
from tests.p4src.packets import Ipv4
from tests.ports import free_port
from topologies.clos import ClosSpecification
from topologies.ecmp import FabricHash
from topologies.fabric import Fabric
from topologies.openvswitch.daemons import OpenVSwitch

CLOS = ClosSpecification(kind="clos", tors=2, aggs=4, hosts_per_tor=4, host_link_gbps=100, uplink_gbps=100)
FED, CHANGED = "t0", "t1"
"""The switch through which packets go, and the one that somebody else changes while the controller is away."""
_NUM_JOBS = 4
_FRAMES_AT_ONCE, _PAUSE_S = 64, 0.02
_AFTERWARDS_S = 2.0
_PATIENCE_S = 5.0
_UPDATES = re.compile(r"^trainyard_switch_updates_total\{([^}]*)\} (\S+)$", re.MULTILINE)


async def kill_figures(num_kills: int) -> dict[str, float]:
    """Return what so many kills of a controller process with SIGKILL cost under steady traffic.

    - ``packets_lost_by_kill``: packets between hosts that went into a switch and did not come out, of ``packets_sent``.
    - ``updates_beyond_difference``: entries that the controller wrote after its starts, less those that somebody else
      had deleted meanwhile, which are ``updates_of_difference``.

    Raises:
        NetworkError: Open vSwitch is not installed, or does not start.
        ControllerProcessError: The controller does not start.
    """
    fabric = CLOS.build()
    with OpenVSwitch(has_dummies=True) as openvswitch, tempfile.TemporaryDirectory() as folder:
        await asyncio.to_thread(add_bridges, openvswitch, fabric)
        place = f"127.0.0.1:{free_port()}"
        process = ControllerProcess(_configuration(fabric, place, Path(folder)))
        async with process:
            await asyncio.to_thread(use_controller, openvswitch, fabric.switches, place)
            await _is_ready(process)
            await _register_jobs(process, fabric)
            ports = [link.source_port for link in fabric.links_from[FED]]
            with PortSockets(openvswitch, FED, ports) as sockets:
                traffic = Traffic(sockets, fabric)
                running = asyncio.create_task(asyncio.to_thread(traffic.run))
                try:
                    counts = [await _kill(process, openvswitch) for _ in range(num_kills)]
                finally:
                    traffic.ended.set()
                    await running
    return {
        "kills": num_kills,
        "packets_sent": traffic.num_sent,
        "packets_lost_by_kill": traffic.num_lost,
        "updates_of_difference": sum(deleted for deleted, _ in counts),
        "updates_beyond_difference": sum(abs(written - deleted) for deleted, written in counts),
    }


class Traffic:
    """Packets from a host of one switch to those of the other, some at a time, until ``ended`` is set."""

    def __init__(self, sockets: PortSockets, fabric: Fabric) -> None:
        self.ended = Event()
        self.num_sent = self.num_lost = 0
        self._sockets = sockets
        source = fabric.nics[fabric.hosts[0]][0]
        self._port = fabric.links[source.link].destination_port
        far = [host for host in fabric.hosts if fabric.links[fabric.nics[host][0].link].destination == CHANGED]
        self._frames = [
            Ipv4(
                source=source.address,
                destination=fabric.nics[far[number % len(far)]][0].address,
                source_port=50_000 + number,
                destination_port=4791,
            ).octets()
            for number in range(_FRAMES_AT_ONCE)
        ]

    def run(self) -> None:
        """Send, in a thread of its own."""
        while not self.ended.wait(_PAUSE_S):
            self.num_sent += len(self._frames)
            came_out = self._sockets.passed(self._port, self._frames, _PATIENCE_S, may_lose=True)
            self.num_lost += len(self._frames) - sum(map(len, came_out.values()))


async def _kill(process: ControllerProcess, openvswitch: OpenVSwitch) -> tuple[int, int]:
    """Kill a controller and start it again; return how many entries were deleted meanwhile, and how many it wrote."""
    await process.kill()
    before = len(await asyncio.to_thread(flows_of, openvswitch, CHANGED))
    await asyncio.to_thread(openvswitch.ofctl, "del-flows", CHANGED, "udp")
    deleted = before - len(await asyncio.to_thread(flows_of, openvswitch, CHANGED))
    await process.restart()
    await _is_ready(process)
    await asyncio.sleep(_AFTERWARDS_S)  # until its first Plan is carried out
    return deleted, await asyncio.to_thread(_num_updates, process.web)


def _configuration(fabric: Fabric, place: str, folder: Path) -> ControllerConfig:
    return ControllerConfig.model_validate(
        {
            "listen": "127.0.0.1:0",
            "web": {"listen": "127.0.0.1:0"},
            "topology": CLOS,
            "switches": addresses_of(fabric.switches),
            "openflow": {"listen": place},
            "hash": FabricHash.UNKNOWN,
            "database": str(folder / "controller.db"),
            "lease_s": 3600.0,
        }
    )


async def _is_ready(process: ControllerProcess) -> None:
    await asyncio.to_thread(wait_until_ready, process.address)


async def _register_jobs(process: ControllerProcess, fabric: Fabric) -> None:
    load = Load(process.address, fabric, clients=1, seed=1)
    try:
        await load.register_many(_NUM_JOBS)
        assert not load.failures, load.failures
    finally:
        await load.close()
    await asyncio.sleep(_AFTERWARDS_S)


def _num_updates(web: str) -> int:
    """The entries that a controller has asked switches to insert, modify or delete."""
    with urllib.request.urlopen(f"{web}/metrics") as answer:  # nosec B310 # an address of ours
        return sum(int(float(value)) for _, value in _UPDATES.findall(answer.read().decode()))
