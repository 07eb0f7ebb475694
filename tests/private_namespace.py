"""Network namespaces of tests' own: nothing in them reaches the machine's interfaces, and they end with the test."""

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from emulator.interfaces import inside

_LIVES_S = 600
"""A namespace ends by then, whatever becomes of the test."""
_PACKET_ALL = 3


@contextmanager
def namespace() -> Iterator[Path]:
    """A new network namespace without IPv6, as a file; skips, saying so, where none can be made."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces are entered as root only: real interfaces are not tried")
    holder = subprocess.Popen(
        ["unshare", "--net", "sh", "-c", f"echo; exec sleep {_LIVES_S}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout is not None
        if not holder.stdout.readline():
            assert holder.stderr is not None
            pytest.skip(f"no network namespace can be made: {holder.stderr.read().strip()}")
        file = Path(f"/proc/{holder.pid}/ns/net")
        inside(file, _disable_ipv6)
        yield file
    finally:
        holder.kill()
        holder.communicate()


def ip(file: Path, *arguments: str) -> None:
    """Run ``ip`` of iproute2 in a namespace."""
    subprocess.run(["nsenter", f"--net={file}", "ip", *arguments], check=True)


def veth(file: Path, host_end: str, fabric_end: str, mtu_bytes: int = 1500) -> None:
    """Make a pair of interfaces, both up."""
    mtu = ("mtu", str(mtu_bytes))
    ip(file, "link", "add", host_end, *mtu, "type", "veth", "peer", "name", fabric_end, *mtu)
    for name in (host_end, fabric_end):
        ip(file, "link", "set", name, "up")


def packets_of(file: Path, interface: str) -> socket.socket:
    """A socket that sends and receives the frames of an interface."""

    def opened() -> socket.socket:
        found = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_PACKET_ALL))
        found.setsockopt(263, 23, 1)  # SOL_PACKET, PACKET_IGNORE_OUTGOING
        found.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)  # SO_RCVBUFFORCE
        found.bind((interface, _PACKET_ALL))
        found.setblocking(False)
        return found

    return inside(file, opened)


def _disable_ipv6() -> None:
    for name in ("all", "default"):
        Path(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6").write_text("1")
