"""Define the reports of host agents on probes, and the controller's answers, apart from the wire format."""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

PairKey = tuple[int, int, int, int]
"""Source and destination address of two NICs, and the protocol and destination port of the flows between them."""


class ProbeReport(NamedTuple):
    """A probe that arrived; a tuple, because the controller reads 100,000 of them a second.

    ``session``, ``sequence`` (of the pair), ``port_sequence`` and ``sent_ns`` come from the sender. The probe arrived
    ``age_ns`` before the exchange's ``clock_ns``. ``stack`` is the INT metadata, the last switch's first.
    """

    pair: PairKey
    source_port: int
    session: int
    sequence: int
    port_sequence: int
    sent_ns: int
    age_ns: int
    stack: bytes


@dataclass(frozen=True, slots=True)
class ProbeExchange:
    """The reports of a host, one of the exchanges that ``number`` counts in an agent's ``session``.

    ``clock_ns`` is the host's clock. ``dropped`` counts packets that the agent did not report, by reason.
    ``targets_version`` is the version of the targets that the host has, 0 if it has none.
    """

    host: str
    session: int
    number: int
    clock_ns: int
    reports: Sequence[ProbeReport]
    dropped: Mapping[str, int]
    targets_version: int


@dataclass(frozen=True, slots=True)
class ProbeTarget:
    """A pair of NICs to probe: the ports to keep probing, and whether to try further ones."""

    pair: PairKey
    source_ports: tuple[int, ...]
    is_exploring: bool

    def octets(self) -> bytes:
        """Return the same bytes for the same target, in every process."""
        return struct.pack(f"!4I?{len(self.source_ports)}I", *self.pair, self.is_exploring, *self.source_ports)


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """When the host is to report again, and its targets, unless the version shows that it has them already."""

    interval_s: float
    targets_version: int
    targets: Sequence[ProbeTarget]
