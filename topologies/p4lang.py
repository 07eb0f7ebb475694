"""The topology files of p4lang's tutorials: hosts, switches and links in JSON.

    {"hosts": {"h1": {"ip": "10.0.1.1/24", "mac": "08:00:00:00:01:11", "commands": ["ip route add ..."]}, ...},
     "switches": {"s1": {"runtime_json": "s1-runtime.json"}, ...},
     "links": [["h1", "s1-p1"], ["s1-p2", "s2-p2", "5ms", 10], ...]}

A link has two ends, and may have a delay (a number of milliseconds, or text with a unit) and a rate in Mbit/s.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from topologies.documents import Document, DocumentError
from topologies.fabric import Fabric
from topologies.fabric_specification import FabricSpecification
from topologies.problems import Location, Problem, as_list, as_mapping, problem_of_error

_KEYS = {"hosts", "switches", "links"}
_HOST_KEYS = {"ip", "mac", "commands"}
_SWITCH_KEYS = {"runtime_json", "program", "cpu_port", "cli_input", "priority_queues"}
_NIC = "eth0"
_HIGHEST_PORT = 511
_SWITCH_END = re.compile(r"(?P<switch>.+)-p(?P<port>\d{1,3})")
_DELAY = re.compile(r"(?P<number>\d+(\.\d+)?)(?P<unit>us|ms|s|)")
_US = {"": 1.0, "us": 1.0, "ms": 1e3, "s": 1e6}
"""By unit of a text. One without a unit is in microseconds, as ``tc`` has it."""
_DEFAULT_GBPS = 1.0
_MBPS_PER_GBPS = 1000


@dataclass(frozen=True, slots=True)
class P4langSwitch:
    """What a topology file says of a switch beside its links.

    ``entries`` is the file with its program and entries, ``program`` the BMv2 JSON that those must name, where it is
    told, and ``cpu_port`` its port to its controller.
    """

    entries: str | None = None
    program: str | None = None
    cpu_port: int | None = None


@dataclass(frozen=True, slots=True)
class P4langTopology:
    """A topology: its fabric, the switches' files by name, and the commands that set each host up."""

    fabric: Fabric
    switches: Mapping[str, P4langSwitch]
    commands: Mapping[str, tuple[str, ...]]


def is_p4lang_topology(contents: object) -> bool:
    """Return whether a document has the keys of such a topology, and none of a Trainyard topology."""
    return isinstance(contents, Mapping) and contents.keys() >= _KEYS and "topology" not in contents


def p4lang_topology(document: Document) -> P4langTopology:
    """Return the topology of a document. Raises DocumentError with all problems, each with its place."""
    return _Reader(document).topology()


class _Reader:
    def __init__(self, document: Document) -> None:
        self._document = document
        self._contents = as_mapping(document.contents)
        self._problems: list[Problem] = list(document.problems)

    def topology(self) -> P4langTopology:
        for key in sorted(self._contents.keys() - _KEYS):
            self._refuse((key,), "unknown key")
        hosts = {name: as_mapping(host) for name, host in as_mapping(self._contents["hosts"]).items()}
        switches = {name: as_mapping(each) for name, each in as_mapping(self._contents["switches"]).items()}
        cables = list(self._cables(hosts.keys(), switches.keys()))
        found = {name: self._switch(name, switch) for name, switch in switches.items()}
        commands = {name: tuple(self._commands(name, host)) for name, host in hosts.items()}
        document = {
            "kind": "fabric",
            "gpus_per_host": 1,
            "delay_us": 0.0,
            "hosts": [self._host(name, host) for name, host in hosts.items()],
            "switches": [{"name": name, "device_id": number} for number, name in enumerate(switches)],
            "cables": cables,
        }
        self._raise_problems()
        try:
            fabric = FabricSpecification.model_validate(document).build()
        except ValidationError as error:
            self._problems += [problem_of_error(fault, document, FabricSpecification) for fault in error.errors()]
            messages = tuple(f"{self._document.path}: {problem.text_in(document)}" for problem in self._problems)
            raise DocumentError(messages) from error
        return P4langTopology(fabric, found, commands)

    def _host(self, name: str, host: Mapping[str, Any]) -> dict[str, Any]:
        for key in sorted(host.keys() - _HOST_KEYS):
            self._refuse(("hosts", name, key), "unknown key")
        for key in ("ip", "mac"):
            if not isinstance(host.get(key), str):
                self._refuse(("hosts", name, key), "missing; this key is required")
        return {"name": name, "nics": [{"name": _NIC, "address": host.get("ip"), "mac": host.get("mac")}]}

    def _commands(self, name: str, host: Mapping[str, Any]) -> Iterator[str]:
        for number, command in enumerate(as_list(host.get("commands"))):
            if isinstance(command, str):
                yield command
            else:
                self._refuse(("hosts", name, "commands", number), "expected a command as text", str(command))

    def _switch(self, name: str, switch: Mapping[str, Any]) -> P4langSwitch:
        at: Location = ("switches", name)
        for key in sorted(switch.keys() - _SWITCH_KEYS):
            self._refuse((*at, key), "unknown key")
        if "cli_input" in switch:
            self._refuse((*at, "cli_input"), "commands of BMv2's own command line are not supported; use runtime_json")
        port = switch.get("cpu_port")
        if port is not None and not (re.fullmatch(r"\d{1,3}", str(port)) and int(port) <= _HIGHEST_PORT):
            self._refuse((*at, "cpu_port"), f"expected the number of a port up to {_HIGHEST_PORT}", str(port))
            port = None
        files = {key: switch.get(key) for key in ("runtime_json", "program")}
        for key, value in files.items():
            if value is not None and not isinstance(value, str):
                self._refuse((*at, key), "expected the name of a file", str(value))
        return P4langSwitch(files["runtime_json"], files["program"], None if port is None else int(port))

    def _cables(self, hosts: Any, switches: Any) -> Iterator[dict[str, Any]]:
        for number, given in enumerate(as_list(self._contents["links"])):
            at: Location = ("links", number)
            link = as_list(given)
            if not 2 <= len(link) <= 4:
                self._refuse(at, "expected two ends, and perhaps a delay and a rate", str(given))
                continue
            ends = [self._end(end, (*at, side), hosts, switches) for side, end in enumerate(link[:2])]
            delay_us = self._delay_us(link[2], (*at, 2)) if len(link) > 2 else 0.0
            gbps = _DEFAULT_GBPS if len(link) < 4 else self._gbps(link[3], (*at, 3))
            yield {"ends": ends, "delay_us": delay_us, "gbps": gbps}

    def _end(self, end: object, at: Location, hosts: Any, switches: Any) -> str:
        if isinstance(end, str) and end in hosts:
            return f"{end}:{_NIC}"
        found = _SWITCH_END.fullmatch(str(end))
        if found is None or found["switch"] not in switches:
            self._refuse(at, "expected a host, or a switch and its port as s1-p1", str(end))
            return ""
        return f"{found['switch']}:{int(found['port'])}"

    def _delay_us(self, delay: object, at: Location) -> float:
        if isinstance(delay, int | float) and not isinstance(delay, bool) and delay >= 0:
            return delay * 1e3
        found = _DELAY.fullmatch(str(delay))
        if found is None:
            self._refuse(at, "expected a delay: milliseconds, or text such as 5ms", str(delay))
            return 0.0
        return float(found["number"]) * _US[found["unit"]]

    def _gbps(self, rate: object, at: Location) -> float:
        if isinstance(rate, int | float) and not isinstance(rate, bool) and rate > 0:
            return rate / _MBPS_PER_GBPS
        self._refuse(at, "expected a rate in Mbit/s", str(rate))
        return _DEFAULT_GBPS

    def _refuse(self, location: Location, message: str, given: str | None = None) -> None:
        self._problems.append(Problem(location, message, given))

    def _raise_problems(self) -> None:
        if self._problems:
            raise DocumentError(self._document.messages(self._problems))
