"""Flows through real switches of two successive tiers: which ports the hash of each gives them."""

import struct
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from random import Random

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2_contingency

from controller.southbound.openflow.routes import base_entries
from tests.controller.southbound.openflow.injected import PortSockets
from tests.controller.southbound.openflow.real_switches import set_port, write
from tests.openvswitch import add_dummy_bridge
from tests.p4src.packets import Ipv4, Protocol
from tests.topologies.builders import FAT_TREE_8
from topologies.openflow_specification import Queues
from topologies.openvswitch.daemons import OpenVSwitch
from topologies.routing import Routing

FIRST, SECOND = "t0", "a0"
"""Switches that follow each other. Both have four ports towards other pods."""

Chosen = npt.NDArray[np.int64]
"""The port that each flow takes; 0: it has not come out."""

_FROM_BELOW = 1
"""The port at which packets come in: from a host at ``FIRST``, and from there at ``SECOND``."""
_IDENTIFICATION_AT = 18


class Tiers:
    """Two switches and the same flows, UDP and TCP in turns, through each: from hosts of a ToR to those of other pods.

    So the second switch chooses for all flows, not only for those that the first one sends there.
    """

    def __init__(self, openvswitch: OpenVSwitch, sockets: Mapping[str, PortSockets], num_flows: int) -> None:
        self._openvswitch = openvswitch
        self._sockets = sockets
        self._frames = [_numbered(packet.octets(), number) for number, packet in enumerate(_packets(num_flows))]

    def chosen(self, switch: str, routing: Routing) -> Chosen:
        """Return the ports that flows take at a switch by the entries of this routing."""
        write(self._openvswitch, switch, base_entries(switch, routing, Queues.DSCP))
        return self.chosen_again(switch)

    def chosen_again(self, switch: str) -> Chosen:
        """Return the ports that flows take by the same entries now."""
        ports = np.zeros(len(self._frames), np.int64)
        for port, frames in self._sockets[switch].passed(_FROM_BELOW, self._frames).items():
            for frame in frames:
                (number,) = struct.unpack_from("!H", frame, _IDENTIFICATION_AT)
                ports[number] = port
        return ports

    def set_port(self, switch: str, port: int, *, up: bool) -> None:
        """Let a port go down or come up."""
        set_port(self._openvswitch, switch, port, up=up)


@contextmanager
def running_tiers(num_flows: int) -> Iterator[Tiers]:
    """Two switches with sockets at all ports. Raises NetworkError where Open vSwitch is not installed."""
    with OpenVSwitch(has_dummies=True) as openvswitch, ExitStack() as stack:
        sockets = {}
        for number, switch in enumerate((FIRST, SECOND), start=1):
            ports = [link.source_port for link in FAT_TREE_8.links_from[switch]]
            add_dummy_bridge(openvswitch, switch, number, ports)
            sockets[switch] = stack.enter_context(PortSockets(openvswitch, switch, ports))
        yield Tiers(openvswitch, sockets, num_flows)


def unevenness(chosen: Chosen) -> float:
    """How far the share of a port that flows take is from an even one, at most, as a part of it."""
    counts = Counter(chosen.tolist())
    even = len(chosen) / len(counts)
    return max(abs(count / even - 1) for count in counts.values())


def chance_of_dependence(first: Chosen, second: Chosen) -> float:
    """How likely independent choices look as dependent as these: the p-value of Pearson's chi-squared test."""
    _, rows = np.unique(first, return_inverse=True)
    _, columns = np.unique(second, return_inverse=True)
    table = np.zeros((rows.max() + 1, columns.max() + 1))
    np.add.at(table, (rows, columns), 1)
    return float(chi2_contingency(table).pvalue)


def _packets(num_flows: int) -> list[Ipv4]:
    random = Random(1)
    nics = FAT_TREE_8.nics
    near = FAT_TREE_8.hosts[:4]
    far = FAT_TREE_8.hosts[16:]
    packets: dict[Ipv4, None] = {}
    while len(packets) < num_flows:
        protocol = (Protocol.UDP, Protocol.TCP)[len(packets) % 2]
        packet = Ipv4(
            source=nics[random.choice(near)][0].address,
            destination=nics[random.choice(far)][0].address,
            protocol=protocol,
            source_port=random.randrange(1 << 16),
            destination_port=4791 if protocol is Protocol.UDP else random.randrange(1 << 16),
        )
        packets[packet] = None
    return list(packets)


def _numbered(frame: bytes, number: int) -> bytes:
    """Write a number where fragments have theirs; no switch looks at the checksum."""
    return frame[:_IDENTIFICATION_AT] + struct.pack("!H", number) + frame[_IDENTIFICATION_AT + 2 :]
