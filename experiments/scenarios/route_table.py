"""Where the flows of a simulated run go: as planned or, where links may fail, as switches forward them now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from controller.planning.decision import Decision
from controller.rules.flow_rules import FlowRulesBySwitch
from experiments.scenarios.connections import Connections
from experiments.scenarios.routes import Route, routes_of, undecided_tier
from experiments.scenarios.transfers import GroupKey
from policies.enforcement import Tiers
from policies.flows import FlowKey
from topologies.addressing import FiveTuple
from topologies.ecmp import flow_crc, hash_of_crc
from topologies.fabric import Path
from topologies.routing import Routing
from workloads.task_graph import FlowSpec


class RouteTable:
    """The routes of all flows of all jobs, on the hash's paths until a decision knows them.

    Links may only fail where they ``may_fail``: there a flow goes where switches lead its packets, whatever the Plan
    says, and is lost where nothing comes of them. No rule leads acknowledgements.
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
        self._forwarding = Forwarding(routing, {}) if may_fail else None
        self._five_tuples = {
            FlowKey(*key, number): five_tuple
            for key in specifications
            for number, five_tuple in enumerate(connections[key[0]][key[1]])
        }
        self._planned = {
            key: Route(
                (*routing.hashed_path(five_tuple), *self._inside(specifications[key.job, key.group][key.flow])),
                0,
                undecided_tier(tiers),
            )
            for key, five_tuple in self._five_tuples.items()
        }
        self._routes = dict(self._planned)

    def __getitem__(self, key: FlowKey) -> Route:
        return self._routes[key]

    def sent_as(self, key: FlowKey) -> FiveTuple | None:
        """The 5-tuple of what a flow sends from now on, where it matters: where links may fail."""
        return None if self._forwarding is None else self._five_tuples[key]

    def follow(self, decision: Decision, routing: Routing) -> set[str]:
        """Flows are to travel as a decision says; returns the jobs of those with another route.

        Switches hold its rules from now on, and base routing is this.
        """
        routes = routes_of(decision.snapshot, decision.plan, self._tiers)
        if self._forwarding is None:
            return self._change(routes)
        self._planned |= routes
        self._five_tuples |= {flow.key: flow.five_tuple for job in decision.snapshot.jobs for flow in job.flows}
        self._forwarding = Forwarding(routing, decision.rules, self._forwarding.down)
        return self._change(self._carried_now())

    def lose(self, links: frozenset[int]) -> set[str]:
        """From now on these links carry nothing, and all others do; returns the jobs of flows with another route.

        Raises ValueError where links may not fail.
        """
        if self._forwarding is None:
            raise ValueError("what switches do is not known: links may not fail")
        self._forwarding = replace(self._forwarding, down=links)
        return self._change(self._carried_now())

    def of_packets(self, route: Route, five_tuple: FiveTuple | None) -> Route:
        """The route that packets of a 5-tuple take which were to take another one."""
        if self._forwarding is None or five_tuple is None:
            return route
        path, back = self._forwarding.path(five_tuple), self._forwarding.path(five_tuple.reverse)
        if path is None or back is None:
            return replace(route, is_lost=True)
        inside = (link for link in route.path if link >= len(self._fabric.links))
        return replace(route, path=(*path, *inside), is_lost=False)

    def _carried_now(self) -> dict[FlowKey, Route]:
        return {key: self.of_packets(route, self._five_tuples[key]) for key, route in self._planned.items()}

    def _change(self, routes: Mapping[FlowKey, Route]) -> set[str]:
        changed = {key.job for key, route in routes.items() if self._routes[key] != route}
        self._routes |= routes
        return changed

    def _inside(self, flow: FlowSpec) -> Path:
        """Links inside the hosts of a flow."""
        nics = self._fabric.nics
        ends = nics[flow.source_host][flow.source_nic], nics[flow.destination_host][flow.destination_nic]
        return self._fabric.host_links_between(*ends)


@dataclass(frozen=True)
class Forwarding:
    """Base ``routing`` and ``rules`` as they were written last, and the links that are ``down`` now."""

    routing: Routing
    rules: FlowRulesBySwitch
    down: frozenset[int] = frozenset()

    def path(self, five_tuple: FiveTuple) -> Path | None:
        """The links that a flow's packets take; None where they are lost.

        A switch leads them where its rule for the flow says, into a dead port too. Without a rule it takes the hash's
        choice of the members that base routing has, but for those whose port is down: it knows only its own ports.
        """
        fabric, down = self.routing.fabric, self.down
        destination = fabric.nic_by_address[five_tuple.destination_address]
        crc = flow_crc(five_tuple)
        path = [fabric.nic_by_address[five_tuple.source_address].link]
        while path[-1] not in down and len(path) <= len(fabric.switches) + 1:
            node = fabric.links[path[-1]].destination
            if node == destination.host:
                return tuple(path)
            link = self._led.get((five_tuple, node))
            if link is None:
                members = [member for member in self.routing.next_links(node, destination) if member not in down]
                if not members:
                    return None
                link = members[hash_of_crc(crc, self.routing.hash_multipliers[node]) % len(members)]
            path.append(link)
        return None

    @cached_property
    def _led(self) -> dict[tuple[FiveTuple, str], int]:
        return {
            (rule.five_tuple, switch): rule.next_link
            for switch, rules in self.rules.items()
            for rule in rules
            if rule.next_link is not None
        }
