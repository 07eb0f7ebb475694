"""Drains: switches, cables and hosts that operators want to work on."""

from dataclasses import dataclass
from enum import StrEnum

from controller.errors import DaemonError


class UnknownDrainError(DaemonError, LookupError):
    """The fabric has nothing of the name, or it is not drained; the message says what there is."""


class CutOffError(DaemonError):
    """The drain would take the last path of hosts, or not stop what is sent there; the message says which."""


class DrainKind(StrEnum):
    """What can be drained."""

    SWITCH = "switch"
    LINK = "link"
    HOST = "host"


@dataclass(frozen=True, slots=True, order=True)
class DrainTarget:
    """A switch, a host or a cable by name; a cable is named by its ports, in order of their names: ``a0:1 - t0:3``.

    So a drain stays with its cable where another one is laid beside it.
    """

    kind: DrainKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Drain:
    """A target that is drained since a time; ``by`` is who asked for it. Paths that are needed go only if forced."""

    target: DrainTarget
    is_forced: bool
    since_s: float
    by: str
