"""The parts of a fabric file: hosts with NICs, switches with ports, and cables, each checked by itself."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from topologies.addressing import MAX_PORTS_PER_SWITCH, Address, Interface, MacAddress, address_and_length
from topologies.base_specification import DelayUs, Gbps
from topologies.fabric import Control
from topologies.names import PlainName
from topologies.openflow_specification import OpenFlowSpecification
from topologies.server_addresses import ServerAddress
from topologies.targets import Target

MAX_NODE_ID = 0xFFFF_FFFE
"""INT has 32 bits for it; all ones means unknown."""

_SHORTEST_PREFIX = 8


def _node_name(name: str) -> str:
    if ":" in name:
        raise ValueError("expected a name without a colon, which separates node and port in the ends of cables")
    return name


def _port_name(name: str) -> str:
    if not name.isprintable() or name != name.strip():
        raise ValueError("expected printable characters")
    return name


def _address(text: str) -> str:
    """Check an address of one interface."""
    _require_unicast(Address.parse(text), text)
    return text


def _interface_address(text: str) -> str:
    address, length = address_and_length(text, _SHORTEST_PREFIX)
    _require_unicast(address, str(address))
    host_bits = (1 << 32 - length) - 1
    if length < 31 and address & host_bits in (0, host_bits):
        raise ValueError("expected the address of a NIC, this is that of its subnet or of all its NICs")
    return text


def _require_unicast(address: Address, text: str) -> None:
    if address >> 24 in (0, 127) or address >> 28 >= 0xE:
        raise ValueError(f"expected the address of one interface in a network: {text!r}")


def _end(text: str) -> str:
    node, colon, port = text.partition(":")
    if not (node and colon and port):
        raise ValueError("expected NODE:PORT")
    return text


def _mac(text: str) -> str:
    MacAddress.parse(text)
    return text


NodeName = Annotated[PlainName, AfterValidator(_node_name)]
PortName = Annotated[str, Field(min_length=1, max_length=64), AfterValidator(_port_name)]
PortNumber = Annotated[int, Field(strict=True, ge=1, le=MAX_PORTS_PER_SWITCH)]
InterfaceAddress = Annotated[str, AfterValidator(_interface_address)]
ManagementAddress = Annotated[str, AfterValidator(_address)]
End = Annotated[str, Field(max_length=300), AfterValidator(_end)]
"""A node and its port or NIC, as ``leaf:Ethernet1/1``."""

_FROZEN = ConfigDict(frozen=True, extra="forbid")


class NicSpecification(BaseModel):
    """A NIC: what its host calls it, its address and subnet, and its MAC; without one, ARP tells it."""

    model_config = _FROZEN

    name: PortName
    address: InterfaceAddress
    mac: Annotated[str, AfterValidator(_mac)] | None = None
    gbps: Gbps | None = None

    @property
    def interface(self) -> Interface:
        """The NIC as a fabric has it."""
        mac = None if self.mac is None else MacAddress.parse(self.mac)
        return Interface(self.name, *address_and_length(self.address, _SHORTEST_PREFIX), mac)


class HostSpecification(BaseModel):
    """A host, with its NICs in order."""

    model_config = _FROZEN

    name: NodeName
    nics: tuple[NicSpecification, ...]
    management: ManagementAddress | None = None


class BreakoutSpecification(BaseModel):
    """Several ports at one connector, each with so many Gbit/s."""

    model_config = _FROZEN

    lanes: Annotated[int, Field(strict=True, ge=2, le=8)]
    gbps: Gbps


@dataclass(frozen=True, slots=True)
class Port:
    """A port of a switch, as cables reach it."""

    name: str
    number: int
    gbps: float | None


class PortSpecification(BaseModel):
    """A port: its name, the number that P4Runtime knows it by, and its speed.

    With ``breakout``, the connector has as many ports: the names end with ``/1``, ``/2`` and so on, and the numbers
    follow each other.
    """

    model_config = _FROZEN

    name: PortName
    number: PortNumber
    gbps: Gbps | None = None
    breakout: BreakoutSpecification | None = None

    def lanes(self) -> Iterator[Port]:
        """Iterate over the ports at the connector."""
        if self.breakout is None:
            yield Port(self.name, self.number, self.gbps)
        else:
            for lane in range(self.breakout.lanes):
                yield Port(f"{self.name}/{lane + 1}", self.number + lane, self.breakout.gbps)


class SwitchSpecification(BaseModel):
    """A switch: where it is controlled, how INT knows it, and its ports.

    Where no ports are listed, the ends of cables have their numbers.
    """

    model_config = _FROZEN

    name: NodeName
    p4runtime: ServerAddress | None = None
    openflow: OpenFlowSpecification | None = None
    """In the place of ``p4runtime``, where it speaks OpenFlow."""
    device_id: Annotated[int, Field(strict=True, ge=0, lt=1 << 64)] = 1
    gnmi: ServerAddress | None = None
    node_id: Annotated[int, Field(strict=True, ge=1, le=MAX_NODE_ID)] | None = None
    """Its number in INT; None: its position in the file, from 1."""
    management: ManagementAddress | None = None
    control: Control = Control.OURS
    target: Target = Target.BMV2
    """What our pipeline runs on there."""
    mac: Annotated[str, AfterValidator(_mac)] | None = None
    """That of its router, to which its neighbours send; None: Trainyard's own, which no other pipeline has."""
    ports: tuple[PortSpecification, ...] = ()

    @model_validator(mode="after")
    def _speaks_one_protocol(self) -> Self:
        others = sorted({"p4runtime", "device_id", "gnmi", "target"} & self.model_fields_set)
        if self.openflow is not None and others:
            raise ValueError(f"expected openflow alone, there is {', '.join(others)} beside it")
        if self.control is Control.DSCP_ONLY and self.target is not Target.BMV2:
            raise ValueError(f"expected no target where control is dscp_only, there is {self.target}")
        return self

    @property
    def cabled_ports(self) -> Iterator[Port]:
        """All ports that cables may reach, where they are listed."""
        return (lane for port in self.ports for lane in port.lanes())


class CableSpecification(BaseModel):
    """A cable; where neither it nor its ends say a speed, it has none. ``delay_us`` overrides the topology's."""

    model_config = _FROZEN

    ends: tuple[End, End]
    gbps: Gbps | None = None
    delay_us: DelayUs | None = None

    @property
    def split_ends(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """Node and port of both ends."""
        (first, _, first_port), (second, _, second_port) = (end.partition(":") for end in self.ends)
        return (first, first_port), (second, second_port)
