"""The members, groups and action sets of one action profile of one switch, in the memory compiled code follows."""

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
    """The words of an action call: the action's number, then its arguments.

    Raises InvalidRequestError where the table has no such action or an argument does not fit.
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
    """An action set that can be placed, with the words of each of its actions."""

    action_set: ActionSet
    words: tuple[tuple[int, ...], ...]


class ProfileMemory:
    """Members stand in blocks of their own; groups and action sets are selections of such blocks."""

    def __init__(self, arena: Arena, profile: Profile, table: Table, ports: Ports) -> None:
        """``table`` is one of the tables that use the profile; all have the same actions."""
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
        """Give everything back."""
        for place in self._member_places.values():
            self._arena.free(place, self._table.action_words)
        for selection in self._selections.values():
            selection.free()
        for owner in tuple(self._set_places):
            self.drop_set(owner)

    def port_changed(self, port: int) -> None:
        """Leave out, or take in again, what watches this port."""
        for selection in (*self._selections.values(), *self._set_selections.values()):
            selection.port_changed(port)

    # ---- members ----------------------------------------------------------------------------------------------------

    def member_place(self, member_id: int) -> int:
        """Where a member's action stands."""
        self._require_member(member_id)
        return self._member_places[member_id]

    def insert_member(self, member_id: int, action: ActionCall) -> None:
        if member_id in self.members:
            raise AlreadyExistsError(f"profile {self._name!r} has a member {member_id}")
        self._require_room(1, without=None)
        self._member_places[member_id] = self._written(encode_call(self._table, action))
        self.members[member_id] = action

    def modify_member(self, member_id: int, action: ActionCall) -> None:
        self._require_member(member_id)
        self._write(self._member_places[member_id], encode_call(self._table, action))
        self.members[member_id] = action

    def delete_member(self, member_id: int) -> None:
        self._require_member(member_id)
        for group_id, member_ids in self.groups.items():
            if member_id in member_ids:
                raise InvalidRequestError(f"member {member_id} of profile {self._name!r} is in group {group_id}")
        self._arena.free(self._member_places.pop(member_id), self._table.action_words)
        del self.members[member_id]

    # ---- groups -----------------------------------------------------------------------------------------------------

    def group_place(self, group_id: int) -> int:
        """Where a group's list of members stands."""
        self._require_group(group_id)
        return self._selections[group_id].place

    def insert_group(self, group_id: int, member_ids: tuple[int, ...], watch_ports: Mapping[int, int]) -> None:
        if group_id in self.groups:
            raise AlreadyExistsError(f"profile {self._name!r} has a group {group_id}")
        candidates = self._candidates(member_ids, watch_ports)
        self._selections[group_id] = Selection(self._arena, self._ports)
        self._set_group(group_id, member_ids, watch_ports, candidates)

    def modify_group(self, group_id: int, member_ids: tuple[int, ...], watch_ports: Mapping[int, int]) -> bool:
        """Replace a group's members; True where its block has moved and entries must be pointed anew."""
        self._require_group(group_id)
        before = self._selections[group_id].place
        self._set_group(group_id, member_ids, watch_ports, self._candidates(member_ids, watch_ports))
        return self._selections[group_id].place != before

    def delete_group(self, group_id: int) -> None:
        self._require_group(group_id)
        self._selections.pop(group_id).free()
        del self.groups[group_id], self.watch_ports[group_id]

    # ---- action sets ------------------------------------------------------------------------------------------------

    def encode_set(self, owner: Owner, action_set: ActionSet) -> EncodedSet:
        """An action set made ready for an entry. Raises SwitchError where the profile cannot hold it."""
        for weighted in action_set.actions:
            if weighted.weight < 1:
                raise InvalidRequestError(f"an action of a set has a weight above 0, not {weighted.weight}")
        self._require_ports(weighted.watch_port for weighted in action_set.actions if weighted.watch_port is not None)
        words = tuple(encode_call(self._table, weighted.call) for weighted in action_set.actions)
        self._require_room(len(words), without=owner)
        return EncodedSet(action_set, words)

    def place_set(self, owner: Owner, encoded: EncodedSet) -> int:
        """Where the list of an entry's actions stands from now on; its set before is given back."""
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
        """Give back what an entry's action set takes, if it has one."""
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
