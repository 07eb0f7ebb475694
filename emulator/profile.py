"""The members and groups of one action profile of one switch, in the memory that compiled code follows."""

from emulator.compiler.tables import Profile, Table
from emulator.entries import (
    ActionCall,
    AlreadyExistsError,
    InvalidRequestError,
    NotFoundError,
    ResourceExhaustedError,
)
from emulator.memory import Arena


def encode_call(table: Table, call: ActionCall) -> tuple[int, ...]:
    """The words of an action call: the action's number, then its arguments.

    Raises InvalidRequestError where the table has no such action or an argument does not fit.
    """
    for action in table.actions:
        if action.name == call.action:
            if len(call.arguments) != len(action.parameter_bits):
                raise InvalidRequestError(f"action {call.action!r} takes {len(action.parameter_bits)} arguments")
            for position, (value, bits) in enumerate(zip(call.arguments, action.parameter_bits, strict=True)):
                if not 0 <= value < 1 << bits:
                    raise InvalidRequestError(f"argument {position} of {call.action!r} does not fit into {bits} bits")
            return action.number, *call.arguments
    raise InvalidRequestError(f"table {table.name!r} has no action {call.action!r}")


class ProfileMemory:
    """Members stand in blocks of their own; a group's block lists where its members stand, in order."""

    def __init__(self, arena: Arena, profile: Profile, table: Table) -> None:
        """``table`` is one of the tables that use the profile; all have the same actions."""
        self._arena = arena
        self._name = profile.name
        self._max_members = profile.max_members
        self._table = table
        self.members: dict[int, ActionCall] = {}
        self.groups: dict[int, tuple[int, ...]] = {}
        self._member_places: dict[int, int] = {}
        self._group_places: dict[int, tuple[int, int]] = {}

    def free(self) -> None:
        """Give everything back."""
        for place in self._member_places.values():
            self._arena.free(place, self._table.action_words)
        for place, num_words in self._group_places.values():
            self._arena.free(place, num_words)

    def member_place(self, member_id: int) -> int:
        """Where a member's action stands."""
        self._require_member(member_id)
        return self._member_places[member_id]

    def group_place(self, group_id: int) -> int:
        """Where a group's list of members stands."""
        self._require_group(group_id)
        return self._group_places[group_id][0]

    def insert_member(self, member_id: int, action: ActionCall) -> None:
        if member_id in self.members:
            raise AlreadyExistsError(f"profile {self._name!r} has a member {member_id}")
        if len(self.members) >= self._max_members:
            raise ResourceExhaustedError(f"profile {self._name!r} is full ({self._max_members} members)")
        words = encode_call(self._table, action)
        self._member_places[member_id] = self._arena.allocate(self._table.action_words)
        self._write(self._member_places[member_id], words)
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

    def insert_group(self, group_id: int, member_ids: tuple[int, ...]) -> None:
        if group_id in self.groups:
            raise AlreadyExistsError(f"profile {self._name!r} has a group {group_id}")
        self._set_group(group_id, member_ids)

    def modify_group(self, group_id: int, member_ids: tuple[int, ...]) -> bool:
        """Replace a group's members; True where its block has moved and entries must be pointed anew."""
        self._require_group(group_id)
        before = self._group_places[group_id][0]
        self._set_group(group_id, member_ids)
        return self._group_places[group_id][0] != before

    def delete_group(self, group_id: int) -> None:
        self._require_group(group_id)
        self._arena.free(*self._group_places.pop(group_id))
        del self.groups[group_id]

    def _set_group(self, group_id: int, member_ids: tuple[int, ...]) -> None:
        places = [self.member_place(member_id) for member_id in member_ids]
        place, num_words = self._group_places.get(group_id, (0, 0))
        if num_words < 1 + len(places):
            if num_words:
                self._arena.free(place, num_words)
            num_words = 1 + len(places)
            place = self._arena.allocate(num_words)
        self._write(place, (len(places), *places))
        self._group_places[group_id] = place, num_words
        self.groups[group_id] = member_ids

    def _write(self, place: int, words: tuple[int, ...]) -> None:
        self._arena.words[place : place + len(words)] = words

    def _require_member(self, member_id: int) -> None:
        if member_id not in self.members:
            raise NotFoundError(f"profile {self._name!r} has no member {member_id}")

    def _require_group(self, group_id: int) -> None:
        if group_id not in self.groups:
            raise NotFoundError(f"profile {self._name!r} has no group {group_id}")
