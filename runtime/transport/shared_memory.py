"""Segments of memory that processes of one host share.

A segment is anonymous (memfd_create(2)): it has no name that could stay behind, and the kernel frees it when the last
process that has it ends, however it ends. It cannot shrink or grow, so nobody can take mapped pages away from others.
"""

import fcntl
import itertools
import mmap
import os
import stat
from typing import Self

import numpy as np

from runtime.transport.errors import FrameError

_F_ADD_SEALS = 1033
_F_GET_SEALS = 1034
_F_SEAL_SEAL = 0x1
_F_SEAL_SHRINK = 0x2
_F_SEAL_GROW = 0x4
_F_SEAL_FUTURE_WRITE = 0x10
_NUMBERS = itertools.count(1)


class Segment:
    """Memory of this process that others may map: to write into it, or only to read it.

    ``number`` names it among the segments of its owner. ``view`` is all of it.
    """

    def __init__(self, number: int, descriptor: int, view: memoryview, *, is_read_only: bool) -> None:
        self.number = number
        self.descriptor = descriptor
        self.view = view
        self.is_read_only = is_read_only

    @classmethod
    def create(cls, size_bytes: int, *, is_read_only: bool = False) -> Self:
        """Return a new segment, all zeros, that takes memory as it is written to.

        If it is read-only, others can never write to it: the kernel refuses.
        """
        descriptor = os.memfd_create("trainyard", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(descriptor, size_bytes)
            view = memoryview(mmap.mmap(descriptor, size_bytes))
            seals = _F_SEAL_SHRINK | _F_SEAL_GROW | _F_SEAL_SEAL
            fcntl.fcntl(descriptor, _F_ADD_SEALS, seals | (_F_SEAL_FUTURE_WRITE if is_read_only else 0))
        except BaseException:
            os.close(descriptor)
            raise
        return cls(next(_NUMBERS), descriptor, view, is_read_only=is_read_only)

    @classmethod
    def attach(cls, number: int, descriptor: int, size_bytes: int) -> Self:
        """Map a segment of another process, and take over the descriptor.

        Raises FrameError, and closes the descriptor, for what is no sealed segment of that size.
        """
        try:
            try:
                seals = fcntl.fcntl(descriptor, _F_GET_SEALS)
                status = os.fstat(descriptor)
                if not seals & _F_SEAL_SHRINK or not stat.S_ISREG(status.st_mode) or status.st_size != size_bytes:
                    raise FrameError(f"segment {number}: expected {size_bytes} bytes that cannot shrink")
                is_read_only = bool(seals & _F_SEAL_FUTURE_WRITE)
                access = mmap.ACCESS_READ if is_read_only else mmap.ACCESS_WRITE
                view = memoryview(mmap.mmap(descriptor, size_bytes, access=access))
            finally:
                os.close(descriptor)
        except (OSError, ValueError) as error:
            raise FrameError(f"segment {number}: what was received is no segment: {error}") from None
        return cls(number, -1, view, is_read_only=is_read_only)

    def close(self) -> None:
        """Give the memory back, once no view of it is left; the kernel frees it when nobody has it."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1
        self.view = memoryview(b"")

    def part(self, offset_bytes: int, size_bytes: int) -> memoryview:
        """Return a part of it. Raises FrameError where it does not lie inside."""
        if offset_bytes + size_bytes > len(self.view):
            raise FrameError(
                f"segment {self.number}: {size_bytes} bytes at {offset_bytes} are not inside its {len(self.view)}"
            )
        return self.view[offset_bytes : offset_bytes + size_bytes]


def copy(source: memoryview, destination: memoryview) -> None:
    """Copy bytes to a place of the same size, and let other threads run meanwhile."""
    np.copyto(np.frombuffer(destination, np.uint8), np.frombuffer(source, np.uint8))
