"""Members, groups and action sets of one action profile of one switch, in the memory that compiled code reads."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from emulator.compiler.layout import WORD_BITS, words_of
from emulator.compiler.tables import Profile, Table
from emulator.entries import (
    ActionCall,
    ActionSet,
    AlreadyExistsError,
    EntryKey,
    InvalidRequestError,
    NotFoundError,
    ResourceExhaustedError,
)
from emulator.memory import Arena
from emulator.ports import Ports
from emulator.selection import Candidate, Selection

_WORD_MASK = (1 << WORD_BITS) - 1

Owner = tuple[str, EntryKey]
"""Table and key of the entry that an action set belongs to."""


def encode_call(table: Table, call: ActionCall) -> tuple[int, ...]:
    """Return the words of an action call: the action's number, then its arguments.

    Raises InvalidRequestError for an action that the table lacks, or an argument that does not fit.
    """
    for action in table.actions:
        if action.name == call.action:
            if len(call.arguments) != len(action.parameter_bits):
                raise InvalidRequestError(f"action {call.action!r} takes {len(action.parameter_bits)} arguments")
            words = [action.number]
            for position, (value, bits) in enumerate(zip(call.arguments, action.parameter_bits, strict=True)):
                if not 0 <= value < 1 << bits:
                    raise InvalidRequestError(f"argument {position} of {call.action!r} does not fit into {bits} bits")
                words += [value >> WORD_BITS * number & _WORD_MASK for number in range(words_of(bits))]
            return tuple(words)
    raise InvalidRequestError(f"table {table.name!r} has no action {call.action!r}")


@dataclass(frozen=True, slots=True)
class EncodedSet:
    """A checked action set, with the words of each of its actions."""

    action_set: ActionSet
    words: tuple[tuple[int, ...], ...]


class ProfileMemory:
    """Members, groups and action sets of a profile; groups and sets select from the blocks of members and actions."""

    def __init__(self, arena: Arena, profile: Profile, table: Table, ports: Ports) -> None:
        """Create an empty profile; ``table`` is any of the tables that use it, because all have the same actions."""
        self._arena = arena
        self._name = profile.name
        self._max_members = profile.max_members
        self._table = table
        self._ports = ports
        self.members: dict[int, ActionCall] = {}
        self.groups: dict[int, tuple[int, ...]] = {}
        self.watch_ports: dict[int, Mapping[int, int]] = {}
        self._member_places: dict[int, int] = {}
        self._selections: dict[int, Selection] = {}
        self._set_places: dict[Owner, tuple[int, ...]] = {}
        self._set_selections: dict[Owner, Selection] = {}

    def free(self) -> None:
        """Return all words to the arena."""
        for place in self._member_places.values():
            self._arena.free(place, self._table.action_words)
        for selection in self._selections.values():
            selection.free()
        for owner in tuple(self._set_places):
            self.drop_set(owner)

    def port_changed(self, port: int) -> None:
        """Remove candidates that watch this port from their groups, or add them again."""
        for selection in (*self._selections.values(), *self._set_selections.values()):
            selection.port_changed(port)

    # ---- members ----------------------------------------------------------------------------------------------------

    def member_at(self, place: int) -> int | None:
        """Return the id of the member at an arena offset, None if there is none."""
        return next((member_id for member_id, at in self._member_places.items() if at == place), None)

    def member_place(self, member_id: int) -> int:
        """Return the offset of a member's action."""
        self._require_member(member_id)
        return self._member_places[member_id]

    def insert_member(self, member_id: int, action: ActionCall) -> None:
        """Add a member. Raises SwitchError if it exists, does not fit or the profile is full."""
        if member_id in self.members:
            raise AlreadyExistsError(f"profile {self._name!r} has a member {member_id}")
        self._require_room(1, without=None)
        self._member_places[member_id] = self._written(encode_call(self._table, action))
        self.members[member_id] = action

    def modify_member(self, member_id: int, action: ActionCall) -> None:
        """Replace the action of a member. Raises SwitchError if it does not exist or the action does not fit."""
        self._require_member(member_id)
        self._write(self._member_places[member_id], encode_call(self._table, action))
        self.members[member_id] = action

    def delete_member(self, member_id: int) -> None:
        """Remove a member. Raises SwitchError if it does not exist or is in a group."""
        self._require_member(member_id)
        for group_id, member_ids in self.groups.items():
            if member_id in member_ids:
                raise InvalidRequestError(f"member {member_id} of profile {self._name!r} is in group {group_id}")
        self._arena.free(self._member_places.pop(member_id), self._table.action_words)
        del self.members[member_id]

    # ---- groups -----------------------------------------------------------------------------------------------------

    def group_place(self, group_id: int) -> int:
        """Return the offset of a group's list of members."""
        self._require_group(group_id)
        return self._selections[group_id].place

    def insert_group(self, group_id: int, member_ids: tuple[int, ...], watch_ports: Mapping[int, int]) -> None:
        """Add a group. Raises SwitchError if it exists or cannot be built."""
        if group_id in self.groups:
            raise AlreadyExistsError(f"profile {self._name!r} has a group {group_id}")
        candidates = self._candidates(member_ids, watch_ports)
        self._selections[group_id] = Selection(self._arena, self._ports)
        self._set_group(group_id, member_ids, watch_ports, candidates)

    def modify_group(self, group_id: int, member_ids: tuple[int, ...], watch_ports: Mapping[int, int]) -> bool:
        """Replace a group's members; return whether its block moved, so that entries need the new offset."""
        self._require_group(group_id)
        before = self._selections[group_id].place
        self._set_group(group_id, member_ids, watch_ports, self._candidates(member_ids, watch_ports))
        return self._selections[group_id].place != before

    def delete_group(self, group_id: int) -> None:
        """Remove a group. Raises SwitchError if it does not exist."""
        self._require_group(group_id)
        self._selections.pop(group_id).free()
        del self.groups[group_id], self.watch_ports[group_id]

    # ---- action sets ------------------------------------------------------------------------------------------------

    def encode_set(self, owner: Owner, action_set: ActionSet) -> EncodedSet:
        """Check and encode an action set for an entry. Raises SwitchError if the profile cannot hold it."""
        for weighted in action_set.actions:
            if weighted.weight < 1:
                raise InvalidRequestError(f"an action of a set has a weight above 0, not {weighted.weight}")
        self._require_ports(weighted.watch_port for weighted in action_set.actions if weighted.watch_port is not None)
        words = tuple(encode_call(self._table, weighted.call) for weighted in action_set.actions)
        self._require_room(len(words), without=owner)
        return EncodedSet(action_set, words)

    def place_set(self, owner: Owner, encoded: EncodedSet) -> int:
        """Store an entry's action set in place of its previous one, and return the offset of its list."""
        self.drop_set(owner)
        places = tuple(self._written(words) for words in encoded.words)
        selection = Selection(self._arena, self._ports)
        selection.replace(
            tuple(
                Candidate(place, weighted.watch_port)
                for place, weighted in zip(places, encoded.action_set.actions, strict=True)
                for _ in range(weighted.weight)
            )
        )
        self._set_places[owner], self._set_selections[owner] = places, selection
        return selection.place

    def drop_set(self, owner: Owner) -> None:
        """Free an entry's action set, if it has one."""
        if owner in self._set_places:
            for place in self._set_places.pop(owner):
                self._arena.free(place, self._table.action_words)
            self._set_selections.pop(owner).free()

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _candidates(self, member_ids: tuple[int, ...], watch_ports: Mapping[int, int]) -> tuple[Candidate, ...]:
        self._require_ports(watch_ports.values())
        if stray := watch_ports.keys() - set(member_ids):
            raise InvalidRequestError(f"member {min(stray)} has a watch port but is not in the group")
        return tuple(Candidate(self.member_place(member_id), watch_ports.get(member_id)) for member_id in member_ids)

    def _set_group(
        self,
        group_id: int,
        member_ids: tuple[int, ...],
        watch_ports: Mapping[int, int],
        candidates: tuple[Candidate, ...],
    ) -> None:
        self._selections[group_id].replace(candidates)
        self.groups[group_id] = member_ids
        self.watch_ports[group_id] = dict(watch_ports)

    def _written(self, words: tuple[int, ...]) -> int:
        place = self._arena.allocate(self._table.action_words)
        self._write(place, words)
        return place

    def _write(self, place: int, words: tuple[int, ...]) -> None:
        self._arena.words[place : place + len(words)] = words

    def _require_room(self, num_actions: int, without: Owner | None) -> None:
        in_sets = sum(len(places) for owner, places in self._set_places.items() if owner != without)
        if len(self.members) + in_sets + num_actions > self._max_members:
            raise ResourceExhaustedError(f"profile {self._name!r} is full ({self._max_members} members)")

    def _require_ports(self, ports: Iterable[int]) -> None:
        for port in ports:
            if port not in self._ports:
                raise InvalidRequestError(f"the switch has no port {port} to watch")

    def _require_member(self, member_id: int) -> None:
        if member_id not in self.members:
            raise NotFoundError(f"profile {self._name!r} has no member {member_id}")

    def _require_group(self, group_id: int) -> None:
        if group_id not in self.groups:
            raise NotFoundError(f"profile {self._name!r} has no group {group_id}")
