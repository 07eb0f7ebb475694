"""What is seen at ports: beacons of our switches, and what hosts say of themselves."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from controller.discovery.beacons import PERIOD_S
from controller.links.port_states import Port
from topologies.addressing import Address, MacAddress

SILENCE_S = 3.5 * PERIOD_S
"""A port that has heard nothing for so long hears nothing: three beacons are lost. Longer where beacons are rarer."""
PORT_MEMORY = 5
"""At a host's port, where beacons may be so many times as rare, what was heard counts so many times as long."""
HOST_MEMORY_S = 60.0
"""For so long it counts what a host has said of itself at a port, and of its probes."""


@dataclass(frozen=True, slots=True)
class Heard:
    """The beacon that a port has heard last, or the probe that has come to it: of which port, and when."""

    sender: Port
    heard_s: float


@dataclass(frozen=True, slots=True)
class HostClaim:
    """What a host says at a port, which anybody can say: its address and MAC by ARP, or its name by LLDP."""

    address: Address | None
    mac: MacAddress | None
    name: str
    heard_s: float


@dataclass(frozen=True, slots=True)
class Sightings:
    """All that was seen by some time, for a function that compares it with the fabric file.

    ``sends_since_s`` has the ports that send beacons, and since when. ``unanswered`` has the addresses that ARP has
    asked for in vain, and ``silence_s`` is after how long a port hears nothing. ``probed`` has what hosts say of their
    probes: at which port they came in, where the file has another one at the other end.
    """

    heard: Mapping[Port, Heard] = field(default_factory=dict)
    claims: Mapping[Port, HostClaim] = field(default_factory=dict)
    sends_since_s: Mapping[Port, float] = field(default_factory=dict)
    unanswered: frozenset[Address] = frozenset()
    silence_s: float = SILENCE_S
    probed: Mapping[Port, Heard] = field(default_factory=dict)


class SightingTable:
    """Collects sightings; a port that goes down or comes up begins anew.

    Example::

        table.hear(("leaf", 3), ("spine", 1), now_s)
        differences(cabling, table.sightings(unanswered), now_s)
    """

    def __init__(self) -> None:
        self._heard: dict[Port, Heard] = {}
        self._claims: dict[Port, HostClaim] = {}
        self._sends_since_s: dict[Port, float] = {}
        self._probed: dict[Port, Heard] = {}

    def hear(self, receiver: Port, sender: Port, now_s: float) -> None:
        """Record a beacon."""
        self._heard[receiver] = Heard(sender, now_s)

    def probe(self, receiver: Port, sender: Port, now_s: float) -> None:
        """Record what a host says of a probe."""
        self._probed[receiver] = Heard(sender, now_s)

    def claim(self, port: Port, claim: HostClaim) -> None:
        """Record what a host says; one claim is kept for each port."""
        self._claims[port] = claim

    def sends(self, port: Port, now_s: float) -> None:
        """Record that a port sends beacons."""
        self._sends_since_s.setdefault(port, now_s)

    def hold(self, away: Collection[str], elapsed_s: float) -> None:
        """Let no time pass for cables at switches that the controller does not reach, who send no beacons."""
        for receiver, heard in self._heard.items():
            if receiver[0] in away or heard.sender[0] in away:
                self._heard[receiver] = Heard(heard.sender, heard.heard_s + elapsed_s)
        for port in [port for port in self._sends_since_s if port[0] in away]:
            del self._sends_since_s[port]

    def hold_all(self, elapsed_s: float) -> None:
        """Let no time pass for anybody: the controller itself stood still, and sent and took nothing."""
        for receiver, heard in self._heard.items():
            self._heard[receiver] = Heard(heard.sender, heard.heard_s + elapsed_s)
        for port, since_s in self._sends_since_s.items():
            self._sends_since_s[port] = since_s + elapsed_s

    def forget(self, port: Port) -> None:
        """Forget what was seen at a port."""
        for table in (self._heard, self._claims, self._sends_since_s, self._probed):
            table.pop(port, None)

    def sightings(self, unanswered: frozenset[Address], silence_s: float = SILENCE_S) -> Sightings:
        """Return what is known by now."""
        return Sightings(
            dict(self._heard),
            dict(self._claims),
            dict(self._sends_since_s),
            unanswered,
            silence_s,
            dict(self._probed),
        )
