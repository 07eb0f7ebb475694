"""All-reduce of small arrays between shards of one machine: shards swap what they have, in pairs.

Gloo sends a small array round a ring, and hands it from thread to thread at each step. Here the threads of the devices
do all of it, over Unix sockets: after log2(shards) swaps each has the whole (recursive doubling). Both of a pair
compute the same, the part of the lower shards first, so all shards get the same bits.
"""

import os
import socket
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from runtime.addresses import check_user, dialled, listening, unlist
from runtime.collectives import Reduction

MOST_BYTES = 1 << 13
"""So much any socket takes at once, so both of a pair can send before they receive."""
DTYPES = frozenset(f"torch.{name}" for name in ("uint8", "int8", "int32", "int64", "float32", "float64"))
"""Those of PyTorch that NumPy computes with alike."""
_LOOK_S = 0.05
_GREETING_S = 10.0
"""So long may a shard that has connected take to say which it is; it does so at once."""
_HEAD = struct.Struct("!I")
COMBINE: dict[str, np.ufunc] = {"sum": np.add, "product": np.multiply, "min": np.minimum, "max": np.maximum}

Array = np.ndarray[Any, Any]


class SmallReductions:
    """The connections of one shard. It listens from the beginning; ``join`` it when all shards do."""

    def __init__(self, path: Path, index: int, size: int) -> None:
        self._path = path
        self._index = index
        self._core = 1 << (size.bit_length() - 1)
        self._size = size
        self._sockets: dict[int, socket.socket] = {}
        self._listener = listening(self._address(index))

    def join(self, check: Callable[[], None]) -> None:
        """Connect with those that it swaps with. Raises OSError, and what ``check`` raises while one is missing."""
        partners = sorted(self._partners())
        for partner in partners:
            if partner < self._index:
                self._sockets[partner] = dialled(self._address(partner))
                self._sockets[partner].sendall(_HEAD.pack(self._index))
        self._listener.settimeout(_LOOK_S)
        while len(self._sockets) < len(partners):
            check()
            with suppress(TimeoutError):
                accepted, _ = self._listener.accept()
                caller = _partner(accepted)
                if caller is not None and caller in partners and caller not in self._sockets:
                    self._sockets[caller] = accepted
                else:
                    accepted.close()
        self._stop_listening()

    def reduce(self, array: Array, reduction: Reduction) -> None:
        """Reduce a row of numbers of all shards, in place. Raises OSError where another shard ended its connections."""
        combine = COMBINE[reduction]
        extra = self._index ^ self._core  # shards beyond a power of two let another one work for them
        if self._index >= self._core:
            self._send(extra, array)
            array[...] = self._receive(extra, array)
            return
        if extra < self._size:
            combine(array, self._receive(extra, array), out=array)
        distance = 1
        while distance < self._core:
            partner = self._index ^ distance
            self._send(partner, array)
            theirs = self._receive(partner, array)
            combine(*((array, theirs) if self._index < partner else (theirs, array)), out=array)
            distance *= 2
        if extra < self._size:
            self._send(extra, array)

    def meet(self, size_bytes: int, descriptors: Sequence[int] = ()) -> list[int]:
        """Wait for the other one of two shards, and swap as many descriptors.

        Raises OSError where it ended its connections, and ValueError where it names another size.
        """
        sock, head = self._sockets[self._index ^ 1], _HEAD.pack(size_bytes)
        found: list[int] = []
        if descriptors:
            socket.send_fds(sock, [head], descriptors)
            received, found, _, _ = socket.recv_fds(sock, _HEAD.size, len(descriptors), socket.MSG_CMSG_CLOEXEC)
            if not received:
                raise ConnectionError("a connection ended")
        else:
            sock.sendall(head)
            received = bytes(_received(sock, _HEAD.size))
        (other_bytes,) = _HEAD.unpack(received)
        if other_bytes != size_bytes or len(found) != len(descriptors):
            for each in found:
                os.close(each)
            raise ValueError(f"shards reduce arrays of {size_bytes} and {other_bytes} bytes; expected the same")
        return found

    def close(self) -> None:
        """End the connections, also for a thread that waits for one. Any thread may call this, more than once.

        Until it has joined, only the thread that joins may.
        """
        self._stop_listening()
        for each in self._sockets.values():
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _stop_listening(self) -> None:
        self._listener.close()
        unlist(self._address(self._index))

    def _partners(self) -> Iterator[int]:
        extra = self._index ^ self._core
        if extra < self._size:
            yield extra
        distance = 1
        while distance < self._core and self._index < self._core:
            yield self._index ^ distance
            distance *= 2

    def _send(self, partner: int, array: Array) -> None:
        self._sockets[partner].sendall(_HEAD.pack(array.nbytes) + array.tobytes())

    def _receive(self, partner: int, like: Array) -> Array:
        received = _received(self._sockets[partner], _HEAD.size + like.nbytes)
        (size_bytes,) = _HEAD.unpack_from(received)
        if size_bytes != like.nbytes:
            raise ValueError(f"shards reduce arrays of {like.nbytes} and {size_bytes} bytes; expected the same")
        return np.frombuffer(received, like.dtype, offset=_HEAD.size)

    def _address(self, index: int) -> str:
        return f"unix:{self._path}-{index}"


def _partner(accepted: socket.socket) -> int | None:
    """Return which shard has connected, None if it is a stranger: anybody may dial a socket that has only a name."""
    try:
        check_user(accepted)
        accepted.settimeout(_GREETING_S)
        (partner,) = _HEAD.unpack(_received(accepted, _HEAD.size))
        accepted.settimeout(None)
    except OSError:
        return None
    return int(partner)


def _received(sock: socket.socket, size: int) -> bytearray:
    received = bytearray(size)
    left = memoryview(received)
    while left:
        number = sock.recv_into(left)
        if number == 0:
            raise ConnectionError("a connection ended")
        left = left[number:]
    return received
