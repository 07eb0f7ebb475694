"""v1model's program in the plain interpreter, which takes frames of any length; clock and meters stand still."""

from emulator.entries import ActionCall, EntryAction, EntryKey
from emulator.meters import MeterMemory
from tests.emulator.interpreter import Interpreter
from tests.emulator.programs import trainyard_json


class PlainControl:
    """Writes entries to the interpreter, as to a switch of the emulator."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._interpreter = interpreter

    def insert(self, table: str, key: EntryKey, action: EntryAction) -> None:
        """Add an entry."""
        self._interpreter.entries[table][key] = action

    def set_default(self, table: str, action: ActionCall | None) -> None:
        """Replace a default action."""
        assert action is not None
        self._interpreter.defaults[table] = action

    def insert_member(self, _: str, member_id: int, action: ActionCall) -> None:
        """Add a member of the only profile."""
        self._interpreter.members[member_id] = action

    def insert_group(self, _: str, group_id: int, member_ids: tuple[int, ...], max_size: int) -> None:
        """Add a group to it, without a limit."""
        assert max_size == 0
        self._interpreter.groups[group_id] = member_ids

    def meter(self, name: str) -> MeterMemory:
        """Raises ``NotImplementedError``: the interpreter has no meters."""
        raise NotImplementedError(name)


def interpreter() -> Interpreter:
    """A switch without entries."""
    return Interpreter(trainyard_json())
