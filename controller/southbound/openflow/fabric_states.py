"""What switches that speak OpenFlow are to hold on one fabric: base entries, and those that carry out rules."""

from collections.abc import Collection, Iterable, Mapping

from controller.rules.flow_rules import RulesBySwitch
from controller.southbound.openflow import groups
from controller.southbound.openflow.entries import Group
from controller.southbound.openflow.measuring_entries import measuring_entries, measuring_of
from controller.southbound.openflow.routes import fixed_entries, route_entries
from controller.southbound.openflow.rule_entries import rule_entries
from controller.southbound.openflow.states import MEANING, State
from controller.switch_addresses import SwitchAddress
from topologies.addressing import Address, MacAddress
from topologies.openflow_specification import Queues
from topologies.routing import Routing


class FabricStates:
    """The entries that these switches are to have.

    Attributes:
        fixed: The base entries of every switch that do not depend on dead links.
    """

    def __init__(self, addresses: Iterable[SwitchAddress], routing: Routing) -> None:
        self.fabric = routing.fabric
        self._queues: dict[str, Queues] = {
            each.name: each.openflow.queues for each in addresses if each.openflow is not None
        }
        self.fixed: dict[str, State] = {
            name: MEANING.state_of(fixed_entries(name, routing, queues)) for name, queues in self._queues.items()
        }

    def bases(self, routing: Routing) -> dict[str, State]:
        """Return the base entries of all switches."""
        return {name: self.base(name, routing) for name in self.fixed}

    def base(self, switch: str, routing: Routing) -> State:
        """Return the base entries of a switch."""
        return {**self.fixed[switch], **MEANING.state_of(route_entries(switch, routing))}

    def rules(self, rules: RulesBySwitch, routing: Routing) -> dict[str, State]:
        """Return the entries that carry out the rules of all switches."""
        measuring = measuring_of(rules)
        return {
            name: MEANING.state_of(
                [
                    *rule_entries(name, rules.get(name, ()), routing, queues),
                    *(() if measuring is None else measuring_entries(name, measuring, routing)),
                ]
            )
            for name, queues in self._queues.items()
        }

    def neighbours(self, switch: str, macs: Mapping[Address, MacAddress]) -> State:
        """Return the base entries that stand in the place of others where these MACs were learned."""
        return MEANING.state_of(groups.neighbour_groups(switch, self.fabric, macs))

    def macs(self, switch: str, neighbours: State) -> Iterable[tuple[Address, MacAddress]]:
        """Return the addresses and MACs of the NICs that entries of ``neighbours`` lead to."""
        ports = [entry for entry in neighbours.values() if isinstance(entry, Group)]
        return groups.macs_of_neighbours(switch, self.fabric, ports)

    def unknown_neighbours(self, switch: str) -> State:
        """Return the base entries in whose place a neighbour may come."""
        return MEANING.state_of(groups.unknown_neighbours(switch, self.fabric))

    def next_hops_into(self, links: Collection[int]) -> dict[str, frozenset[int]]:
        """Return the ports of every switch that lead to these links."""
        return {
            name: frozenset(link.source_port for link in self.fabric.links_from[name] if link.index in links)
            for name in self.fixed
        }
