"""Dead links follow from what either end of a cable says, and from damping."""

import pytest

from controller.links.damping import Damping
from controller.links.link_health import LONGEST_UNTRIED_S, LinkHealth, LinkState
from topologies.fabric import Fabric

DAMPING = Damping(half_life_s=10.0, cutoff=1.5, reuse=0.5, longest_hold_s=40.0)


def states(fabric: Fabric, *down: tuple[str, int]) -> dict[str, dict[int, bool]]:
    return {
        switch: {link.source_port: (switch, link.source_port) not in down for link in fabric.links_from[switch]}
        for switch in fabric.switches
    }


def test_a_cable_is_dead_both_ways_when_either_of_its_ends_is_down(fabric: Fabric) -> None:
    for link in fabric.links:
        if link.source not in fabric.switch_index:
            continue
        health = LinkHealth(fabric, DAMPING)
        health.set_port_states(states(fabric, (link.source, link.source_port)), 1.0)
        assert health.dead_links(1.0) == {link.index, fabric.reverse(link.index)}
        health.set_port_states(states(fabric), 2.0)
        assert health.dead_links(2.0) == frozenset()


def test_who_is_not_heard_from_says_nothing(fabric: Fabric) -> None:
    health = LinkHealth(fabric, DAMPING)
    link = fabric.links_from["t0"][-1]
    health.set_port_states({"a0": {1: True}, "nobody": {1: False}}, 0.0)
    assert health.dead_links(0.0) == frozenset()
    both = states(fabric, ("t0", link.source_port), (link.destination, link.destination_port))
    health.set_port_states({"t0": both["t0"]}, 1.0)
    assert health.dead_links(1.0) == {link.index, fabric.reverse(link.index)}


def test_a_flapping_cable_is_held_and_released_by_the_clock(fabric: Fabric) -> None:
    health = LinkHealth(fabric, DAMPING)
    link = fabric.links_from["t0"][-1]
    dead = frozenset((link.index, fabric.reverse(link.index)))
    port = link.source, link.source_port
    for time_s in (0.0, 1.0, 2.0):
        health.set_port_states(states(fabric, port), time_s)
        assert health.dead_links(time_s) == dead
        assert health.next_release_s(time_s) is None
        health.set_port_states(states(fabric), time_s + 0.5)
    release_s = health.next_release_s(2.5)
    assert release_s is not None
    [cable] = health.dead_cables(2.5)
    assert (cable.state, cable.falls, cable.fell_s) == (LinkState.HELD, 3, 2.0)
    assert health.dead_links(release_s - 0.001) == dead
    assert health.dead_links(release_s) == frozenset()
    assert health.next_release_s(release_s) is None
    assert health.dead_cables(release_s) == ()


def test_to_be_told_again_that_it_is_down_is_no_second_fall(fabric: Fabric) -> None:
    health = LinkHealth(fabric, DAMPING)
    link = fabric.links_from["t0"][-1]
    ends = (link.source, link.source_port), (link.destination, link.destination_port)
    for time_s, down in enumerate((ends[:1], ends, ends[1:])):
        health.set_port_states(states(fabric, *down), float(time_s))
    [cable] = health.dead_cables(2.0)
    assert (cable.state, cable.falls, cable.held_for_s) == (LinkState.DOWN, 1, None)


def test_a_hold_cuts_nobody_off(fabric: Fabric) -> None:
    """A host's own cable is used whenever it is up, and so is the last one that joins a switch to the others."""
    own = fabric.links_from["h0"][0]
    uplinks = [link for link in fabric.links_from["t0"] if link.destination in fabric.switch_index]
    health = LinkHealth(fabric, DAMPING)
    for now_s in (0.0, 1.0):
        ends = [(link.source, link.source_port) for link in uplinks] + [(own.destination, own.destination_port)]
        health.set_port_states(states(fabric, *ends), now_s)
        health.set_port_states(states(fabric), now_s + 0.5)
    held = health.dead_links(2.0)
    assert held == {one for link in uplinks[:-1] for one in (link.index, fabric.reverse(link.index))}
    assert {2 * (unused.link // 2) for unused in health.dead_cables(2.0)} == {2 * (link // 2) for link in held}
    # Another one that dies has them used again that are up.
    health.set_port_states(states(fabric, ("t0", uplinks[-1].source_port)), 3.0)
    last = {uplinks[-1].index, fabric.reverse(uplinks[-1].index)}
    assert last < health.dead_links(3.0) < held | last


def test_a_silent_cable_is_left_and_tried_again_ever_less_often(fabric: Fabric) -> None:
    health = LinkHealth(fabric, None)
    link = fabric.links_from["t0"][-1].index
    health.set_silent_links({link}, 100.0)
    both = {link, fabric.reverse(link)}
    assert health.dead_links(100.0) == both
    [unused] = health.dead_cables(100.0)
    assert (unused.state, unused.held_for_s) == (LinkState.SILENT, None)
    now_s, changes = 100.0, []
    for _ in range(4):
        timer_s = health.next_release_s(now_s)
        assert timer_s is not None
        now_s = timer_s
        changes.append((now_s - 100.0, health.dead_links(now_s) == both))
        health.set_silent_links({link}, now_s)
    assert changes == [(20.0, False), (30.0, True), (60.0, False), (70.0, True)]
    health.set_silent_links(frozenset(), now_s)
    assert health.dead_links(now_s) == frozenset()
    assert health.next_release_s(now_s) is None


def test_a_silent_cable_is_tried_within_a_bounded_time_however_long_it_has_been_silent(fabric: Fabric) -> None:
    link = fabric.links_from["t0"][-1].index
    for since_s in range(0, 640, 10):
        health = LinkHealth(fabric, None)
        health.set_silent_links({link}, float(since_s))
        left_s = float(since_s)
        for now_s in range(since_s, since_s + 2_000, 5):
            if health.dead_links(now_s):
                assert now_s < left_s + LONGEST_UNTRIED_S
            else:
                left_s = now_s + 5.0


@pytest.mark.parametrize("damping", [None, Damping()])
def test_a_silent_cable_that_comes_up_is_tried_as_soon_as_it_is_not_held(
    fabric: Fabric, damping: Damping | None
) -> None:
    health = LinkHealth(fabric, damping)
    link = fabric.links_from["t0"][-1]
    health.set_silent_links({link.index}, 100.0)
    port = "t0", link.source_port
    for now_s, ports in ((500.0, [port]), (501.0, []), (501.5, [port]), (502.0, [])):
        health.set_port_states(states(fabric, *ports), now_s)
    tried_s = 502.0
    if damping is not None:
        [unused] = health.dead_cables(502.0)
        assert unused.held_for_s is not None
        tried_s += unused.held_for_s
        assert health.dead_links(tried_s - 0.1)
    health.set_silent_links({link.index}, tried_s)
    assert not health.dead_links(tried_s)
    assert health.next_release_s(tried_s) == tried_s + 10.0
    assert not health.dead_links(tried_s + 9.9)
    assert health.dead_links(tried_s + 10.0)


def test_cables_that_are_only_of_use_together_are_tried_together_whenever_each_fell_silent(fabric: Fabric) -> None:
    one, other, *_ = (link.index for link in fabric.links_from["t0"] if link.destination in fabric.switch_index)
    first_s, *all_since_s = [100.0, 109.9, 110.0, 117.0, 125.0, 200.0, 263.0]
    for since_s in all_since_s:
        health = [LinkHealth(fabric, None) for _ in range(2)]
        health[0].set_silent_links({one}, first_s)
        health[1].set_silent_links({other}, since_s)
        assert any(
            not health[0].dead_links(now_s) | health[1].dead_links(now_s) for now_s in range(int(since_s) + 10, 1_000)
        )


def test_what_probes_miss_cuts_nobody_off(fabric: Fabric) -> None:
    health = LinkHealth(fabric, None)
    uplinks = [link.index for link in fabric.links_from["t0"] if link.destination in fabric.switch_index]
    health.set_silent_links(uplinks, 0.0)
    assert health.dead_links(0.0) == {one for link in uplinks[:-1] for one in (link, fabric.reverse(link))}


def test_a_misplaced_cable_is_dead_though_it_cuts_somebody_off_and_costs_no_penalty(fabric: Fabric) -> None:
    health = LinkHealth(fabric, DAMPING)
    uplinks = [link.index for link in fabric.links_from["t0"] if link.destination in fabric.switch_index]
    both_ways = {one for link in uplinks for one in (link, fabric.reverse(link))}
    for now_s in range(10):
        health.set_found_cables(frozenset(link // 2 for link in uplinks), frozenset(), frozenset(), float(now_s))
        assert health.dead_links(float(now_s)) == both_ways
        assert {cable.state for cable in health.dead_cables(float(now_s))} == {LinkState.MISPLACED}
        health.set_found_cables(frozenset(), frozenset(), frozenset(), now_s + 0.5)
        assert health.dead_links(now_s + 0.5) == frozenset()


def test_a_misplaced_cable_whose_port_goes_down_is_down(fabric: Fabric) -> None:
    health = LinkHealth(fabric, DAMPING)
    link = fabric.links_from["t0"][-1]
    health.set_found_cables(frozenset((link.index // 2,)), frozenset(), frozenset(), 0.0)
    health.set_port_states(states(fabric, ("t0", link.source_port)), 1.0)
    [cable] = health.dead_cables(1.0)
    assert (cable.state, cable.falls) == (LinkState.DOWN, 1)
    health.set_found_cables(frozenset(), frozenset(), frozenset(), 2.0)
    assert health.dead_links(2.0)
    health.set_port_states(states(fabric), 3.0)
    assert health.dead_links(3.0) == frozenset()


def test_an_unheard_cable_stays_where_somebody_needs_it(fabric: Fabric) -> None:
    health = LinkHealth(fabric, DAMPING)
    uplinks = [link.index for link in fabric.links_from["t0"] if link.destination in fabric.switch_index]
    health.set_found_cables(frozenset(), frozenset(link // 2 for link in uplinks), frozenset(), 0.0)
    assert health.dead_links(0.0) == {one for link in uplinks[:-1] for one in (link, fabric.reverse(link))}
    assert {cable.state for cable in health.dead_cables(0.0)} == {LinkState.UNHEARD}


def test_a_cable_that_was_confirmed_and_comes_up_waits_until_it_is_again_and_not_for_ever(fabric: Fabric) -> None:
    health = LinkHealth(fabric, None)
    link = fabric.links_from["t0"][-1]
    dead = {link.index, fabric.reverse(link.index)}
    cable = frozenset((link.index // 2,))
    port = "t0", link.source_port

    def flap(now_s: float) -> None:
        health.set_port_states(states(fabric, port), now_s)
        health.set_port_states(states(fabric), now_s)

    flap(0.0)
    assert health.dead_links(0.0) == frozenset()  # nobody confirms anything here
    health.set_found_cables(frozenset(), frozenset(), cable, 1.0)
    flap(2.0)
    assert health.dead_links(2.0) == dead
    assert [dead_cable.state for dead_cable in health.dead_cables(2.0)] == [LinkState.UNHEARD]
    health.set_found_cables(frozenset(), frozenset(), cable, 2.5)
    assert health.dead_links(2.5) == frozenset()
    flap(3.0)
    assert health.dead_links(7.9) == dead
    assert health.next_release_s(7.9) == 8.0
    assert health.dead_links(8.0) == frozenset()
