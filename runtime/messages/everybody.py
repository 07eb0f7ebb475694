"""What everybody says: who speaks and where, and why there is no result."""

from dataclasses import dataclass

from runtime.errors import CAUSES, LostError, RuntimeFailure

VERSION = 1
"""Of these messages; processes of different versions do not talk."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no result: the name of an error of ``runtime.errors``, and its message."""

    kind: str
    message: str

    def error(self) -> RuntimeFailure:
        """Return it as an exception."""
        return CAUSES.get(self.kind, LostError)(self.message)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a host listens: at ``address``, and for hosts of its ``machine`` at ``local_address``, if it has one.

    Hosts of one machine share memory. A host that names no machine shares it with nobody.
    """

    address: str = ""
    machine: str = ""
    local_address: str = ""

    def shares_memory_with(self, other: "Place") -> bool:
        """Return whether two hosts share memory."""
        return bool(self.machine) and self.machine == other.machine


@dataclass(frozen=True, slots=True)
class Hello:
    """Who speaks. ``role`` is client or executor, ``name`` a client's name or a host's number.

    Hosts number their connections to each other, so that they can speak of a ``connection`` that has ended. One on a
    host of a network listens at ``network_address`` too. ``flow`` is the flow that the connection is for, and -1 where
    it is for no one flow.
    """

    version: int
    role: str
    name: str
    token: str
    place: Place = Place()
    connection: int = 0
    network_address: str = ""
    flow: int = -1
