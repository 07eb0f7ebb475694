"""Compare the fabric file with what is seen at ports: which cable is not where the file says. A pure function.

Beacons are signed, and they count at ports at which the file has a cable between switches. What arrives at a host's
port, and what hosts say, is reported and changes no map: a host can repeat what it has heard, and say what it likes.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from controller.discovery.cabling import Cabling, end_of, start_of
from controller.discovery.sightings import HOST_MEMORY_S, PORT_MEMORY, HostClaim, Sightings
from controller.links.cable_words import cable_words, port_words
from controller.links.link_health import PortStates
from controller.links.port_states import Port
from topologies.fabric import Fabric, Nic


class DifferenceKind(StrEnum):
    """How file and world differ."""

    MISPLACED = "misplaced"
    """A cable between switches ends at another port than the file says."""
    UNHEARD = "unheard"
    """Nothing that one end of a cable sends arrives at the other, though both ports are up."""
    UNEXPECTED = "unexpected"
    """A port hears one of our switches, and the file has a host or nothing there."""
    HOST_ELSEWHERE = "host elsewhere"
    """A host says at one port what the file has at another."""
    PROBED_ELSEWHERE = "probed elsewhere"
    """Hosts say that their probes cross between other ports than the file has, and no beacon tells."""
    OTHER_MAC = "other MAC"
    """A host's NIC has another MAC than the file says."""
    HOST_SILENT = "host silent"
    """A NIC without a MAC in the file answers no ARP, though its port is up."""


@dataclass(frozen=True, slots=True, order=True)
class Difference:
    """A difference: of which cable or port, and what is found there.

    ``link`` is the first direction of the file's cable, None where the file has none. ``is_sure`` says of a cable that
    is not heard whether other beacons of both switches arrive, so that the cable must be the reason.
    """

    place: str
    kind: DifferenceKind
    found: str
    link: int | None
    is_sure: bool = True


def differences(cabling: Cabling, seen: Sightings, ports: PortStates, now_s: float) -> tuple[Difference, ...]:
    """Return all differences, at most one of a kind for each cable and port, in the order of their places."""
    of_switches = _of_cables(cabling, seen, ports, now_s)
    return tuple(sorted((*of_switches, *_of_ports(cabling, seen, now_s), *_of_probes(cabling.fabric, seen, now_s))))


def cables_of(found: Iterable[Difference], kind: DifferenceKind) -> frozenset[int]:
    """Return the cables about which there is surely such a difference."""
    return frozenset(each.link // 2 for each in found if each.kind is kind and each.link is not None and each.is_sure)


def confirmed_cables(cabling: Cabling, seen: Sightings, now_s: float) -> frozenset[int]:
    """Return the cables between switches of which both ends hear each other."""
    return frozenset(
        link.index // 2
        for link in cabling.between[::2]
        if _hears(seen, end_of(link), start_of(link), now_s) and _hears(seen, start_of(link), end_of(link), now_s)
    )


def _hears(seen: Sightings, receiver: Port, sender: Port, now_s: float) -> bool:
    heard = seen.heard.get(receiver)
    return heard is not None and heard.sender == sender and now_s - heard.heard_s < seen.silence_s


def _of_cables(cabling: Cabling, seen: Sightings, ports: PortStates, now_s: float) -> Iterator[Difference]:
    """Yield the cables between switches that are not as the file says."""
    fabric, at_cables = cabling.fabric, cabling.sender_to
    # What is wrong stays so until the port hears another, or goes down: silence does not put it right.
    fresh = {
        receiver: heard.sender
        for receiver, heard in seen.heard.items()
        if (now_s - heard.heard_s < seen.silence_s or at_cables.get(receiver, heard.sender) != heard.sender)
        and ports.get(receiver[0], {}).get(receiver[1], True)
    }
    # A sender that is heard at a host's port says nothing about its cable: the host may have repeated it.
    heard_at: dict[Port, Port] = {sender: receiver for receiver, sender in fresh.items() if receiver in at_cables}
    recent = [
        (heard.sender, receiver)
        for receiver, heard in seen.heard.items()
        if receiver in at_cables and now_s - heard.heard_s < seen.silence_s
    ]
    speaking = {switch for (switch, _), _ in recent}
    hearing = {switch for _, (switch, _) in recent}
    ever = {receiver[0] for receiver in seen.heard.keys() & at_cables.keys()}
    for link in cabling.between[::2]:
        found: list[str] = []
        unheard: list[tuple[str, bool]] = []
        for each in (link, fabric.links[fabric.reverse(link.index)]):
            sender, receiver = start_of(each), end_of(each)
            if fresh.get(receiver) == sender:
                continue
            if receiver in fresh:
                found.append(f"{port_words(fabric, receiver)} hears {port_words(fabric, fresh[receiver])}")
            elif sender in heard_at:
                found.append(f"{port_words(fabric, sender)} is heard at {port_words(fabric, heard_at[sender])}")
            elif _is_due(sender, receiver, seen, ports, now_s) and receiver[0] in ever:
                words = f"{port_words(fabric, receiver)} hears nothing of {port_words(fabric, sender)}"
                unheard.append((words, sender[0] in speaking and receiver[0] in hearing))
        if found:
            words = "; ".join(dict.fromkeys(found))
            yield Difference(cable_words(fabric, link.index), DifferenceKind.MISPLACED, words, link.index)
        elif unheard:
            words = "; ".join(each for each, _ in unheard)
            is_sure = any(sure for _, sure in unheard)
            yield Difference(cable_words(fabric, link.index), DifferenceKind.UNHEARD, words, link.index, is_sure)


def _is_due(sender: Port, receiver: Port, seen: Sightings, ports: PortStates, now_s: float) -> bool:
    """Return whether a beacon should have arrived by now: both ports are up, and send, for long enough."""
    for switch, number in (sender, receiver):
        since_s = seen.sends_since_s.get((switch, number))
        if since_s is None or now_s - since_s < seen.silence_s or not ports.get(switch, {}).get(number, True):
            return False
    return True


def _of_ports(cabling: Cabling, seen: Sightings, now_s: float) -> Iterator[Difference]:
    """Yield what is found at the ports of hosts, and at ports for which the file has no cable."""
    fabric = cabling.fabric
    for receiver, heard in seen.heard.items():
        link = cabling.link_from.get(receiver)
        if now_s - heard.heard_s >= PORT_MEMORY * seen.silence_s or (
            link is not None and link.destination in fabric.switch_index
        ):
            continue
        what = f"hears {port_words(fabric, heard.sender)}"
        at = None if link is None else link.index & ~1
        place = port_words(fabric, receiver) if at is None else cable_words(fabric, at)
        yield Difference(place, DifferenceKind.UNEXPECTED, f"{port_words(fabric, receiver)} {what}", at)
    for port, claim in seen.claims.items():
        if now_s - claim.heard_s < HOST_MEMORY_S:
            yield from _of_claim(fabric, port, claim)
    for address in seen.unanswered:
        nic = fabric.nic_by_address[address]
        if nic.mac is None:
            place = cable_words(fabric, nic.link & ~1)
            yield Difference(place, DifferenceKind.HOST_SILENT, f"nobody answers for {address}", nic.link & ~1)


def _of_probes(fabric: Fabric, seen: Sightings, now_s: float) -> Iterator[Difference]:
    """Yield the cables of which hosts' probes tell otherwise, where no beacon arrives: beacons are signed."""
    found: dict[int, list[str]] = {}
    for link in fabric.links:
        receiver = end_of(link)
        probed, heard = seen.probed.get(receiver), seen.heard.get(receiver)
        if probed is None or now_s - probed.heard_s >= HOST_MEMORY_S:
            continue
        if heard is None or now_s - heard.heard_s >= seen.silence_s:
            words = f"probes come to {port_words(fabric, receiver)} from {port_words(fabric, probed.sender)}"
            found.setdefault(link.index & ~1, []).append(words)
    for at, words_of_both in found.items():
        yield Difference(cable_words(fabric, at), DifferenceKind.PROBED_ELSEWHERE, "; ".join(words_of_both), at)


def _of_claim(fabric: Fabric, port: Port, claim: HostClaim) -> Iterator[Difference]:
    nics = _claimed(fabric, claim)
    if not nics:
        return
    here = next((nic for nic in nics if end_of(fabric.links[nic.link]) == port), None)
    at = port_words(fabric, port)
    if here is None:
        what = f"{nics[0].address} answers at {at}" if claim.address is not None else f"{claim.name} is heard at {at}"
        link = nics[0].link & ~1
        yield Difference(cable_words(fabric, link), DifferenceKind.HOST_ELSEWHERE, what, link)
    elif claim.mac is not None and here.mac is not None and claim.mac != here.mac:
        link = here.link & ~1
        what = f"{claim.mac} answers for {here.address}, the file has {here.mac}"
        yield Difference(cable_words(fabric, link), DifferenceKind.OTHER_MAC, what, link)


def _claimed(fabric: Fabric, claim: HostClaim) -> tuple[Nic, ...]:
    """Return the NICs that a claim may be about."""
    if claim.address is not None:
        nic = fabric.nic_by_address.get(claim.address)
        return () if nic is None else (nic,)
    return fabric.nics.get(claim.name, ())
