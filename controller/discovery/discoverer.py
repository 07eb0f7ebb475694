"""Send beacons and ARP from the ports of switches, take what arrives there, and tell what differs from the file."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from controller.access.budget import Budget
from controller.background import BackgroundTask
from controller.discovery.arp_answers import answer_to
from controller.discovery.arp_packets import ArpPacket
from controller.discovery.arp_questions import ArpQuestions
from controller.discovery.beacons import PERIOD_S, BeaconProblem, Beacons, period_at
from controller.discovery.cabling import Cabling
from controller.discovery.difference_log import DifferenceLog
from controller.discovery.differences import (
    Difference,
    DifferenceKind,
    cables_of,
    confirmed_cables,
    differences,
)
from controller.discovery.frames import LLDP_TYPE, Frame, by_switch
from controller.discovery.lldp_packets import LldpPacket
from controller.discovery.sightings import PORT_MEMORY, SILENCE_S, HostClaim, SightingTable
from controller.links.port_states import Port, PortStateTable
from controller.southbound.southbound import DiscoveringSouthbound, PacketArrival, SouthboundError
from topologies.addressing import MAX_PORTS_PER_SWITCH, Address, MacAddress
from topologies.fabric import Fabric

_LOG = logging.getLogger(__name__)

_TICK_S = 0.25
_STOOD_STILL_S = 4 * _TICK_S
"""A tick that comes so late finds nothing silent: the controller itself was."""
_BEACONS_PER_TICK = 500
"""2,000 each second. In larger fabrics beacons are rarer instead."""
_QUESTIONS_PER_TICK = 250
_LOST_BEACONS = 2.25
"""Where beacons are rare, a port hears nothing that has missed two."""
_PACKETS_AT_ONCE = 200
_ANSWERS, _ANSWERS_PER_S = 40, 20.0
"""ARP answers for each port: so many at once, then so many a second."""

UNREADABLE = "packet for the controller that is neither ARP nor LLDP"
ABOVE_RATE = "ARP requests above the rate of a port"
NO_ROOM = "packets for the controller without room"


@dataclass(frozen=True, slots=True)
class Misplacement:
    """What was found means for routing: cables that end elsewhere, that nothing is heard over, and that are right."""

    misplaced: frozenset[int] = frozenset()
    unheard: frozenset[int] = frozenset()
    confirmed: frozenset[int] = frozenset()


class Discoverer:
    """Finds the cables of a fabric, and the MACs of hosts that its file has none for, while ``run`` runs.

    ``differences`` has what differs by now, each with the time since when, by ``now_s``. ``on_cables`` is called
    whenever cables between switches turn out to be elsewhere, or at their places. ``take_probed`` tells from which port
    hosts' probes have come to which other one, by the latter, where the file has no cable.

    Example::

        discoverer = Discoverer(fabric, southbound, ports, apply_misplacement)
        await discoverer.run()
    """

    def __init__(
        self,
        fabric: Fabric,
        southbound: DiscoveringSouthbound,
        ports: PortStateTable,
        on_cables: Callable[[Misplacement], Awaitable[None]],
        now_s: Callable[[], float] = time.monotonic,
        take_probed: Callable[[], Mapping[Port, Port]] = dict,
    ) -> None:
        names = {
            (switch, number): name
            for switch, identity in fabric.identity.items()
            for number, name in identity.port_names
        }
        self._fabric = fabric
        self._southbound = southbound
        self._packets = southbound.packets
        self._ports = ports
        self._on_cables = on_cables
        self._now_s = now_s
        self._take_probed = take_probed
        self._beacons = Beacons(fabric.switches, names)
        self._seen = SightingTable()
        self._arp = ArpQuestions(fabric)
        self._answers = Budget(_ANSWERS, _ANSWERS_PER_S, now_s)
        self._log = DifferenceLog(now_s)
        self._rejected: Counter[str] = Counter()
        self._cabling = Cabling.of(fabric)
        self._period_s, self._silence_s = PERIOD_S, SILENCE_S
        self._next_beacon_s: dict[Port, float] = {}
        self._is_up: dict[Port, bool] = {}
        self._written: Mapping[Address, MacAddress] | None = None
        """The MACs that switches were given; None: not those of now."""
        self._found = self._told = Misplacement()
        self._telling = BackgroundTask(self._tell_cables)
        self._giving = BackgroundTask(self._give_macs)
        self._followed_s = now_s()
        self._wake = asyncio.Event()
        self.differences: Mapping[Difference, float] = {}

    @property
    def now_s(self) -> float:
        """The time of ``differences``."""
        return self._now_s()

    @property
    def rejected(self) -> Mapping[str, int]:
        """How many packets were of no use, by reason."""
        counts = self._rejected + Counter({str(reason): count for reason, count in self._arp.rejected.items()})
        counts[NO_ROOM] += sum(self._packets.dropped.values())
        return +counts

    async def finished(self) -> None:
        """Wait until what was found while ``run`` ran is told and given to switches, or could not be."""
        await self._telling.join()
        await self._giving.join()

    async def run(self) -> None:
        """Discover until cancelled."""
        try:
            await self._run()
        finally:
            for task in (self._telling, self._giving):
                await task.stop(0.0)

    async def _run(self) -> None:
        self._packets.listen(self._wake.set)
        next_tick_s = self._now_s()
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, next_tick_s - self._now_s())):
                    await self._wake.wait()
            self._wake.clear()
            try:
                self.take()
                if self._now_s() >= next_tick_s:
                    next_tick_s = self._now_s() + _TICK_S
                    self.tick()
            except Exception:
                # Whatever hosts send, and whatever switches answer, discovery goes on.
                _LOG.exception("discovery has failed, and goes on")
                await asyncio.sleep(_TICK_S)

    async def applied(self) -> None:
        """Wait until routes and next hops have followed what was found, as far as switches take it."""
        for task in (self._telling, self._giving):
            await task.join()

    def tick(self) -> None:
        """Send what is due, compare with the file, and have routes and next hops follow, beside what comes next."""
        now_s = self._now_s()
        self._follow_ports(now_s)
        self._send([*self._due_beacons(now_s), *self._arp.due(now_s, _QUESTIONS_PER_TICK)])
        for receiver, sender in self._take_probed().items():
            self._seen.probe(receiver, sender, now_s)
        seen = self._seen.sightings(self._arp.unanswered, self._silence_s)
        found = differences(self._cabling, seen, self._ports.states, now_s)
        self.differences = {each: self.differences.get(each, now_s) for each in found}
        self._log.tell(found)
        self._found = Misplacement(
            cables_of(found, DifferenceKind.MISPLACED),
            cables_of(found, DifferenceKind.UNHEARD),
            confirmed_cables(self._cabling, seen, now_s),
        )
        if self._found != self._told:
            self._telling.start()
        if self._arp.learned != self._written:
            self._giving.start()

    def take(self) -> None:
        """Take packets that wait, and answer them."""
        now_s = self._now_s()
        arrivals = self._packets.take(_PACKETS_AT_ONCE)
        if len(arrivals) == _PACKETS_AT_ONCE:
            self._wake.set()  # more may wait
        answers = []
        for arrival in arrivals:
            if (answer := self._receive(arrival, now_s)) is not None:
                answers.append(answer)
        self._send(answers)

    def _receive(self, arrival: PacketArrival, now_s: float) -> tuple[Port, bytes] | None:
        port = arrival.switch, arrival.port
        frame = Frame.read(arrival.octets)
        if frame is None:
            self._rejected[UNREADABLE] += 1
        elif frame.ether_type == LLDP_TYPE:
            self._receive_lldp(port, frame, now_s)
        elif (packet := ArpPacket.read(frame)) is not None:
            return self._receive_arp(port, packet, now_s)
        else:
            self._rejected[UNREADABLE] += 1
        return None

    def _receive_lldp(self, port: Port, frame: Frame, now_s: float) -> None:
        packet = LldpPacket.read(frame)
        if packet is None:
            self._rejected[UNREADABLE] += 1
            return
        match self._beacons.sender(packet, period_at(now_s)):
            case BeaconProblem() as problem:
                self._rejected[problem] += 1
            case None:
                self._seen.claim(port, HostClaim(None, packet.port_mac, packet.system or packet.chassis, now_s))
            case sender:
                self._seen.hear(port, sender, now_s)

    def _receive_arp(self, port: Port, packet: ArpPacket, now_s: float) -> tuple[Port, bytes] | None:
        is_own = self._arp.receive(port, packet, now_s)
        if packet.sender in self._fabric.nic_by_address:
            self._seen.claim(port, HostClaim(packet.sender, packet.sender_mac, "", now_s))
        nic = self._arp.nic_at.get(port)
        if packet.is_reply or not is_own or nic is None:
            return None
        answer = answer_to(self._fabric, port, nic, packet)
        if answer is None:
            return None
        if self._answers.take(f"{port[0]}:{port[1]}") is None:
            self._rejected[ABOVE_RATE] += 1
            return None
        return port, answer

    def _follow_ports(self, now_s: float) -> None:
        """Begin anew at ports that have come up, and forget those that are down; those of switches away stay."""
        connected, states = self._packets.connected, self._ports.states
        elapsed_s, self._followed_s = now_s - self._followed_s, now_s
        if elapsed_s > _STOOD_STILL_S:
            self._seen.hold_all(elapsed_s)
        else:
            self._seen.hold(self._fabric.switch_index.keys() - connected, elapsed_s)
        wanted: dict[Port, bool] = {
            port: states.get(port[0], {}).get(port[1], True) for port in self._cabling.link_from if port[0] in connected
        }
        for switch in connected:
            for number, is_up in states.get(switch, {}).items():
                if 0 < number <= MAX_PORTS_PER_SWITCH:
                    wanted[switch, number] = is_up
        changed = [port for port, is_up in wanted.items() if self._is_up.get(port) is not is_up]
        found: Mapping[Address, MacAddress] = {}
        if changed:
            found, self._written = self._southbound.neighbours(), None
        for port in changed:
            self._seen.forget(port)
            self._next_beacon_s.pop(port, None)
            self._arp.end(port)
            if wanted[port]:
                self._next_beacon_s[port] = -1.0  # before all others
                self._arp.begin(port, now_s, found)
            self._is_up[port] = wanted[port]
        if changed:
            at_cables = len(self._cabling.sender_to.keys() & self._next_beacon_s.keys())
            others = len(self._next_beacon_s) - at_cables
            self._period_s = max(PERIOD_S, (at_cables + others / PORT_MEMORY) * _TICK_S / _BEACONS_PER_TICK)
            self._silence_s = max(SILENCE_S, _LOST_BEACONS * self._period_s)

    def _due_beacons(self, now_s: float) -> Iterable[tuple[Port, bytes]]:
        due = sorted(
            (port for port, next_s in self._next_beacon_s.items() if next_s <= now_s),
            key=self._next_beacon_s.__getitem__,
        )
        for port in due[:_BEACONS_PER_TICK]:
            period_s = self._period_s if port in self._cabling.sender_to else PORT_MEMORY * self._period_s
            self._next_beacon_s[port] = now_s + period_s - _TICK_S / 2
            self._seen.sends(port, now_s)
            yield port, self._beacons.frame(port, period_at(now_s))

    def _send(self, frames: Iterable[tuple[Port, bytes]]) -> None:
        for switch, sent in by_switch(frames).items():
            self._packets.send(switch, sent)

    async def _tell_cables(self) -> None:
        while self._told != self._found:
            self._told = self._found
            await self._on_cables(self._told)

    async def _give_macs(self) -> None:
        while (learned := dict(self._arp.learned)) != self._written:
            self._written = learned
            try:
                await self._southbound.set_neighbours(learned)
            except SouthboundError as error:
                self._written = None  # the next tick tries again
                _LOG.warning("the MACs of hosts are not written; trying again: %s", error)
                return
            except BaseException:
                self._written = None
                raise
