"""The paths that flows without rules take through Open vSwitch, whose hash nobody tells: found by packets."""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack

from controller.southbound.openflow.routes import base_entries
from tests.controller.southbound.openflow.injected import PortSockets
from tests.controller.southbound.openflow.real_switches import add_bridges, write
from tests.p4src.packets import Ipv4
from topologies.addressing import FiveTuple
from topologies.fabric import Path
from topologies.openflow_specification import Queues
from topologies.openvswitch.daemons import OpenVSwitch
from topologies.routing import Routing


def traced_paths(routing: Routing, five_tuples: Iterable[FiveTuple]) -> tuple[Path, ...]:
    """Send a packet of each flow through a fabric of bridges without interfaces, and return the links that it takes.

    The bridges hold base routing and no rules. Open vSwitch hashes by the 5-tuple and the basis that the controller
    gives a switch, so the same flows take the same paths in any other fabric with this routing.

    Raises:
        NetworkError: Open vSwitch is not installed, or does not start.
        TimeoutError: A packet does not come out.
    """
    fabric = routing.fabric
    with OpenVSwitch(has_dummies=True) as openvswitch, ExitStack() as stack:
        add_bridges(openvswitch, fabric)
        sockets = {}
        for switch in fabric.switches:
            write(openvswitch, switch, base_entries(switch, routing, Queues.DSCP))
            ports = [link.source_port for link in fabric.links_from[switch]]
            sockets[switch] = stack.enter_context(PortSockets(openvswitch, switch, ports))
        return tuple(_followed(routing, sockets, five_tuple) for five_tuple in five_tuples)


def _followed(routing: Routing, sockets: dict[str, PortSockets], flow: FiveTuple) -> Path:
    """Follow a packet from switch to switch."""
    fabric = routing.fabric
    link = fabric.links[fabric.nic_by_address[flow.source_address].link]
    frame = Ipv4(
        source=flow.source_address,
        destination=flow.destination_address,
        protocol=flow.protocol,
        source_port=flow.source_port,
        destination_port=flow.destination_port,
    ).octets()
    path = [link.index]
    while link.destination in sockets:
        came_out = sockets[link.destination].passed(link.destination_port, [frame])
        ((port, (frame,)),) = [(port, frames) for port, frames in came_out.items() if frames]
        (link,) = (each for each in fabric.links_from[link.destination] if each.source_port == port)
        path.append(link.index)
    return tuple(path)


def seed_with_paths(routings: Iterable[tuple[int, Routing]], flows: Sequence[FiveTuple], paths: Sequence[Path]) -> int:
    """Return the first seed by whose routing our own hash gives these flows these paths.

    Raises:
        ValueError: There is none among these.
    """
    for seed, routing in routings:
        if all(routing.hashed_path(flow) == path for flow, path in zip(flows, paths, strict=True)):
            return seed
    raise ValueError("no seed gives the flows of the prediction the paths that Open vSwitch gives them")
