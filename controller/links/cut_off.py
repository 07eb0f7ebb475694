"""Find the hosts that a drain would cut off."""

from collections.abc import Iterable, Mapping, Set

from controller.links.drain_targets import DrainTargets
from controller.links.drains import CutOffError, Drain, DrainKind, DrainTarget
from controller.links.link_log import listed
from controller.links.removable_cables import parts
from topologies.fabric import Fabric


def check_drain(targets: DrainTargets, target: DrainTarget, drains: Iterable[Drain], failed: Set[int]) -> None:
    """Raise CutOffError where a drain would take the last path of a host, or split the fabric.

    Hosts that are drained themselves may lose their paths. ``drains`` are in force, ``failed`` cables out of use.
    """
    if target.kind is DrainKind.HOST:
        return
    fabric, drained = targets.fabric, tuple(drains)
    before = frozenset(failed).union(*(targets.cables(drain.target) for drain in drained))
    after = before | targets.cables(target)
    leaving = {drain.target.name for drain in drained if drain.target.kind is DrainKind.HOST}
    attached = _attached(fabric, after, leaving)
    cut_off = _attached(fabric, before, leaving).keys() - attached.keys()
    switches = frozenset[str]().union(*attached.values())
    cut_off |= _split_off(attached, parts(fabric, before, switches), parts(fabric, after, switches))
    if cut_off:
        names = listed(host for host in fabric.hosts if host in cut_off)
        raise CutOffError(
            f"{target}: it would cut off {names}; nothing has changed. Drain these hosts before it, or use --force"
        )


def _attached(fabric: Fabric, gone: Set[int], leaving: Set[str]) -> Mapping[str, frozenset[str]]:
    """The switches at the other ends of the cables of every host that has one left."""
    found = {
        host: frozenset(link.destination for link in fabric.links_from[host] if link.index // 2 not in gone)
        for host in fabric.hosts
        if host not in leaving
    }
    return {host: switches for host, switches in found.items() if switches}


def _split_off(attached: Mapping[str, frozenset[str]], before: list[set[str]], after: list[set[str]]) -> set[str]:
    """The hosts that some NIC of others does not reach any longer: those with a NIC outside the part with most."""
    if len(after) <= len(before):
        return set()
    hosts = [{host for host, switches in attached.items() if not switches.isdisjoint(part)} for part in after]
    largest = max(range(len(after)), key=lambda number: len(hosts[number]))
    return {host for host, switches in attached.items() if not switches <= after[largest]}
