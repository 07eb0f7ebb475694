"""Sockets that send and receive probes on a real NIC.

Probes leave through a raw socket that takes whole IPv4 packets, so the kernel routes them like the flow they stand for.
They arrive through a packet socket, which sees packets whoever owns the port. A kernel filter passes probes to the
NIC's address and nothing else.
"""

import asyncio
import ctypes
import errno
import socket
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from ipaddress import IPv4Address

from hostlib.telemetry.interfaces import Interface
from hostlib.telemetry.kernel_programs import INSTRUCTION_BYTES, socket_filter
from hostlib.telemetry.probes import Probe, probe_packet

_ALL_PROTOCOLS = 3
"""``ETH_P_ALL``: sees packets before a program at the device's ingress drops them."""
_ATTACH_FILTER = 26
_PACKET, _STATISTICS, _IGNORE_OUTGOING = 263, 6, 23
_COUNTS = struct.Struct("=II")

_RECEIVE_BUFFER_BYTES = 4 << 20
_LONGEST_BYTES = 2048
_AT_ONCE = 64

_NOT_ALLOWED = "probing needs the capability CAP_NET_RAW, which this process does not have"


class ProbeSockets:
    """The two sockets of one NIC. Close them after use. Raises OSError, naming the NIC, if it cannot send probes.

    ``sent`` counts probes that the kernel accepted, ``unsent`` those that it refused, by the name of its error.
    """

    def __init__(self, interface: Interface) -> None:
        self.interface = interface
        self.sent = 0
        self.received = 0
        self._unsent: Counter[str] = Counter()
        self._lost = 0
        try:
            self._sending = _sending_socket(interface)
            try:
                self._receiving = _receiving_socket(interface)
            except BaseException:
                self._sending.close()
                raise
        except PermissionError as error:
            raise PermissionError(f"{interface.name}: {_NOT_ALLOWED}") from error
        except OSError as error:
            raise OSError(f"{interface.name} with address {interface.address}: {error.strerror}") from error

    @property
    def unsent(self) -> Mapping[str, int]:
        """Probes that the kernel refused, by the name of its error."""
        return self._unsent

    @property
    def lost(self) -> int:
        """Probes that arrived while the socket was full."""
        counts = self._receiving.getsockopt(_PACKET, _STATISTICS, _COUNTS.size)
        self._lost += _COUNTS.unpack(counts)[1]  # since it was last asked
        return self._lost

    @property
    def address(self) -> IPv4Address:
        """Address of the NIC."""
        return self.interface.address

    def listen(self, on_arrival: Callable[[], None]) -> None:
        """Call this from the running loop whenever probes have arrived."""
        asyncio.get_running_loop().add_reader(self._receiving.fileno(), on_arrival)

    def stop_listening(self) -> None:
        """Stop calling."""
        asyncio.get_running_loop().remove_reader(self._receiving.fileno())

    def close(self) -> None:
        """Close both sockets."""
        self._sending.close()
        self._receiving.close()

    def send(self, probe: Probe) -> None:
        """Send a probe. Probes that the kernel refuses are counted and lost.

        Raises OSError if the interface is gone, even if another one has its name by now.
        """
        try:
            self._sending.sendto(probe_packet(probe), (str(probe.five_tuple.destination_address), 0))
            self.sent += 1
        except OSError as error:
            if error.errno == errno.ENODEV:
                raise OSError(errno.ENODEV, f"{self.interface.name}: the interface is gone") from error
            self._unsent[errno.errorcode.get(error.errno or 0, str(error))] += 1

    def receive(self) -> Iterator[bytes]:
        """Yield some of the IPv4 packets that have arrived; the socket stays readable if there are more."""
        for _ in range(_AT_ONCE):
            try:
                packet = self._receiving.recv(_LONGEST_BYTES)
            except OSError:  # nothing more, or the interface has gone down
                return
            self.received += 1
            yield packet


def _sending_socket(interface: Interface) -> socket.socket:
    # A socket of this protocol sends packets with their headers and receives nothing.
    sending = socket.socket(socket.AF_INET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, socket.IPPROTO_RAW)
    try:
        sending.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.name.encode())
        sending.bind((str(interface.address), 0))
    except BaseException:
        sending.close()
        raise
    return sending


def _receiving_socket(interface: Interface) -> socket.socket:
    # Without a protocol nothing arrives before the bind, when the filter is in place.
    receiving = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK, 0)
    try:
        receiving.setsockopt(_PACKET, _IGNORE_OUTGOING, 1)
        receiving.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER_BYTES)
        program = socket_filter(interface.address)
        held = ctypes.create_string_buffer(program)
        described = struct.pack("@HP", len(program) // INSTRUCTION_BYTES, ctypes.addressof(held))
        receiving.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, described)
        receiving.bind((interface.name, _ALL_PROTOCOLS))
    except BaseException:
        receiving.close()
        raise
    return receiving
