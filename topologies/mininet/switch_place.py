"""Where all switches of a network of Mininet are: one network namespace, with their ends of all cables."""

from typing import Any

from topologies.mininet.nodes import OwnedNode
from topologies.mininet.programs import with_descendants


class SwitchPlace:
    """The network namespace of all switches.

    Args:
        described: The fabric, as ``topologies.description`` has it.
        mtu_bytes: The longest IP packet.
        file: The file of the topology; None where no command of Mininet's starts the switches.

    Attributes:
        first: The switch whose network namespace it is.
    """

    def __init__(self, described: dict[str, Any], mtu_bytes: int, file: str | None = None) -> None:
        self.described = described
        self.mtu_bytes = mtu_bytes
        self.file = file
        self.first: OwnedNode | None = None

    @property
    def namespace(self) -> str:
        """The file of the network namespace."""
        assert self.first is not None
        return f"/proc/{self.first.pid}/ns/net"

    def inside(self, *arguments: str) -> list[str]:
        """Return a command line that runs a command there; it ends with this process."""
        assert self.first is not None
        return ["mnexec", "-a", str(self.first.pid), *with_descendants(), *arguments]
