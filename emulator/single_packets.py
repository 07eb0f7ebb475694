"""Single packets of a fabric: those that somebody injects, and those that reach NICs and control planes."""

import numpy as np

from emulator.compiler.digests import NUMBER_BYTES
from emulator.engine import state as s
from emulator.engine.packets import take_captured
from emulator.engine.transport import compile_inject, inject
from emulator.observations import Capture, PacketIn
from emulator.parts import Parts
from emulator.tails import ROOM_BYTES, Tails
from topologies.fabric import Fabric


class SinglePackets:
    """Packets that are injected one by one, and all packets that leave the switches other than those of flows."""

    def __init__(self, fabric: Fabric, parts: Parts) -> None:
        self._fabric = fabric
        self._parts = parts
        self.tails = Tails()
        self._captured: list[Capture] = []
        self._packets_in: list[PacketIn] = []

    def inject(self, link: int, octets: bytes, length: int | None) -> None:
        """Let a packet arrive now at the end of a link; see ``EmulatedFabric.inject``."""
        number = s.NONE
        if length is None:
            length, parsed = len(octets), int(self._parts.first.scalars[s.PARSE_BYTES])
            if length > s.OCTETS and parsed < s.OCTETS:
                kept = max(s.OCTETS - ROOM_BYTES, parsed)
                number = self.tails.keep(octets[kept:], self._parts.is_at_rest)
                octets = octets[:kept]
        state = self._parts.with_destination(link)
        packet = put_on_link(state, link, octets, length)
        state.packets[packet, s.PACKET_NUMBER] = number

    def prepare(self) -> None:
        """Compile what packets need, so that the first one does not wait. Nothing may have been captured yet."""
        take_captured(self._parts.first)
        compile_inject(self._parts.first)

    def collect(self) -> None:
        """Move what has reached NICs and control planes out of the engine's arrays."""
        for state in self._parts.states:
            if state.scalars[s.CAPTURES]:
                self._collect_from(state)

    def take_captured(self) -> tuple[Capture, ...]:
        """Return the packets that have reached a NIC since the last call; those of one moment in order of the links."""
        found = sorted(self._captured, key=lambda capture: (capture.time_ps, capture.link))
        self._captured = []
        return tuple(found)

    def take_packets_in(self) -> tuple[PacketIn, ...]:
        """Return the packets that have reached control planes since the last call.

        Those of one moment are in the order of the switches.
        """
        index = self._fabric.switch_index
        found = sorted(self._packets_in, key=lambda packet: (packet.time_ps, index[packet.switch]))
        self._packets_in = []
        return tuple(found)

    def _collect_from(self, state: s.State) -> None:
        for link, time_ps, octets, length, number in take_captured(state):
            octets += self.tails.of(number, length - len(octets))
            if link < len(self._fabric.links):
                self._captured.append(Capture(link, time_ps, octets, length))
                continue
            own_link, switches = link - len(self._fabric.links), self._fabric.switches
            if own_link < 2 * len(switches):
                self._packets_in.append(PacketIn(switches[own_link // 2], time_ps, octets.ljust(length, b"\0")))
            else:
                number, values = int.from_bytes(octets[:NUMBER_BYTES], "big"), octets[NUMBER_BYTES:]
                self._packets_in.append(PacketIn(switches[own_link - 2 * len(switches)], time_ps, values, number))


def put_on_link(state: s.State, link: int, octets: bytes, length: int) -> int:
    """Let a packet arrive now at the end of a link; return its place among the packets of the state.

    Bytes up to ``length`` that are not given are zeros. Raises ValueError for more bytes than a packet stores or has.
    """
    if len(octets) > min(s.OCTETS, length):
        raise ValueError(f"a packet of {length} bytes keeps {min(s.OCTETS, length)}, not {len(octets)}")
    packet = int(state.scalars[s.FREE_PACKET])
    inject(state, link, np.frombuffer(octets, dtype=np.uint8), length)
    return packet
