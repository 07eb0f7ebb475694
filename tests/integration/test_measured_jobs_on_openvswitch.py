"""A job registers only its hosts, and a controller measures it by the counters of a real Open vSwitch."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import numpy as np
import pytest

from controller.registry.requests import JobRequest
from tests.controller.southbound.openflow.injected import PortSockets
from tests.controller.southbound.openflow.switched import flows_of
from tests.integration.test_openflow_fabric import FABRIC, OF_OPENFLOW, controlled, fabric_of
from tests.p4src.packets import Ipv4, Protocol
from tests.patience import PATIENCE_S, until
from topologies.openvswitch.daemons import OpenVSwitch

_PERIOD_S = 1.0
_CONNECTIONS = 12
_FRAMES_OF_EACH = 5
_PAYLOAD_BYTES = 1_000


class _Wires:
    """The cables between the bridges, over which frames are carried from host to host."""

    def __init__(self, sockets: dict[str, PortSockets]) -> None:
        self._sockets = sockets
        self.crossed: Counter[int] = Counter()
        """Bytes by link, but for those from hosts."""

    def send(self, host: str, frames: Sequence[bytes]) -> None:
        """Send frames from a host to wherever switches send them."""
        link = FABRIC.links[FABRIC.nics[host][0].link]
        waiting = [(link, list(frames))]
        while waiting:
            link, arriving = waiting.pop()
            if link.destination in FABRIC.host_index:
                continue
            for port, leaving in self._sockets[link.destination].passed(link.destination_port, arriving).items():
                if leaving:
                    (onward,) = (each for each in FABRIC.links_from[link.destination] if each.source_port == port)
                    self.crossed[onward.index] += sum(map(len, leaving))
                    waiting.append((onward, leaving))


@contextmanager
def _wired(openvswitch: OpenVSwitch) -> Iterator[_Wires]:
    with ExitStack() as stack:
        yield _Wires(
            {
                name: stack.enter_context(
                    PortSockets(openvswitch, name, [link.source_port for link in FABRIC.links_from[name]])
                )
                for name in FABRIC.switches
            }
        )


def _frames(source: str, destination: str) -> list[bytes]:
    return [
        Ipv4(
            source=FABRIC.nics[source][0].address,
            destination=FABRIC.nics[destination][0].address,
            protocol=Protocol.UDP,
            source_port=50_000 + number,
            destination_port=4791,
            payload=bytes(_PAYLOAD_BYTES),
        ).octets()
        for number in range(_CONNECTIONS)
    ] * _FRAMES_OF_EACH


def test_a_job_that_tells_its_hosts_alone_is_measured() -> None:
    """By what it sends, how often, and over which links: its connections are spread by the hash of a real switch."""

    async def test() -> None:
        options = {"policy": "crux", "profiling": {"window_s": 15.0, "check_s": 1e6}}
        async with fabric_of(**options) as (config, openvswitch), controlled(config) as active:
            core = active.core
            openvswitch.vsctl("set", "Open_vSwitch", ".", "other_config:max-revalidator=100")
            profiling, frames, began_s = core.context.profiling, _frames("h0", "h3"), list[float]()
            core.registry.register_job(JobRequest("quiet", ("h0", "h3"), 16, None), core.planner._clock.now_s())
            core.planner.mark_changed()
            with _wired(openvswitch) as wires:

                def iterate() -> None:
                    while profiling.measured("quiet") is None:
                        began_s.append(time.monotonic())
                        wires.send("h0", frames)
                        time.sleep(max(0.0, began_s[-1] + _PERIOD_S - time.monotonic()))

                async with asyncio.timeout(PATIENCE_S):
                    await asyncio.to_thread(iterate)
            measured = profiling.measured("quiet")
            assert measured is not None
            rhythm, sent_bytes = measured.rhythm, sum(map(len, frames))
            # A busy switch may count an iteration at each end of the window later than its neighbour does.
            tolerance = 0.05 + 2 / rhythm.iterations
            assert rhythm.iteration_bytes == pytest.approx(sent_bytes, rel=tolerance)
            lasted_s = np.diff(began_s)[-rhythm.iterations :]
            assert rhythm.period_s == pytest.approx(lasted_s.mean(), rel=0.1)
            over = Counter[int]()
            for share in measured.shares:
                over.update(dict.fromkeys(share.path[1:], share.size_bytes))
            crossed = {link: count / len(began_s) for link, count in wires.crossed.items()}
            assert len(crossed) == 5, "the hash uses both uplinks, else it would not be seen which one is measured"
            assert over == pytest.approx(crossed, rel=tolerance)
            await until(lambda: not any("priority=64" in line for line in flows_of(openvswitch, "t0")))

    asyncio.run(test())


def test_a_measured_job_is_counted_on_the_links_of_all_switches_of_a_mixed_fabric() -> None:
    async def test() -> None:
        async with fabric_of(OF_OPENFLOW) as (config, openvswitch), controlled(config) as active:
            core = active.core
            core.registry.register_job(JobRequest("quiet", ("h0", "h3"), 16, None), core.planner._clock.now_s())
            core.planner.mark_changed()
            await until(lambda: any("priority=64" in line for line in flows_of(openvswitch, "t1")))
            counted = await active.southbound.level_bytes(config.num_levels - 1)
            assert counted == {link.index: 0 for name in FABRIC.switches for link in FABRIC.links_from[name]}

    asyncio.run(test())
