"""The file of a Unix socket at which a controller listens. gRPC makes it, and would also replace a living one."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

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
        _remove_dead(path)
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


def _remove_dead(path: Path) -> None:
    """Remove a socket that nobody listens at. Raises OSError where somebody does, and for what is no socket."""
    with suppress(FileNotFoundError), socket.socket(socket.AF_UNIX) as client:
        # A server that does not take connections has as many as it may have waiting: the call does not wait for it.
        client.setblocking(False)
        try:
            client.connect(os.fspath(path))
        except ConnectionRefusedError:
            if not path.is_socket():
                raise OSError("there is a file that is no socket") from None
            path.unlink()
            return
        except BlockingIOError:
            pass
        raise OSError("another server listens there")
