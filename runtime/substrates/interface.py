"""What hosts are, and what the server asks of a substrate."""

from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Protocol

DEFAULT_KIND = "core"
"""What devices are called unless operators say otherwise."""


@dataclass(frozen=True, slots=True)
class NewHost:
    """A host that joins an island: so many devices, their kind, and the budgets of their memory and of its own."""

    island: str
    devices: int
    device_memory_bytes: int = 1 << 30
    host_memory_bytes: int = 4 << 30
    kind: str = DEFAULT_KIND

    def __post_init__(self) -> None:
        if self.devices < 1:
            raise ValueError(f"island {self.island}: devices: expected at least one, got {self.devices}")
        for name in ("device_memory_bytes", "host_memory_bytes"):
            if getattr(self, name) < 0:
                found = getattr(self, name)
                raise ValueError(f"island {self.island}: {name}: must not be negative, got {found}")


@dataclass(frozen=True, slots=True)
class NetworkHost:
    """The host of a network on which an executor runs: its name there, and the address of one of its interfaces.

    ``nic`` is the number of that interface. A command line that runs a program there begins with ``command``, such as
    ``ip netns exec h0``; it is empty where the server runs there too.
    """

    name: str
    address: str
    command: tuple[str, ...] = ()
    nic: int = 0

    def __post_init__(self) -> None:
        try:
            IPv4Address(self.address)
        except ValueError:
            message = f"network host {self.name}: address: expected one of IPv4, got {self.address!r:.50}"
            raise ValueError(message) from None
        if self.nic < 0:
            raise ValueError(f"network host {self.name}: nic: must not be negative, got {self.nic}")


@dataclass(frozen=True, slots=True)
class HostSettings:
    """What an executor is told: its number, its devices, its island, where to listen, and where the server is.

    ``secret`` is what all executors of a server share. Computations are enqueued ``preparation_s`` after their grant,
    one after the other; ``reports_enqueued`` says whether the server wants to know of it. In ``folder`` hosts find each
    other for collectives. The memories are budgets in bytes: of each device, and of the host. A host of a network
    listens at ``network_address`` as well, for those of other islands. At ``local_address`` a host that listens over
    TCP also listens for those of its own machine, with which it shares memory then. ``reports_stalls`` says whether the
    server wants to know which runs wait for memory.
    """

    host: int
    devices: int
    address: str
    server: str
    secret: str
    preparation_s: float = 0.0
    reports_enqueued: bool = False
    folder: str = ""
    device_memory_bytes: int = 1 << 30
    host_memory_bytes: int = 4 << 30
    network_address: str = ""
    local_address: str = ""
    island: str = ""
    reports_stalls: bool = False


class SubstrateError(Exception):
    """Executors cannot be started; the message says why."""


class Substrate(Protocol):
    """Starts and ends executors. An executor also ends when its server does."""

    def watch(self, on_end: Callable[[int, str], None]) -> None:
        """Call back, from any thread, when an executor has ended or cannot be started, with its host and why.

        A substrate need not notice that itself: the connection of an executor ends with it.
        """

    def spawn(self, settings: HostSettings) -> None:
        """Start the executor of a host; it connects to the server by itself."""

    def kill(self, host: int) -> None:
        """End the executor of a host at once, if there is one."""

    def lost(self, host: int) -> bool:
        """Take note that a host was lost; return whether another one is to take its place."""

    def close(self) -> None:
        """End all executors."""
