"""Control plane of one emulated switch: the operations that P4Runtime offers."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from emulator.ageing import Ageing, IdleEntry, IdleTimers
from emulator.cells import ValueSetMemory
from emulator.compiler.resources import Resources
from emulator.entries import (
    ActionCall,
    CounterValue,
    EntryAction,
    EntryKey,
    GroupReference,
    InvalidRequestError,
    MemberReference,
    NotFoundError,
    ResourceExhaustedError,
)
from emulator.memory import Arena
from emulator.meters import MeterMemory, MeterRates
from emulator.ports import CPU_PORT, Ports
from emulator.power import Power
from emulator.replication import ReplicationMemory, Replicator
from emulator.switch_memory import SwitchMemory

NO_WATCH_PORTS: Mapping[int, int] = MappingProxyType({})
NO_NAMES: Mapping[int, str] = MappingProxyType({})


class EmulatedSwitch:
    """One switch of an emulated fabric. Every method takes effect before the next packet is processed.

    Names are those of the BMv2 JSON, which are also the ``preamble.name`` of P4Info. A method that fails raises a
    ``SwitchError`` and changes nothing. A switch forwards nothing until ``clear`` has been called, like one without a
    pipeline. Groups may watch any of ``ports``; each is up until ``set_port`` takes it down. ``cpu_port`` connects the
    switch to its control plane. ``port_names`` has what ports are called, by number, where they have names. ``timers``
    are those of the fabric, for entries that age. ``block`` is the offset of its descriptors in the arena.
    """

    def __init__(
        self,
        name: str,
        device_id: int,
        arena: Arena,
        resources: Resources,
        ports: Iterable[int] = (),
        cpu_port: int = CPU_PORT,
        port_names: Mapping[int, str] = NO_NAMES,
        timers: IdleTimers | None = None,
    ) -> None:
        self.name = name
        self.port_names = port_names
        self.device_id = device_id
        self.ports = Ports(ports)
        self.power = Power()
        self._cpu_port = cpu_port
        self.is_ready = False
        self._arena = arena
        self._resources = resources
        self.block = arena.allocate(resources.block_words)
        self._timers = timers or IdleTimers()
        self._ageing = Ageing(self._timers, self.last_hit_ps)
        self._memory = self._empty_memory()

    def clear(self) -> None:
        """Empty every table, profile and counter, as after a new pipeline is committed; packets pass from then on."""
        self._free()
        self._memory = self._empty_memory()
        self.is_ready = True

    def load(self, resources: Resources) -> None:
        """Take another program, and another ``block``; nothing passes until ``clear`` is called."""
        self._free()
        self._arena.free(self.block, self._resources.block_words)
        self._resources = resources
        self.block = self._arena.allocate(resources.block_words)
        self._memory = self._empty_memory()
        self.is_ready = False

    @property
    def ages(self) -> bool:
        """Whether the entries of any of its tables age."""
        return self._resources.ages

    def shadow(self, resources: Resources | None = None) -> "EmulatedSwitch":
        """Return an empty switch that takes the same entries, or those of another program, and no packets."""
        own = self.name, self.device_id, Arena(), resources or self._resources
        made = EmulatedSwitch(*own, tuple(self.ports), self._cpu_port, self.port_names)
        made.clear()
        return made

    def shut_down(self) -> None:
        """Lose power: drop pipeline, entries and connections until ``power`` is turned on and ``clear`` called."""
        self.clear()
        self.is_ready = False
        self.power.turn_off()

    def _empty_memory(self) -> SwitchMemory:
        return SwitchMemory(
            self._arena,
            self.block,
            self._resources,
            self.device_id,
            self.ports,
            self._cpu_port,
            self._timers.now_ps,
        )

    def _free(self) -> None:
        self._ageing.end()
        self._memory.free()

    # ---- ports ------------------------------------------------------------------------------------------------------

    def set_port(self, port: int, up: bool) -> None:
        """Take a port down or bring it up.

        Selectors pass over members that watch a port that is down, and backup replicas take the place of others.

        Raises InvalidRequestError for an unknown port.
        """
        if port not in self.ports:
            raise InvalidRequestError(f"switch {self.name!r} has no port {port}")
        if self.ports.set(port, up):
            self._memory.port_changed(port)

    # ---- table entries ----------------------------------------------------------------------------------------------

    def insert(self, table: str, key: EntryKey, action: EntryAction) -> None:
        """Add an entry."""
        self._memory.table(table).insert(key, action)

    def modify(self, table: str, key: EntryKey, action: EntryAction) -> None:
        """Replace the action of an entry; its counter continues."""
        self._memory.table(table).modify(key, action)

    def delete(self, table: str, key: EntryKey) -> None:
        """Remove an entry."""
        self._memory.table(table).delete(key)
        self._ageing.forget(table, key)

    def entry(self, table: str, key: EntryKey) -> EntryAction:
        """Return the action of an entry."""
        return self._memory.table(table).action(key)

    def entries(self, table: str) -> Iterator[tuple[EntryKey, EntryAction]]:
        """Iterate over the entries in order of insertion."""
        return iter(list(self._memory.table(table).entries.items()))

    def set_idle_timeout(self, table: str, key: EntryKey, timeout_ps: int) -> None:
        """Have an entry told idle whenever nobody has hit it for so long; 0: never."""
        memory = self._memory.table(table)
        memory.require_ages()
        memory.require_entry(key)
        self._ageing.set(table, key, timeout_ps)

    def idle_entries(self) -> list[IdleEntry]:
        """Return the entries that have been told idle since the last call, in order."""
        return self._ageing.take()

    def last_hit_ps(self, table: str, key: EntryKey) -> int:
        """Return the time of an entry's last hit, or of its insertion before the first one."""
        return self._memory.table(table).last_hit_ps(key)

    def idle_ps(self, table: str, key: EntryKey) -> int:
        """Return the time since an entry's last hit, or since its insertion."""
        return max(0, self._timers.now_ps() - self.last_hit_ps(table, key))

    def entry_at(self, table: str, slot: int) -> tuple[EntryKey, EntryAction]:
        """Return the entry whose slot is at an arena offset. Raises NotFoundError where there is none."""
        return self._memory.table(table).entry_at(slot)

    def set_default(self, table: str, action: ActionCall | None) -> None:
        """Replace the default action; None restores the program's own."""
        self._memory.table(table).set_default(action)

    def default(self, table: str) -> ActionCall:
        """Return the default action."""
        return self._memory.table(table).default()

    def direct_counter(self, table: str, key: EntryKey) -> CounterValue:
        """Return an entry's direct counter."""
        return self._memory.table(table).counter(key)

    def set_direct_counter(self, table: str, key: EntryKey, value: CounterValue) -> None:
        """Overwrite an entry's direct counter."""
        self._memory.table(table).set_counter(key, value)

    def direct_meter(self, table: str, key: EntryKey) -> MeterRates | None:
        """Return the rates of an entry's meter; None makes all packets green."""
        return self._memory.table(table).meter(key)

    def set_direct_meter(self, table: str, key: EntryKey, rates: MeterRates | None) -> None:
        """Set the rates of an entry's meter, and fill its buckets."""
        self._memory.table(table).set_meter(key, rates)

    # ---- action profiles --------------------------------------------------------------------------------------------

    def insert_member(self, profile: str, member_id: int, action: ActionCall) -> None:
        """Add a member."""
        self._memory.profile(profile).insert_member(member_id, action)

    def modify_member(self, profile: str, member_id: int, action: ActionCall) -> None:
        """Replace the action of a member, for every entry and group that refers to it."""
        self._memory.profile(profile).modify_member(member_id, action)

    def delete_member(self, profile: str, member_id: int) -> None:
        """Remove a member that no group and no entry refers to."""
        memory = self._memory.profile(profile)
        for table in self._memory.tables_of(profile):
            table.require_unreferenced(MemberReference(member_id))
        memory.delete_member(member_id)

    def members(self, profile: str) -> Mapping[int, ActionCall]:
        """Return the members' actions by id."""
        return MappingProxyType(self._memory.profile(profile).members)

    def member_at(self, profile: str, place: int) -> int | None:
        """Return the member whose action is at an arena offset; None for an action of an action set."""
        return self._memory.profile(profile).member_at(place)

    def insert_group(
        self,
        profile: str,
        group_id: int,
        member_ids: tuple[int, ...],
        max_size: int,
        watch_ports: Mapping[int, int] = NO_WATCH_PORTS,
    ) -> None:
        """Add a group; the selector picks by position. ``max_size`` 0 sets no limit.

        The selector passes over a member with a port in ``watch_ports`` while that port is down. A packet that hits an
        entry of a group without live members executes no action.
        """
        if max_size and len(member_ids) > max_size:
            raise ResourceExhaustedError(
                f"a group of profile {profile!r} with room for {max_size} members cannot hold {len(member_ids)}"
            )
        self._memory.profile(profile).insert_group(group_id, member_ids, watch_ports)

    def modify_group(
        self,
        profile: str,
        group_id: int,
        member_ids: tuple[int, ...],
        watch_ports: Mapping[int, int] = NO_WATCH_PORTS,
    ) -> None:
        """Replace the members of a group, and the ports they watch, at once."""
        memory = self._memory.profile(profile)
        if memory.modify_group(group_id, member_ids, watch_ports):
            for table in self._memory.tables_of(profile):
                table.follow_group(group_id, memory.group_place(group_id))

    def delete_group(self, profile: str, group_id: int) -> None:
        """Remove a group that no entry refers to."""
        memory = self._memory.profile(profile)
        for table in self._memory.tables_of(profile):
            table.require_unreferenced(GroupReference(group_id))
        memory.delete_group(group_id)

    def groups(self, profile: str) -> Mapping[int, tuple[int, ...]]:
        """Return the groups' members by id, in the order in which the selector counts them."""
        return MappingProxyType(self._memory.profile(profile).groups)

    def watch_ports(self, profile: str, group_id: int) -> Mapping[int, int]:
        """Return the ports that members of a group watch, by member id."""
        watched = self._memory.profile(profile).watch_ports
        if group_id not in watched:
            raise NotFoundError(f"profile {profile!r} has no group {group_id}")
        return MappingProxyType(watched[group_id])

    # ---- arrays and copies of packets -------------------------------------------------------------------------------

    def counter(self, name: str, index: int) -> CounterValue:
        """Return a cell of an indirect counter."""
        return self._memory.counter(name).get(index)

    def set_counter(self, name: str, index: int, value: CounterValue) -> None:
        """Overwrite a cell of an indirect counter."""
        self._memory.counter(name).set(index, value)

    def register(self, name: str, index: int) -> int:
        """Return a cell of a register array."""
        return self._memory.register(name).get(index)

    def set_register(self, name: str, index: int, value: int) -> None:
        """Overwrite a cell of a register array."""
        self._memory.register(name).set(index, value)

    def meter(self, name: str) -> MeterMemory:
        """Return an indirect array of meters, valid until the switch is cleared."""
        return self._memory.meter(name)

    def value_set(self, name: str) -> ValueSetMemory:
        """Return a value set of the parser, valid until the switch is cleared."""
        return self._memory.value_set(name)

    def replication(self, kind: Replicator) -> ReplicationMemory:
        """Return the multicast groups or the clone sessions, valid until the switch is cleared."""
        return self._memory.replication(kind)
