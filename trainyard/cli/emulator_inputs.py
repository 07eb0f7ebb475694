"""What ``trainyard emulator`` is given: its fabric, the program and the entries of its switches, and packet sockets.

Bad input ends the command with status 2.
"""

import fnmatch
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.packet_io.messages import PacketAddress
from hostlib.addresses import is_local
from p4src import P4INFO, PROGRAM
from topologies.documents import DocumentError
from topologies.fabric import Fabric
from topologies.files import FileError, read_text
from topologies.lone_switch import lone_switch
from topologies.p4lang import P4langTopology, is_p4lang_topology, p4lang_topology
from trainyard.cli.exits import refuse
from trainyard.cli.inputs import read_topology, read_yaml

if TYPE_CHECKING:
    # Entries need finsy, which bad input and --help do not wait for.
    from emulator.p4runtime.entry_files import EntryFile


@dataclass(frozen=True)
class Given:
    """A fabric, the entries of its switches, and the commands that set hosts up.

    ``is_p4lang`` tells that they are of a topology of p4lang's tutorials.
    """

    fabric: Fabric
    entries: Mapping[str, "EntryFile"]
    commands: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    cpu_port: int | None = None
    is_p4lang: bool = False


def read_given(topology: Path | None, ports: int | None, device_id: int, entries: Iterable[str]) -> Given:
    """Return what a topology file, or a number of ports, and files of entries (``SWITCH=FILE``) say."""
    if (topology is None) == (ports is None):
        refuse("--topology and --ports: expected one of them")
    named = _named(entries, "--entries", "SWITCH=FILE")
    if topology is None:
        assert ports is not None
        fabric = lone_switch(range(ports), device_id)
        return Given(fabric, _entries(fabric, named))
    document = read_yaml(topology)
    if not is_p4lang_topology(document.contents):
        fabric = read_topology(topology).build()
        return Given(fabric, _entries(fabric, named))
    try:
        found = p4lang_topology(document)
    except DocumentError as error:
        refuse(*error.messages)
    own = {name: switch.entries for name, switch in found.switches.items() if switch.entries}
    read = _entries(found.fabric, own | named)
    for name, switch in found.switches.items():
        # Its P4Info is named by the entries alone, and so are both files of its program.
        of_entries = read[name].bmv2_json if name in read else None
        if switch.program not in (None, of_entries):
            named_there = of_entries or "no program"
            refuse(f"{topology}: switches.{name}.program: is {switch.program}, and its entries name {named_there}")
    return Given(
        found.fabric,
        read,
        found.commands,
        _cpu_port(topology, found),
        is_p4lang=True,
    )


def read_pipeline(p4info: Path | None, json: Path | None, given: Given) -> tuple[Path, Path]:
    """Return the files of the program: those that are given, else those that entries name, else Trainyard's own."""
    if (p4info is None) != (json is None):
        refuse("--p4info and --json: expected both or neither, as they are two files of one pipeline")
    if p4info is not None and json is not None:
        return p4info, json
    found = _named_programs(given)
    if found:
        return next(iter(found.values()))
    if given.is_p4lang:
        refuse("the entries name no program; add --p4info and --json")
    return P4INFO, PROGRAM


def programs_of_entries(p4info: Path | None, given: Given) -> dict[str, tuple[Path, Path]]:
    """Return the files of the programs that entries name, by switch; none where a program for all is given."""
    return {} if p4info is not None else _named_programs(given)


def read_programs(programs: Iterable[str], fabric: Fabric) -> dict[str, tuple[Path, Path]]:
    """Return the files of P4Info and JSON (``SWITCHES=P4INFO,JSON``) by switch, of switches with one of their own."""
    found: dict[str, tuple[Path, Path]] = {}
    for program in programs:
        switches, _, files = program.partition("=")
        p4info, _, json = files.partition(",")
        if not (switches and p4info and json):
            refuse(f"--program: expected SWITCHES=P4INFO,JSON, got {program!r}")
        named = fnmatch.filter(fabric.switches, switches)
        if not named:
            refuse(f"--program: expected one or more of the switches {', '.join(fabric.switches)}, got {switches!r}")
        for switch in named:
            if switch in found:
                refuse(f"--program: switch {switch} has two programs")
            found[switch] = Path(p4info), Path(json)
    return found


def _named_programs(given: Given) -> dict[str, tuple[Path, Path]]:
    found = {}
    for switch, each in given.entries.items():
        if (each.p4info is None) != (each.bmv2_json is None):
            refuse(f"the entries of {switch} name p4info or bmv2_json alone; expected both or neither")
        if each.p4info is not None and each.bmv2_json is not None:
            found[switch] = Path(each.p4info), Path(each.bmv2_json)
    return found


def read_packets(packets: Iterable[str], fabric: Fabric, *, insecure: bool) -> dict[str, PacketAddress]:
    """Return the addresses of packet sockets (``SWITCH=ADDRESS``) by switch; others reach them if ``insecure`` only."""
    found = {}
    for switch, text in _named(packets, "--packets", "SWITCH=ADDRESS").items():
        _require_switch(fabric, switch, "--packets")
        try:
            address = found[switch] = PacketAddress.parse(text)
        except ValueError as error:
            refuse(f"--packets {switch}: {error}")
        if address.is_tcp and not (insecure or is_local(address.host_port)):
            refuse(f"--packets {switch}: {address} can be reached from the network, without TLS: give --insecure")
    return found


def read_or_refuse(path: Path) -> str:
    """Return the text of a file."""
    try:
        return read_text(path)
    except FileError as error:
        refuse(str(error))


def _entries(fabric: Fabric, named: Mapping[str, str]) -> dict[str, "EntryFile"]:
    if not named:
        return {}
    from emulator.p4runtime.entry_files import read_entries

    found = {}
    for switch, name in named.items():
        _require_switch(fabric, switch, "--entries")
        try:
            found[switch] = read_entries(Path(name))
        except DocumentError as error:
            refuse(*error.messages)
    return found


def _cpu_port(topology: Path, found: P4langTopology) -> int | None:
    ports = {switch.cpu_port for switch in found.switches.values()} - {None}
    if len(ports) > 1:
        refuse(f"{topology}: expected one cpu_port for all switches, there are {sorted(filter(None, ports))}")
    return ports.pop() if ports else None


def _named(given: Iterable[str], option: str, form: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in given:
        name, separator, value = text.partition("=")
        if not (name and separator and value):
            refuse(f"{option}: expected {form}, got {text!r}")
        if name in found:
            refuse(f"{option}: {name} is given twice")
        found[name] = value
    return found


def _require_switch(fabric: Fabric, switch: str, option: str) -> None:
    if switch not in fabric.switches:
        refuse(f"{option}: the topology has no switch {switch!r}; it has {', '.join(fabric.switches)}")
