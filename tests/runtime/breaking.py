"""Functions of programs that break what connects their host to others: they run in its process."""

from typing import Any

import runtime as rt


def of_peers() -> list[Any]:
    """Return the sockets of the connections of this host to others; close them."""
    import os
    import socket
    from contextlib import suppress
    from pathlib import Path

    found = []
    for each in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            sock = socket.socket(fileno=os.dup(int(each.name)))
            names = f"{sock.getsockname()} {sock.getpeername()}"
            if sock.family == socket.AF_INET or "/host-" in names:
                found.append(sock)
            else:
                sock.close()
    return found


@rt.function(library="numpy", outputs=lambda x: x)
def shut_down(x: Any) -> Any:
    """Break all connections between this host and others."""
    import socket

    for sock in of_peers():
        with sock:
            sock.shutdown(socket.SHUT_RDWR)
    return x


@rt.function(library="numpy", outputs=lambda x: x)
def send_what_is_no_piece(x: Any) -> Any:
    """Send a frame to other hosts that no host may send."""
    from runtime.frames import Kind, prefix

    for sock in of_peers():
        with sock:
            sock.sendall(prefix(Kind.GRANTS, b"", 0))
    return x


@rt.function(library="numpy", outputs=lambda x: x)
def have_no_room_for_a_descriptor(x: Any) -> Any:
    """Let this process open one file more, which the next connection is."""
    import resource
    from itertools import count
    from pathlib import Path

    used = {int(each.name) for each in Path("/proc/self/fd").iterdir() if each.exists()}
    free = next(number for number in count() if number not in used)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    return x


@rt.function(library="numpy", outputs=lambda x: x)
def close_descriptor_of_arena(x: Any) -> Any:
    """Close the descriptor by which others get the arena of this host."""
    import os
    from contextlib import suppress
    from pathlib import Path

    for each in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            if "memfd:trainyard" in str(each.readlink()):
                os.close(int(each.name))
    return x
