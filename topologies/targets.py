"""What a switch runs Trainyard's program on, and the numbers by which these targets differ."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from topologies.ecmp import MultipliedHash, SwitchHash, TabulatedHash

PACKET_BYTES = 1500
"""The packet that queue depths are counted in, where a switch counts cells."""

TOFINO_CELL_BYTES = 80
"""A cell of Tofino's packet buffer."""


class Target(StrEnum):
    """What a switch runs Trainyard's program on."""

    BMV2 = "bmv2"
    EMULATOR = "emulator"
    TOFINO = "tofino"


@dataclass(frozen=True, slots=True)
class TargetFacts:
    """The numbers of a target.

    Attributes:
        architecture: That of its program, as P4Info names it.
        cpu_port: The port by which packets come from and go to the controller.
        hash_law: Makes the hash of a switch of its own number (``topologies.ecmp.hash_multipliers``).
        time_ns: The unit of times in INT, in nanoseconds.
        cells_per_packet: The units of queue depth that a packet of PACKET_BYTES fills.
        window_unit_ns: Windows of utilisation last 2^n of this.
    """

    architecture: str
    cpu_port: int
    hash_law: Callable[[int], SwitchHash]
    time_ns: int
    cells_per_packet: int
    window_unit_ns: int


_V1MODEL = TargetFacts("v1model", 510, MultipliedHash, 1000, 1, 1000)

TARGETS: Mapping[Target, TargetFacts] = {
    Target.BMV2: _V1MODEL,
    Target.EMULATOR: _V1MODEL,
    Target.TOFINO: TargetFacts("tna", 192, TabulatedHash, 1, -(-PACKET_BYTES // TOFINO_CELL_BYTES), 1024),
}


def target_of(architecture: str) -> Target:
    """Return the target of a program for this architecture: BMv2 for one that nobody knows."""
    return next((target for target, facts in TARGETS.items() if facts.architecture == architecture), Target.BMV2)
