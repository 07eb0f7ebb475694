"""The emulator's switch, under the same messages as BMv2."""

from collections.abc import Mapping

from finsy.proto import p4i, p4r, rpc_code

from emulator.p4runtime.pipeline import compiled_pipeline
from emulator.p4runtime.read import read_batch
from emulator.p4runtime.target import Target
from emulator.p4runtime.write import write_batch
from emulator.switch import EmulatedSwitch
from p4src import P4INFO, PROGRAM
from tests.bmv2.session import CPU_PORT, Packet
from tests.p4src.one_switch import OneSwitch

_PIPELINE = compiled_pipeline(P4INFO.read_text(), PROGRAM.read_bytes())

_DEFAULTS = p4r.Entity(table_entry=p4r.TableEntry(is_default_action=True))
_EVERYTHING = (
    p4r.Entity(action_profile_member=p4r.ActionProfileMember()),
    p4r.Entity(action_profile_group=p4r.ActionProfileGroup()),
    p4r.Entity(table_entry=p4r.TableEntry()),
    _DEFAULTS,
    p4r.Entity(meter_entry=p4r.MeterEntry()),
)


class Emulator:
    """A ``tests.bmv2.session.Switch`` with a host on each of its ports."""

    def __init__(self) -> None:
        self._one = OneSwitch()
        self.clear()

    @property
    def control(self) -> EmulatedSwitch:
        """The switch's control side."""
        return self._one.control

    @property
    def p4info(self) -> p4i.P4Info:
        """That of Trainyard's program."""
        return _PIPELINE.message.p4info

    def clear(self) -> None:
        """Empty the switch."""
        self.control.clear()
        self._target = Target(self.control, _PIPELINE)

    def write(self, updates: list[p4r.Update]) -> None:
        """Carry out updates. Raises BatchError where any is refused."""
        write_batch(self._target, updates)

    def read(self, *requests: p4r.Entity) -> list[p4r.Entity]:
        """What the requests select."""
        return _read(self._target, *requests)

    def send(self, packet: Packet) -> list[Packet]:
        """Let a packet arrive, and return what leaves."""
        one = self._one
        sent = one.packet_out(packet.octets) if packet.port == CPU_PORT else one.send(packet.port, packet.octets)
        return [Packet(CPU_PORT, octets) for octets in one.packets_in()] + [Packet(x.port, x.octets) for x in sent]


def entries_of(switch: EmulatedSwitch) -> tuple[p4r.Entity, ...]:
    """All that an emulated switch has been given, in an order in which it can be written.

    Unchanged defaults and meters without rates are left out. A group has room for the members that it has.
    """
    entities = _read(Target(switch, _PIPELINE), *_EVERYTHING)
    for entity in entities:
        if entity.HasField("action_profile_group"):
            entity.action_profile_group.max_size = len(entity.action_profile_group.members)
    initial = {default.table_id: default for default in _initial_defaults()}
    return tuple(entity for entity in entities if _was_given(entity, initial))


def _was_given(entity: p4r.Entity, initial: Mapping[int, p4r.TableEntry]) -> bool:
    if entity.HasField("meter_entry"):
        return entity.meter_entry.HasField("config")
    return entity.table_entry != initial.get(entity.table_entry.table_id)


def _initial_defaults() -> list[p4r.TableEntry]:
    found = []
    for table in _PIPELINE.message.p4info.tables:
        default = p4r.TableEntry(table_id=table.preamble.id, is_default_action=True)
        default.is_const = bool(table.const_default_action_id)
        action = default.action.action
        action.action_id = table.initial_default_action.action_id
        for argument in table.initial_default_action.arguments:
            action.params.add(param_id=argument.param_id, value=argument.value.lstrip(b"\0") or b"\0")
        found.append(default)
    return found


def _read(target: Target, *requests: p4r.Entity) -> list[p4r.Entity]:
    entities, results = read_batch(target, requests)
    assert all(result.canonical_code == rpc_code.OK for result in results), results
    return entities
