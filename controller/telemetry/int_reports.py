"""Decode the INT stacks that hosts report: the path of each probe, and what switches measured on it."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from hostlib.wire.int_md import HOP_FIELDS, HOP_PATH, HOP_WORDS, QUEUE_DEPTH_BITS, WORD_BYTES
from topologies.fabric import Path

NOT_KNOWN = -1
"""Marks a value that the switch did not know."""

_HOP_BYTES = HOP_WORDS * WORD_BYTES
_FIELDS = np.dtype([(name, f">{form}") for name, form in HOP_FIELDS])
_HOP = np.dtype([("path", f"V{HOP_PATH.size}"), *_FIELDS.descr[3:]])
"""The layout of a hop, as ``hostlib.wire.int_md`` defines it; ``path`` are the first three fields together."""

assert _HOP.itemsize == _FIELDS.itemsize == _HOP_BYTES

_ONES_8, _ONES_24, _ONES_32, _ONES_64 = ((1 << bits) - 1 for bits in (8, 24, 32, 64))
"""The answer of a switch that does not know a value, by the width of the field."""


@dataclass(frozen=True, slots=True)
class HopSamples:
    """Measurements of links by switches, one row for each hop, in the order of the reports; NOT_KNOWN where nothing.

    ``came_s`` is when the probe arrived, by the controller's clock. The units are those of ``hostlib.wire.int_md.Hop``
    once ``controller.telemetry.int_units`` has converted them.
    """

    links: NDArray[np.int64]
    came_s: NDArray[np.float64]
    latency_us: NDArray[np.int64]
    level: NDArray[np.int64]
    queue_packets: NDArray[np.int64]
    window_bytes: NDArray[np.int64]


class IntReportBatch:
    """The INT stacks of one exchange, decoded together in columns; stacks with a partial hop count as empty.

    ``path_octets`` has for each stack the bytes that tell its path, which PathDecoder decodes. ``contradictory`` has
    the positions of the stacks in which the times of a hop contradict its latency.
    """

    def __init__(self, stacks: Sequence[bytes]) -> None:
        whole = [b"" if len(stack) % _HOP_BYTES else stack for stack in stacks]
        self._num_hops = np.array([len(stack) // _HOP_BYTES for stack in whole], dtype=np.int64)
        self._ends = self._num_hops.cumsum()
        self._hops = np.frombuffer(b"".join(whole), _HOP)
        octets, ends = self._hops["path"].tobytes(), (self._ends * HOP_PATH.size).tolist()
        self.path_octets = [octets[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        self.contradictory = self._contradictory()

    def samples(self, accepted: Mapping[int, tuple[Path, float]], silent_links: Set[int] = frozenset()) -> HopSamples:
        """Return the measurements of the accepted stacks.

        Args:
            accepted: By position, in ascending order, the path of the probe and when it arrived.
            silent_links: Links out of ordinary switches, which may have put no hop on the stack.
        """
        places = np.fromiter(accepted, dtype=np.int64)
        is_accepted = np.zeros(len(self._num_hops), dtype=bool)
        is_accepted[places] = True
        hops = self._hops[is_accepted.repeat(self._num_hops)]
        # The newest hop lies on top, and no switch sends on the first link of a path.
        links = chain.from_iterable(
            path[:0:-1] if len(path) - 1 == num_hops else (link for link in path[:0:-1] if link not in silent_links)
            for (path, _), num_hops in zip(accepted.values(), self._num_hops[places].tolist(), strict=True)
        )
        came_s = np.array([time_s for _, time_s in accepted.values()])
        queue = hops["queue"].astype(np.int64)
        return HopSamples(
            np.fromiter(links, dtype=np.int64),
            came_s.repeat(self._num_hops[places]),
            _known(hops["latency_us"], _ONES_32),
            _known(queue >> QUEUE_DEPTH_BITS, _ONES_8),
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
