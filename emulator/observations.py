"""What a fabric tells of what has happened in it."""

from dataclasses import dataclass
from enum import IntEnum

from emulator.engine import state as s


@dataclass(frozen=True, slots=True)
class Completion:
    """The last byte of a flow's transfer has reached its receiver."""

    flow: int
    time_ps: int


@dataclass(frozen=True, slots=True)
class Capture:
    """A packet that was injected and has reached a NIC; ``link`` is the one it came by.

    ``octets`` are the bytes that were kept; up to ``length`` the rest are zeros.
    """

    link: int
    time_ps: int
    octets: bytes
    length: int


@dataclass(frozen=True, slots=True)
class PacketIn:
    """A packet that a switch has sent to its control plane."""

    switch: str
    time_ps: int
    octets: bytes


class TraceKind(IntEnum):
    """What a row of the trace says of a packet."""

    QUEUED = s.QUEUED
    STARTED = s.STARTED
    LOST = s.LOST


@dataclass(frozen=True, slots=True)
class TraceRow:
    """A packet has come to a queue, started on its link, or found the queue full; ``flow`` is -1 for injected ones."""

    time_ps: int
    kind: TraceKind
    link: int
    level: int
    flow: int
    number: int
    length: int


@dataclass(frozen=True, slots=True)
class Progress:
    """How many packets a flow's sender has sent so far, and of how many from the first on it knows that they came."""

    sent: int
    acknowledged: int


@dataclass(frozen=True, slots=True)
class Drops:
    """Packets that a switch has dropped so far, by reason.

    ``no_group`` are those for a multicast group that has no replicas; ``too_many_passes`` those that were copied,
    resubmitted or recirculated too often in a row.
    """

    by_program: int
    no_such_port: int
    queue_full: int
    no_pipeline: int
    too_long: int
    link_down: int
    no_group: int
    too_many_passes: int
