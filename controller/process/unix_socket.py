"""The file of a Unix socket at which a controller listens. gRPC makes it, and would also replace a living one."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from controller.access.bound_socket import remove_dead_socket

_OTHERS_NOTHING = 0o177
"""Read and write for the owner: whoever may write to the file can connect."""


@contextmanager
def owned_socket(path: Path) -> Iterator[None]:
    """Have a socket made at a path for its owner alone. It replaces one that nobody listens at.

    The process creates no file in another thread meanwhile: file permissions are the process's.

    Raises:
        OSError: A server answers at the path, something else is there, or a socket cannot be made; it says which.
    """
    try:
        remove_dead_socket(path)
        # gRPC would say why not in its own log alone.
        with socket.socket(socket.AF_UNIX) as tried:
            tried.bind(os.fspath(path))
        path.unlink()
    except OSError as error:
        raise OSError(f"cannot listen on unix:{path}: {error.strerror or error}") from error
    before = os.umask(_OTHERS_NOTHING)
    try:
        yield
    finally:
        os.umask(before)
