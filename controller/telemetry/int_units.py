"""Convert what switches of several targets measure to the units of v1model, in which everything else counts."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from controller.telemetry.int_reports import NOT_KNOWN, HopSamples
from topologies.fabric import Fabric
from topologies.targets import TARGETS, Target

_V1MODEL = TARGETS[Target.BMV2]


class IntUnits:
    """The units of every link's measurements, which are those of the switch that sends on it.

    A queue of cells counts as the packets of 1,500 bytes that fill as many, a begun one as a whole one. The bytes of a
    window count as if windows of all targets were as long, with the same n.
    """

    def __init__(self, fabric: Fabric) -> None:
        identity = fabric.identity
        facts = [
            TARGETS[identity[link.source].target] if link.source in identity else _V1MODEL for link in fabric.links
        ]
        self._differ = any(each is not _V1MODEL for each in facts)
        self._times_per_us = np.array([_V1MODEL.time_ns // each.time_ns for each in facts])
        self._cells_per_packet = np.array([each.cells_per_packet for each in facts])
        self._window_share = np.array([_V1MODEL.window_unit_ns / each.window_unit_ns for each in facts])

    def converted(self, samples: HopSamples) -> HopSamples:
        """Return measurements as switches wrote them in the common units."""
        if not self._differ:
            return samples
        links = samples.links
        window_bytes = np.rint(samples.window_bytes * self._window_share[links]).astype(np.int64)
        return replace(
            samples,
            latency_us=_where_known(samples.latency_us, samples.latency_us // self._times_per_us[links]),
            queue_packets=_where_known(
                samples.queue_packets, -(-samples.queue_packets // self._cells_per_packet[links])
            ),
            window_bytes=_where_known(samples.window_bytes, window_bytes),
        )


def _where_known(column: NDArray[np.int64], converted: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.where(column == NOT_KNOWN, NOT_KNOWN, converted)
