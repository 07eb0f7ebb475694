"""A fabric of three switches in a row with programs of their own, and what lone interpreters make of its packets."""

import json
from collections import Counter
from dataclasses import dataclass, field
from functools import cache

from emulator.compiler.program import Program, compile_program
from emulator.fabric import EmulatedFabric
from emulator.replication import Replica, Replication, Replicator
from tests.bmv2.replication_sessions import GROUP, SESSION
from tests.bmv2.small_programs import DIGESTS, LOOPS, REPLICATION, SmallProgram
from tests.emulator.interpreter import DROP_PORT, Interpreter
from tests.emulator.replicating_interpreter import ReplicatingInterpreter
from topologies.fabric import Cable, Fabric

COPIES, LEARNS, SUMS = "copies", "learns", "sums"
"""The switches; each has the program that its name tells of, unless it is given another."""
PROGRAM_OF = {COPIES: REPLICATION, LEARNS: DIGESTS, SUMS: LOOPS}
CPU_PORT = 510
SESSIONS = Replication((Replica(2, 3), Replica(CPU_PORT, 4)))
GROUPS = Replication((Replica(1, 7), Replica(2, 8), Replica(CPU_PORT, 9)))
LATER_PS = 10**9
MOST_ARRIVALS = 300


class EndlessError(Exception):
    """A packet's copies have no end."""


@cache
def compiled(program: SmallProgram) -> Program:
    """A small program, compiled once."""
    return compile_program(program.json.read_text())


def row() -> Fabric:
    """Three switches, each with a host: ``copies`` (host, learns), ``learns`` (copies, host, sums), ``sums``."""
    ends = [("a", COPIES), (COPIES, LEARNS), ("b", LEARNS), (LEARNS, SUMS), ("c", SUMS)]
    cables = tuple(Cable((one, other), 1e12, 0.0) for one, other in ends)
    return Fabric(("a", "b", "c"), (COPIES, LEARNS, SUMS), cables, 1)


def prepare(emulated: EmulatedFabric, switch: str) -> None:
    """Empty a switch, and give it the copies of its group and session where its program makes any."""
    control = emulated.switches[switch]
    control.clear()
    if emulated.programs[switch].resources.replicates:
        control.replication(Replicator.SESSION).insert(SESSION, SESSIONS)
        control.replication(Replicator.GROUP).insert(GROUP, GROUPS)


def lone(program: SmallProgram) -> Interpreter:
    """The plain interpreter of a program, with the same copies."""
    document = json.loads(program.json.read_text())
    if program is not REPLICATION:
        return Interpreter(document)
    reference = ReplicatingInterpreter(document)
    reference.sessions[SESSION], reference.multicast_groups[GROUP] = SESSIONS, GROUPS
    return reference


@dataclass
class Seen:
    """What has reached hosts (by name) and control planes (by switch); digests have their number."""

    at_hosts: Counter[tuple[str, bytes]] = field(default_factory=Counter)
    at_control: Counter[tuple[str, bytes]] = field(default_factory=Counter)
    digests: Counter[tuple[str, int]] = field(default_factory=Counter)


def link_into(fabric: Fabric, switch: str, port: int) -> int:
    """The link that arrives at a port."""
    return next(link.index for link in fabric.links if (link.destination, link.destination_port) == (switch, port))


def emulate(emulated: EmulatedFabric, switch: str, port: int, octets: bytes) -> Seen:
    """Let a packet arrive, and see what comes of it."""
    emulated.inject(link_into(emulated.fabric, switch, port), octets)
    emulated.run(emulated.now_ps + LATER_PS)
    return seen_in(emulated)


def seen_in(emulated: EmulatedFabric) -> Seen:
    """What has come out of the fabric since it was looked at last."""
    seen = Seen()
    for capture in emulated.captured():
        whole = capture.octets.ljust(capture.length, b"\0")
        seen.at_hosts[emulated.fabric.links[capture.link].destination, whole] += 1
    for packet in emulated.packets_in():
        if packet.digest:
            seen.digests[packet.switch, packet.digest] += 1
        else:
            seen.at_control[packet.switch, packet.octets] += 1
    return seen


def interpret(fabric: Fabric, programs: dict[str, Interpreter], switch: str, port: int, octets: bytes) -> Seen:
    """What lone interpreters, joined as the fabric is, make of a packet; a switch without one drops.

    Raises EndlessError for a packet that circles, or multiplies, between switches.
    """
    seen, arriving, arrivals = Seen(), [(switch, port, octets)], 0
    while arriving:
        arrivals += 1
        if arrivals > MOST_ARRIVALS:
            raise EndlessError
        at, port, octets = arriving.pop()
        reference = programs.get(at)
        if reference is None:
            continue
        if isinstance(reference, ReplicatingInterpreter):
            leaving = reference.process_all(octets, port)
        else:
            sent = reference.process(octets, port)
            leaving = [sent] if sent else []
            if reference.program["program"].startswith("digests") and octets[:1] in (b"\1", b"\2"):
                seen.digests[at, octets[0]] += 1
        for sent in leaving:
            if sent.port == CPU_PORT:
                seen.at_control[at, sent.octets] += 1
            elif sent.port != DROP_PORT:
                for link in fabric.links_from[at]:
                    if link.source_port == sent.port and link.destination in fabric.switch_index:
                        arriving.append((link.destination, link.destination_port, sent.octets))
                    elif link.source_port == sent.port:
                        seen.at_hosts[link.destination, sent.octets] += 1
    return seen
