"""Segments of memory that processes of one machine share.

A segment is anonymous (memfd_create(2)): it has no name that could stay behind, and the kernel frees it when the last
process that has it ends, however it ends. It cannot shrink or grow, so nobody can take mapped pages away from others.
"""

import fcntl
import mmap
import os
import stat
from contextlib import suppress
from typing import Self

from runtime.frames import FrameError

_F_ADD_SEALS = 1033
_F_GET_SEALS = 1034
_FILE_BLOCK_BYTES = 512
_F_SEAL_SEAL = 0x1
_F_SEAL_SHRINK = 0x2
_F_SEAL_GROW = 0x4


class Segment:
    """Memory that this process shares with others. ``view`` is all of it."""

    def __init__(self, descriptor: int, view: memoryview) -> None:
        self.descriptor = descriptor
        self.view = view

    @classmethod
    def create(cls, size_bytes: int) -> Self:
        """Return a new segment, all zeros, that takes memory as it is written to."""
        descriptor = os.memfd_create("trainyard", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(descriptor, size_bytes)
            view = memoryview(mmap.mmap(descriptor, size_bytes))
            fcntl.fcntl(descriptor, _F_ADD_SEALS, _F_SEAL_SHRINK | _F_SEAL_GROW | _F_SEAL_SEAL)
        except BaseException:
            os.close(descriptor)
            raise
        return cls(descriptor, view)

    @classmethod
    def attach(cls, descriptor: int) -> Self:
        """Map a segment of another process, and take over the descriptor.

        Closes the descriptor in any case. Raises FrameError for what is no sealed segment, and OSError where there is
        no room for it.
        """
        try:
            return cls(-1, memoryview(mmap.mmap(descriptor, _sealed_bytes(descriptor))))
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """Give the memory back, once no view of it is left; the kernel frees it when nobody has it."""
        self.close_descriptor()
        self.view = memoryview(b"")

    def close_descriptor(self) -> None:
        """Let go of the descriptor, once all have it who shall; the memory stays."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def give_back(self, offset_bytes: int, size_bytes: int) -> None:
        """Give the memory of whole pages back: all who have the segment see zeros there from now on."""
        mapped = self.view.obj
        assert isinstance(mapped, mmap.mmap)
        mapped.madvise(mmap.MADV_REMOVE, offset_bytes, size_bytes)

    @property
    def resident_bytes(self) -> int:
        """How much memory a segment that was created here has; 0 where its descriptor is closed."""
        with suppress(OSError):
            return os.fstat(self.descriptor).st_blocks * _FILE_BLOCK_BYTES
        return 0

    def part(self, offset_bytes: int, size_bytes: int) -> memoryview:
        """Return a part of it. Raises FrameError where it does not lie inside."""
        if offset_bytes < 0 or size_bytes < 0 or offset_bytes + size_bytes > len(self.view):
            raise FrameError(f"segment: {size_bytes} bytes at {offset_bytes} are not inside its {len(self.view)}")
        return self.view[offset_bytes : offset_bytes + size_bytes]


def _sealed_bytes(descriptor: int) -> int:
    """Return the size of a segment. Raises FrameError for what is none."""
    try:
        status = os.fstat(descriptor)
        seals = fcntl.fcntl(descriptor, _F_GET_SEALS) if stat.S_ISREG(status.st_mode) else 0
    except OSError as error:
        raise FrameError(f"segment: what was received is none: {error}") from None
    if not seals & _F_SEAL_SHRINK or not status.st_size:
        raise FrameError("segment: expected memory that cannot shrink")
    return status.st_size
