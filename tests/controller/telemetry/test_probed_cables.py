"""Stacks of probes tell between which ports they cross where the topology has other cables."""

from itertools import pairwise
from random import Random

import pytest

from controller.telemetry.path_decoding import PathDecoder
from controller.telemetry.probed_cables import ProbedCables
from controller.telemetry.report_checks import RejectReason
from hostlib.wire.int_md import HOP_PATH
from tests.topologies.mixing import with_ordinary
from tests.topologies.renumbering import renumbered
from topologies.ecmp import hash_multipliers
from topologies.fabric import Fabric, Path
from topologies.routing import Routing
from topologies.specification import FatTreeSpecification

FABRIC = renumbered(FatTreeSpecification(kind="fat_tree", k=4, host_link_gbps=100, uplink_gbps=100).build(), Random(1))
SOURCE, DESTINATION = FABRIC.nics[FABRIC.hosts[0]][0], FABRIC.nics[FABRIC.hosts[-1]][0]
PATHS = Routing(FABRIC, hash_multipliers(FABRIC.switches, 1)).candidate_paths(SOURCE, DESTINATION)


def stack(path: Path, ingress_ports: dict[int, int] | None = None) -> bytes:
    """What the switches on a path put on the stack; behind some links at other ports than the file says."""
    hops = []
    for before, link in pairwise(path):
        ingress_port = (ingress_ports or {}).get(before, FABRIC.links[before].destination_port)
        node_id = FABRIC.identity[FABRIC.links[link].source].node_id
        hops.append(HOP_PATH.pack(node_id, ingress_port, FABRIC.links[link].source_port))
    return b"".join(reversed(hops))


def other_port(fabric: Fabric, link: int) -> int:
    """Another port of the switch at the end of a link that has a cable to a switch."""
    end = fabric.links[link]
    return next(
        each.source_port
        for each in fabric.links_from[end.destination]
        if each.destination in fabric.switch_index and each.source_port != end.destination_port
    )


@pytest.mark.parametrize("position", [1, 2, 3, 4])
def test_the_ports_of_a_cable_that_is_elsewhere_are_told(position: int) -> None:
    for path in PATHS:
        link = FABRIC.links[path[position]]
        port = other_port(FABRIC, link.index)
        octets = stack(path, {link.index: port})
        assert PathDecoder(FABRIC).decode(octets, SOURCE, DESTINATION) is RejectReason.NOT_ADJACENT
        probed = ProbedCables(FABRIC)
        probed.note(octets)
        assert probed.take() == {(link.destination, port): (link.source, link.source_port)}
        assert probed.take() == {}


def test_nothing_is_told_of_right_cables_unknown_ports_and_where_ordinary_switches_are() -> None:
    path, probed = PATHS[0], ProbedCables(FABRIC)
    probed.note(stack(path))
    probed.note(stack(path, {path[1]: 0xFFFF}))
    probed.note(b"")
    assert probed.take() == {}
    mixed = ProbedCables(with_ordinary(FABRIC, (FABRIC.links[path[2]].source,)))
    mixed.note(stack(path, {path[3]: other_port(FABRIC, path[3])}))
    assert mixed.take() == {}
