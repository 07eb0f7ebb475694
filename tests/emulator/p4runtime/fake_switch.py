"""A switch that holds what it is given and forwards nothing."""

from collections.abc import Iterator, Mapping

from emulator.compiler.resources import Resources
from emulator.entries import (
    ActionCall,
    AlreadyExistsError,
    CounterValue,
    EntryAction,
    EntryKey,
    FieldMatch,
    NotFoundError,
    ResourceExhaustedError,
)
from emulator.ports import Ports
from emulator.power import Power
from emulator.switch import NO_NAMES, NO_WATCH_PORTS, EmulatedSwitch

PROGRAM_DEFAULT = ActionCall("Ingress.set_level", (0,))
FIXED_ENTRY = (EntryKey((FieldMatch(9, 0x3F),)), ActionCall("Ingress.set_level", (5,)))
FLOW_TABLE_SIZE = 4
PORTS = (1, 2, 3)


class FakeSwitch(EmulatedSwitch):
    """``commits`` counts how often a pipeline was set."""

    def __init__(self, device_id: int) -> None:
        self.name = f"switch{device_id}"
        self.device_id = device_id
        self.ports = Ports(PORTS)
        self.port_names = NO_NAMES
        self.power = Power()
        self.commits = -1
        self.clear()

    @property
    def ages(self) -> bool:
        return False

    def clear(self) -> None:
        self.commits += 1
        self._rows: dict[str, dict[EntryKey, EntryAction]] = {"Ingress.fixed": dict([FIXED_ENTRY])}
        self._default_actions: dict[str, ActionCall] = {}
        self._member_actions: dict[int, ActionCall] = {}
        self._group_members: dict[int, tuple[int, ...]] = {}
        self._watch_ports: dict[int, Mapping[int, int]] = {}
        self._cells: dict[int, CounterValue] = {}
        self._direct_cells: dict[EntryKey, CounterValue] = {}

    def shadow(self, _resources: Resources | None = None) -> "FakeSwitch":
        return FakeSwitch(self.device_id)

    def set_port(self, port: int, up: bool) -> None:
        self.ports.set(port, up)

    def insert(self, table: str, key: EntryKey, action: EntryAction) -> None:
        entries = self._rows.setdefault(table, {})
        if key in entries:
            raise AlreadyExistsError(f"table {table} has this entry")
        if table == "Ingress.flow" and len(entries) == FLOW_TABLE_SIZE:
            raise ResourceExhaustedError(f"table {table} is full")
        entries[key] = action
        self._direct_cells[key] = CounterValue(0, 0)

    def modify(self, table: str, key: EntryKey, action: EntryAction) -> None:
        self.entry(table, key)
        self._rows[table][key] = action

    def delete(self, table: str, key: EntryKey) -> None:
        self.entry(table, key)
        del self._rows[table][key]

    def entry(self, table: str, key: EntryKey) -> EntryAction:
        try:
            return self._rows.get(table, {})[key]
        except KeyError:
            raise NotFoundError(f"table {table} has no such entry") from None

    def entries(self, table: str) -> Iterator[tuple[EntryKey, EntryAction]]:
        yield from self._rows.get(table, {}).items()

    def set_default(self, table: str, action: ActionCall | None) -> None:
        self._default_actions[table] = action or PROGRAM_DEFAULT

    def default(self, table: str) -> ActionCall:
        if table == "Ingress.routing":
            raise NotFoundError(f"table {table} has no default action")
        return self._default_actions.get(table, PROGRAM_DEFAULT)

    def insert_member(self, profile: str, member_id: int, action: ActionCall) -> None:
        if member_id in self._member_actions:
            raise AlreadyExistsError(f"profile {profile} has member {member_id}")
        self._member_actions[member_id] = action

    def modify_member(self, profile: str, member_id: int, action: ActionCall) -> None:
        if member_id not in self._member_actions:
            raise NotFoundError(f"profile {profile} has no member {member_id}")
        self._member_actions[member_id] = action

    def delete_member(self, profile: str, member_id: int) -> None:
        if self._member_actions.pop(member_id, None) is None:
            raise NotFoundError(f"profile {profile} has no member {member_id}")

    def members(self, profile: str) -> Mapping[int, ActionCall]:
        assert profile == "Ingress.ecmp"
        return self._member_actions

    def insert_group(
        self,
        profile: str,
        group_id: int,
        member_ids: tuple[int, ...],
        max_size: int,
        watch_ports: Mapping[int, int] = NO_WATCH_PORTS,
    ) -> None:
        assert len(member_ids) <= max_size
        if group_id in self._group_members:
            raise AlreadyExistsError(f"profile {profile} has group {group_id}")
        self._group_members[group_id], self._watch_ports[group_id] = member_ids, watch_ports

    def modify_group(
        self,
        profile: str,
        group_id: int,
        member_ids: tuple[int, ...],
        watch_ports: Mapping[int, int] = NO_WATCH_PORTS,
    ) -> None:
        if group_id not in self._group_members:
            raise NotFoundError(f"profile {profile} has no group {group_id}")
        self._group_members[group_id], self._watch_ports[group_id] = member_ids, watch_ports

    def delete_group(self, profile: str, group_id: int) -> None:
        if self._group_members.pop(group_id, None) is None:
            raise NotFoundError(f"profile {profile} has no group {group_id}")

    def groups(self, profile: str) -> Mapping[int, tuple[int, ...]]:
        assert profile == "Ingress.ecmp"
        return self._group_members

    def watch_ports(self, profile: str, group_id: int) -> Mapping[int, int]:
        assert profile == "Ingress.ecmp"
        return self._watch_ports[group_id]

    def counter(self, name: str, index: int) -> CounterValue:
        assert name == "Egress.levels"
        return self._cells.get(index, CounterValue(0, 0))

    def set_counter(self, name: str, index: int, value: CounterValue) -> None:
        assert name == "Egress.levels"
        self._cells[index] = value

    def direct_counter(self, table: str, key: EntryKey) -> CounterValue:
        assert table == "Ingress.flow"
        return self._direct_cells[key]

    def set_direct_counter(self, table: str, key: EntryKey, value: CounterValue) -> None:
        assert table == "Ingress.flow"
        self._direct_cells[key] = value
