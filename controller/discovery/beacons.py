"""Signed LLDP: from which of our ports a packet comes, so that no host can speak for a switch.

A beacon names its switch and port, and the period in which it was sent. The key is made anew by each process and stays
there. Who hears a beacon can repeat it for a few seconds, and cannot make one.
"""

import hmac
import secrets
import struct
from collections.abc import Mapping, Sequence
from enum import StrEnum
from hashlib import blake2s

from controller.discovery.lldp_packets import LldpPacket
from controller.links.port_states import Port
from topologies.addressing import switch_mac

PERIOD_S = 1.0
"""Each port sends a beacon in so long a period."""
VALID_PERIODS = 3
"""A beacon is believed in its period and in those that follow, so many together."""

_CONTENTS = struct.Struct("!IHQ")
_SIGNATURE_BYTES = 16
_TIME_TO_LIVE_S = 5


def period_at(now_s: float) -> int:
    """Return the period of a time."""
    return int(now_s / PERIOD_S)


class BeaconProblem(StrEnum):
    """Why an LLDP packet is no beacon."""

    FORGED = "LLDP with a wrong signature"
    REPLAYED = "LLDP of an earlier time"


class Beacons:
    """Makes the beacons of these switches, and reads them.

    Args:
        switches: The names of the switches.
        port_names: What switches call their ports, where they have names for them.
        key: The key; None: a random one.
    """

    def __init__(
        self,
        switches: Sequence[str],
        port_names: Mapping[Port, str] | None = None,
        key: bytes | None = None,
    ) -> None:
        self._switches = tuple(switches)
        self._number_of = {name: number for number, name in enumerate(switches)}
        self._port_names = port_names or {}
        self._key = key or secrets.token_bytes(blake2s.MAX_KEY_SIZE)

    def frame(self, port: Port, period: int) -> bytes:
        """Return the beacon of a port in a period."""
        name, number = port
        at = self._number_of[name]
        contents = _CONTENTS.pack(at, number, period)
        packet = LldpPacket(
            name,
            self._port_names.get(port, str(number)),
            _TIME_TO_LIVE_S,
            name,
            signed=contents + self._signature(contents),
        )
        return packet.frame(switch_mac(at, number))

    def sender(self, packet: LldpPacket, period: int) -> Port | BeaconProblem | None:
        """Return the port that a packet comes from, or why it is not believed; None where it does not claim to be ours.

        Args:
            packet: The packet.
            period: The period in which it came.
        """
        if not packet.signed:
            return None
        contents, signature = packet.signed[: _CONTENTS.size], packet.signed[_CONTENTS.size :]
        if not hmac.compare_digest(signature, self._signature(contents)):
            return BeaconProblem.FORGED
        at, number, sent = _CONTENTS.unpack(contents)
        if not period - VALID_PERIODS < sent <= period:
            return BeaconProblem.REPLAYED
        return self._switches[at], number

    def _signature(self, contents: bytes) -> bytes:
        return blake2s(contents, key=self._key, digest_size=_SIGNATURE_BYTES).digest()
