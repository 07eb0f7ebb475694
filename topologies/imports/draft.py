"""Gathers what sources say of a fabric, each with the place where it stands, and makes a fabric file's contents of it.

The checks of fabric files (``topologies.fabric_problems``) are the only ones of the whole; their problems are told at
the places in the sources that they come from.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from topologies.documents import DocumentError
from topologies.fabric_specification import FabricSpecification
from topologies.imports.port_names import PortNames
from topologies.printable import printable, quoted
from topologies.problems import Location, Problem, place, problem_of_error

End = tuple[str, str]
"""A node and the name of its port or NIC."""

_KEYS_OF_PORTS = {False: ("address", "mac", "gbps"), True: ("number", "gbps")}
_NUMBERS = ("number", "device_id", "node_id")


class ImportFailedError(DocumentError):
    """Sources of which no fabric file can be made; ``messages`` has a line for each problem, with file and line."""


@dataclass(frozen=True, slots=True)
class Defaults:
    """What sources mostly do not say.

    ``gbps`` is the speed of cables, ``port_names`` tell the numbers of ports, and ``p4runtime`` is where a switch is
    controlled, with ``{switch}`` for its name.
    """

    gbps: float | None = None
    delay_us: float | None = None
    gpus_per_host: int | None = None
    port_names: PortNames = field(default_factory=PortNames)
    p4runtime: str | None = None


@dataclass(frozen=True, slots=True)
class _Said:
    value: Any
    place: str


@dataclass(frozen=True, slots=True)
class _Node:
    is_switch: bool
    keys: Mapping[str, Any]
    place: str
    ports: dict[str, str] = field(default_factory=dict)
    """The places that first name its ports, by name, in the order of the cables."""


@dataclass(frozen=True, slots=True)
class _Cable:
    ends: tuple[End, End]
    gbps: float | None
    place: str


class Draft:
    """A fabric that is being put together; ``problems`` has what is wrong so far."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self._nodes: dict[str, _Node] = {}
        self._cables: list[_Cable] = []
        self._said: dict[tuple[End, str], _Said] = {}
        self._places: dict[Location, str] = {(): "the whole"}

    def add_node(self, name: str, place: str, *, is_switch: bool, keys: Mapping[str, Any] | None = None) -> None:
        """Add a host or a switch, with further keys that its part of a fabric file has."""
        first = self._nodes.setdefault(name, _Node(is_switch, keys or {}, place))
        if first.place != place:
            self.problems.append(f"{place}: expected each name once, {quoted(name)} is in {first.place}")

    def knows(self, name: str) -> bool:
        """Tell whether there is a host or switch of this name."""
        return name in self._nodes

    def add_cable(self, ends: tuple[End, End], place: str, gbps: float | None = None) -> None:
        """Add a cable between two ports, with its speed where the source has it."""
        unknown = [node for node, _ in ends if node not in self._nodes]
        self.problems += [f"{place}: expected a device that is known, got {quoted(node)}" for node in unknown]
        if not unknown:
            self._cables.append(_Cable(ends, gbps, place))
            for node, port in ends:
                self._nodes[node].ports.setdefault(port, place)

    def say(self, end: End, key: str, value: Any, place: str) -> None:
        """Add a key of a port or NIC. What is said of ports without a cable stays out of the file."""
        first = self._said.setdefault((end, key), _Said(value, place))
        if key == "address" and _is_ipv6(first.value) != _is_ipv6(value):
            # The fabric reaches a NIC by the other one.
            self._said[end, key] = _Said(value, place) if _is_ipv6(first.value) else first
        elif first.value != value:
            shown = printable(f"{end[0]}:{end[1]}")
            self.problems.append(f"{place}: expected one {key} of {shown}, {first.place} has {first.value}")

    def specification(self, defaults: Defaults) -> FabricSpecification:
        """Return the fabric. Raises ImportFailedError with everything that is wrong or missing."""
        document: dict[str, Any] = {"kind": "fabric", "hosts": [], "switches": [], "cables": []}
        for key, value in (("gpus_per_host", defaults.gpus_per_host), ("delay_us", defaults.delay_us)):
            if value is not None:
                document[key] = value
        is_whole = not self.problems
        for name, node in self._nodes.items():
            if is_whole and not node.ports:
                self.problems.append(f"{node.place}: expected a cable at {quoted(name)}, there is none")
            self._add_node(document, name, node, defaults)
        for cable in self._cables:
            self._add_cable(document["cables"], cable, defaults.gbps)
        try:
            found = FabricSpecification.model_validate(document)
        except ValidationError as error:
            faults = [fault for fault in error.errors() if not (self.problems and _is_consequence(fault))]
            problems = [problem_of_error(fault, document, FabricSpecification) for fault in faults]
            raise self._failure(map(self._in_source, problems)) from error
        if self.problems:
            raise self._failure(())
        return found

    def _add_node(self, document: dict[str, Any], name: str, node: _Node, defaults: Defaults) -> None:
        nodes = document["switches" if node.is_switch else "hosts"]
        at: Location = ("switches" if node.is_switch else "hosts", len(nodes))
        self._places[at] = node.place
        keys = dict(node.keys)
        if node.is_switch and defaults.p4runtime is not None:
            keys.setdefault("p4runtime", defaults.p4runtime.replace("{switch}", name))
        ports: list[dict[str, Any]] = []
        for port, source in node.ports.items():
            here = (*at, "ports" if node.is_switch else "nics", len(ports))
            self._places[here] = source
            ports.append({"name": port, **self._keys_of((name, port), node.is_switch, here, defaults.port_names)})
        nodes.append({"name": name, **keys, "ports" if node.is_switch else "nics": ports})

    def _keys_of(self, end: End, is_switch: bool, here: Location, port_names: PortNames) -> dict[str, Any]:
        keys = {}
        for key in _KEYS_OF_PORTS[is_switch]:
            if (said := self._said.get((end, key))) is not None:
                keys[key], self._places[(*here, key)] = said.value, said.place
        shown = printable(f"{end[0]}:{end[1]}")
        if not is_switch and "address" not in keys:
            self.problems.append(f"{self._places[here]}: expected an address of {shown}; add a row to --addresses")
            keys["address"] = None
        if is_switch and "number" not in keys:
            keys["number"] = port_names.number(end[1])
            if keys["number"] is None:
                missing = f"expected the number of port {shown}, by which P4Runtime knows it"
                self.problems.append(f"{self._places[here]}: {missing}; add --port-names or a row to --interfaces")
        return keys

    def _add_cable(self, cables: list[dict[str, Any]], cable: _Cable, gbps: float | None) -> None:
        at: Location = ("cables", len(cables))
        self._places[at] = cable.place
        keys: dict[str, Any] = {"ends": [f"{node}:{port}" for node, port in cable.ends]}
        if cable.gbps is not None:
            keys["gbps"] = cable.gbps
        elif not any((end, "gbps") in self._said for end in cable.ends):
            keys["gbps"] = gbps
            if gbps is None:
                missing = "expected the speed of this cable; add --gbps, or speeds to --interfaces"
                self.problems.append(f"{cable.place}: {missing}")
        cables.append(keys)

    def _failure(self, others: Iterable[str]) -> ImportFailedError:
        return ImportFailedError(tuple(dict.fromkeys((*self.problems, *others))))

    def _in_source(self, problem: Problem) -> str:
        """Return the message for a problem of the file that would be made, in terms of what it would be made from."""
        known = self._known_part(problem.location)
        rest = place(problem.location[len(known) :])
        message = problem.said(lambda other: self._places[self._known_part(other)])
        return ": ".join(part for part in (self._places[known] if known else "", rest, message) if part)

    def _known_part(self, location: Location) -> Location:
        length = len(location)
        while location[:length] not in self._places:
            length -= 1
        return location[:length]


def _is_ipv6(address: object) -> bool:
    return ":" in str(address)


def _is_consequence(fault: ErrorDetails) -> bool:
    """Tell whether other problems say it better: a value has been asked for, or a source could not be read whole."""
    at, last = fault["loc"][:-1], fault["loc"][-1:]
    is_missing = fault["input"] is None and last in {(key,) for key in ("address", "gbps", *_NUMBERS)}
    return is_missing or last == ("nics",) or len(at) < 2
