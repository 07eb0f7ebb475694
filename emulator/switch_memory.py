"""Everything of one switch that the control plane writes and compiled code reads, found by the names of the program."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from emulator.cells import CounterMemory, RegisterMemory, ValueSetMemory
from emulator.compiler.resources import Resources
from emulator.entries import InvalidRequestError
from emulator.memory import Arena
from emulator.meters import MeterMemory
from emulator.ports import Ports
from emulator.profile import ProfileMemory
from emulator.replication import ReplicationMemory, Replicator
from emulator.table_memory import TableMemory

_Memory = TypeVar("_Memory")


class SwitchMemory:
    """Tables, profiles and arrays of a switch, empty but for the entries of its program.

    Args:
        arena: The memory.
        block: Offset of the switch's descriptors.
        resources: The objects of its program.
        seed: Where its random numbers begin.
        ports: Its ports, which groups may watch.
        cpu_port: The port to its control plane, to which packets may be copied.
        now_ps: The time, for entries that age.
    """

    def __init__(
        self,
        arena: Arena,
        block: int,
        resources: Resources,
        seed: int,
        ports: Ports,
        cpu_port: int,
        now_ps: Callable[[], int],
    ) -> None:
        self._of_profile = {
            name: [table.name for table in resources.tables.values() if table.profile and table.profile.name == name]
            for name in resources.profiles
        }
        self._profiles = {
            name: ProfileMemory(arena, profile, resources.tables[self._of_profile[name][0]], ports)
            for name, profile in resources.profiles.items()
        }
        self._tables = {
            name: TableMemory(
                arena,
                block + resources.table_descriptor(table),
                table,
                self._profiles[table.profile.name] if table.profile else None,
                now_ps,
            )
            for name, table in resources.tables.items()
        }
        self._meters = {
            name: MeterMemory(arena, meter, block + resources.meter_descriptor(name))
            for name, meter in resources.meters.items()
        }
        places = {Replicator.GROUP: resources.group_descriptor, Replicator.SESSION: resources.session_descriptor}
        self._replication = {
            kind: ReplicationMemory(
                *(arena, kind, block + place if resources.replicates else None, {*ports, cpu_port}),
                is_up=lambda port: port == cpu_port or ports.is_up(port),
            )
            for kind, place in places.items()
        }
        self._counters = {
            name: CounterMemory(arena, counter, block + resources.counter_descriptor(name))
            for name, counter in resources.counters.items()
        }
        self._registers = {
            name: RegisterMemory(arena, register, block + resources.register_descriptor(name))
            for name, register in resources.registers.items()
        }
        self._value_sets = {
            name: ValueSetMemory(arena, value_set, block + resources.value_set_descriptor(name))
            for name, value_set in resources.value_sets.items()
        }
        arena.words[block + resources.random_word] = seed
        for table in resources.tables.values():
            for key, action in table.entries:
                self._tables[table.name].insert(key, action)

    def free(self) -> None:
        """Return all words to the arena."""
        kinds = (
            *(self._tables, self._profiles, self._meters, self._replication),
            *(self._counters, self._registers, self._value_sets),
        )
        for memory in (memory for kind in kinds for memory in kind.values()):
            memory.free()

    def port_changed(self, port: int) -> None:
        """Have groups pass over members, and replicas give way to backups, as a port now is."""
        for profile in self._profiles.values():
            profile.port_changed(port)
        for replication in self._replication.values():
            replication.port_changed(port)

    # ---- objects by name: InvalidRequestError for an unknown one ----------------------------------------------------

    def table(self, name: str) -> TableMemory:
        """Return a table."""
        return _named(self._tables, "table", name)

    def profile(self, name: str) -> ProfileMemory:
        """Return an action profile."""
        return _named(self._profiles, "action profile", name)

    def tables_of(self, profile: str) -> list[TableMemory]:
        """Return the tables that take their actions from a profile."""
        return [self._tables[name] for name in _named(self._of_profile, "action profile", profile)]

    def meter(self, name: str) -> MeterMemory:
        """Return an indirect array of meters."""
        return _named(self._meters, "meter", name)

    def replication(self, kind: Replicator) -> ReplicationMemory:
        """Return the multicast groups or the clone sessions."""
        return self._replication[kind]

    def counter(self, name: str) -> CounterMemory:
        """Return an indirect counter."""
        return _named(self._counters, "counter", name)

    def register(self, name: str) -> RegisterMemory:
        """Return a register array."""
        return _named(self._registers, "register", name)

    def value_set(self, name: str) -> ValueSetMemory:
        """Return a value set of the parser."""
        return _named(self._value_sets, "value set", name)


def _named(objects: Mapping[str, _Memory], kind: str, name: str) -> _Memory:
    if name not in objects:
        raise InvalidRequestError(f"the program has no {kind} {name!r}")
    return objects[name]
