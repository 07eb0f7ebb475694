"""Parameters of emulated hosts' transport, and what they cost on the wire."""

from dataclasses import dataclass

from emulator.congestion.control import FIXED, CongestionControl
from emulator.congestion.registry import as_control
from emulator.engine.transport import ACKNOWLEDGEMENT_BYTES, MAX_WINDOW
from emulator.headers import UDP_HEADER_BYTES


@dataclass(frozen=True, slots=True)
class HostOptions:
    """Parameters of the hosts' transport.

    ``mtu_bytes`` is the payload of a full packet (4,096, the largest of RoCEv2), ``window_packets`` the packets of a
    flow in flight, ``acknowledge_every`` the packets per acknowledgement. ``congestion_controls`` are what flows may
    have instead of fixed windows, by name or as objects; flows have the first one unless they name another. ``fixed``
    stands for the fixed windows.
    """

    mtu_bytes: int = 4096
    window_packets: int = 32
    acknowledge_every: int = 4
    congestion_controls: tuple[CongestionControl | str, ...] = (FIXED,)

    def __post_init__(self) -> None:
        if not 1 <= self.mtu_bytes <= 9000:
            raise ValueError(f"mtu_bytes must be in 1..9000, not {self.mtu_bytes}")
        if not 1 <= self.acknowledge_every <= self.window_packets <= MAX_WINDOW:
            raise ValueError(
                f"acknowledge_every and window_packets must be in 1..{MAX_WINDOW} in this order, "
                f"not {self.acknowledge_every} and {self.window_packets}"
            )
        if isinstance(self.congestion_controls, str) or not self.congestion_controls:
            raise ValueError(f"congestion_controls must name one or more, not {self.congestion_controls!r}")
        names = self.control_names
        if len(set(names)) < len(names):
            raise ValueError(f"congestion_controls have two of one name among {', '.join(names)}")

    @property
    def controls(self) -> tuple[CongestionControl, ...]:
        """The congestion controls, without the fixed windows. Raises CongestionControlError for an unknown name."""
        return tuple(as_control(control) for control in self.congestion_controls if control != FIXED)

    @property
    def control_names(self) -> tuple[str, ...]:
        """The names that flows may name, in the order of ``congestion_controls``."""
        return tuple(FIXED if control == FIXED else as_control(control).name for control in self.congestion_controls)


def wire_overhead(options: HostOptions) -> float:
    """Return the wire bytes per payload byte, including acknowledgements of as much traffic the other way."""
    acknowledgements = ACKNOWLEDGEMENT_BYTES / options.acknowledge_every
    return (options.mtu_bytes + UDP_HEADER_BYTES + acknowledgements) / options.mtu_bytes
