"""Paths of probes on which ordinary switches say nothing, or nothing that is understood."""

from itertools import pairwise

import pytest

from controller.telemetry.path_decoding import PathDecoder
from controller.telemetry.report_checks import RejectReason
from hostlib.wire.int_md import HOP_PATH
from tests.topologies.mixing import with_ordinary
from topologies.ecmp import hash_multipliers
from topologies.fabric import Fabric, Path
from topologies.routing import Routing
from topologies.specification import FatTreeSpecification

FABRIC = FatTreeSpecification(kind="fat_tree", k=4, host_link_gbps=100, uplink_gbps=100).build()
SOURCE, DESTINATION = FABRIC.nics[FABRIC.hosts[0]][0], FABRIC.nics[FABRIC.hosts[-1]][0]
UNKNOWN = 0xFFFF_FFFF
PATHS = Routing(FABRIC, hash_multipliers(FABRIC.switches, 1)).candidate_paths(SOURCE, DESTINATION)


def stack(path: Path, silent: frozenset[str], *, are_unknown: bool = False) -> bytes:
    """What the switches on a path put on the stack, the last on top."""
    hops = []
    for before, link in pairwise(path):
        switch = FABRIC.links[link].source
        node = UNKNOWN if switch in silent else FABRIC.identity[switch].node_id
        if switch not in silent or are_unknown:
            hops.append(HOP_PATH.pack(node, FABRIC.links[before].destination_port, FABRIC.links[link].source_port))
    return b"".join(reversed(hops))


def mixed(*ordinary: str) -> tuple[Fabric, frozenset[str]]:
    return with_ordinary(FABRIC, ordinary), frozenset(ordinary)


@pytest.mark.parametrize("hop", range(5))
@pytest.mark.parametrize("are_unknown", [False, True])
def test_one_silent_switch_follows_from_its_neighbours(hop: int, *, are_unknown: bool) -> None:
    for path in PATHS:
        fabric, silent = mixed(FABRIC.links[path[hop + 1]].source)
        assert PathDecoder(fabric).decode(stack(path, silent, are_unknown=are_unknown), SOURCE, DESTINATION) == path


def test_two_in_a_row_follow_where_one_cable_is_between_them() -> None:
    for path in PATHS:
        fabric, silent = mixed(*(FABRIC.links[link].source for link in path[2:4]))
        assert PathDecoder(fabric).decode(stack(path, silent), SOURCE, DESTINATION) == path


def test_where_several_ways_fit_no_path_is_believed() -> None:
    fabric, silent = mixed(*FABRIC.switches)
    decoder = PathDecoder(fabric)
    assert decoder.decode(stack(PATHS[0], silent), SOURCE, DESTINATION) is RejectReason.NOT_ADJACENT
    assert decoder.decode(b"", SOURCE, FABRIC.nics[FABRIC.hosts[1]][0]) == (
        SOURCE.link,
        FABRIC.reverse(FABRIC.nics[FABRIC.hosts[1]][0].link),
    )


def test_our_switches_may_not_be_silent() -> None:
    fabric, _ = mixed(FABRIC.links[PATHS[0][2]].source)
    silent = frozenset({FABRIC.links[PATHS[0][1]].source})
    found = PathDecoder(fabric).decode(stack(PATHS[0], silent), SOURCE, DESTINATION)
    assert found is RejectReason.NOT_ADJACENT
    whole = PathDecoder(FABRIC)
    unknown = stack(PATHS[0], silent, are_unknown=True)
    assert whole.decode(unknown, SOURCE, DESTINATION) is RejectReason.UNKNOWN_SWITCH
    assert whole.decode(b"", SOURCE, DESTINATION) is RejectReason.STACK
    assert whole.decode(stack(PATHS[0], frozenset()), SOURCE, DESTINATION) == PATHS[0]
