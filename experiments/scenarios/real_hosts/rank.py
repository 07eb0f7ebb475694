"""A stand-in for one host's part of a training job: it sends real TCP bytes when it is told to.

    python rank.py CONTROL_SOCKET JOB HOST

It connects to the run by a Unix socket, over which both send JSON objects, one a line. The run sends

- ``listen``: addresses and ports at which other ranks connect;
- ``connect``: ``[flow, source address, source port, destination address, destination port]``, one each;
- ``send``: ``[flow, bytes]``, one each;
- ``prioritise``: ``[flow, SO_PRIORITY]``, one each: the queue at the host's own NIC.

The rank answers ``opened``: the flows whose connections have been accepted; and ``arrived``: ``[flow, time]``, when all
bytes of a transfer have been read, in nanoseconds of the machine's monotonic clock. It ends with the control socket.

It is run by its path and needs Python alone, so that many start fast and need little memory.
"""

import json
import resource
import selectors
import socket
import struct
import sys
import time
from typing import Any

_NUMBER = struct.Struct("!Q")
_CHUNK = memoryview(bytes(1 << 20))
_MOST_URGENT = 0xE0
"""Class CS7: connections are set up, and bytes acknowledged, whatever else waits."""
_TRY_S = 0.25
"""A lost SYN is sent again by the kernel after a second; a new connection tries sooner."""
_TRIES = 240


class Sending:
    """A connection of a flow that this host sends, with the bytes that are still to be sent."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._left: list[int] = []
        self._header = b""

    def add(self, size_bytes: int) -> None:
        """Add a transfer."""
        self._header += _NUMBER.pack(size_bytes) if not self._left else b""
        self._left.append(size_bytes)

    def send(self) -> bool:
        """Send as much as fits; return whether there is more."""
        try:
            while self._left:
                if self._header:
                    self._header = self._header[self.connection.send(self._header) :]
                else:
                    self._left[0] -= self.connection.send(_CHUNK[: self._left[0]])
                    if self._left[0] == 0:
                        del self._left[0]
                        self._header = _NUMBER.pack(self._left[0]) if self._left else b""
        except BlockingIOError:
            return True
        return False


class Receiving:
    """A connection of a flow that this host receives: the flow's number, then transfers, each behind its size."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.flow: int | None = None
        self._number = b""
        self._left = 0

    def receive(self, buffer: memoryview) -> int:
        """Read what has come; return how many transfers it ends. Raises ConnectionError at the end of the stream."""
        ended = 0
        try:
            while True:
                if self._left:
                    read = self.connection.recv_into(buffer, min(self._left, len(buffer)))
                    self._left -= read
                    ended += self._left == 0
                else:
                    octets = self.connection.recv(_NUMBER.size - len(self._number))
                    read = len(octets)
                    self._number += octets
                    if len(self._number) == _NUMBER.size:
                        (number,) = _NUMBER.unpack(self._number)
                        self._number = b""
                        if self.flow is None:
                            self.flow = number
                            return ended
                        self._left = number
                if read == 0:
                    raise ConnectionError(f"flow {self.flow}: the sender has closed the connection")
        except BlockingIOError:
            return ended


class Rank:
    """The connections of one rank, and its conversation with the run."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._commands = b""
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ)
        self._sending: dict[int, Sending] = {}
        self._buffer = memoryview(bytearray(1 << 20))

    def serve(self) -> None:
        """Do what the run asks for, until it closes the control socket."""
        while True:
            arrived, opened = [], []
            for key, _ in self._selector.select():
                match key.data:
                    case None if key.fileobj is self._control:
                        if not self._obey():
                            return
                    case None:
                        self._accept(key.fileobj)  # type: ignore[arg-type]
                    case Sending() as sending:
                        if not sending.send():
                            self._selector.unregister(sending.connection)
                    case Receiving() as receiving:
                        is_new = receiving.flow is None
                        ended = receiving.receive(self._buffer)
                        if is_new and receiving.flow is not None:
                            opened.append(receiving.flow)
                        arrived += [(receiving.flow, time.monotonic_ns())] * ended
            if opened:
                self._say("opened", opened)
            if arrived:
                self._say("arrived", arrived)

    def _obey(self) -> bool:
        octets = self._control.recv(1 << 16)
        *lines, self._commands = (self._commands + octets).split(b"\n")
        for line in lines:
            for command, items in json.loads(line).items():
                for item in items:
                    getattr(self, f"_{command}")(*item)
        return bool(octets)

    def _listen(self, address: str, port: int) -> None:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, _MOST_URGENT)
        listener.bind((address, port))
        listener.listen(1024)
        listener.setblocking(False)
        self._selector.register(listener, selectors.EVENT_READ)

    def _connect(self, flow: int, address: str, port: int, to_address: str, to_port: int) -> None:
        for _ in range(_TRIES):
            connection = socket.socket()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            connection.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, _MOST_URGENT)
            connection.settimeout(_TRY_S)
            try:
                connection.bind((address, port))
                connection.connect((to_address, to_port))
                break
            except OSError:
                connection.close()
                time.sleep(_TRY_S / 10)
        else:
            raise ConnectionError(f"flow {flow}: {address}:{port} does not reach {to_address}:{to_port}")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(_NUMBER.pack(flow))
        connection.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 0)
        connection.setblocking(False)
        self._sending[flow] = Sending(connection)

    def _send(self, flow: int, size_bytes: int) -> None:
        sending = self._sending[flow]
        sending.add(size_bytes)
        if sending.send() and sending.connection not in self._selector.get_map():
            self._selector.register(sending.connection, selectors.EVENT_WRITE, sending)

    def _prioritise(self, flow: int, priority: int) -> None:
        self._sending[flow].connection.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, priority)

    def _accept(self, listener: socket.socket) -> None:
        try:
            connection, _ = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return  # whoever connected has given up, and tries again
        connection.setblocking(False)
        self._selector.register(connection, selectors.EVENT_READ, Receiving(connection))

    def _say(self, what: str, items: list[Any]) -> None:
        self._control.sendall(json.dumps({what: items}).encode() + b"\n")


def main(path: str, job: str, host: str) -> None:
    """Be the rank of a job at a host."""
    _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))  # a connection for every flow
    with socket.socket(socket.AF_UNIX) as control:
        control.connect(path)
        control.sendall(json.dumps({"job": job, "host": host}).encode() + b"\n")
        try:
            Rank(control).serve()
        except OSError as error:
            sys.exit(f"rank of {job} at {host}: {error}")


if __name__ == "__main__":
    main(*sys.argv[1:4])
