"""A run of a program in which transfers take no time: when each call starts and ends.

Devices run their calls in the order of the program, one at a time, as schedulers grant them. All shards of a call start
together. Arrangements derive from this run (EchelonFlow, section 3).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

from runtime.lowering.assign import Placement
from runtime.lowering.subprograms import LoweredProgram
from runtime.store.buffers import HOST

LEAST_S = 1e-9
"""Each call takes at least so long: for the controller, every computation takes some time."""


@dataclass(frozen=True, eq=False, slots=True)
class Schedule:
    """By node: how long it takes, when it starts and ends, and the nodes that had its devices just before it.

    Arguments are there at 0. ``compute_s`` is when the last node ends, ``work`` what devices compute, in
    device-seconds. The CPUs of hosts have their order as well, but are no devices.
    """

    duration_s: tuple[float, ...]
    start_s: tuple[float, ...]
    end_s: tuple[float, ...]
    preceding: tuple[tuple[int, ...], ...]
    compute_s: float
    work: float

    @classmethod
    def of(cls, lowered: LoweredProgram, seconds: Callable[[int], float]) -> Self:
        """Run a program; ``seconds`` says how long a node takes."""
        first_node = len(lowered.program.arguments)
        duration_s, start_s, end_s = [0.0] * first_node, [0.0] * first_node, [0.0] * first_node
        preceding: list[tuple[int, ...]] = [()] * first_node
        parts = _parts(lowered.placements)
        latest: dict[int, int] = {}
        work = 0.0
        for placed in lowered.calls:
            mine = parts[placed.placement]
            before = tuple(sorted({latest[part] for part in mine if part in latest}))
            makers = (each.value.node for each in placed.call.inputs)
            start = max((end_s[node] for node in (*makers, *before)), default=0.0)
            duration_s.append(max(seconds(placed.node), LEAST_S))
            start_s.append(start)
            end_s.append(start + duration_s[-1])
            preceding.append(before)
            latest.update(dict.fromkeys(mine, placed.node))
            work += duration_s[-1] * sum(device != HOST for device in lowered.placements[placed.placement].devices)
        return cls(tuple(duration_s), tuple(start_s), tuple(end_s), tuple(preceding), max(end_s, default=0.0), work)


def _parts(placements: Sequence[Placement]) -> list[tuple[int, ...]]:
    """Return, by placement, the numbers of its parts: devices that belong to the same placements are one part."""
    of_device: dict[tuple[int, int], list[int]] = {}
    for number, placement in enumerate(placements):
        for place in set(zip(placement.hosts, placement.devices, strict=True)):
            of_device.setdefault(place, []).append(number)
    found: list[list[int]] = [[] for _ in placements]
    for part, members in enumerate(dict.fromkeys(map(tuple, of_device.values()))):
        for number in members:
            found[number].append(part)
    return list(map(tuple, found))
