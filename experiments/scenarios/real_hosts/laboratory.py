"""What a run on real hosts needs of the hosts: network namespaces of our own, or those that Mininet makes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from topologies.namespaces.enter import Place


class Laboratory(Protocol):
    """Hosts of a fabric as network namespaces, whose cables end in one more."""

    @property
    def wires(self) -> Mapping[tuple[str, int], str]:
        """The interface at the switch's end of each NIC's cable, by host and number of the NIC."""

    @property
    def mtu_bytes(self) -> int:
        """The longest IP packet."""

    @property
    def switch_ends(self) -> Mapping[tuple[str, int], str]:
        """The interface of each port of a switch that has one, by switch and number of the port."""

    @property
    def fabric_file(self) -> Path:
        """The file of the network namespace of these interfaces, for programs that are started by ``outside``."""

    def interface(self, host: str, nic: int) -> str:
        """Return the name that a NIC's interface has in its host."""

    def place(self, host: str) -> Place | None:
        """Return the place of a host's programs, for processes that enter it themselves; None where none can."""

    def command(self, host: str, *arguments: str) -> list[str]:
        """Return a command line that runs a command in a host; it ends with this process."""

    def outside(self, *arguments: str) -> list[str]:
        """Return a command line that runs a command outside all hosts, where it may use ``fabric_file``."""

    def in_fabric(self, *arguments: str) -> list[str]:
        """Return a command line that runs a command where the interfaces of switches are; it ends with this process."""

    def frame_bytes(self) -> Mapping[tuple[str, int], tuple[int, int]]:
        """Return the bytes that each NIC has sent and received so far, as interfaces count them."""
