"""The emulator and the interpreter as switches that run one of the programs."""

from finsy.proto import p4r

from emulator.p4runtime.read import read_batch
from emulator.p4runtime.target import Target
from emulator.p4runtime.write import write_batch
from tests.bmv2.constructs.programs import Construct
from tests.bmv2.session import Packet, Session, Switch
from tests.emulator.interpreter import Interpreter
from tests.emulator.lone_switch import LoneSwitch

Sent = tuple[tuple[Packet, ...], ...]
"""What left for each packet."""


class CompiledConstruct:
    """A ``tests.bmv2.session.Switch`` that executes what the emulator's compiler made of a program."""

    def __init__(self, construct: Construct) -> None:
        self._construct = construct
        self.switch = LoneSwitch(construct.program)
        self.clear()

    def clear(self) -> None:
        """Empty the switch."""
        self.switch.control.clear()
        self._target = Target(self.switch.control, self._construct.pipeline)

    def write(self, updates: list[p4r.Update]) -> None:
        """Carry out updates. Raises BatchError where any is refused."""
        write_batch(self._target, updates)

    def read(self, *requests: p4r.Entity) -> list[p4r.Entity]:
        """What the requests select."""
        entities, _ = read_batch(self._target, requests)
        return entities

    def send(self, packet: Packet) -> list[Packet]:
        """Let a packet arrive, and return what leaves."""
        sent = self.switch.process(packet.octets, packet.port)
        return [] if sent is None else [Packet(sent.port, sent.octets)]


class InterpretedConstruct(CompiledConstruct):
    """The same, but packets are what the interpreter makes of them; the emulator only holds the entries."""

    def clear(self) -> None:
        """Empty the switch."""
        super().clear()
        self._interpreter = Interpreter(self._construct.document)

    def write(self, updates: list[p4r.Update]) -> None:
        """Carry out updates: what the interpreter did not have from its program it has now."""
        super().write(updates)
        for table in self._interpreter.entries:
            self._interpreter.entries[table] |= dict(self.switch.control.entries(table))

    def send(self, packet: Packet) -> list[Packet]:
        """Let a packet arrive, and return what leaves."""
        sent = self._interpreter.process(packet.octets, packet.port)
        return [] if sent is None else [Packet(sent.port, sent.octets)]


def answer(switch: Switch, session: Session) -> Sent:
    """What a switch makes of the packets of a session."""
    switch.clear()
    switch.write([p4r.Update(type=p4r.Update.INSERT, entity=entity) for entity in session.entries])
    return tuple(tuple(switch.send(packet)) for packet in session.packets)
