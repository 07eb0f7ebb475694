"""Drains move flows gently, say what they wait for, outlive the controller and replay."""

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.links.drains import CutOffError, DrainKind, DrainTarget, UnknownDrainError
from controller.southbound.southbound import SouthboundError
from tests.controller.planning.drains import AGG, FABRICS, World
from tests.controller.record.lives import CLOS
from tests.topologies.mixing import with_ordinary
from topologies.given_routing import GivenRoutes, GivenRouting
from topologies.routing import Routing
from topologies.specification import ClosSpecification, FatTreeSpecification


def test_it_is_safe_once_the_plan_is_written_and_no_packet_leaves() -> None:
    world = World(CLOS.build(), ["h0", "h2", "h4"])
    assert world.drain(AGG)
    assert world.state(AGG).waits_for == ("a Plan without it",)
    world.settle()
    assert not any(world.links(AGG) & set(plan.path or ()) for plan in world.plan.flows.values())
    assert world.state(AGG).waits_for == ()
    # Whoever still sends there is named by port.
    link = world.fabric.links_from["a0"][0]
    world.counted.counts[link.index] = 9_000
    state = world.state(AGG, after_s=0.0)
    assert state.waits_for == (f"packets to stop leaving by a0:{link.source_port}",)
    assert state.quiet_s == 0.0
    assert world.state(AGG, after_s=1.5).waits_for == ()
    world.counted.silent = {link.index}
    assert world.state(AGG).waits_for == ("the counters of a0",)


def test_ports_that_are_down_need_not_be_quiet() -> None:
    world = World(CLOS.build(), ["h0", "h2", "h4"])
    world.drain(AGG)
    world.settle()
    world.counted.silent = world.links(AGG)
    ports = {link.source_port: False for link in world.fabric.links_from["a0"]}
    world.planner.links.set_port_states({"a0": ports}, 100.0)
    world.settle()
    assert world.state(AGG).waits_for == ()


def test_nobody_waits_for_the_counters_of_an_ordinary_switch() -> None:
    fabric = with_ordinary(CLOS.build(), {"t1"})
    world = World(fabric, ["h0", "h2", "h4"])
    world.registry.deregister("gpt")
    world.counted.silent = {link.index for link in fabric.links_from["t1"]}
    host = DrainTarget(DrainKind.HOST, "h2")
    world.drain(host)
    world.settle()
    state = world.state(host)
    assert (state.waits_for, state.quiet_s) == ((), None)


def test_what_an_ordinary_switch_goes_on_to_send_is_not_drained() -> None:
    """It hears of no drain, so a1 would send back what it gets from it for another ToR."""
    fabric = with_ordinary(CLOS.build(), {"t0"})
    world = World(fabric, ["h0", "h2", "h4"])
    [link] = fabric.links_between("a1", "t1")
    between = world.draining.targets.find(DrainKind.LINK, "a1", "t1")
    around = world.planner.routing.without({link, link ^ 1}).next_links("a1", fabric.nics["h2"][0])
    assert "t0" in {fabric.links[each].destination for each in around}
    for target in (between, DrainTarget(DrainKind.SWITCH, "a1")):
        with pytest.raises(CutOffError, match=f"{target}: t0 would go on to send there"):
            world.drain(target)
    assert world.draining.drains == ()
    assert world.drain(between, is_forced=True)
    # What has been forced keeps nothing else from being drained.
    assert world.drain(DrainTarget(DrainKind.HOST, "h5"))
    with pytest.raises(CutOffError, match="t0 would go on to send there"):
        world.drain(world.draining.targets.find(DrainKind.LINK, "t0", "a0"))


def test_a_switch_of_ours_that_ordinary_ones_do_not_meet_is_drained() -> None:
    fat_tree = FatTreeSpecification(kind="fat_tree", k=4, host_link_gbps=100, uplink_gbps=100).build()
    tor = fat_tree.links[fat_tree.nics["h0"][0].link].destination
    world = World(with_ordinary(fat_tree, {tor}), ["h0", "h8"])
    assert world.drain(DrainTarget(DrainKind.SWITCH, "c0"))


def test_routes_of_others_that_have_no_other_way_keep_their_cables() -> None:
    fabric = CLOS.build()
    world = World(fabric, ["h0", "h2", "h4"])
    whole = world.planner.routing
    given = {
        switch: GivenRoutes(tuple(replace(route, links=route.links[:1]) for route in whole.routes(switch)))
        for switch in fabric.switches
    }
    world.planner.use_routing(GivenRouting(fabric, given))
    with pytest.raises(CutOffError, match="switch a0: the routes of others have no way around it to h0, h1"):
        world.drain(AGG)
    world.drain(DrainTarget(DrainKind.SWITCH, "a1"))


def test_jobs_that_a_forced_drain_between_their_hosts_cuts_off_are_told() -> None:
    clos = ClosSpecification(kind="clos", tors=2, aggs=2, hosts_per_tor=2, host_link_gbps=100, uplink_gbps=100)
    world = World(clos.build(), ("h0", "h3"))
    other = DrainTarget(DrainKind.SWITCH, "a1")
    for target in (AGG, other):
        world.drain(target, is_forced=True)
    world.settle()
    jobs = {state.drain.target: state.jobs for state in asyncio.run(world.draining.states())}
    assert jobs == {AGG: ("gpt",), other: ("gpt",)}


def test_twice_is_told_and_force_is_added() -> None:
    world = World(CLOS.build(), ["h0", "h2", "h4"])
    tor = DrainTarget(DrainKind.SWITCH, "t1")
    assert world.drain(AGG)
    assert not world.drain(AGG)
    with pytest.raises(CutOffError, match="it would cut off h2, h3; nothing has changed"):
        world.drain(tor)
    assert [drain.target for drain in world.draining.drains] == [AGG]
    assert world.drain(tor, is_forced=True)
    assert not world.drain(tor)
    world.settle()
    state = world.state(tor)
    assert (state.waits_for, state.jobs) == ((), ("gpt",))
    assert world.planner.snapshot is not None
    cut_off = {flow.key for job in world.planner.snapshot.jobs for flow in job.flows if flow.is_cut_off}
    assert len(cut_off) == 2  # to h2 and from h2
    world.undrain(tor)
    with pytest.raises(UnknownDrainError, match="switch t1 is not drained; drained is switch a0"):
        world.undrain(tor)
    world.settle()
    assert world.planner.routing.dead == world.links(AGG)


def test_a_host_waits_for_its_jobs_which_go_on() -> None:
    world = World(CLOS.build(), ["h0", "h2", "h4"])
    host = DrainTarget(DrainKind.HOST, "h2")
    before = world.plan
    world.drain(host)
    world.settle()
    assert world.plan.flows == before.flows
    assert world.state(host).waits_for == ("job gpt to end: nothing else leads there",)
    world.registry.deregister("gpt")
    assert world.state(host).waits_for == ()
    assert world.planner.routing.dead == frozenset()
    world.drain(host, is_forced=True)
    world.settle()
    assert world.planner.routing.dead == world.links(host)


def test_a_needed_switch_is_used_again_and_that_is_said() -> None:
    world = World(CLOS.build(), ["h0", "h2", "h4"])
    world.drain(AGG)
    world.settle()
    [link, *_] = [link for link in world.fabric.links_from["a1"] if link.destination == "t0"]
    world.planner.links.set_port_states({"a1": {link.source_port: False}}, 100.0)
    world.settle()
    assert world.planner.routing.dead == {link.index, link.index ^ 1}
    assert world.state(AGG).waits_for == ("other cables: nothing else connects some hosts, so it is in use",)
    world.planner.links.set_port_states({}, 100.0)
    world.settle()
    assert world.planner.routing.dead == world.links(AGG)
    assert world.state(AGG).waits_for == ()


def test_what_becomes_the_last_way_is_used_again_before_the_next_plan() -> None:
    world = World(CLOS.build(), ["h0", "h2", "h4"])
    world.drain(AGG)
    world.settle()
    [link, *_] = [link for link in world.fabric.links_from["a1"] if link.destination == "t0"]
    world.planner.links.set_port_states({"a1": {link.source_port: False}}, 100.0)
    asyncio.run(world.planner.leave_dead_links())
    assert world.planner.routing.dead == world.southbound.rerouted[-1][1].dead == {link.index, link.index ^ 1}


def test_a_failure_meanwhile_is_reacted_to_before_the_rest_of_the_move() -> None:
    world = World(CLOS.build(), ["h0", "h2", "h4"])
    [link, *_] = [link for link in world.fabric.links_from["t2"] if link.destination == "a1"]

    def fail() -> None:
        if len(world.southbound.rerouted) == 3:
            world.planner.links.set_port_states({"t2": {link.source_port: False}}, 100.0)

    world.southbound.on_reroute = fail
    world.southbound.rerouted.clear()
    world.drain(AGG)
    world.settle()
    failed = {link.index, link.index ^ 1}
    # The next write is the last one of this move; it uses what is drained, as nothing else leads to t2.
    assert world.southbound.rerouted[3][1].dead == failed
    assert type(world.southbound.rerouted[3][1]) is Routing
    world.settle()
    assert world.planner.routing.dead == world.southbound.rerouted[-1][1].dead == failed
    assert world.planner.snapshot is not None
    assert not any(flow.is_cut_off for job in world.planner.snapshot.jobs for flow in job.flows)


def test_a_switch_that_refuses_does_not_keep_others_from_their_last_step() -> None:
    world = World(CLOS.build(), ["h0", "h2", "h4"])

    def refuse() -> None:
        if len(world.southbound.rerouted) == 2:
            raise SouthboundError("switch 't0': table full")

    world.southbound.on_reroute = refuse
    world.southbound.rerouted.clear()
    world.drain(AGG)
    with pytest.raises(SouthboundError, match="table full"):
        world.settle()
    assert len(world.southbound.rerouted) > 2
    assert world.southbound.rerouted[-1][1] is world.planner.routing
    world.settle()
    assert world.state(AGG).waits_for == ()


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_every_pair_keeps_a_path_and_undraining_gives_the_plan_of_before(data: st.DataObject) -> None:
    fabric = data.draw(FABRICS)
    world = World(fabric, fabric.hosts)
    before, rules = world.plan.flows, world.southbound.written[-1]
    drained = []
    for name in data.draw(st.lists(st.sampled_from(fabric.switches), max_size=3, unique=True)):
        target = DrainTarget(DrainKind.SWITCH, name)
        try:
            world.drain(target)
        except CutOffError:
            continue
        drained.append(target)
        world.settle()
    assert world.planner.snapshot is not None
    gone = world.planner.routing.dead
    for job in world.planner.snapshot.jobs:
        for flow in job.flows:
            assert not flow.is_cut_off
            assert gone.isdisjoint(world.plan.flows[flow.key].path or flow.hashed_path)
    for target in data.draw(st.permutations(drained)):
        world.undrain(target)
        world.settle()
    assert world.planner.routing.dead == frozenset()
    # Crux keeps no paths: without what was drained it decides as before.
    assert world.plan.flows == before
    assert world.southbound.written[-1] == rules
