"""How long the controller waits for a peer that speaks OpenFlow, and how much it takes from one."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ChannelLimits:
    """The patience with a switch, and the bounds of what it can cause."""

    handshake_s: float = 10.0
    """From the connection to the ports of the switch, TLS included."""
    quiet_s: float = 5.0
    """After so long without a message the switch is asked for an echo."""
    silent_s: float = 15.0
    """After so long without a message the switch is given up."""
    answer_s: float = 60.0
    """How long a whole answer may take, or the acknowledgement of a chunk of messages."""
    messages_per_s: float = 20_000.0
    """A switch that sends more for long is read more slowly."""
    answer_bytes: int = 64 * 1024 * 1024
    """The most bytes of all answers that are under way."""
    unread_bytes: int = 8 * 1024 * 1024
    """What may wait for a switch that does not read."""


LIMITS = ChannelLimits()
