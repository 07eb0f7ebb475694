"""The routes of a run's flows: their links, their level, and the order in which their host serves them.

Routes follow a Plan or, where links may fail, what the switches do with a flow's packets now. Inside a level, hosts
keep the Plan's order as far as the few queues of a NIC allow; switches know of levels alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from controller.planning.decision import Decision
from controller.rules.flow_rules import FlowRulesBySwitch
from experiments.scenarios.connections import Connections, GroupKey
from policies.enforcement import Tiers
from policies.flows import FlowKey
from policies.model.routed_flows import first_link
from policies.model.tiers import HIGHEST_LEVEL, places_on_hops, tiers_and_places
from policies.plan import Plan
from policies.rates.network import Network
from policies.snapshot import Snapshot
from topologies.addressing import FiveTuple
from topologies.ecmp import flow_crc
from topologies.fabric import Fabric, Path
from topologies.routing import Routing
from workloads.task_graph import FlowSpec

LAST_TIER = 1 << 31
"""The tier of flow groups that have no rank yet."""


@dataclass(frozen=True, slots=True)
class Route:
    """How a flow travels: its links, those inside its hosts last; its level; and its tier.

    Flows of a smaller tier are served first on every link. On the links by which a flow leaves its host, those of its
    tier with a smaller ``place`` are served before it. ``is_lost`` means that the flow's packets, or their
    acknowledgements, do not arrive.
    """

    path: Path
    level: int
    tier: int
    place: int = 0
    is_lost: bool = False


def undecided_tier(tiers: Tiers) -> int:
    """Return the tier of flows that no Plan knows yet: switches serve them on level 0, as everything without a rule."""
    return HIGHEST_LEVEL if tiers is Tiers.LEVELS else LAST_TIER


def routes_of(snapshot: Snapshot, plan: Plan, tiers: Tiers) -> dict[FlowKey, Route]:
    """Return the routes of all flows under a Plan for the jobs of a Snapshot.

    ``Tiers.LEVELS`` orders flows as switches do, level by level, and where they leave their hosts, inside a level as
    hosts do. ``Tiers.JOBS`` orders them by the Plan's ranks. ``Tiers.GROUPS`` leaves the order to the caller, which
    sets it as groups come and go.
    """
    flows = [flow for job in snapshot.jobs for flow in job.flows]
    plans = plan.flows
    places = [0] * len(flows)
    match tiers:
        case Tiers.LEVELS:
            levels = np.array([plans[flow.key].level for flow in flows], dtype=np.int64)
            orders = np.array([plans[flow.key].order for flow in flows], dtype=np.int64)
            senders = np.array([first_link(flow) for flow in flows], dtype=np.int64)
            tier_of, places = (numbers.tolist() for numbers in tiers_and_places(levels, orders, senders))
        case Tiers.JOBS:
            ranks = {job.name: job.rank for job in plan.jobs}
            tier_of = [ranks[flow.key.job] for flow in flows]
        case Tiers.GROUPS:
            tier_of = [LAST_TIER] * len(flows)
    return {
        flow.key: Route(
            (*(plans[flow.key].path or flow.hashed_path), *flow.host_links), plans[flow.key].level, tier, place
        )
        for flow, tier, place in zip(flows, tier_of, places, strict=True)
    }


def network_of(fabric: Fabric, routes: Sequence[Route]) -> Network:
    """Return the network of flows on these routes."""
    paths = [route.path for route in routes]
    places = np.array([route.place for route in routes], dtype=np.int64)
    num_outside = [sum(link < len(fabric.links) for link in path) for path in paths] if places.any() else []
    num_hops = np.array([len(path) for path in paths], dtype=np.int64)
    by_hop = places_on_hops(places, num_hops, np.array(num_outside, dtype=np.int64))
    return Network.of(np.array(fabric.rates_bps), paths, by_hop)


class RouteTable:
    """The routes of all flows of all jobs; a flow takes the hash's path until a decision knows it.

    Where links ``may_fail``, a flow goes where the switches forward its packets, whatever the Plan says, and is lost
    where they drop them. Acknowledgements have no rules.
    """

    def __init__(
        self,
        routing: Routing,
        specifications: Mapping[GroupKey, Sequence[FlowSpec]],
        connections: Connections,
        tiers: Tiers,
        *,
        may_fail: bool,
    ) -> None:
        self._fabric = routing.fabric
        self._tiers = tiers
        self._routing = routing
        self._forwarding = Forwarding(routing, {}) if may_fail else None
        self._five_tuples = {
            FlowKey(*key, number): five_tuple
            for key in specifications
            for number, five_tuple in enumerate(connections[key[0]][key[1]])
        }
        self._planned = {
            key: Route(
                (*routing.hashed_path(five_tuple), *self._host_links(specifications[key.job, key.group][key.flow])),
                0,
                undecided_tier(tiers),
            )
            for key, five_tuple in self._five_tuples.items()
        }
        self._routes = dict(self._planned)

    def __getitem__(self, key: FlowKey) -> Route:
        return self._routes[key]

    def five_tuple(self, key: FlowKey) -> FiveTuple | None:
        """Return the 5-tuple of a flow's next packets; None where links may not fail, as it does not matter there."""
        return None if self._forwarding is None else self._five_tuples[key]

    def apply(self, decision: Decision, routing: Routing) -> set[str]:
        """Apply a decision, whose rules the switches hold from now on, and its base routing.

        Returns:
            The jobs that have a flow whose route changed.
        """
        routes = routes_of(decision.snapshot, decision.plan, self._tiers)
        if self._forwarding is None:
            return self._change(routes)
        self._planned |= routes
        self._five_tuples |= {flow.key: flow.five_tuple for job in decision.snapshot.jobs for flow in job.flows}
        # The switches' own hash counts, whatever the decision takes it for.
        self._forwarding = Forwarding(self._routing.without(routing.dead), decision.rules, self._forwarding.down)
        return self._change(self._forwarded_routes())

    def set_down(self, links: frozenset[int]) -> set[str]:
        """Make these links carry nothing, and all others carry packets again.

        Returns:
            The jobs that have a flow whose route changed.

        Raises:
            ValueError: Links may not fail.
        """
        if self._forwarding is None:
            raise ValueError("links may not fail: the forwarding of switches is unknown")
        self._forwarding = replace(self._forwarding, down=links)
        return self._change(self._forwarded_routes())

    def forwarded(self, route: Route, five_tuple: FiveTuple | None) -> Route:
        """Return the route that the switches give to packets of a 5-tuple whose planned route is ``route``."""
        if self._forwarding is None or five_tuple is None:
            return route
        path, back = self._forwarding.path(five_tuple), self._forwarding.path(five_tuple.reverse)
        if path is None or back is None:
            return replace(route, is_lost=True)
        host_links = (link for link in route.path if link >= len(self._fabric.links))
        return replace(route, path=(*path, *host_links), is_lost=False)

    def _forwarded_routes(self) -> dict[FlowKey, Route]:
        return {key: self.forwarded(route, self._five_tuples[key]) for key, route in self._planned.items()}

    def _change(self, routes: Mapping[FlowKey, Route]) -> set[str]:
        changed = {key.job for key, route in routes.items() if self._routes[key] != route}
        self._routes |= routes
        return changed

    def _host_links(self, flow: FlowSpec) -> Path:
        """Return the links inside the hosts of a flow."""
        nics = self._fabric.nics
        ends = nics[flow.source_host][flow.source_nic], nics[flow.destination_host][flow.destination_nic]
        return self._fabric.host_links_between(*ends)


@dataclass(frozen=True)
class Forwarding:
    """The state of all switches: base ``routing``, the ``rules`` written last, and the links that are ``down``."""

    routing: Routing
    rules: FlowRulesBySwitch
    down: frozenset[int] = frozenset()

    def path(self, five_tuple: FiveTuple) -> Path | None:
        """Return the links that a flow's packets cross, or None where they are lost.

        A switch forwards them as its rule for the flow says, even into a port that is down. Without a rule it hashes
        over the members of base routing whose own port is up; it knows of no other switch's ports.
        """
        fabric, down = self.routing.fabric, self.down
        destination = fabric.nic_by_address[five_tuple.destination_address]
        crc = flow_crc(five_tuple)
        path = [fabric.nic_by_address[five_tuple.source_address].link]
        while path[-1] not in down and len(path) <= len(fabric.switches) + 1:
            node = fabric.links[path[-1]].destination
            if node == destination.host:
                return tuple(path)
            link = self._next_links.get((five_tuple, node))
            if link is None:
                choices = self.routing.hash_choices(node, destination) or self.routing.next_links(node, destination)
                members = [member for member in choices if member not in down]
                if not members:
                    return None
                link = self.routing.hashed_link(node, crc, members)
            path.append(link)
        return None

    @cached_property
    def _next_links(self) -> dict[tuple[FiveTuple, str], int]:
        return {
            (rule.five_tuple, switch): rule.next_link
            for switch, rules in self.rules.items()
            for rule in rules
            if rule.next_link is not None
        }
