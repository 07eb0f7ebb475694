"""Refuse drains that switches foil whose routes the controller does not write: ordinary ones, and those of others."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from controller.links.drain_targets import DrainTargets
from controller.links.drains import CutOffError, Drain, DrainTarget
from controller.links.link_health import links_of
from controller.links.link_log import listed
from topologies.fabric import Nic
from topologies.given_routing import GivenRouting
from topologies.loops import links_in_loops
from topologies.routing import Routing


def check_lasting_routes(routing: Routing, targets: DrainTargets, target: DrainTarget, drains: Iterable[Drain]) -> None:
    """Raise CutOffError where routes that stay as they are lead over what is to be drained.

    An ordinary switch hears of no drain. It goes on to send over the cables, or to switches that now send back to it.
    Where others write the routes, there may be none around the cables. ``routing`` lacks only links that have failed.
    """
    ordinary = routing.fabric.ordinary_switches
    if not ordinary and not isinstance(routing, GivenRouting):
        return
    asked = links_of(targets.leave_alone(Drain(target, is_forced=False, since_s=0.0, by="")).cables)
    gone = links_of(frozenset().union(*(targets.leave_alone(each).cables for each in drains))) - routing.dead
    before = routing.without(routing.dead | gone, gone)
    after = routing.without(routing.dead | gone | asked, (gone | asked) - routing.dead)
    sources = _one_at_each_switch(routing) if isinstance(routing, GivenRouting) else ()
    unaware, unreached = set[str](), set[str]()
    for nics in _alike(routing):
        lasting = {switch: routing.next_links(switch, nics[0]) for switch in ordinary}
        leading_there = asked | (_circling(after, nics[0], lasting) - _circling(before, nics[0], lasting))
        unaware |= {switch for switch, links in lasting.items() if not leading_there.isdisjoint(links)}
        if any(
            before.candidate_paths(source, nics[0]) and not after.candidate_paths(source, nics[0])
            for source in sources
            if source != nics[0]
        ):
            unreached |= {nic.host for nic in nics}
    force = "nothing has changed. --force drains it all the same"
    if unaware:
        names = listed(sorted(unaware, key=routing.fabric.switch_index.__getitem__))
        raise CutOffError(f"{target}: {names} would go on to send there: ordinary switches hear of no drain; {force}")
    if unreached:
        names = listed(host for host in routing.fabric.hosts if host in unreached)
        raise CutOffError(f"{target}: the routes of others have no way around it to {names}; {force}")


def _alike(routing: Routing) -> Iterator[Sequence[Nic]]:
    """Iterate over the NICs of the same subnet at the same switch, to which routes mostly are the same."""
    found: dict[tuple[str, object], list[Nic]] = {}
    for nic in routing.fabric.nic_by_address.values():
        found.setdefault((routing.fabric.links[nic.link].destination, nic.subnet), []).append(nic)
    yield from found.values()


def _one_at_each_switch(routing: Routing) -> Collection[Nic]:
    return {routing.fabric.links[nic.link].destination: nic for nic in routing.fabric.nic_by_address.values()}.values()


def _circling(routing: Routing, nic: Nic, lasting: Mapping[str, tuple[int, ...]]) -> frozenset[int]:
    """The links on which packets for a NIC could circle where some switches have lasting routes."""
    links = routing.fabric.links
    ways = {switch: routing.next_links(switch, nic) for switch in routing.fabric.switches} | dict(lasting)
    return links_in_loops({switch: {link: links[link].destination for link in out} for switch, out in ways.items()})
