"""The entries that carry out the rules of a switch, and the groups that they lead to."""

from collections.abc import Sequence
from functools import lru_cache

from controller.rules.flow_rules import FlowRule
from controller.rules.job_rules import JobRule
from controller.southbound.openflow.entries import Action, Entry, FlowEntry, FlowKey, Match, Table, ToGroup
from controller.southbound.openflow.groups import Ports, failover_groups
from controller.southbound.openflow.pipeline import FLOW_PRIORITY, IPV4, JOB_PRIORITY, level_actions
from topologies.addressing import Address, Prefix
from topologies.openflow_specification import Queues
from topologies.routing import Routing

_MAX_CACHED = 1 << 18
"""Rules whose entries are remembered: most stay from one Plan to the next."""

_Choice = tuple[int, int]
"""The link by which a rule steers, and the index of the destination NIC's link."""


def rule_entries(switch: str, rules: Sequence[FlowRule | JobRule], routing: Routing, queues: Queues) -> list[Entry]:
    """Return the entries of a switch for its rules, groups first. Equal rules have identical entries.

    A steered flow has a group that sends by its own port first, then by the other ports that routing has towards its
    destination. So the switch itself leads the flow away from a port that goes down. Every port that it may take leads
    closer to the destination, and no loop can form.
    """
    fabric = routing.fabric
    orders: dict[_Choice, Ports] = {}
    for rule in rules:
        if isinstance(rule, FlowRule) and rule.next_link is not None:
            destination = fabric.nic_by_address[rule.five_tuple.destination_address]
            choice = rule.next_link, destination.link
            if choice not in orders:
                links = _chosen_first(rule.next_link, routing.next_links(switch, destination))
                orders[choice] = tuple(fabric.links[link].source_port for link in links)
    groups = failover_groups(switch, fabric, (ports for ports in orders.values() if len(ports) > 1))
    ids = {choice: ports[0] if len(ports) == 1 else groups[ports].group_id for choice, ports in orders.items()}
    entries: list[Entry] = list(groups.values())
    for rule in rules:
        if isinstance(rule, JobRule):
            entries.append(_job_entry(rule, queues))
        elif rule.next_link is None:
            entries.append(_flow_entry(rule, None, queues))
        else:
            destination_link = fabric.nic_by_address[rule.five_tuple.destination_address].link
            entries.append(_flow_entry(rule, ids[rule.next_link, destination_link], queues))
    return entries


def _chosen_first(chosen: int, links: Sequence[int]) -> tuple[int, ...]:
    """The links of a route from the chosen one on, in a circle, so that each has another one to replace it."""
    if chosen not in links:
        return chosen, *links
    at = links.index(chosen)
    return (*links[at:], *links[:at])


@lru_cache(_MAX_CACHED)
def _flow_entry(rule: FlowRule, group_id: int | None, queues: Queues) -> FlowEntry:
    five_tuple = rule.five_tuple
    match = Match(
        ether_type=IPV4,
        source=_whole(five_tuple.source_address),
        destination=_whole(five_tuple.destination_address),
        protocol=five_tuple.protocol,
        source_port=five_tuple.source_port,
        destination_port=five_tuple.destination_port,
    )
    goto = Table.ROUTING if group_id is None else None
    return FlowEntry(FlowKey(Table.RULES, FLOW_PRIORITY, match), _actions(rule.level, group_id, queues), goto)


@lru_cache(_MAX_CACHED)
def _job_entry(rule: JobRule, queues: Queues) -> FlowEntry:
    match = Match(ether_type=IPV4, source=_whole(rule.source_address), destination=rule.destination)
    return FlowEntry(FlowKey(Table.RULES, JOB_PRIORITY, match), _actions(rule.level, None, queues), Table.ROUTING)


@lru_cache(1 << 14)  # few differ, and every rule has one
def _actions(level: int | None, group_id: int | None, queues: Queues) -> tuple[Action, ...]:
    marking = () if level is None else level_actions(level, queues)
    return marking if group_id is None else (*marking, ToGroup(group_id))


@lru_cache(_MAX_CACHED)
def _whole(address: Address) -> Prefix:
    return Prefix(address, 32)
