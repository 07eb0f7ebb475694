"""What P4 switches are to hold on one fabric, by switch: base entries, and those that carry out rules."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from controller.rules.flow_rules import RulesBySwitch
from controller.southbound.p4runtime.entries import (
    fixed_entries,
    is_base,
    macs_of_neighbours,
    neighbour_entries,
    route_entries,
    unknown_neighbours,
)
from controller.southbound.p4runtime.given_tables import GivenTables
from controller.southbound.p4runtime.rule_entities import RuleEntities
from controller.southbound.p4runtime.slots import GroupNumbers
from controller.southbound.p4runtime.states import State, state_of
from topologies.addressing import Address, MacAddress
from topologies.fabric import Fabric
from topologies.routing import Routing


class FabricStates:
    """What switches are to hold on one fabric: base entries, and those that carry out rules.

    With ``given``, somebody else fills the base tables, and what is of base routing is left out.

    Attributes:
        fixed: The base entries of every switch that do not depend on dead links.
    """

    def __init__(self, switches: Iterable[str], routing: Routing, given: GivenTables | None) -> None:
        self.fabric: Fabric = routing.fabric
        self._given = given
        self._rules = RuleEntities(routing.fabric)
        self._group_numbers: defaultdict[str, GroupNumbers] = defaultdict(GroupNumbers)
        self.fixed = {name: self._fixed(name, routing) for name in switches}

    def bases(self, routing: Routing) -> dict[str, State]:
        """Return the base entries of all switches."""
        return {name: self.base(name, routing) for name in self.fixed}

    def base(self, switch: str, routing: Routing) -> State:
        """Return the base entries of a switch."""
        fixed = self.fixed[switch]
        if self._given is not None:
            return fixed
        return {**fixed, **state_of(route_entries(switch, routing, self._group_numbers[switch]))}

    def neighbours(self, switch: str, macs: Mapping[Address, MacAddress]) -> State:
        """Return the base entries that stand in the place of others where these MACs were learned."""
        return state_of(neighbour_entries(switch, self.fabric, macs)) if self._given is None else {}

    def macs(self, switch: str, neighbours: State) -> Iterable[tuple[Address, MacAddress]]:
        """Return the addresses and MACs of the NICs that entries of ``neighbours`` lead to."""
        return macs_of_neighbours(switch, self.fabric, neighbours.values())

    def unknown_neighbours(self, switch: str) -> State:
        """Return the base entries in whose place a neighbour may come."""
        return state_of(unknown_neighbours(switch, self.fabric)) if self._given is None else {}

    def next_hops_into(self, links: Collection[int]) -> Mapping[str, frozenset[int]]:
        """Return the next hops of every switch that leave by these links."""
        return {name: self._next_hops_into(name, links) for name in self.fixed}

    def rules(self, rules: RulesBySwitch, _routing: Routing) -> Mapping[str, State]:
        """Return the entries that carry out the rules of all switches."""
        return {
            name: self._rules.state(
                name, rules.get(name, ()), None if self._given is None else self._given.next_hops(name)
            )
            for name in self.fixed
        }

    def _next_hops_into(self, switch: str, links: Collection[int]) -> frozenset[int]:
        if self._given is not None:
            return frozenset(next_hop for link, next_hop in self._given.next_hops(switch).items() if link in links)
        return frozenset(link.source_port for link in self.fabric.links_from[switch] if link.index in links)

    def _fixed(self, switch: str, routing: Routing) -> State:
        entities = state_of(fixed_entries(switch, routing))
        if self._given is None:
            return entities
        return {key: entity for key, entity in entities.items() if not is_base(key)}
