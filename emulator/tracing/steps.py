"""What happens to one packet on its way: the steps of a trace, in the order in which they happen.

Every step has the time and the number of the packet: 0 is the packet that is traced, and its copies count up from 1.
"""

from dataclasses import dataclass

from emulator.entries import EntryAction, EntryKey


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field of the packet's headers or metadata, with its values before and after.

    ``$valid$`` stands for the validity of a header. A variable-length field is a number, as all others are.
    """

    field: str
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class KeyValue:
    """A field of a table's key with its value and its width in bits, and how it is matched."""

    field: str
    match: str
    value: int
    bits: int


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of an action."""

    name: str
    value: int
    bits: int


@dataclass(frozen=True, slots=True)
class Step:
    """A moment in the life of a packet."""

    time_ps: int
    packet: int


@dataclass(frozen=True, slots=True)
class Arrived(Step):
    """It has reached a switch. ``port`` is None where it comes back to it, resubmitted or recirculated."""

    switch: str
    port: int | None
    octets: bytes
    length: int


@dataclass(frozen=True, slots=True)
class ParserState(Step):
    """The parser has passed a state."""

    name: str
    changes: tuple[FieldChange, ...]


@dataclass(frozen=True, slots=True)
class Condition(Step):
    """A control has come to a condition; ``source`` is its text in the program, where the JSON tells it."""

    name: str
    source: str
    is_true: bool


@dataclass(frozen=True, slots=True)
class TableApplied(Step):
    """A table was applied.

    ``entry`` is the entry that matched, and ``entry_action`` what it holds, both None for a miss; ``member_id`` is the
    member of its profile whose action was taken. ``action`` is None where nothing was executed.
    """

    table: str
    key: tuple[KeyValue, ...]
    entry: EntryKey | None
    entry_action: EntryAction | None
    member_id: int | None
    action: str | None
    arguments: tuple[Argument, ...]
    changes: tuple[FieldChange, ...]

    @property
    def is_hit(self) -> bool:
        """Whether an entry matched."""
        return self.entry is not None


@dataclass(frozen=True, slots=True)
class Executed(Step):
    """Statements of a control were executed; p4c makes an action of them."""

    action: str
    changes: tuple[FieldChange, ...]


@dataclass(frozen=True, slots=True)
class ChecksumsDone(Step):
    """Checksums were verified, or calculated anew where ``is_update``."""

    is_update: bool
    changes: tuple[FieldChange, ...]


@dataclass(frozen=True, slots=True)
class Queued(Step):
    """It has joined a queue of a port, behind so many packets and bytes of the same level."""

    switch: str
    port: int
    level: int
    packets_ahead: int
    bytes_ahead: int


@dataclass(frozen=True, slots=True)
class LeftQueue(Step):
    """It has left the queue, for egress."""

    switch: str
    port: int
    waited_ps: int


@dataclass(frozen=True, slots=True)
class Copied(Step):
    """Another packet was made of it: a clone, a replica of a group or session, or what passes ingress once more."""

    copy: int
    reason: str


@dataclass(frozen=True, slots=True)
class DigestTold(Step):
    """A digest has gone to the control plane; ``number`` is that of its list in the program."""

    switch: str
    number: int


@dataclass(frozen=True, slots=True)
class Sent(Step):
    """It was deparsed, and sent by a port; it arrives at the other end at ``arrives_ps``."""

    switch: str
    port: int
    octets: bytes
    length: int
    arrives_ps: int


@dataclass(frozen=True, slots=True)
class Delivered(Step):
    """It has reached a host, or the control plane of a switch."""

    to: str
    octets: bytes
    length: int


@dataclass(frozen=True, slots=True)
class Dropped(Step):
    """It was lost; ``reason`` is a field of ``emulator.observations.Drops``."""

    switch: str
    reason: str


AnyStep = (
    Arrived
    | ParserState
    | Condition
    | TableApplied
    | Executed
    | ChecksumsDone
    | Queued
    | LeftQueue
    | Copied
    | DigestTold
    | Sent
    | Delivered
    | Dropped
)


@dataclass(frozen=True, slots=True)
class PacketTrace:
    """All steps of a packet and its copies; ``is_complete`` unless some were still under way at the end."""

    steps: tuple[AnyStep, ...]
    is_complete: bool

    @property
    def delivered(self) -> tuple[Delivered, ...]:
        """What has reached hosts and control planes, in order."""
        return tuple(step for step in self.steps if isinstance(step, Delivered))
