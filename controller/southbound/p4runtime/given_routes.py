"""Interpret base tables that another client has filled: routes by link, and the next hop that leaves by each link.

Next hops, members and groups have the numbers of that client.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from finsy import (
    P4ActionProfileGroup,
    P4ActionProfileMember,
    P4IndirectAction,
    P4TableAction,
    P4TableEntry,
)

from controller.southbound.p4runtime.entries import NEXT_HOP_TABLE, Entity
from controller.southbound.p4runtime.slots import SLOT_TABLE
from controller.southbound.p4runtime.states import State
from topologies.addressing import Address, Prefix
from topologies.fabric import Fabric
from topologies.given_routing import GivenRoutes
from topologies.paths import NO_LINK
from topologies.routing import Route

_MAX_MEMBERS = 4096
_MAX_PROBLEMS = 20
"""Of one switch; what a client has written without sense may be long."""


@dataclass(frozen=True, slots=True)
class InterpretedTables:
    """The base tables of one switch: its routes, the next hop for each link out of it, and what makes no sense."""

    routes: GivenRoutes
    next_hops: Mapping[int, int]
    problems: tuple[str, ...]


def interpret(switch: str, tables: State, fabric: Fabric) -> InterpretedTables:
    """Return what base tables mean on a switch of the fabric."""
    return _Interpretation(switch, tables.values(), fabric).result()


@dataclass(frozen=True, slots=True)
class _Choice:
    """The links that the hash chooses from, NO_LINK for what leads to none, and what makes no sense about them."""

    links: tuple[int, ...]
    problems: tuple[str, ...]


class _Interpretation:
    def __init__(self, switch: str, entities: Iterable[Entity], fabric: Fabric) -> None:
        self._links = {link.source_port: link.index for link in fabric.links_from[switch]}
        self._number = 1
        """That of the switch for the hash."""
        self._ports: dict[int, int] = {}
        """Ports by next hop."""
        self._members: dict[int, P4TableAction] = {}
        self._groups: dict[int, P4ActionProfileGroup] = {}
        self._slots: dict[tuple[int, int], P4TableAction] = {}
        """Of a target without a selector, by group and slot."""
        self._choices: dict[Hashable, _Choice] = {}
        """What groups that routes use mean."""
        self._entries: list[P4TableEntry] = []
        self._used: set[int] = set()
        self._problems: dict[str, None] = {}
        for entity in entities:
            self._sort(entity)

    def result(self) -> InterpretedTables:
        routes = tuple(self._route(entry) for entry in self._entries)
        next_hops: dict[int, int] = {}
        # Those that routes use first: the others may be left over.
        for next_hop in sorted(self._ports, key=lambda next_hop: (next_hop not in self._used, next_hop)):
            link = self._links.get(self._ports[next_hop])
            if link is not None:
                next_hops.setdefault(link, next_hop)
        problems = tuple(self._problems)
        if len(problems) > _MAX_PROBLEMS:
            problems = (*problems[:_MAX_PROBLEMS], f"and {len(problems) - _MAX_PROBLEMS:,} more")
        return InterpretedTables(GivenRoutes(routes, self._number), next_hops, problems)

    def _sort(self, entity: Entity) -> None:
        match entity:
            case P4TableEntry(is_default_action=True, action=P4TableAction() as action):
                self._number = next(iter(action.args.values()), 1)
            case P4TableEntry(table_id=table, action=P4TableAction() as action) if table == NEXT_HOP_TABLE:
                assert entity.match is not None
                if "port" in action.args:
                    self._ports[entity.match["next_hop"]] = action.args["port"]
            case P4TableEntry(table_id=table, action=P4TableAction() as action) if table == SLOT_TABLE:
                assert entity.match is not None
                self._slots[entity.match["group"], entity.match["slot"]] = action
            case P4TableEntry(is_default_action=False):
                self._entries.append(entity)
            case P4ActionProfileMember(action=P4TableAction() as action):
                self._members[entity.member_id] = action
            case P4ActionProfileGroup():
                self._groups[entity.group_id] = entity

    def _route(self, entry: P4TableEntry) -> Route:
        match: Mapping[str, tuple[int, int]] = entry.match or {}
        address, length = match.get("destination_address", (0, 0))
        choice = self._choice(entry)
        for problem in choice.problems:
            self._problems[f"the route to {Address(address)}/{length} {problem}"] = None
        return Route(Prefix.around(Address(address), length).address, length, choice.links)

    def _choice(self, entry: P4TableEntry) -> _Choice:
        """Return what the hash chooses from, in its order."""
        match entry.action:
            case P4TableAction(name="set_ecmp_group") as action:
                return self._choice_of_slots(action.args["group"], action.args["slot_mask"])
            case P4TableAction() as action:
                return self._choice_of([(1, action)])
            case P4IndirectAction(member_id=int() as member_id):
                return self._choice_of([(1, self._members.get(member_id))])
            case P4IndirectAction(group_id=int() as group_id):
                # Many routes may share a large group.
                if group_id not in self._choices:
                    group = self._groups.get(group_id)
                    members = () if group is None else group.members or ()
                    weighted = [(_weight(each.weight), self._members.get(each.member_id)) for each in members]
                    self._choices[group_id] = self._choice_of(weighted)
                return self._choices[group_id]
            case P4IndirectAction(action_set=list() as weighted_actions):
                return self._choice_of([(_weight(weight), action) for weight, action in weighted_actions])
        return self._choice_of([])

    def _choice_of_slots(self, group: int, mask: int) -> _Choice:
        if mask & mask + 1:
            return _Choice((NO_LINK,), (f"has slot mask {mask:#x}, which is not one less than a power of two",))
        if (group, mask) not in self._choices:
            slots = [(1, self._slots.get((group, slot))) for slot in range(mask + 1)]
            self._choices[group, mask] = self._choice_of(slots)
        return self._choices[group, mask]

    def _choice_of(self, weighted: Sequence[tuple[int, P4TableAction | None]]) -> _Choice:
        if not 0 < sum(weight for weight, _ in weighted) <= _MAX_MEMBERS:
            return _Choice((NO_LINK,), (f"has no next hop, or more than {_MAX_MEMBERS:,}",))
        links: list[int] = []
        problems: dict[str, None] = {}
        for weight, action in weighted:
            link, problem = self._link(action)
            links += [link] * weight
            if problem and weight > 0:
                problems[problem] = None
        return _Choice(tuple(links), tuple(problems))

    def _link(self, action: P4TableAction | None) -> tuple[int, str]:
        """Return the link that an action leads to, or NO_LINK and the problem."""
        next_hop = None if action is None else action.args.get("next_hop")
        if next_hop is None:
            return NO_LINK, "has a member without a next hop"
        port = self._ports.get(next_hop)
        if port is None:
            return NO_LINK, f"leads to next hop {next_hop}, which there is not"
        self._used.add(next_hop)
        link = self._links.get(port)
        if link is None:
            return NO_LINK, f"leads to port {port}, which has no cable in the topology"
        return link, ""


def _weight(weight: int | tuple[int, int]) -> int:
    """Return a weight without the port that is watched beside it."""
    return weight[0] if isinstance(weight, tuple) else weight
