"""Hosts that are this machine: programs run as they are, in no namespace."""

from collections.abc import Mapping
from pathlib import Path


class Here:
    """A laboratory without namespaces, for programs that need no network of their own."""

    wires: Mapping[tuple[str, int], str] = {}
    switch_ends: Mapping[tuple[str, int], str] = {}
    mtu_bytes = 9000
    fabric_file = Path("/proc/self/ns/net")

    def interface(self, _host: str, nic: int) -> str:
        """Return a name, though there are no NICs."""
        return f"eth{nic}"

    def place(self, _host: str) -> None:
        """Return None: there is nothing to enter."""

    def command(self, _host: str, *arguments: str) -> list[str]:
        """Return the command as it is."""
        return list(arguments)

    def outside(self, *arguments: str) -> list[str]:
        """Return the command as it is."""
        return list(arguments)

    def in_fabric(self, *arguments: str) -> list[str]:
        """Return the command as it is."""
        return list(arguments)

    def frame_bytes(self) -> Mapping[tuple[str, int], tuple[int, int]]:
        """Return nothing: there are no NICs."""
        return {}
