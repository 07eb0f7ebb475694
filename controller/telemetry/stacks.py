"""The INT stacks of an exchange, read all at once: the way that each tells of, and what its switches say of links."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from hostlib.wire.int_md import HOP_WORDS, WORD_BYTES
from topologies.fabric import Path

NOT_KNOWN = -1
"""In a column: the switch does not know, which it says with all ones."""

_HOP_BYTES = HOP_WORDS * WORD_BYTES
_WAY_BYTES = 8
_HOP = np.dtype(
    [
        ("way", f"V{_WAY_BYTES}"),
        ("latency_us", ">u4"),
        ("queue", ">u4"),
        ("ingress_us", ">u8"),
        ("egress_us", ">u8"),
        ("window_bytes", ">u4"),
    ]
)
"""The words of ``hostlib.wire.int_md``; the way is node id, ingress port and egress port."""

_ONES_8, _ONES_24, _ONES_32, _ONES_64 = ((1 << bits) - 1 for bits in (8, 24, 32, 64))


@dataclass(frozen=True, slots=True)
class Samples:
    """What switches say of links, one row for each, in the order in which a host reports it; units as in ``Hop``."""

    links: NDArray[np.int64]
    came_s: NDArray[np.float64]
    """When the probe came, by the controller's clock."""
    latency_us: NDArray[np.int64]
    level: NDArray[np.int64]
    queue_packets: NDArray[np.int64]
    window_bytes: NDArray[np.int64]


class Stacks:
    """Stacks by their places in an exchange. Those that are not of whole hops are taken to be empty."""

    def __init__(self, stacks: Sequence[bytes]) -> None:
        whole = [b"" if len(stack) % _HOP_BYTES else stack for stack in stacks]
        self._num_hops = np.array([len(stack) // _HOP_BYTES for stack in whole], dtype=np.int64)
        self._ends = self._num_hops.cumsum()
        self._hops = np.frombuffer(b"".join(whole), _HOP)
        octets, ends = self._hops["way"].tobytes(), (self._ends * _WAY_BYTES).tolist()
        self.ways = [octets[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        """Which switches each has met and by which ports, in the bytes of the stack."""
        self.contradictory = self._contradictory()
        """Those in which a hop's times and latency contradict each other."""

    def samples(self, believed: Mapping[int, tuple[Path, float]]) -> Samples:
        """What the stacks at these places tell that came along a path at a time; places are in order."""
        places = np.fromiter(believed, dtype=np.int64)
        is_believed = np.zeros(len(self._num_hops), dtype=bool)
        is_believed[places] = True
        hops = self._hops[is_believed.repeat(self._num_hops)]
        # The newest hop lies on top; on a path's first link no switch sends.
        links = chain.from_iterable(path[:0:-1] for path, _ in believed.values())
        came_s = np.array([time_s for _, time_s in believed.values()])
        queue = hops["queue"].astype(np.int64)
        return Samples(
            np.fromiter(links, dtype=np.int64),
            came_s.repeat(self._num_hops[places]),
            _known(hops["latency_us"], _ONES_32),
            _known(queue >> 24, _ONES_8),
            _known(queue & _ONES_24, _ONES_24),
            _known(hops["window_bytes"], _ONES_32),
        )

    def _contradictory(self) -> frozenset[int]:
        ingress_us, egress_us = self._hops["ingress_us"].astype(np.uint64), self._hops["egress_us"].astype(np.uint64)
        latency_us = self._hops["latency_us"].astype(np.uint64)
        has_times = (ingress_us != _ONES_64) & (egress_us != _ONES_64)
        is_latency = (latency_us == _ONES_32) | (latency_us == egress_us - ingress_us)
        wrong = np.flatnonzero(has_times & ((egress_us < ingress_us) | ~is_latency))
        return frozenset(self._ends.searchsorted(wrong, side="right").tolist())


def _known(column: NDArray[np.integer], ones: int) -> NDArray[np.int64]:
    values = column.astype(np.int64)
    values[values == ones] = NOT_KNOWN
    return values
