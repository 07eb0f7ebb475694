"""Whatever the cables are, the differences are those between them and the file."""

from random import Random

import pytest

from controller.discovery.cabling import Cabling
from controller.discovery.differences import DifferenceKind, cables_of, differences
from controller.discovery.sightings import SILENCE_S, Heard, Sightings
from controller.links.port_states import Port
from topologies.fabric import Fabric

NOW_S = 100.0
Cables = set[frozenset[Port]]


def cables_between_switches(fabric: Fabric) -> dict[int, frozenset[Port]]:
    return {
        link.index // 2: frozenset(((link.source, link.source_port), (link.destination, link.destination_port)))
        for link in fabric.links[::2]
        if {link.source, link.destination} <= fabric.switch_index.keys()
    }


def seen(fabric: Fabric, world: Cables) -> Sightings:
    """What beacons tell in a world with these cables, and with all ports up for long."""
    heard = {}
    for cable in world:
        one, other = cable
        heard[one], heard[other] = Heard(other, NOW_S), Heard(one, NOW_S)
    ports = {(link.source, link.source_port): 0.0 for link in fabric.links if link.source in fabric.switch_index}
    return Sightings(heard, {}, ports)


@pytest.mark.parametrize("seed", range(50))
def test_cables_that_are_elsewhere_are_exactly_those_found(fabric: Fabric, seed: int) -> None:
    random = Random(seed)
    file = cables_between_switches(fabric)
    cables = dict(file)
    moved = random.sample(sorted(cables), random.randrange(len(cables) + 1))
    ports = [port for cable in moved for port in sorted(cables[cable])]
    random.shuffle(ports)
    for cable, one, other in zip(moved, ports[::2], ports[1::2], strict=True):
        cables[cable] = frozenset((one, other))
    world = set(cables.values())
    found = differences(Cabling.of(fabric), seen(fabric, world), {}, NOW_S)
    expected = {cable for cable, its_ends in file.items() if its_ends not in world}
    assert cables_of(found, DifferenceKind.MISPLACED) == expected
    assert len(found) == len(expected)


@pytest.mark.parametrize("seed", range(50))
def test_what_arrives_at_ports_of_hosts_is_no_evidence_about_cables(fabric: Fabric, seed: int) -> None:
    random = Random(seed)
    file = cables_between_switches(fabric)
    there = seen(fabric, set(file.values()))
    every_port = sorted(there.sends_since_s)
    at_hosts = [port for port in every_port if not any(port in cable for cable in file.values())]
    forged = {port: Heard(random.choice(every_port), NOW_S) for port in at_hosts if random.random() < 0.8}
    silent = set(random.sample(sorted(file), random.randrange(3)))
    heard = {port: each for port, each in there.heard.items() if not any(port in file[cable] for cable in silent)}
    sightings = Sightings({**heard, **forged}, {}, there.sends_since_s)
    found = differences(Cabling.of(fabric), sightings, {}, NOW_S)
    assert cables_of(found, DifferenceKind.MISPLACED) == frozenset()
    assert cables_of(found, DifferenceKind.UNHEARD) == silent
    assert len([each for each in found if each.kind is DifferenceKind.UNEXPECTED]) == len(forged)


def test_a_cable_is_silent_only_where_both_ports_have_sent_for_long_and_are_up(fabric: Fabric) -> None:
    file = cables_between_switches(fabric)
    cable, both = next(iter(file.items()))
    there = seen(fabric, set(file.values()) - {both})
    one, _ = sorted(both)

    def unheard(sightings: Sightings, *down: Port) -> frozenset[int]:
        states = {switch: {number: False} for switch, number in down}
        return cables_of(differences(Cabling.of(fabric), sightings, states, NOW_S), DifferenceKind.UNHEARD)

    assert unheard(there) == {cable}
    assert unheard(there, one) == frozenset()
    just_up = {**there.sends_since_s, one: NOW_S - SILENCE_S + 0.1}
    assert unheard(Sightings(there.heard, {}, just_up)) == frozenset()
    away = {port: since_s for port, since_s in there.sends_since_s.items() if port != one}
    assert unheard(Sightings(there.heard, {}, away)) == frozenset()


def test_a_switch_that_hears_nobody_is_no_sure_sign_of_silent_cables(fabric: Fabric) -> None:
    """Its way to the controller may be what is broken; the operator hears of it all the same."""
    file = cables_between_switches(fabric)
    there = seen(fabric, set(file.values()))
    heard = {
        port: Heard(each.sender, NOW_S - SILENCE_S - (1.0 if port[0] == "a0" else -1.0))
        for port, each in there.heard.items()
    }
    found = differences(Cabling.of(fabric), Sightings(heard, {}, there.sends_since_s), {}, NOW_S)
    assert {each.kind for each in found} == {DifferenceKind.UNHEARD}
    assert len(found) == len([its_ends for its_ends in file.values() if any(switch == "a0" for switch, _ in its_ends)])
    assert cables_of(found, DifferenceKind.UNHEARD) == frozenset()
