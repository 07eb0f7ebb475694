"""Counts of the frames that pass real interfaces, and warnings where they tell of a mistake."""

import logging
import time
from dataclasses import dataclass

_WARN_AGAIN_S = 60.0
_WARNINGS = {
    "jumbo": "are longer than the MTU of the wires: turn off segmentation offload at their senders"
    " (ethtool -K INTERFACE tso off gso off), or raise --mtu",
    "unfinished": "came without checksums: turn off checksum offload at their senders (ethtool -K INTERFACE tx off)",
    "missed": "were lost, because the emulator could not read them in time",
    "unsent": "to hosts were lost: the kernel did not take them",
    "queue_full": "were lost: hosts send more than the queues of their links hold",
    "link_down": "were lost, because the links of their hosts are down",
    "no_memory": "were lost for lack of memory",
    "unwired": "reached NICs that have no interface, and were lost",
}
"""By count, what has become of so many frames."""
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WireCounts:
    """Frames since the start.

    Attributes:
        received: From hosts.
        sent: To hosts.
        unsent: Lost, because the kernel did not take them: it lacked memory, or the interface was down.
        missed: Lost, because the fabric did not read them in time.
        jumbo: Lost, because they were longer than the MTU.
        runt: Lost, because they were shorter than an Ethernet header.
        unfinished: Whose checksums the sender left to hardware that is not there.
        queue_full: Lost before they left their host, because the queue of its link was full.
        link_down: Lost before they left their host, because its link was down.
        no_memory: Lost for lack of memory: frames that were to be copied, each counted once with all its copies, and
            packets of control planes.
        unwired: Lost, because they reached a NIC that has no interface.
        unheard: Lost packets to control planes, because too many came at once.
    """

    received: int
    sent: int
    unsent: int
    missed: int
    jumbo: int
    runt: int
    unfinished: int
    queue_full: int
    link_down: int
    no_memory: int
    unwired: int
    unheard: int


class Warner:
    """Says what goes wrong with frames; of each kind once a minute."""

    def __init__(self) -> None:
        self._warned: dict[str, tuple[int, float]] = {}

    def look(self, counts: WireCounts) -> None:
        """Warn of what has become more since the last warning."""
        now_s = time.monotonic()
        for name, text in _WARNINGS.items():
            count, (known, quiet_until_s) = getattr(counts, name), self._warned.get(name, (0, 0.0))
            if count > known and now_s >= quiet_until_s:
                _LOG.warning("%d frames %s", count - known, text)
                self._warned[name] = count, now_s + _WARN_AGAIN_S
