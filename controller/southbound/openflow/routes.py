"""The entries that route packets by the longest prefix of their destination."""

from functools import lru_cache

from controller.southbound.openflow.entries import Entry, FlowEntry, FlowKey, Match, Table, ToGroup
from controller.southbound.openflow.groups import Ports, port_groups, select_groups
from controller.southbound.openflow.pipeline import IPV4, ROUTE_PRIORITY, pipeline_entries
from topologies.addressing import Prefix
from topologies.openflow_specification import Queues
from topologies.routing import Route, Routing


def base_entries(switch: str, routing: Routing, queues: Queues) -> list[Entry]:
    """Return what a switch needs to route by its hash and to serve marked levels."""
    return fixed_entries(switch, routing, queues) + route_entries(switch, routing)


def fixed_entries(switch: str, routing: Routing, queues: Queues) -> list[Entry]:
    """Return the base entries that do not depend on dead links: the pipeline, and the group of every port."""
    return [*port_groups(switch, routing.fabric).values(), *pipeline_entries(queues)]


def route_entries(switch: str, routing: Routing) -> list[Entry]:
    """Return the base entries that do: routes, and the groups that choose among several ports.

    A route with one port leads to the group of the port. No entry leads to a dead link.
    """
    links = routing.fabric.links
    ports_of = {route: tuple(links[link].source_port for link in route.links) for route in routing.routes(switch)}
    groups = select_groups(switch, routing, (ports for ports in ports_of.values() if len(ports) > 1))
    ids = {ports: group.group_id for ports, group in groups.items()}
    return [*groups.values(), *(_route(route, _group_id(ports, ids)) for route, ports in ports_of.items())]


def _group_id(ports: Ports, ids: dict[Ports, int]) -> int:
    return ports[0] if len(ports) == 1 else ids[ports]


@lru_cache(1 << 18)  # most stay the same when a link dies; identical objects need no comparison
def _route(route: Route, group_id: int) -> FlowEntry:
    match = Match(ether_type=IPV4, destination=Prefix(route.address, route.prefix_length))
    return FlowEntry(FlowKey(Table.ROUTING, ROUTE_PRIORITY + route.prefix_length, match), (ToGroup(group_id),))
