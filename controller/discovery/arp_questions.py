"""Ask hosts for their MACs by ARP, and learn from the answers."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from itertools import islice

from controller.discovery.arp_answers import asker_address
from controller.discovery.arp_packets import ArpPacket
from controller.discovery.cabling import end_of
from controller.links.port_states import Port
from topologies.addressing import BROADCAST_MAC, Address, MacAddress, switch_mac
from topologies.fabric import Fabric, Nic

ASK_AGAIN_S = 1.0
"""A question that has no answer is asked again after so long, a few times."""
TRIES = 3
ASK_LATER_S = 5.0
"""Then it is asked so often."""
REFRESH_S = 30.0
"""A NIC that has answered is asked again after so long, as its MAC may have changed."""
ANSWER_TIME_S = 3.0
"""A reply so long after the question is none."""
CROSS_QUESTIONS = 8
"""Addresses of others that a port without an answer is asked for at once."""
_LAST_CROSS_TRY = 2 * TRIES


class ArpProblem(StrEnum):
    """Why a reply teaches nothing."""

    OTHER_PORT = "ARP of a NIC at another port"
    UNKNOWN_ADDRESS = "ARP of an unknown address"
    NOT_ASKED = "ARP reply without a question"


@dataclass(slots=True)
class _Asked:
    """A NIC at a port that is up: when to ask next, how often it was asked since its last answer, and when last."""

    next_s: float
    tries: int = 0
    asked_s: float = float("-inf")


class ArpQuestions:
    """Asks the NICs at ports that are up, and knows the MACs of those that the file has none for.

    It asks a NIC at its own port alone, and learns from the reply that comes in there. Where nobody answers, it asks
    the port for the other addresses without an answer, so that exchanged cables show at once; from these replies it
    learns no MAC.

    Attributes:
        learned: The MAC of each address that the file has none for, as far as its NIC has answered, and answers still.
        rejected: How many packets taught nothing, by reason.
    """

    def __init__(self, fabric: Fabric) -> None:
        self.learned: dict[Address, MacAddress] = {}
        self.rejected: Counter[ArpProblem] = Counter()
        self._fabric = fabric
        self._asked: dict[Address, _Asked] = {}
        self._nic_at = {end_of(fabric.links[nic.link]): nic for nic in fabric.nic_by_address.values()}
        self._silent: dict[Address, None] = {}
        """The addresses of ``_asked`` without an answer; those that were asked for at other ports come last."""
        self._asker = cache(lambda subnet: asker_address(fabric, subnet))

    @property
    def nic_at(self) -> Mapping[Port, Nic]:
        """The NIC that the file has at each port of a switch."""
        return self._nic_at

    @property
    def unanswered(self) -> frozenset[Address]:
        """The addresses that were asked for several times in vain."""
        return frozenset(address for address in self._silent if self._asked[address].tries >= TRIES)

    def begin(self, port: Port, now_s: float, found: Mapping[Address, MacAddress]) -> None:
        """Begin to ask at a port that is up; a MAC that was found in the switch counts until nobody answers."""
        if (nic := self._nic_at.get(port)) is not None:
            if nic.mac is None and nic.address in found:
                self.learned[nic.address] = found[nic.address]
            self._asked[nic.address] = _Asked(now_s)
            self._silent[nic.address] = None

    def end(self, port: Port) -> None:
        """Forget what was learned at a port that is down."""
        if (nic := self._nic_at.get(port)) is not None:
            self._asked.pop(nic.address, None)
            self._silent.pop(nic.address, None)
            self.learned.pop(nic.address, None)

    def due(self, now_s: float, most: int) -> Iterator[tuple[Port, bytes]]:
        """Yield the questions that are to be asked now, at most so many NICs' in turn."""
        due = [address for address, asked in self._asked.items() if asked.next_s <= now_s]
        due.sort(key=lambda address: self._asked[address].next_s)
        for address in due[:most]:
            asked, nic = self._asked[address], self._fabric.nic_by_address[address]
            port = end_of(self._fabric.links[nic.link])
            asked.tries, asked.asked_s = asked.tries + 1, now_s
            if asked.tries >= TRIES:
                self._silent.setdefault(address)
            if asked.tries > TRIES:
                self.learned.pop(address, None)
            asked.next_s = now_s + self._wait_s(nic, asked)
            yield port, self._question(port, nic)
            if address in self._silent and 1 < asked.tries <= _LAST_CROSS_TRY:
                for other in self._others(address):
                    yield port, self._question(port, other)

    def receive(self, port: Port, packet: ArpPacket, now_s: float) -> bool:
        """Learn from a reply, or any packet; return whether the NIC of the port is its sender."""
        nic = self._nic_at.get(port)
        if packet.sender not in self._fabric.nic_by_address:
            self.rejected[ArpProblem.UNKNOWN_ADDRESS] += bool(packet.sender)
            return False
        if nic is None or packet.sender != nic.address:
            self.rejected[ArpProblem.OTHER_PORT] += 1
            return False
        asked = self._asked.get(nic.address)
        if not packet.is_reply:
            if asked is not None and nic.mac is None and packet.sender_mac != self.learned.get(nic.address):
                asked.next_s = min(asked.next_s, max(now_s, asked.asked_s + ASK_AGAIN_S))
            return True
        if asked is None or now_s - asked.asked_s > ANSWER_TIME_S:
            self.rejected[ArpProblem.NOT_ASKED] += 1
            return True
        asked.tries = 0
        self._silent.pop(nic.address, None)
        asked.next_s = now_s + REFRESH_S
        if nic.mac is None:
            self.learned[nic.address] = packet.sender_mac
        return True

    def _wait_s(self, nic: Nic, asked: _Asked) -> float:
        if asked.tries < TRIES:
            return ASK_AGAIN_S
        # Hosts whose MAC is known need not answer; most asked of them is a cable that was moved.
        return ASK_LATER_S if nic.mac is None else REFRESH_S

    def _others(self, address: Address) -> list[Nic]:
        """Return other NICs that have not answered, some in turn."""
        chosen = [other for other in islice(self._silent, CROSS_QUESTIONS + 1) if other != address][:CROSS_QUESTIONS]
        for other in chosen:
            del self._silent[other]
            self._silent[other] = None
        return [self._fabric.nic_by_address[other] for other in chosen]

    def _question(self, port: Port, nic: Nic) -> bytes:
        mac = switch_mac(self._fabric.switch_index[port[0]], port[1])
        return ArpPacket(False, mac, self._asker(nic.subnet), MacAddress(0), nic.address).frame(BROADCAST_MAC)
