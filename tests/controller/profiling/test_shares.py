"""Paths found from counters, against flows whose paths are known."""

from collections import defaultdict
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.profiling.shares import path_shares, transfer_s
from topologies.ecmp import hash_multipliers
from topologies.fabric import Nic, Path
from topologies.routing import Routing
from topologies.specification import ClosSpecification

FABRIC = ClosSpecification(
    kind="clos",
    tors=3,
    aggs=2,
    hosts_per_tor=2,
    nics_per_host=2,
    host_link_gbps=200,
    uplink_gbps=100,
    uplinks_per_pair=2,
).build()
ROUTING = Routing(FABRIC, hash_multipliers(FABRIC.switches, seed=1))
NICS = [nic for nics in FABRIC.nics.values() for nic in nics]

Sent = list[tuple[Nic, Path, float]]


@st.composite
def traffic(draw: st.DrawFn) -> Sent:
    """Flows between NICs of different hosts, each by one of its candidate paths."""
    sent: Sent = []
    for _ in range(draw(st.integers(1, 8))):
        source = draw(st.sampled_from(NICS))
        destination = draw(st.sampled_from([nic for nic in NICS if nic.host != source.host]))
        path = draw(st.sampled_from(ROUTING.candidate_paths(source, destination)))
        sent.append((source, path, draw(st.floats(0.5, 2.0)) * 1e9))
    return sent


def counted(sent: Sent) -> tuple[dict[tuple[Nic, str], float], dict[int, float]]:
    """What the counters of NICs and of links behind the first switch show of flows."""
    by_nic: defaultdict[tuple[Nic, str], float] = defaultdict(float)
    by_link: defaultdict[int, float] = defaultdict(float)
    for source, path, size_bytes in sent:
        by_nic[source, FABRIC.links[path[-1]].destination] += size_bytes
        for link in path[1:]:
            by_link[link] += size_bytes
    return by_nic, by_link


@given(traffic())
def test_all_that_nics_send_is_on_paths_that_carry_it(sent: Sent) -> None:
    by_nic, by_link = counted(sent)
    shares = path_shares(by_nic, by_link, ROUTING)
    found: defaultdict[tuple[Nic, str], float] = defaultdict(float)
    for share in shares:
        assert share.path in ROUTING.candidate_paths(share.source, share.destination)
        assert all(by_link.get(link, 0.0) > 0 for link in share.path[1:])
        found[share.source, share.destination.host] += share.size_bytes
    assert found == pytest.approx(by_nic)


def transfer_error(sent: Sent) -> float:
    """By what part of the truth the time is off that the busiest link needs."""
    loads = np.zeros(len(FABRIC.rates_bps))
    for _, path, size_bytes in sent:
        loads[list(path)] += size_bytes
    truth_s = float((loads * 8 / np.array(FABRIC.rates_bps)).max())
    return abs(transfer_s(path_shares(*counted(sent), ROUTING), ROUTING) / truth_s - 1)


@given(traffic())
def test_the_bottleneck_is_nearly_that_of_the_flows(sent: Sent) -> None:
    # Who sends to whom is not always told by what crosses links, so that a little may be put on another one.
    assert transfer_error(sent) < 0.5


def test_of_drawn_traffic_nearly_all_has_the_bottleneck_of_its_flows() -> None:
    drawn = Random(1)
    errors = []
    for _ in range(300):
        sent: Sent = []
        for _ in range(drawn.randint(1, 8)):
            source, destination = drawn.choice(NICS), drawn.choice(NICS)
            if source.host != destination.host:
                path = drawn.choice(ROUTING.candidate_paths(source, destination))
                sent.append((source, path, drawn.uniform(0.5, 2.0) * 1e9))
        errors += [transfer_error(sent)] if sent else []
    assert sorted(errors)[len(errors) * 98 // 100] < 1e-9


def test_a_single_flow_is_found_where_it_is() -> None:
    source, destination = FABRIC.nics["h0"][1], FABRIC.nics["h4"][0]
    path = ROUTING.candidate_paths(source, destination)[5]
    (share,) = path_shares(*counted([(source, path, 4e9)]), ROUTING)
    assert (share.source, share.destination, share.path) == (source, destination, path)
    assert share.size_bytes == pytest.approx(4e9)
    assert transfer_s([share], ROUTING) == pytest.approx(4e9 * 8 / 100e9)


def test_acknowledgements_are_no_traffic_of_their_own() -> None:
    source, destination = FABRIC.nics["h0"][0], FABRIC.nics["h2"][0]
    there, back = ROUTING.candidate_paths(source, destination)[0], ROUTING.candidate_paths(destination, source)[0]
    shares = path_shares(*counted([(source, there, 4e9), (destination, back, 1e7)]), ROUTING)
    assert [share.source for share in shares] == [source]


def test_without_counters_of_links_a_path_is_taken_for_all() -> None:
    source = FABRIC.nics["h0"][0]
    (share,) = path_shares({(source, "h2"): 1e9}, {}, ROUTING)
    assert share.size_bytes == 1e9
