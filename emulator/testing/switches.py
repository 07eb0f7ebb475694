"""A switch under test: its entries, packets at its ports, its counters, and what it tells its controller."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from finsy.proto import p4d, p4r
from google.protobuf import text_format

from emulator.entries import CounterValue
from emulator.p4runtime.controller_packets import encode_packet_out
from emulator.p4runtime.device import Device
from emulator.p4runtime.entry_files import read_entries, updates_of
from emulator.p4runtime.errors import RequestError
from emulator.p4runtime.read import read_batch
from emulator.p4runtime.readable import Readable
from emulator.p4runtime.write import write_batch
from emulator.testing.packets import Ignored, PacketLike
from emulator.testing.tables import Table

if TYPE_CHECKING:
    from emulator.testing.networks import Network
    from emulator.testing.programs import Program


@dataclass(frozen=True, slots=True)
class PacketInMessage:
    """A packet that a switch has sent to its controller, with the fields of the program's header by name."""

    payload: bytes
    metadata: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Digest:
    """What a switch has told its controller of a packet: the digest's name, and its values in their order."""

    name: str
    values: tuple[int, ...]


class Switch:
    """One switch of a network, whose program runs from the start.

    A method that writes raises EntryError, a ValueError, for what the program does not have, and AssertionError with
    the switch's words for what the switch refuses.
    """

    def __init__(self, network: "Network", name: str, program: "Program") -> None:
        self.name = name
        self.network = network
        self.readable = Readable(program.pipeline.message.p4info)
        self._device = Device(network.emulated.switches[name], program.pipeline, None)
        self._device.load(())

    # ---- packets ----------------------------------------------------------------------------------------------------

    def send(self, port: int, packet: PacketLike) -> None:
        """Send a packet into a port, and let all packets pass. Raises ValueError for a port without a cable."""
        __tracebackhide__ = True
        link = self.network.link_behind(self.name, port)
        self.network.inject(self.network.emulated.fabric.reverse(link), packet)

    def expect(self, port: int, packet: PacketLike, ignoring: Sequence[Ignored] = ()) -> None:
        """Require that a packet has left by a port, and take it; the order at a port does not matter.

        Args:
            port: The port.
            packet: What is expected, of Scapy or bytes.
            ignoring: Fields and bytes that may be anything, such as ``"IP.chksum"`` or ``slice(0, 6)``.

        Raises:
            AssertionError: No such packet has left there; the text has in which fields the nearest differs, what has
                left elsewhere, what the switch has dropped, and a trace of the packet that was sent last.
        """
        __tracebackhide__ = True
        link = self.network.link_behind(self.name, port)
        self.network.require(link, f"switch {self.name}, port {port}", packet, ignoring)

    def expect_nothing(self) -> None:
        """Require that no further packet has left. Raises AssertionError, which lists those that have."""
        __tracebackhide__ = True
        self.network.expect_nothing()

    def received(self, port: int) -> list[bytes]:
        """Return all packets that have left by a port, and take them."""
        return self.network.take(self.network.link_behind(self.name, port))

    # ---- entries ----------------------------------------------------------------------------------------------------

    def table(self, name: str) -> Table:
        """Return a table. Raises EntryError for an unknown one."""
        return Table(self, self.readable.table(name))

    def load_entries(self, path: Path | str) -> None:
        """Write the entries of a file (``emulator.p4runtime.entry_files``). Raises DocumentError for a bad file."""
        self.write(*updates_of(read_entries(Path(path)), self.readable.schema.p4info))

    def write(self, *updates: p4r.Update | str) -> None:
        """Carry out updates of P4Runtime, each a message or its text. Raises ParseError for a bad text."""
        __tracebackhide__ = True
        messages = [text_format.Parse(each, p4r.Update()) if isinstance(each, str) else each for each in updates]
        self.network.forget_last()
        try:
            write_batch(self._device.require_target(), messages)
        except RequestError as error:
            failed = [result.message for result in getattr(error, "results", ()) if result.canonical_code]
            raise AssertionError(f"switch {self.name} refuses: {'; '.join(failed) or error}") from None

    def read(self, *requests: p4r.Entity | str) -> list[p4r.Entity]:
        """Return the entities that requests of P4Runtime select, each a message or its text."""
        __tracebackhide__ = True
        messages = [text_format.Parse(each, p4r.Entity()) if isinstance(each, str) else each for each in requests]
        entities, results = read_batch(self._device.require_target(), messages)
        failed = [result.message for result in results if result.canonical_code]
        if failed:
            raise AssertionError(f"switch {self.name} refuses: {'; '.join(failed)}")
        return entities

    def add_multicast_group(self, group: int, ports: Sequence[int]) -> None:
        """Send a copy to each of some ports where the program names a multicast group."""
        entry = self.readable.multicast_group(group, [(port, number) for number, port in enumerate(ports)])
        self._insert(packet_replication_engine_entry=entry)

    def add_clone_session(self, session: int, ports: Sequence[int], packet_length_bytes: int = 0) -> None:
        """Send a clone to each of some ports where the program names a session; length 0 clones whole packets."""
        replicas = [(port, number) for number, port in enumerate(ports)]
        self._insert(
            packet_replication_engine_entry=self.readable.clone_session(session, replicas, packet_length_bytes)
        )

    def set_port(self, port: int, *, up: bool) -> None:
        """Take a port down, or bring it up."""
        self.network.emulated.set_port(self.name, port, enabled=up)

    # ---- what it has counted and told -------------------------------------------------------------------------------

    def counter(self, name: str, index: int) -> CounterValue:
        """Return a cell of an indirect counter. Raises EntryError, or AssertionError for an index beyond its end."""
        entry = p4r.CounterEntry(counter_id=self._id(name, "counters"), index=p4r.Index(index=index))
        (found,) = self.read(p4r.Entity(counter_entry=entry))
        return CounterValue(found.counter_entry.data.packet_count, found.counter_entry.data.byte_count)

    def register(self, name: str, index: int) -> int:
        """Return a cell of a register. Raises EntryError, or AssertionError for an index beyond its end."""
        entry = p4r.RegisterEntry(register_id=self._id(name, "registers"), index=p4r.Index(index=index))
        (found,) = self.read(p4r.Entity(register_entry=entry))
        return int.from_bytes(found.register_entry.data.bitstring, "big")

    def set_register(self, name: str, index: int, value: int) -> None:
        """Overwrite a cell of a register. Raises as ``register`` does."""
        data = p4d.P4Data(bitstring=value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big"))
        entry = p4r.RegisterEntry(register_id=self._id(name, "registers"), index=p4r.Index(index=index), data=data)
        self.write(p4r.Update(type=p4r.Update.MODIFY, entity=p4r.Entity(register_entry=entry)))

    def packet_ins(self) -> list[PacketInMessage]:
        """Return the packets that it has sent to its controller since the last call."""
        header = self._schema.packet_in
        found = []
        for packet in self.network.take_packets_in(self.name, digests=False):
            bits, left = int.from_bytes(packet.octets[: header.width_bytes], "big"), 8 * header.width_bytes
            metadata = {}
            for field in header.fields:
                left -= field.width_bits
                if field.id:
                    metadata[field.name] = bits >> left & (1 << field.width_bits) - 1
            found.append(PacketInMessage(packet.octets[header.width_bytes :], metadata))
        return found

    def packet_out(self, packet: PacketLike, **metadata: int) -> None:
        """Send a packet from the controller, with the fields of the program's header, and let all packets pass.

        Raises AssertionError where the fields are not the program's.
        """
        __tracebackhide__ = True
        message = p4r.PacketOut(payload=bytes(packet))
        header = self._schema.packet_out
        ids = {field.name: field.id for field in header.shown}
        if metadata.keys() != ids.keys():
            wanted = ", ".join(ids) or "none"
            raise AssertionError(f"packet_out: its fields are {wanted}; given are {', '.join(metadata) or 'none'}")
        for name, value in metadata.items():
            octets = value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")
            message.metadata.add(metadata_id=ids[name], value=octets)
        try:
            octets = encode_packet_out(header, message)
        except RequestError as error:
            raise AssertionError(str(error)) from None
        self.network.packet_out(self.name, octets)

    def digests(self) -> list[Digest]:
        """Return what it has told its controller of single packets since the last call; nothing must be enabled."""
        by_number = {digest.number: digest for digest in self._schema.digests.values()}
        found = []
        for told in self.network.take_packets_in(self.name, digests=True):
            digest = by_number[told.digest]
            found.append(Digest(digest.name, tuple(_values(digest.data(told.octets)))))
        return found

    # ---- inside -----------------------------------------------------------------------------------------------------

    @property
    def _schema(self) -> Any:
        return self._device.require_target().schema

    def _insert(self, **entity: Any) -> None:
        self.write(p4r.Update(type=p4r.Update.INSERT, entity=p4r.Entity(**entity)))

    def _id(self, name: str, kind: str) -> int:
        full = self.readable.object_name(name, kind)
        objects: Sequence[Any] = getattr(self.readable.schema.p4info, kind)
        return next(int(each.preamble.id) for each in objects if each.preamble.name == full)


def _values(data: p4d.P4Data) -> list[int]:
    """Return the values of a digest, of structs within structs one after another."""
    match data.WhichOneof("data"):
        case "struct":
            return [value for member in data.struct.members for value in _values(member)]
        case "tuple":
            return [value for member in data.tuple.members for value in _values(member)]
    return [int.from_bytes(data.bitstring, "big")]
