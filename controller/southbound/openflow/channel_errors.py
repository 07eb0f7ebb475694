"""What can go wrong between the controller and one switch that speaks OpenFlow."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from controller.errors import DaemonError


class AwayError(DaemonError):
    """The connection to the switch is lost, or given up as the switch does not answer; the message says why."""


class StaleError(DaemonError):
    """Another controller has the switch: it claimed it with a newer generation id, or is its master now."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error message of a switch: its type and code (OpenFlow 1.5.1, section 7.5.4), and both in words."""

    kind: int
    code: int
    words: str


class RefusedError(DaemonError):
    """A switch refuses messages; it has carried out the others, unless they were a bundle.

    ``refusals`` has the reasons by the index of the message; ``others`` those of the bundle as a whole.
    """

    def __init__(self, refusals: Mapping[int, Refusal], others: Sequence[Refusal] = (), num_messages: int = 1) -> None:
        self.refusals = dict(sorted(refusals.items()))
        self.others = tuple(others)
        super().__init__(self._words(num_messages))

    def _words(self, num_messages: int) -> str:
        if not self.refusals:
            return self.others[0].words
        index, first = next(iter(self.refusals.items()))
        if num_messages == 1:
            return first.words
        return (
            f"{len(self.refusals):,} of {num_messages:,} messages refused, first of all number {index}: {first.words}"
        )


class Misbehaviour(StrEnum):
    """Why a connection is refused or cut off; the label by which it is counted."""

    GARBAGE = "garbage"
    """What comes is no OpenFlow, or breaks its rules."""
    TLS = "tls"
    """The TLS handshake fails."""
    SLOW = "slow"
    """The handshake takes too long, as that of a peer that says nothing."""
    CERTIFICATE = "certificate"
    """The certificate is that of another switch."""
    TOO_MANY = "too many"
    """Too many peers are in the handshake."""
    HUNG_UP = "hung up"
    """The peer closes the connection in the handshake."""
    VERSION = "version"
    """The peer speaks neither OpenFlow 1.3 nor 1.5."""
    AUXILIARY = "auxiliary"
    """The peer opens a second connection of a switch, which we do not serve."""
    UNKNOWN = "unknown datapath"
    """No switch of the configuration has the datapath id."""
    DUPLICATE = "duplicate datapath"
    """A switch with the datapath id is connected, and answers."""
    PORTS = "ports"
    """What the switch says of its ports cannot be true."""
    SILENT = "silent"
    """The switch says nothing, answers no echo, or does not answer what it was asked."""
    UNREAD = "unread"
    """The switch does not read what it is sent."""
    ENDLESS = "endless"
    """An answer does not end."""


class MisbehaviourError(DaemonError):
    """A peer breaks the rules, so that its connection ends; ``reason`` is the kind of it."""

    def __init__(self, reason: Misbehaviour, problem: str) -> None:
        super().__init__(problem)
        self.reason = reason
