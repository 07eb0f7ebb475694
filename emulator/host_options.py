"""Parameters of emulated hosts' transport, and what they cost on the wire."""

from dataclasses import dataclass

from emulator.engine.transport import ACKNOWLEDGEMENT_BYTES, MAX_WINDOW
from emulator.headers import UDP_HEADER_BYTES


@dataclass(frozen=True, slots=True)
class HostOptions:
    """Parameters of the hosts' transport.

    ``mtu_bytes`` is the payload of a full packet (4,096, the largest of RoCEv2), ``window_packets`` the packets of a
    flow in flight, ``acknowledge_every`` the packets per acknowledgement.
    """

    mtu_bytes: int = 4096
    window_packets: int = 32
    acknowledge_every: int = 4

    def __post_init__(self) -> None:
        if not 1 <= self.mtu_bytes <= 9000:
            raise ValueError(f"mtu_bytes must be in 1..9000, not {self.mtu_bytes}")
        if not 1 <= self.acknowledge_every <= self.window_packets <= MAX_WINDOW:
            raise ValueError(
                f"acknowledge_every and window_packets must be in 1..{MAX_WINDOW} in this order, "
                f"not {self.acknowledge_every} and {self.window_packets}"
            )


def wire_overhead(options: HostOptions) -> float:
    """Return the wire bytes per payload byte, including acknowledgements of as much traffic the other way."""
    acknowledgements = ACKNOWLEDGEMENT_BYTES / options.acknowledge_every
    return (options.mtu_bytes + UDP_HEADER_BYTES + acknowledgements) / options.mtu_bytes
