"""Files with the packets of switches' ports, as ``simple_switch --pcap`` writes them.

Each port has two, ``s1-eth2_in.pcap`` for what arrives by port 2 of s1 and ``s1-eth2_out.pcap`` for what leaves by it,
for tcpdump, Wireshark and Scapy. Times are in nanoseconds (the format's magic number 0xa1b23c4d).
"""

import logging
import struct
from collections import defaultdict
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from emulator.engine import state as s
from emulator.tails import Tails
from topologies.fabric import Fabric

LIMIT_BYTES: Final = 100_000_000
"""What each file holds unless told otherwise."""

_ETHERNET = 1
_LONGEST_BYTES = 1 << 18
_NS_PER_S = 1_000_000_000
_FILE_HEADER = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, _LONGEST_BYTES, _ETHERNET)
_PACKET_HEADER = struct.Struct("<IIII")
_LOG = logging.getLogger(__name__)


class PortFiles:
    """The files of some ports. Those that are there are replaced.

    A file has the bytes of a packet that exist: of a transfer of emulated hosts, its headers. Its length is told, too.

    Args:
        fabric: The fabric.
        folder: Of the files; it is made.
        ports: Switches and their ports; None: all that have a cable.
        limit_bytes: What each file holds at most; later packets are left out, and the log says so.
        starts_ns: What the files call the fabric's time 0, in nanoseconds since 1970.

    Raises:
        OSError: A file cannot be written.
        ValueError: A port has no cable.
    """

    def __init__(
        self,
        fabric: Fabric,
        folder: Path,
        ports: Collection[tuple[str, int]] | None = None,
        *,
        limit_bytes: int = LIMIT_BYTES,
        starts_ns: int = 0,
    ) -> None:
        self._limit_bytes = limit_bytes
        self._starts_ns = starts_ns
        self._files: dict[tuple[int, int], Path] = {}
        self._sizes: dict[Path, int] = {}
        cabled = {(name, link.source_port): link for name in fabric.switches for link in fabric.links_from[name]}
        for switch, port in cabled if ports is None else ports:
            if (switch, port) not in cabled:
                raise ValueError(f"switch {switch!r} has no cable at port {port}")
            link = cabled[switch, port].index
            self._files[fabric.reverse(link), 1] = folder / f"{switch}-eth{port}_in.pcap"
            self._files[link, 0] = folder / f"{switch}-eth{port}_out.pcap"
        folder.mkdir(parents=True, exist_ok=True)
        for path in self._files.values():
            path.write_bytes(_FILE_HEADER)
            self._sizes[path] = len(_FILE_HEADER)

    def collect(self, states: Sequence[s.State], tails: Tails) -> None:
        """Write the packets that the engine has recorded in all parts."""
        for state in states:
            if state.scalars[s.RECORDED]:
                self._collect_from(state, tails)

    def _collect_from(self, state: s.State, tails: Tails) -> None:
        """Write one file after the other, each opened but once."""
        count = int(state.scalars[s.RECORDED])
        state.scalars[s.RECORDED] = 0
        written: dict[Path, list[bytes]] = defaultdict(list)
        recorded_rows = state.recorded.reshape(len(state.records), -1)[:count]
        rows = zip(state.records[:count].tolist(), recorded_rows, strict=True)
        for (time_ps, link, is_arrival, length, known, number), recorded in rows:
            path = self._files.get((link, is_arrival))
            if path is not None and self._sizes[path] >= 0:
                octets = recorded[:known].tobytes() + tails.of(number, length - known)
                written[path].append(self._packet(time_ps, octets, length))
        for path, packets in written.items():
            self._append(path, packets)

    def _packet(self, time_ps: int, octets: bytes, length: int) -> bytes:
        seconds, nanoseconds = divmod(self._starts_ns + time_ps // 1000, _NS_PER_S)
        return _PACKET_HEADER.pack(seconds, nanoseconds, len(octets), length) + octets

    def _append(self, path: Path, packets: list[bytes]) -> None:
        kept = []
        for packet in packets:
            if self._sizes[path] + len(packet) > self._limit_bytes:
                self._sizes[path] = -1
                _LOG.warning("%s is full, with %d bytes: it gets no further packets", path, self._limit_bytes)
                break
            self._sizes[path] += len(packet)
            kept.append(packet)
        try:
            with path.open("ab") as file:
                file.write(b"".join(kept))
        except OSError as error:
            self._sizes[path] = -1
            _LOG.warning("%s cannot be written, and gets no further packets: %s", path, error.strerror)
