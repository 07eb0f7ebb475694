import asyncio
from dataclasses import replace
from itertools import combinations
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.links.cut_off import check_drain
from controller.links.drain_targets import DrainTargets
from controller.links.drains import CutOffError, Drain, DrainKind, DrainTarget, UnknownDrainError
from controller.links.link_health import DrainedCables, LinkHealth
from controller.links.quiet_links import QuietLinks
from tests.topologies.builders import DOUBLE_SIDED, TESTBED, fabrics
from tests.topologies.renumbering import renumbered
from topologies.fabric import Cable, Fabric, SwitchIdentity
from topologies.routing import Routing
from topologies.specification import ClosSpecification

CLOS = ClosSpecification(kind="clos", tors=2, aggs=2, hosts_per_tor=2, host_link_gbps=100, uplink_gbps=100).build()


def cables_at(fabric: Fabric, node: str) -> frozenset[int]:
    return frozenset(link.index // 2 for link in fabric.links_from[node])


def drain(kind: DrainKind, name: str, *, is_forced: bool = False) -> Drain:
    return Drain(DrainTarget(kind, name), is_forced, 0.0, "")


def test_names_lead_to_cables() -> None:
    targets = DrainTargets(TESTBED)
    first, second = TESTBED.links_between("t0", "a0")
    assert targets.find(DrainKind.LINK, "t0", "a0", 1) == targets.find(DrainKind.LINK, "a0", "t0", 1)
    for link in (first, second):
        ends = TESTBED.links[link]
        by_port = targets.find(DrainKind.LINK, f"t0:{ends.source_port}")
        assert by_port == targets.find(DrainKind.LINK, f"a0:{ends.destination_port}")
        assert by_port == targets.find(DrainKind.LINK, by_port.name)
        assert targets.cables(by_port) == {link // 2}
    assert targets.cables(targets.find(DrainKind.SWITCH, "a3")) == cables_at(TESTBED, "a3")
    assert targets.cables(targets.find(DrainKind.HOST, "h2")) == cables_at(TESTBED, "h2")


def test_ports_have_the_names_of_the_fabric_file() -> None:
    plain = CLOS
    named = Fabric(
        *(plain.hosts, plain.switches, plain.cables, plain.gpus_per_host),
        identities=tuple(
            SwitchIdentity(
                number, number, tuple((link.source_port, f"Ethernet{4 * link.source_port}") for link in links)
            )
            for number, links in enumerate((plain.links_from[name] for name in plain.switches), start=1)
        ),
    )
    [link] = named.links_between("t1", "a0")
    target = DrainTargets(named).find(DrainKind.LINK, f"t1:Ethernet{4 * named.links[link].source_port}")
    assert DrainTargets(named).cables(target) == {link // 2}
    nic = named.nics["h1"][0]
    assert DrainTargets(named).cables(DrainTargets(named).find(DrainKind.LINK, f"h1:{nic.name}")) == {nic.link // 2}


def test_a_name_goes_before_a_number_and_both_at_once_are_refused() -> None:
    def named(**names: str) -> DrainTargets:
        ports = {"t1": tuple((int(port[1:]), name) for port, name in names.items())}
        identities = tuple(
            replace(identity, port_names=ports.get(name, ())) for name, identity in CLOS.identity.items()
        )
        return DrainTargets(replace(CLOS, identities=identities))

    first, second, *_ = CLOS.links_from["t1"]
    one, other = first.source_port, second.source_port
    swapped = named(**{f"p{one}": str(other)})
    with pytest.raises(UnknownDrainError, match=f"t1:{other}: a port at t1 has this name and another one this number"):
        swapped.find(DrainKind.LINK, f"t1:{other}")
    assert swapped.cables(swapped.find(DrainKind.LINK, f"t1:{one}")) == {first.index // 2}
    same = named(**{f"p{one}": str(one)})
    assert same.cables(same.find(DrainKind.LINK, f"t1:{one}")) == {first.index // 2}


def test_a_drain_stays_with_its_ports_where_a_parallel_cable_is_laid() -> None:
    def clos(*cables: Cable) -> Fabric:
        return Fabric(CLOS.hosts, CLOS.switches, cables, CLOS.gpus_per_host)

    [link] = CLOS.links_between("t0", "a0")
    plain = [replace(cable, ports=_ports(CLOS, number)) for number, cable in enumerate(CLOS.cables)]
    new = replace(plain[link // 2], ports=(90, 91))
    target = DrainTargets(clos(*plain)).find(DrainKind.LINK, "t0", "a0")
    with_new = DrainTargets(clos(*plain[: link // 2], new, *plain[link // 2 :]))
    assert with_new.cables(target) == {link // 2 + 1}
    turned = [replace(cable, ends=cable.ends[::-1], ports=cable.ports and cable.ports[::-1]) for cable in plain]
    assert DrainTargets(clos(*turned)).cables(target) == {link // 2}


def _ports(fabric: Fabric, cable: int) -> tuple[int, int]:
    ends = fabric.links[2 * cable]
    return ends.source_port, ends.destination_port


@pytest.mark.parametrize(
    ("kind", "names", "said"),
    [
        (DrainKind.SWITCH, ("a9",), "no switch 'a9' is in the topology, which has t0, t1, t2"),
        (DrainKind.SWITCH, ("h1",), "no switch 'h1' is in the topology; it is a host"),
        (DrainKind.HOST, ("t1",), "no host 't1' is in the topology; it is a switch"),
        (DrainKind.LINK, ("t0",), "no link 't0' is in the topology: expected NODE:PORT, NODE NODE"),
        (DrainKind.LINK, ("t0:99",), "no port '99' is at t0, which has 1, 2, 3"),
        (DrainKind.LINK, ("x:1",), "no link 'x:1' is in the topology"),
        (DrainKind.LINK, ("t0", "x"), "no node 'x' is in the topology"),
        (DrainKind.LINK, ("t0", "t1"), "no cable is between t0 and t1; t0 has some to h0, h1, a0"),
        (DrainKind.LINK, ("t0", "a0"), "2 cables are between t0 and a0: say which with --parallel 0 to 1"),
        (DrainKind.LINK, ("t0", "a0", 2), "the cables between t0 and a0 are 0 to 1, not 2"),
    ],
)
def test_unknown_names_are_refused_by_name(kind: DrainKind, names: tuple[Any, ...], said: str) -> None:
    with pytest.raises(UnknownDrainError) as refused:
        DrainTargets(TESTBED).find(kind, *names)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("target", "before", "said"),
    [
        (DrainTarget(DrainKind.SWITCH, "a0"), [], ""),
        (DrainTarget(DrainKind.SWITCH, "a1"), [drain(DrainKind.SWITCH, "a0")], "it would cut off h2, h3;"),
        (DrainTarget(DrainKind.SWITCH, "t1"), [], "it would cut off h2, h3;"),
        (DrainTarget(DrainKind.SWITCH, "t1"), [drain(DrainKind.HOST, "h2")], "it would cut off h3;"),
        (DrainTarget(DrainKind.SWITCH, "t1"), [drain(DrainKind.HOST, "h2"), drain(DrainKind.HOST, "h3")], ""),
        (DrainTargets(CLOS).find(DrainKind.LINK, "h0.0>t0"), [], "it would cut off h0;"),
        (DrainTarget(DrainKind.HOST, "h0"), [], ""),
    ],
)
def test_the_last_path_of_hosts_is_not_drained(target: DrainTarget, before: list[Drain], said: str) -> None:
    if not said:
        check_drain(DrainTargets(CLOS), target, before, frozenset())
        return
    with pytest.raises(CutOffError, match="Drain these hosts before it, or use --force") as refused:
        check_drain(DrainTargets(CLOS), target, before, frozenset())
    assert said in str(refused.value)


def test_what_has_failed_counts_as_gone() -> None:
    down = cables_at(CLOS, "a0") & cables_at(CLOS, "t1")
    with pytest.raises(CutOffError, match="h2, h3"):
        check_drain(DrainTargets(CLOS), DrainTarget(DrainKind.SWITCH, "a1"), [], down)


def test_a_host_with_another_nic_keeps_a_path() -> None:
    nic = DOUBLE_SIDED.nics["h0"][0]
    target = DrainTargets(DOUBLE_SIDED).find(DrainKind.LINK, f"h0:{nic.index}")
    check_drain(DrainTargets(DOUBLE_SIDED), target, [], frozenset())
    first = DOUBLE_SIDED.links[nic.link].destination
    check_drain(DrainTargets(DOUBLE_SIDED), DrainTarget(DrainKind.SWITCH, first), [], frozenset())


def test_needed_cables_come_back_into_use_unless_forced() -> None:
    for is_forced in (False, True):
        health = LinkHealth(CLOS, None)
        cables = DrainedCables(cables_at(CLOS, "a0"), is_forced)
        health.set_drains([cables])
        drained = health.drained_links(0.0)
        assert drained == health.dead_links(0.0) == {2 * cable + way for cable in cables.cables for way in (0, 1)}
        assert not health.is_needed(cables, 0.0)
        [link] = CLOS.links_between("t0", "a1")
        health.set_port_states({"t0": {CLOS.links[link].source_port: False}}, 1.0)
        assert health.failed_links(1.0) == {link, link ^ 1}
        assert health.is_needed(cables, 1.0) is not is_forced
        assert health.drained_links(1.0) == (drained if is_forced else frozenset())
        health.set_port_states({"t0": {}}, 2.0)
        assert health.dead_links(2.0) == drained


def test_a_silent_cable_never_stands_in_for_a_drained_one() -> None:
    """It is on probation now and then, when nobody knows yet whether it works."""
    health = LinkHealth(CLOS, None)
    health.set_drains([DrainedCables(cables_at(CLOS, "a0"))])
    health.set_silent_links(set(CLOS.links_between("t0", "a1")), 100.0)
    assert all(health.drained_links(now_s) == frozenset() for now_s in range(100, 500))


def test_a_drained_cable_is_used_while_the_other_one_is_unheard_or_waits_to_be_confirmed() -> None:
    health = LinkHealth(CLOS, None)
    cables = DrainedCables(cables_at(CLOS, "a0"))
    health.set_drains([cables])
    [link] = CLOS.links_between("t0", "a1")
    cable = frozenset((link // 2,))
    health.set_found_cables(frozenset(), cable, frozenset(), 1.0)
    assert health.is_needed(cables, 1.0)
    assert health.dead_links(1.0) == {link, link ^ 1}
    health.set_found_cables(frozenset(), frozenset(), cable, 2.0)
    assert not health.is_needed(cables, 2.0)
    port = CLOS.links[link].source_port
    health.set_port_states({"t0": {port: False}}, 3.0)
    health.set_port_states({"t0": {port: True}}, 4.0)
    assert health.is_needed(cables, 4.0)
    health.set_found_cables(frozenset(), frozenset(), cable, 4.5)
    assert not health.is_needed(cables, 4.5)


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_no_two_nics_lose_each_other_by_drains_that_are_not_forced(data: st.DataObject) -> None:
    fabric = data.draw(fabrics)
    down = data.draw(st.sets(st.sampled_from(range(len(fabric.cables)))))
    drawn = data.draw(st.lists(st.sampled_from(fabric.switches), max_size=4, unique=True))
    targets, drains = DrainTargets(fabric), list[Drain]()
    for name in drawn:
        target = targets.find(DrainKind.SWITCH, name)
        try:
            check_drain(targets, target, drains, frozenset())
        except CutOffError:
            continue
        drains.append(drain(DrainKind.SWITCH, name))
    health = LinkHealth(fabric, None)
    health.set_drains([targets.leave_alone(each) for each in drains])
    links = [link for link in fabric.links if link.source in fabric.switch_index]
    for gone in (set(), down):
        states = {
            switch: {link.source_port: link.index // 2 not in gone for link in links if link.source == switch}
            for switch in fabric.switches
        }
        health.set_port_states(states, 0.0)
        routing = Routing(fabric, dict.fromkeys(fabric.switches, 1))
        before = routing.without(health.failed_links(0.0))
        after = routing.without(health.dead_links(0.0), health.drained_links(0.0))
        for one, other in combinations(fabric.nic_by_address.values(), 2):
            assert bool(after.candidate_paths(one, other)) == bool(before.candidate_paths(one, other))


def test_renumbered_ports_are_found() -> None:
    fabric = renumbered(CLOS, Random(3))
    targets = DrainTargets(fabric)
    for link in fabric.links:
        found = targets.cables(targets.find(DrainKind.LINK, f"{link.source}:{link.source_port}"))
        assert found == {link.index // 2}


def test_links_are_quiet_since_their_counters_stand() -> None:
    counts = {1: 100, 2: 5_000}

    class Counters:
        async def link_bytes(self, _: object) -> dict[int, int]:
            return dict(counts)

    quiet = QuietLinks(Counters())

    def read(now_s: float) -> dict[int, float | None]:
        return asyncio.run(quiet.read([1, 2, 3], now_s))

    assert read(10.0) == {1: None, 2: None}
    counts[2] += 4_000
    assert read(11.0) == {1: 1.0, 2: 0.0}
    counts[1] += 150  # a frame of a switch's own
    assert read(12.5) == {1: 2.5, 2: 1.5}
    counts[1] = 0  # the switch has restarted
    assert read(13.0) == {1: 0.0, 2: 2.0}


def test_frequent_readings_do_not_make_a_link_quiet() -> None:
    """A thousand bytes a second are more than the frames of a switch's own, however often they are read."""
    sent = 0

    class Counters:
        async def link_bytes(self, _: object) -> dict[int, int]:
            return {1: sent}

    quiet = QuietLinks(Counters())
    for number in range(40):
        found = asyncio.run(quiet.read([1], number / 4))[1]
        assert (found or 0.0) < 1.0
        sent += 250
    for number in range(40, 46):
        found = asyncio.run(quiet.read([1], number / 4))[1]
    assert found is not None
    assert found >= 1.0
