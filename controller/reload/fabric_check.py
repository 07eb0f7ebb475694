"""What keeps a running controller from going over to a new fabric."""

from collections.abc import Iterator, Mapping, Sequence, Set

from controller.links.cable_words import cable_words
from controller.links.link_log import listed
from controller.links.removable_cables import parts
from controller.registry.errors import InvalidFieldError
from controller.registry.jobs import RegisteredJob
from controller.reload.refit import refitted
from controller.switch_addresses import SwitchAddress
from topologies.fabric import Fabric
from topologies.fabric_match import FabricMatch


def switch_problems(
    match: FabricMatch, before: Sequence[SwitchAddress], after: Sequence[SwitchAddress]
) -> Iterator[str]:
    """Yield what a controller cannot take over: other addresses or numbers of switches that stay, a new protocol."""
    known, told = match.before, match.after
    reached = {address.name: address for address in before}
    spoken = {address.openflow is not None for address in before}
    for address in after:
        speaks_openflow = address.openflow is not None
        if spoken and address.name not in reached and speaks_openflow not in spoken:
            protocol = "OpenFlow" if speaks_openflow else "P4Runtime"
            yield f"switches: {address.name} would be the first that speaks {protocol}, which needs a restart"
        old = reached.get(address.name, address)
        if (old.openflow is None) is not (address.openflow is None):
            yield f"switches: {address.name} would speak another protocol"
            continue
        if old.device != address.device:
            number = "device_id" if address.openflow is None else "datapath_id"
            yield f"switches: {address.name} would have {number} {address.device}, not {old.device}"
        elif (old.address, old.gnmi, old.openflow) != (address.address, address.gnmi, address.openflow):
            yield f"switches: {address.name} would be reached at another address"
    for switch in known.switches:
        if switch not in told.switch_index:
            continue
        one, other = known.identity[switch], told.identity[switch]
        if one.control is not other.control:
            yield f"topology: {switch} would be controlled otherwise"
        elif one.target is not other.target:
            yield f"topology: {switch} would have target {other.target}, not {one.target}, which needs a restart"
        elif one.device_id != other.device_id and switch not in reached:
            yield f"topology: {switch} would have device_id {other.device_id}, not {one.device_id}"
        elif (one.node_id, one.mac, known.switch_index[switch]) != (
            *(other.node_id, other.mac),
            told.switch_index[switch],
        ):
            yield (
                f"topology: {switch} would have other numbers or MACs, which follow from its place among the switches:"
                " list new switches behind the others, and remove only the last ones"
            )


def cable_problems(match: FabricMatch) -> Iterator[str]:
    """Yield the cables that would go or come at switches that do not hear of it."""
    for fabric, cables in ((match.before, match.leaving), (match.after, match.coming)):
        ordinary = fabric.ordinary_switches
        for cable in sorted(cables):
            if found := ordinary.intersection(fabric.cables[cable].ends):
                words = cable_words(fabric, 2 * cable)
                yield f"topology: cable {words} is at {listed(sorted(found))}, whose routes nobody here changes"


def refit_jobs(match: FabricMatch, jobs: Sequence[RegisteredJob]) -> tuple[Mapping[str, RegisteredJob], Sequence[str]]:
    """Return the jobs on the new fabric, by name, and one line for each that does not fit it."""
    found: dict[str, RegisteredJob] = {}
    problems: list[str] = []
    gone = _nics_without_cable(match)
    for job in jobs:
        name = job.request.name
        try:
            found[name] = refitted(job, match.after)
        except InvalidFieldError as error:
            problems.append(f"topology: job {name!r} would not fit: {error}; withdraw it first (trainyard withdraw)")
            continue
        if used := gone & _nics_of(job, match.before):
            names = listed(sorted(f"{host}:{match.before.port_names[host][index]}" for host, index in used))
            problems.append(
                f"topology: job {name!r} sends or receives by {names}, whose cable would go; withdraw it first"
                " (trainyard withdraw)"
            )
    return found, problems


def cut_off_problems(match: FabricMatch, failed: Set[int]) -> Iterator[str]:
    """Yield hosts that would lose others between the last packet on the old cables and the first on the new ones.

    ``failed`` are cables of the fabric until now that are out of use, which have cut off whom they have cut off. A host
    that moves with all of its cables loses everybody meanwhile in any case, and does not count.
    """
    stay = [
        host
        for host in match.before.hosts
        if host in match.after.host_index
        and not all(link.index // 2 in match.leaving for link in match.before.links_from[host])
    ]
    before = _reached(match.before, failed, stay)
    after = _reached(match.after, match.coming | match.cables_of(failed), stay)
    if lost := [host for host in stay if before[host] - after[host]]:
        yield (
            f"topology: {listed(lost)} would lose other hosts while flows move from the old cables to the new ones:"
            " first reload with both, then without the old ones"
        )


def _reached(fabric: Fabric, gone: Set[int], hosts: Sequence[str]) -> dict[str, set[str]]:
    """Return which of these hosts each of them reaches without the cables that are gone."""
    attached = {
        host: {link.destination for link in fabric.links_from[host] if link.index // 2 not in gone} for host in hosts
    }
    reached: dict[str, set[str]] = {host: set() for host in hosts}
    for part in parts(fabric, gone, frozenset[str]().union(*attached.values())):
        together = {host for host, switches in attached.items() if not switches.isdisjoint(part)}
        for host in together:
            reached[host] |= together
    return reached


def _nics_without_cable(match: FabricMatch) -> set[tuple[str, int]]:
    """The NICs whose cable goes."""
    links = match.before.links
    return {
        (links[link].source, links[link].source_port)
        for cable in match.leaving
        for link in (2 * cable, 2 * cable + 1)
        if links[link].source in match.before.host_index
    }


def _nics_of(job: RegisteredJob, fabric: Fabric) -> set[tuple[str, int]]:
    """The NICs that a job uses; one that tells no flows may use all of its hosts."""
    if job.request.profile is None:
        return {(host, nic.index) for host in job.request.hosts for nic in fabric.nics.get(host, ())}
    flows = (flow for group in job.flow_groups for flow in group.flows)
    return {(nic.host, nic.index) for flow in flows for nic in (flow.source, flow.destination)}
