"""Checks of a fabric file as a whole: every problem that single values do not show, with its location.

What is wrong by itself is left out here, and its name stays known: one mistake is one message.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from topologies.addressing import MAX_HOSTS, MAX_NICS_PER_HOST, MAX_PORTS_PER_SWITCH, MacAddress, Prefix
from topologies.fabric import Control
from topologies.fabric_parts import CableSpecification, HostSpecification, NicSpecification, SwitchSpecification
from topologies.graph_checks import unreached_switches
from topologies.problems import OTHER_PLACE, Location, Problem, as_list, as_mapping
from topologies.targets import TARGETS

_PORT_NUMBERS = frozenset(map(str, range(1, MAX_PORTS_PER_SWITCH + 1)))

_End = tuple[str, str]
_Part = TypeVar("_Part", bound=BaseModel)


def fabric_problems(document: Mapping[str, Any]) -> list[Problem]:
    """Return all problems of a ``topology:`` of kind ``fabric`` as a whole.

    Names of nodes are unique, and so are, each for itself, NICs of a host, names and numbers of ports of a switch,
    addresses, MACs, management addresses, nodes of INT and devices of P4Runtime. Subnets are the same or apart. A cable
    connects two ports that are there, one of them a switch's, none a CPU's, and no other cable has; all that say its
    speed agree.
    Every NIC has a cable, and all switches reach each other.
    """
    hosts = _drafts(document, "hosts", HostSpecification, "nics")
    switches = _drafts(document, "switches", SwitchSpecification, "ports")
    cables = _drafts(document, "cables", CableSpecification)
    found = [
        *_sizes(document),
        *_same_names(document),
        *_same_values(hosts, switches),
        *_overlapping_subnets(hosts),
    ]
    cabling = _Cabling(document, hosts, switches)
    found += cabling.problems(cables)
    if len(cables) == len(as_list(document.get("cables"))):
        found += cabling.uncabled_nics()
    if not found and len(switches) == len(as_list(document.get("switches"))):
        found += _unreachable(switches, cables)
    return found


@dataclass(frozen=True, slots=True)
class _Draft(Generic[_Part]):
    """What is right of a part, with the positions that its NICs or ports have in the document."""

    part: _Part
    kept: tuple[int, ...]
    is_whole: bool


_Hosts = Mapping[int, _Draft[HostSpecification]]
_Switches = Mapping[int, _Draft[SwitchSpecification]]


def _nics(hosts: _Hosts) -> Iterator[tuple[Location, str, NicSpecification]]:
    """Iterate over the NICs that are right, with their locations and hosts."""
    for position, draft in hosts.items():
        for number, nic in zip(draft.kept, draft.part.nics, strict=True):
            yield ("hosts", position, "nics", number), draft.part.name, nic


def _drafts(document: Mapping[str, Any], key: str, kind: type[_Part], members: str = "") -> dict[int, _Draft[_Part]]:
    """Return what is right of parts, by position; none of those that have no name.

    ``members`` is the key of a part's NICs or ports, of which some may be right.
    """
    found = {}
    for position, item in enumerate(as_list(document.get(key))):
        kept = tuple(range(len(as_list(as_mapping(item).get(members)))))
        try:
            found[position] = _Draft(kind.model_validate(item), kept, True)
        except ValidationError as error:
            faults = [fault["loc"] for fault in error.errors()]
            wrong = {place[1] for place in faults if place[:1] == (members,) and len(place) > 1}
            kept = tuple(number for number in kept if number not in wrong)
            rest = {name: value for name, value in as_mapping(item).items() if (name,) not in [at[:1] for at in faults]}
            if kept:
                rest[members] = [item[members][number] for number in kept]
            try:
                found[position] = _Draft(kind.model_validate({members: []} | rest if members else rest), kept, False)
            except ValidationError:
                continue
    return found


def _sizes(document: Mapping[str, Any]) -> Iterator[Problem]:
    for key in ("hosts", "switches"):
        given = document.get(key)
        if isinstance(given, Sequence) and not given:
            yield Problem((key,), "expected at least one, there is none")
    if (num_hosts := len(as_list(document.get("hosts")))) > MAX_HOSTS:
        yield Problem(("hosts",), f"expected at most {MAX_HOSTS:,} hosts", num_hosts)


def _names(document: Mapping[str, Any]) -> Iterator[tuple[Location, str]]:
    """Iterate over the names of nodes, whatever else is wrong with these, with their locations."""
    for key in ("hosts", "switches"):
        for position, item in enumerate(as_list(document.get(key))):
            if isinstance(name := as_mapping(item).get("name"), str):
                yield (key, position, "name"), name


class _Unique:
    """Finds values that are there twice."""

    def __init__(self) -> None:
        self._first: dict[Hashable, Location] = {}

    def repeated(self, value: Hashable, location: Location, what: str, shown: object = None) -> Iterator[Problem]:
        first = self._first.setdefault(value, location)
        if first != location:
            shown = value if shown is None else shown
            yield Problem(location, f"expected another {what} than that of {OTHER_PLACE}", str(shown), first)


def _same_names(document: Mapping[str, Any]) -> Iterator[Problem]:
    names = _Unique()
    for location, name in _names(document):
        yield from names.repeated(name, location, "name")


def _same_values(hosts: _Hosts, switches: _Switches) -> Iterator[Problem]:
    addresses, macs, management, nodes, devices, datapaths = (_Unique() for _ in range(6))
    for at, _, nic in _nics(hosts):
        yield from addresses.repeated(nic.interface.address, (*at, "address"), "address")
        if nic.interface.mac is not None:
            yield from macs.repeated(nic.interface.mac, (*at, "mac"), "MAC")
    for position, draft in hosts.items():
        yield from _same_nics(draft, ("hosts", position, "nics"))
        if draft.part.management is not None:
            yield from management.repeated(draft.part.management, ("hosts", position, "management"), "address")
    for position, of_switch in switches.items():
        at, switch = ("switches", position), of_switch.part
        if switch.management is not None:
            yield from management.repeated(switch.management, (*at, "management"), "address")
        if switch.mac is not None:
            yield from macs.repeated(MacAddress.parse(switch.mac), (*at, "mac"), "MAC")
        if of_switch.is_whole:
            node_id = position + 1 if switch.node_id is None else switch.node_id
            yield from nodes.repeated(node_id, (*at, "node_id"), "node id")
            if switch.p4runtime is not None:
                device = switch.p4runtime, switch.device_id
                yield from devices.repeated(device, (*at, "device_id"), "device at this address", switch.device_id)
            if switch.openflow is not None:
                datapath_id = switch.openflow.datapath_id
                location = (*at, "openflow", "datapath_id")
                yield from datapaths.repeated(datapath_id, location, "datapath", f"{datapath_id:#x}")
        yield from _same_ports(of_switch, (*at, "ports"))


def _same_nics(host: _Draft[HostSpecification], at: Location) -> Iterator[Problem]:
    names = _Unique()
    if host.is_whole and not host.part.nics:
        yield Problem(at, "expected at least one NIC, there is none")
    if len(host.part.nics) > MAX_NICS_PER_HOST:
        yield Problem(at, f"expected at most {MAX_NICS_PER_HOST} NICs", len(host.part.nics))
    for number, nic in zip(host.kept, host.part.nics, strict=True):
        yield from names.repeated(nic.name, (*at, number, "name"), "name")


def _same_ports(switch: _Draft[SwitchSpecification], at: Location) -> Iterator[Problem]:
    names, numbers = _Unique(), _Unique()
    for place, connector in zip(switch.kept, switch.part.ports, strict=True):
        for port in connector.lanes():
            yield from names.repeated(port.name, (*at, place, "name"), "name")
            yield from numbers.repeated(port.number, (*at, place, "number"), "number")
            if port.number > MAX_PORTS_PER_SWITCH:
                yield Problem((*at, place, "breakout"), f"expected ports up to {MAX_PORTS_PER_SWITCH}", port.number)
        if connector.gbps is not None and connector.breakout is not None:
            yield Problem((*at, place, "gbps"), "expected no speed beside that of breakout", connector.gbps)


def _overlapping_subnets(hosts: _Hosts) -> Iterator[Problem]:
    """Of each subnet that is within another one, tell the first NIC that has it."""
    first: dict[Prefix, Location] = {}
    for at, _, nic in _nics(hosts):
        first.setdefault(nic.interface.subnet, (*at, "address"))
    # In this order, a subnet comes behind all that hold it.
    around: list[Prefix] = []
    for subnet in sorted(first):
        while around and not around[-1].overlaps(subnet):
            around.pop()
        if around:
            outer = around[-1]
            message = f"expected a subnet apart from {outer}, which {OTHER_PLACE} is in"
            yield Problem(first[subnet], message, str(subnet), first[outer])
        around.append(subnet)


class _Cabling:
    """The ports that are there, and the cables that take them."""

    def __init__(self, document: Mapping[str, Any], hosts: _Hosts, switches: _Switches) -> None:
        self._nics = tuple(_nics(hosts))
        self._hosts = {draft.part.name for draft in hosts.values()}
        self._only_hosts = self._hosts - {draft.part.name for draft in switches.values()}
        self._speeds_gbps: dict[_End, float | None] = {(host, nic.name): nic.gbps for _, host, nic in self._nics}
        self._numbered: set[str] = set()
        """Switches that list no ports."""
        for draft in switches.values():
            switch = draft.part
            if draft.is_whole and not switch.ports:
                self._numbered.add(switch.name)
            self._speeds_gbps |= {(switch.name, port.name): port.gbps for port in switch.cabled_ports}
        self._whole = {draft.part.name for each in (hosts, switches) for draft in each.values() if draft.is_whole}
        self._known = {name for _, name in _names(document)}
        self._taken: dict[_End, int] = {}
        self._cpu_ports = {end: port for draft in switches.values() for end, port in _cpu_ports(draft.part)}

    def problems(self, cables: Mapping[int, _Draft[CableSpecification]]) -> Iterator[Problem]:
        """Return the problems of cables, in order."""
        for position, draft in cables.items():
            at, cable = ("cables", position), draft.part
            ends = cable.split_ends
            faults = [fault for side in (0, 1) for fault in self._end(ends[side], (*at, "ends", side), position)]
            yield from faults
            if faults or not self._whole.issuperset((ends[0][0], ends[1][0])):
                continue
            if ends[0][0] == ends[1][0]:
                yield Problem((*at, "ends", 1), "expected another node than that of the first end", cable.ends[1])
            elif self._only_hosts.issuperset((ends[0][0], ends[1][0])):
                both = f"{ends[0][0]!r} and {ends[1][0]!r} are both hosts"
                yield Problem((*at, "ends"), f"expected a switch at one end, {both}")
            if draft.is_whole:
                yield from self._speed(cable, at)

    def uncabled_nics(self) -> Iterator[Problem]:
        """Return the NICs without a cable."""
        for at, host, nic in self._nics:
            if (host, nic.name) not in self._taken:
                yield Problem(at, f"expected a cable at {host}:{nic.name}, there is none")

    def _end(self, end: _End, location: Location, position: int) -> Iterator[Problem]:
        node, port = end
        shown = f"{node}:{port}"
        if node not in self._known:
            yield Problem(location, "expected a host or switch of the topology", shown)
        elif end in self._cpu_ports:
            yield Problem(location, f"expected another port than {self._cpu_ports[end]}, that of the CPU", shown)
        elif node in self._numbered:
            if port not in _PORT_NUMBERS:
                limit = f"up to {MAX_PORTS_PER_SWITCH}"
                yield Problem(location, f"expected the number of a port {limit}, as {node!r} lists no ports", shown)
        elif node in self._whole and end not in self._speeds_gbps:
            kind = "NIC" if node in self._hosts else "port"
            yield Problem(location, f"expected a {kind} of {node!r}", shown)
        if (first := self._taken.setdefault(end, position)) != position:
            yield Problem(location, f"expected a port that {OTHER_PLACE} has not taken", shown, ("cables", first))

    def _speed(self, cable: CableSpecification, at: Location) -> Iterator[Problem]:
        sides = [self._speeds_gbps.get(end) for end in cable.split_ends]
        said = {
            place: gbps
            for place, gbps in (("this cable", cable.gbps), *zip(cable.ends, sides, strict=True))
            if gbps is not None
        }
        if not said:
            yield Problem((*at, "gbps"), "missing; neither the cable nor a port at its ends says how fast it is")
        elif len(set(said.values())) > 1:
            differ = ", ".join(f"{place} has {gbps:g} Gbit/s" for place, gbps in said.items())
            yield Problem(at, f"expected one speed, {differ}")


def _cpu_ports(switch: SwitchSpecification) -> Iterator[tuple[_End, int]]:
    """Iterate over the end of cables that is a switch's port to its CPU, if cables could reach it, and its number."""
    number = TARGETS[switch.target].cpu_port
    if switch.openflow is None and switch.control is Control.OURS:
        names = [port.name for port in switch.cabled_ports if port.number == number] if switch.ports else [str(number)]
        yield from (((switch.name, name), number) for name in names)


def _unreachable(switches: _Switches, cables: Mapping[int, _Draft[CableSpecification]]) -> Iterator[Problem]:
    positions = {draft.part.name: position for position, draft in switches.items()}
    names = tuple(positions)
    ends = (draft.part.split_ends for draft in cables.values())
    for switch in unreached_switches(names, ((first, second) for (first, _), (second, _) in ends)):
        reason = f"switch {switch!r} has no path to switch {names[0]!r}"
        yield Problem(("switches", positions[switch]), f"expected a connected fabric: {reason}")
