"""Control plane of one emulated switch: the operations that P4Runtime offers."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from emulator.ageing import Ageing, IdleEntry, IdleTimers
from emulator.cells import CounterMemory, RegisterMemory, ValueSetMemory, read_counter, write_counter
from emulator.compiler.resources import Resources
from emulator.compiler.tables import Table
from emulator.entries import (
    ActionCall,
    ActionSet,
    AlreadyExistsError,
    CounterValue,
    EntryAction,
    EntryKey,
    GroupReference,
    InvalidRequestError,
    MemberReference,
    NotFoundError,
    ResourceExhaustedError,
)
from emulator.keys import key_words
from emulator.memory import TO_GROUP, TO_MEMBER, Arena
from emulator.meters import MeterMemory, MeterRates, read_rates, write_rates
from emulator.ports import CPU_PORT, Ports
from emulator.power import Power
from emulator.profile import EncodedSet, ProfileMemory, encode_call
from emulator.replication import ReplicationMemory, Replicator
from emulator.scanned_slots import ScannedSlots
from emulator.slots import TableSlots

NO_WATCH_PORTS: Mapping[int, int] = MappingProxyType({})
NO_NAMES: Mapping[int, str] = MappingProxyType({})


class EmulatedSwitch:
    """One switch of an emulated fabric. Every method takes effect before the next packet is processed.

    Names are those of the BMv2 JSON, which are also the ``preamble.name`` of P4Info. A method that fails raises a
    ``SwitchError`` and changes nothing. A switch forwards nothing until ``clear`` has been called, like one without a
    pipeline. Groups may watch any of ``ports``; each is up until ``set_port`` takes it down. ``cpu_port`` connects the
    switch to its control plane. ``port_names`` has what ports are called, by number, where they have names. ``timers``
    are those of the fabric, for entries that age.
    """

    def __init__(
        self,
        name: str,
        device_id: int,
        arena: Arena,
        block: int,
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
        self._block = block
        self._resources = resources
        self._timers = timers or IdleTimers()
        self._ageing = Ageing(self._timers, self.last_hit_ps)
        self._set_up()

    def clear(self) -> None:
        """Empty every table, profile and counter, as after a new pipeline is committed; packets pass from then on."""
        self._free()
        self._set_up()
        self.is_ready = True

    def load(self, block: int, resources: Resources) -> None:
        """Take another program, with descriptors at ``block``; nothing passes until ``clear`` is called."""
        self._free()
        self._arena.free(self._block, self._resources.block_words)
        self._block, self._resources = block, resources
        self._set_up()
        self.is_ready = False

    @property
    def ages(self) -> bool:
        """Whether the entries of any of its tables age."""
        return self._resources.ages

    def shadow(self, resources: Resources | None = None) -> "EmulatedSwitch":
        """Return an empty switch that takes the same entries, or those of another program, and no packets."""
        arena, resources = Arena(), resources or self._resources
        block = arena.allocate(resources.block_words)
        ports = self.name, self.device_id, arena, block, resources, tuple(self.ports), self._cpu_port
        made = EmulatedSwitch(*ports, self.port_names)
        made.clear()
        return made

    def shut_down(self) -> None:
        """Lose power: drop pipeline, entries and connections until ``power`` is turned on and ``clear`` called."""
        self.clear()
        self.is_ready = False
        self.power.turn_off()

    def _set_up(self) -> None:
        resources = self._resources
        self._slots = {
            name: slots_of(self._arena, self._block + resources.table_descriptor(table), table)
            for name, table in resources.tables.items()
        }
        self._entries: dict[str, dict[EntryKey, EntryAction]] = {name: {} for name in resources.tables}
        self._words: dict[str, dict[EntryKey, tuple[int, ...]]] = {name: {} for name in resources.tables}
        self._defaults: dict[str, ActionCall | None] = {}
        for table in resources.tables.values():
            self._restore_default(table)
        self._profiles = {
            name: ProfileMemory(self._arena, profile, self._tables_of(name)[0], self.ports)
            for name, profile in resources.profiles.items()
        }
        self._meters = {
            name: MeterMemory(self._arena, meter, self._block + resources.meter_descriptor(name))
            for name, meter in resources.meters.items()
        }
        places = {Replicator.GROUP: resources.group_descriptor, Replicator.SESSION: resources.session_descriptor}
        ports = {*self.ports, self._cpu_port}
        self._replication = {
            kind: ReplicationMemory(
                *(self._arena, kind, self._block + place if resources.replicates else None, ports),
                is_up=lambda port: port == self._cpu_port or self.ports.is_up(port),
            )
            for kind, place in places.items()
        }
        self._counters = {
            name: CounterMemory(self._arena, counter, self._block + resources.counter_descriptor(name))
            for name, counter in resources.counters.items()
        }
        self._registers = {
            name: RegisterMemory(self._arena, register, self._block + resources.register_descriptor(name))
            for name, register in resources.registers.items()
        }
        self._value_sets = {
            name: ValueSetMemory(self._arena, value_set, self._block + resources.value_set_descriptor(name))
            for name, value_set in resources.value_sets.items()
        }
        self._arena.words[self._block + resources.random_word] = self.device_id
        for table in resources.tables.values():
            for key, action in table.entries:
                self.insert(table.name, key, action)

    def _free(self) -> None:
        self._ageing.end()
        kinds = (
            *(self._slots, self._profiles, self._meters, self._replication),
            *(self._counters, self._registers, self._value_sets),
        )
        for memory in (memory for kind in kinds for memory in kind.values()):
            memory.free()

    # ---- ports ------------------------------------------------------------------------------------------------------

    def set_port(self, port: int, up: bool) -> None:
        """Take a port down or bring it up.

        Selectors pass over members that watch a port that is down, and backup replicas take the place of others.

        Raises InvalidRequestError for an unknown port.
        """
        if port not in self.ports:
            raise InvalidRequestError(f"switch {self.name!r} has no port {port}")
        if self.ports.set(port, up):
            for profile in self._profiles.values():
                profile.port_changed(port)
            for replication in self._replication.values():
                replication.port_changed(port)

    # ---- table entries ----------------------------------------------------------------------------------------------

    def insert(self, table: str, key: EntryKey, action: EntryAction) -> None:
        """Add an entry."""
        found, entries = self._table(table), self._entries[table]
        words, encoded = key_words(found, key), self._encode(found, key, action)
        if key in entries:
            raise AlreadyExistsError(f"table {table!r} has this entry")
        if len(entries) >= found.size:
            raise ResourceExhaustedError(f"table {table!r} is full ({found.size} entries)")
        self._slots[table].insert(words, key.priority, self._place(found, key, encoded))
        entries[key], self._words[table][key] = action, words
        if found.ages:
            self._arena.words[self._hit_cell(found, key)] = self._timers.now_ps()

    def modify(self, table: str, key: EntryKey, action: EntryAction) -> None:
        """Replace the action of an entry; its counter continues."""
        found = self._table(table)
        words, encoded = self._words_of(table, key), self._encode(found, key, action)
        self._slots[table].modify(words, key.priority, self._place(found, key, encoded))
        self._entries[table][key] = action

    def delete(self, table: str, key: EntryKey) -> None:
        """Remove an entry."""
        found = self._table(table)
        self._slots[table].delete(self._words_of(table, key), key.priority)
        if found.profile:
            self._profiles[found.profile.name].drop_set((table, key))
        self._ageing.forget(table, key)
        del self._entries[table][key], self._words[table][key]

    def entry(self, table: str, key: EntryKey) -> EntryAction:
        """Return the action of an entry."""
        self._table(table)
        self._words_of(table, key)
        return self._entries[table][key]

    def entries(self, table: str) -> Iterator[tuple[EntryKey, EntryAction]]:
        """Iterate over the entries in order of insertion."""
        self._table(table)
        return iter(list(self._entries[table].items()))

    def set_idle_timeout(self, table: str, key: EntryKey, timeout_ps: int) -> None:
        """Have an entry told idle whenever nobody has hit it for so long; 0: never."""
        self._require_ages(table)
        self._words_of(table, key)
        self._ageing.set(table, key, timeout_ps)

    def idle_entries(self) -> list[IdleEntry]:
        """Return the entries that have been told idle since the last call, in order."""
        return self._ageing.take()

    def last_hit_ps(self, table: str, key: EntryKey) -> int:
        """Return the time of an entry's last hit, or of its insertion before the first one."""
        return int(self._arena.words[self._hit_cell(self._require_ages(table), key)])

    def idle_ps(self, table: str, key: EntryKey) -> int:
        """Return the time since an entry's last hit, or since its insertion."""
        return max(0, self._timers.now_ps() - self.last_hit_ps(table, key))

    def entry_at(self, table: str, slot: int) -> tuple[EntryKey, EntryAction]:
        """Return the entry whose slot is at an arena offset. Raises NotFoundError where there is none."""
        found = self._table(table)
        for key, action in self._entries[table].items():
            place = self._slots[table].counter_offset(self._words[table][key], key.priority)
            if place - found.counter_offset == slot:
                return key, action
        raise NotFoundError(f"table {table!r} has no entry at {slot}")

    def set_default(self, table: str, action: ActionCall | None) -> None:
        """Replace the default action; None restores the program's own."""
        found = self._table(table)
        if found.has_constant_default:
            raise InvalidRequestError(f"the default action of table {table!r} is constant")
        if action is None:
            self._restore_default(found)
            return
        if found.profile:
            raise InvalidRequestError(f"table {table!r} takes its actions from a profile and has no default action")
        self._slots[table].set_default(encode_call(found, action))
        self._defaults[table] = action

    def default(self, table: str) -> ActionCall:
        """Return the default action."""
        self._table(table)
        action = self._defaults[table]
        if action is None:
            raise NotFoundError(f"table {table!r} has no default action")
        return action

    # ---- action profiles --------------------------------------------------------------------------------------------

    def insert_member(self, profile: str, member_id: int, action: ActionCall) -> None:
        """Add a member."""
        self._profile(profile).insert_member(member_id, action)

    def modify_member(self, profile: str, member_id: int, action: ActionCall) -> None:
        """Replace the action of a member, for every entry and group that refers to it."""
        self._profile(profile).modify_member(member_id, action)

    def delete_member(self, profile: str, member_id: int) -> None:
        """Remove a member that no group and no entry refers to."""
        memory = self._profile(profile)
        self._require_unreferenced(profile, MemberReference(member_id))
        memory.delete_member(member_id)

    def members(self, profile: str) -> Mapping[int, ActionCall]:
        """Return the members' actions by id."""
        return MappingProxyType(self._profile(profile).members)

    def member_at(self, profile: str, place: int) -> int | None:
        """Return the member whose action is at an arena offset; None for an action of an action set."""
        return self._profile(profile).member_at(place)

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
        self._require_size(profile, member_ids, max_size)
        self._profile(profile).insert_group(group_id, member_ids, watch_ports)

    def modify_group(
        self,
        profile: str,
        group_id: int,
        member_ids: tuple[int, ...],
        watch_ports: Mapping[int, int] = NO_WATCH_PORTS,
    ) -> None:
        """Replace the members of a group, and the ports they watch, at once."""
        if not self._profile(profile).modify_group(group_id, member_ids, watch_ports):
            return
        for table in self._tables_of(profile):
            for key, action in self._entries[table.name].items():
                if action == GroupReference(group_id):
                    call = TO_GROUP, self._profile(profile).group_place(group_id)
                    self._slots[table.name].modify(self._words_of(table.name, key), key.priority, call)

    def delete_group(self, profile: str, group_id: int) -> None:
        """Remove a group that no entry refers to."""
        memory = self._profile(profile)
        self._require_unreferenced(profile, GroupReference(group_id))
        memory.delete_group(group_id)

    def groups(self, profile: str) -> Mapping[int, tuple[int, ...]]:
        """Return the groups' members by id, in the order in which the selector counts them."""
        return MappingProxyType(self._profile(profile).groups)

    def watch_ports(self, profile: str, group_id: int) -> Mapping[int, int]:
        """Return the ports that members of a group watch, by member id."""
        watched = self._profile(profile).watch_ports
        if group_id not in watched:
            raise NotFoundError(f"profile {profile!r} has no group {group_id}")
        return MappingProxyType(watched[group_id])

    # ---- meters -----------------------------------------------------------------------------------------------------

    def meter(self, name: str) -> MeterMemory:
        """Return an indirect array of meters, valid until the switch is cleared."""
        if name not in self._meters:
            raise InvalidRequestError(f"the program has no meter {name!r}")
        return self._meters[name]

    def direct_meter(self, table: str, key: EntryKey) -> MeterRates | None:
        """Return the rates of an entry's meter; None makes all packets green."""
        return read_rates(self._arena, self._direct_meter(table, key))

    def set_direct_meter(self, table: str, key: EntryKey, rates: MeterRates | None) -> None:
        """Set the rates of an entry's meter, and fill its buckets."""
        write_rates(self._arena, self._direct_meter(table, key), rates)

    # ---- copies of packets ------------------------------------------------------------------------------------------

    def replication(self, kind: Replicator) -> ReplicationMemory:
        """Return the multicast groups or the clone sessions, valid until the switch is cleared."""
        return self._replication[kind]

    # ---- counters ---------------------------------------------------------------------------------------------------

    def counter(self, name: str, index: int) -> CounterValue:
        """Return a cell of an indirect counter."""
        return self._counter(name).get(index)

    def set_counter(self, name: str, index: int, value: CounterValue) -> None:
        """Overwrite a cell of an indirect counter."""
        self._counter(name).set(index, value)

    def direct_counter(self, table: str, key: EntryKey) -> CounterValue:
        """Return an entry's direct counter."""
        return read_counter(self._arena, self._direct_cell(table, key))

    def set_direct_counter(self, table: str, key: EntryKey, value: CounterValue) -> None:
        """Overwrite an entry's direct counter."""
        write_counter(self._arena, self._direct_cell(table, key), value)

    def register(self, name: str, index: int) -> int:
        """Return a cell of a register array."""
        return self._register(name).get(index)

    def set_register(self, name: str, index: int, value: int) -> None:
        """Overwrite a cell of a register array."""
        self._register(name).set(index, value)

    # ---- value sets -------------------------------------------------------------------------------------------------

    def value_set(self, name: str) -> ValueSetMemory:
        """Return a value set of the parser, valid until the switch is cleared."""
        if name not in self._value_sets:
            raise InvalidRequestError(f"the program has no value set {name!r}")
        return self._value_sets[name]

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _table(self, name: str) -> Table:
        if name not in self._resources.tables:
            raise InvalidRequestError(f"the program has no table {name!r}")
        return self._resources.tables[name]

    def _profile(self, name: str) -> ProfileMemory:
        if name not in self._profiles:
            raise InvalidRequestError(f"the program has no action profile {name!r}")
        return self._profiles[name]

    def _tables_of(self, profile: str) -> list[Table]:
        return [table for table in self._resources.tables.values() if table.profile and table.profile.name == profile]

    def _words_of(self, table: str, key: EntryKey) -> tuple[int, ...]:
        """Return the words of an entry's key. Raises NotFoundError for an unknown entry."""
        words = self._words[table].get(key)
        if words is None:
            raise NotFoundError(f"table {table!r} has no such entry")
        return words

    def _require_unreferenced(self, profile: str, reference: EntryAction) -> None:
        for table in self._tables_of(profile):
            if reference in self._entries[table.name].values():
                raise InvalidRequestError(f"an entry of table {table.name!r} refers to {reference}")

    def _require_size(self, profile: str, member_ids: tuple[int, ...], max_size: int) -> None:
        if max_size and len(member_ids) > max_size:
            raise ResourceExhaustedError(
                f"a group of profile {profile!r} with room for {max_size} members cannot hold {len(member_ids)}"
            )

    def _restore_default(self, table: Table) -> None:
        names = {action.number: action.name for action in table.actions}
        call = ActionCall(names[table.default[0]], table.default[1]) if table.default else None
        self._slots[table.name].set_default(encode_call(table, call) if call else None)
        self._defaults[table.name] = call

    def _encode(self, table: Table, key: EntryKey, action: EntryAction) -> tuple[int, ...] | EncodedSet:
        match action:
            case ActionCall() if table.profile is None:
                return encode_call(table, action)
            case MemberReference(member_id) if table.profile:
                return TO_MEMBER, self._profiles[table.profile.name].member_place(member_id)
            case GroupReference(group_id) if table.profile and table.profile.selector:
                return TO_GROUP, self._profiles[table.profile.name].group_place(group_id)
            case ActionSet() if table.profile and table.profile.selector:
                return self._profiles[table.profile.name].encode_set((table.name, key), action)
        raise InvalidRequestError(f"table {table.name!r} does not take {type(action).__name__} as an action")

    def _place(self, table: Table, key: EntryKey, encoded: tuple[int, ...] | EncodedSet) -> tuple[int, ...]:
        """Store an entry's action and return its words; this cannot fail."""
        owner = table.name, key
        if isinstance(encoded, EncodedSet):
            assert table.profile is not None
            return TO_GROUP, self._profiles[table.profile.name].place_set(owner, encoded)
        if table.profile:
            self._profiles[table.profile.name].drop_set(owner)
        return encoded

    def _counter(self, name: str) -> CounterMemory:
        if name not in self._counters:
            raise InvalidRequestError(f"the program has no counter {name!r}")
        return self._counters[name]

    def _register(self, name: str) -> RegisterMemory:
        if name not in self._registers:
            raise InvalidRequestError(f"the program has no register {name!r}")
        return self._registers[name]

    def _direct_cell(self, table: str, key: EntryKey) -> int:
        found = self._table(table)
        if not found.has_counters:
            raise InvalidRequestError(f"table {table!r} has no direct counter")
        return self._slots[table].counter_offset(self._words_of(table, key), key.priority)

    def _direct_meter(self, table: str, key: EntryKey) -> int:
        found = self._table(table)
        if not found.meter:
            raise InvalidRequestError(f"table {table!r} has no direct meter")
        counter = self._slots[table].counter_offset(self._words_of(table, key), key.priority)
        return counter - found.counter_offset + found.meter_offset

    def _require_ages(self, table: str) -> Table:
        found = self._table(table)
        if not found.ages:
            raise InvalidRequestError(f"the entries of table {table!r} do not age")
        return found

    def _hit_cell(self, table: Table, key: EntryKey) -> int:
        counter = self._slots[table.name].counter_offset(self._words_of(table.name, key), key.priority)
        return counter - table.counter_offset + table.hit_offset


def slots_of(arena: Arena, descriptor: int, table: Table) -> TableSlots | ScannedSlots:
    """Return slots of the kind that the table's compiled code searches."""
    return ScannedSlots(arena, descriptor, table) if table.is_scanned else TableSlots(arena, descriptor, table)
