"""Observations of an emulated fabric: completions, captured packets, traces and drop counts."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from emulator.engine import state as s

PS_PER_S = 1_000_000_000_000
"""Picoseconds, in which a fabric tells time, in a second."""


@dataclass(frozen=True, slots=True)
class Completion:
    """The last byte of a flow's transfer has reached its receiver."""

    flow: int
    time_ps: int


@dataclass(frozen=True, slots=True)
class Capture:
    """An injected packet that reached a NIC over ``link``.

    ``octets`` are the stored bytes; the rest, up to ``length``, are zeros.
    """

    link: int
    time_ps: int
    octets: bytes
    length: int


@dataclass(frozen=True, slots=True)
class PacketIn:
    """A packet that a switch sent to its control plane, or a digest.

    A ``digest`` above 0 is the number of a list of the program, and ``octets`` are its values: of each as many whole
    bytes as it needs.
    """

    switch: str
    time_ps: int
    octets: bytes
    digest: int = 0


class TraceKind(IntEnum):
    """Kind of event in a trace row."""

    QUEUED = s.QUEUED
    STARTED = s.STARTED
    LOST = s.LOST


@dataclass(frozen=True, slots=True)
class TraceRow:
    """A packet joined a queue, started on its link, or was lost; ``flow`` is -1 for injected packets."""

    time_ps: int
    kind: TraceKind
    link: int
    level: int
    flow: int
    number: int
    length: int


@dataclass(frozen=True, slots=True)
class Progress:
    """Packets that a flow's sender has sent, and the number, counted from the first, that it knows arrived."""

    sent: int
    acknowledged: int


@dataclass(frozen=True, slots=True)
class Sender:
    """What the congestion control of a flow holds.

    ``round_trip_s`` is the last sample, 0 before the first. ``marked_packets`` of ``delivered_packets`` had a
    congestion mark. ``words`` are the control's parameters and state by name.
    """

    window_packets: float
    round_trip_s: float
    delivered_packets: int
    marked_packets: int
    timeouts: int
    words: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Drops:
    """Packets that a switch has dropped so far, by reason.

    ``no_such_port`` counts packets that left by a port without a cable, ``no_group`` those for a multicast group
    without replicas, ``too_many_passes`` those that were copied, resubmitted or recirculated too often in a row,
    ``too_many_repeats`` those for which an action or the parser repeated a loop too often, and ``failed_assertions``
    those for which an ``assert`` or ``assume`` did not hold.
    """

    by_program: int
    no_such_port: int
    queue_full: int
    no_pipeline: int
    too_long: int
    link_down: int
    no_group: int
    too_many_passes: int
    too_many_repeats: int
    failed_assertions: int
