"""In a real Open vSwitch, groups spread flows evenly, and those of two tiers independently of each other.

``benchmarks/openflow_spread.py`` measures the same with more flows and seeds.
"""

from collections.abc import Iterator

import pytest

from tests.controller.southbound.openflow.tiers import (
    FIRST,
    SECOND,
    Tiers,
    chance_of_dependence,
    running_tiers,
    unevenness,
)
from tests.openvswitch import skip_without_openvswitch
from tests.topologies.builders import FAT_TREE_8
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing

_NUM_FLOWS = 1_500

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def tiers() -> Iterator[Tiers]:
    skip_without_openvswitch()
    with running_tiers(_NUM_FLOWS) as running:
        yield running


def _uplinks(routing: Routing) -> list[int]:
    return list(routing.next_links(FIRST, FAT_TREE_8.nics[FAT_TREE_8.hosts[-1]][0]))


@pytest.mark.parametrize("seed", range(2))
def test_flows_spread_evenly_and_the_tiers_choose_independently(tiers: Tiers, seed: int) -> None:
    routing = Routing(FAT_TREE_8, hash_multipliers(FAT_TREE_8.switches, seed))
    first, second = (tiers.chosen(switch, routing) for switch in (FIRST, SECOND))
    assert len(set(first.tolist())) == len(set(second.tolist())) == 4
    assert max(unevenness(first), unevenness(second)) < 0.15
    assert chance_of_dependence(first, second) > 1e-4


def test_tiers_with_the_same_basis_would_choose_alike(tiers: Tiers) -> None:
    """So the test above can fail."""
    routing = Routing(FAT_TREE_8, dict.fromkeys(FAT_TREE_8.switches, 5))
    first, second = (tiers.chosen(switch, routing) for switch in (FIRST, SECOND))
    assert chance_of_dependence(first, second) < 1e-9


def test_flows_spread_evenly_over_a_number_of_ports_that_is_no_power_of_two(tiers: Tiers) -> None:
    routing = Routing(FAT_TREE_8, hash_multipliers(FAT_TREE_8.switches, seed=1))
    dead = _uplinks(routing)[0]
    chosen = tiers.chosen(FIRST, routing.without(frozenset((dead, dead ^ 1))))
    assert len(set(chosen.tolist())) == 3
    assert unevenness(chosen) < 0.15


def test_no_flow_stays_at_a_port_that_is_down_and_none_is_lost(tiers: Tiers) -> None:
    routing = Routing(FAT_TREE_8, hash_multipliers(FAT_TREE_8.switches, seed=1))
    before = tiers.chosen(FIRST, routing)
    ports = {FAT_TREE_8.links[link].source_port for link in _uplinks(routing)}
    down = FAT_TREE_8.links[_uplinks(routing)[0]].source_port
    tiers.set_port(FIRST, down, up=False)
    after = tiers.chosen_again(FIRST)
    tiers.set_port(FIRST, down, up=True)
    assert set(before.tolist()) == ports
    assert set(after.tolist()) <= ports - {down}
    assert ((before == after) | (before == down)).all()
