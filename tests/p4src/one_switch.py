"""One emulated switch with a host on each of its ports: packets in, packets out."""

from dataclasses import dataclass

from emulator.compiler.program import compile_program
from emulator.entries import ActionCall, CounterValue, EntryKey, FieldMatch, MemberReference
from emulator.fabric import EmulatedFabric
from p4src import PROGRAM
from tests.p4src.packets import Ipv4
from topologies.fabric import Cable, Fabric

HOSTS = 3
ADDRESSES = {port: 0x0A_00_00_00 + port for port in range(1, HOSTS + 1)}
SWITCH_MAC = 0x02_00_00_00_FF_00
HOST_MAC = 0x02_00_00_00_00_00
MAX_LEVELS = 8
_SWITCH = "switch"
_US_IN_PS = 1_000_000


@dataclass(frozen=True, slots=True)
class Sent:
    """A packet that left by a port."""

    port: int
    octets: bytes


class OneSwitch:
    """Host n has address 10.0.0.n on port n; next hop n is that host, and level n is class selector n."""

    def __init__(self, rate_bps: float = 1e12) -> None:
        hosts = tuple(f"host{port}" for port in ADDRESSES)
        fabric = Fabric(hosts, (_SWITCH,), tuple(Cable((host, _SWITCH), rate_bps, 0.0) for host in hosts), 1)
        self._emulated = EmulatedFabric(fabric, compile_program(PROGRAM.read_text()))
        self._to_switch = {link.destination_port: link.index for link in fabric.links if link.destination == _SWITCH}
        self._port_of = {link.index: link.source_port for link in fabric.links if link.source == _SWITCH}
        self.control = self._emulated.switches[_SWITCH]
        self.control.clear()
        for port, address in ADDRESSES.items():
            forward = ActionCall("ingress.forward", (port, SWITCH_MAC + port, HOST_MAC + port))
            self.insert("ingress.next_hop", port, forward)
            self.control.insert_member("ingress.ecmp", port, ActionCall("ingress.set_next_hop", (port,)))
            key = EntryKey((FieldMatch(address, 0xFFFF_FFFF),))
            self.control.insert("ingress.routing", key, MemberReference(port))
        for level in range(1, MAX_LEVELS):
            for other_bits in range(0, 8, 2):
                self.insert("ingress.level", level << 3 | other_bits, ActionCall("ingress.set_level", (level,)))

    def insert(self, table: str, value: int, action: ActionCall) -> None:
        """Add an entry to a table with one exact field."""
        widths = {"ingress.level": 6, "ingress.next_hop": 16, "ingress.traffic_class": 3}
        mask = (1 << widths.get(table, 9)) - 1
        self.control.insert(table, EntryKey((FieldMatch(value, mask),)), action)

    def insert_flow(self, packet: Ipv4, action: ActionCall) -> EntryKey:
        """An entry for the flow of a packet; its key is returned."""
        fields = (packet.source, 32), (packet.destination, 32), (packet.protocol, 8)
        ports = (packet.source_port, 16), (packet.destination_port, 16)
        key = EntryKey(tuple(FieldMatch(int(value), (1 << bits) - 1) for value, bits in (*fields, *ports)))
        self.control.insert("ingress.flow", key, action)
        return key

    @property
    def now_us(self) -> int:
        """The switch's clock."""
        return self._emulated.now_ps // _US_IN_PS

    def wait(self, until_us: int) -> None:
        """Let time pass."""
        self._emulated.run(until_us * _US_IN_PS)

    def send(self, port: int, *frames: bytes) -> list[Sent]:
        """Let frames arrive at a port at once, and return what leaves within a millisecond, in order."""
        for frame in frames:
            # The emulator need not keep the zeros at a packet's end.
            self._emulated.inject(self._to_switch[port], frame.rstrip(b"\0"), len(frame))
        self.wait(self.now_us + 1000)
        captured = self._emulated.captured()
        return [Sent(self._port_of[packet.link], packet.octets.ljust(packet.length, b"\0")) for packet in captured]

    def packet_out(self, octets: bytes) -> list[Sent]:
        """Let the controller send, header and all."""
        self._emulated.packet_out(_SWITCH, octets)
        return self.send(1)

    def packets_in(self) -> list[bytes]:
        """What has come to the controller, header and all."""
        return [packet.octets for packet in self._emulated.packets_in()]

    def dropped(self) -> dict[int, int]:
        """Packets dropped by the program, by reason."""
        counts = {reason: self.control.counter("ingress.drop_counter", reason).packets for reason in range(8)}
        return {reason: packets for reason, packets in counts.items() if packets}

    def sent(self, port: int, level: int) -> CounterValue:
        """What a port has sent from the queue of a level."""
        return self.control.counter("egress.level_counter", port * MAX_LEVELS + level)
