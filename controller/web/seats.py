"""Who may have HTTP connections open, so that nobody keeps others out.

Connections whose credential is known share one room, by credential. All others share another one, by address. Whoever
comes gets a seat: where a room is full, or one credential or address has its most seats, an older connection of
whoever has the most is closed, and that is one which waits for its client, if there is any.
"""

from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address
from typing import Protocol

MOST_OF_A_ROOM = 128
MOST_OF_ONE = 32
"""Connections of one credential, or without one from one address."""
_IPV6_HOST_BITS = 64
"""Of an IPv6 address, which whoever has the network chooses freely (RFC 4291, section 2.5.1)."""


class Seated(Protocol):
    """A connection."""

    @property
    def waits_for_client(self) -> bool:
        """Whether nothing is being answered on it: its client has to send or to read first."""

    def close_at_once(self) -> None:
        """Close it without waiting for its client."""


@dataclass(slots=True, eq=False)
class _Room:
    """Connections by whose they are; each in the order in which they were used last."""

    of: dict[str, dict[Seated, None]] = field(default_factory=dict)

    def take(self, connection: Seated, whose: str) -> Seated | None:
        """Give a connection a seat, or have it count as used now; returns the one that has to go for it."""
        mine = self.of.setdefault(whose, {})
        mine.pop(connection, None)
        mine[connection] = None
        if len(mine) <= MOST_OF_ONE:
            if sum(map(len, self.of.values())) <= MOST_OF_A_ROOM:
                return None
            whose = max(self.of, key=lambda each: len(self.of[each]))
        older = [each for each in self.of[whose] if each is not connection]
        return next((each for each in older if each.waits_for_client), older[0])

    def leave(self, connection: Seated, whose: str) -> None:
        """Free a seat."""
        del self.of[whose][connection]
        if not self.of[whose]:
            del self.of[whose]


class Seats:
    """The seats of all connections of a server."""

    def __init__(self) -> None:
        self._strangers, self._known = _Room(), _Room()
        self._places: dict[Seated, tuple[_Room, str]] = {}

    def seat(self, connection: Seated, address: str, credential: str | None = None) -> None:
        """Give a new connection from an address a seat; None: it has shown no credential yet."""
        if credential is None:
            self._take(connection, self._strangers, _network_of(address))
        else:
            self._take(connection, self._known, credential)

    def know(self, connection: Seated, credential: str) -> None:
        """Have a connection count for a credential that holds; to be called at every request."""
        if connection in self._places:  # otherwise it has been closed meanwhile
            self.leave(connection)
            self._take(connection, self._known, credential)

    def leave(self, connection: Seated) -> None:
        """Free the seat of a connection that has ended."""
        if (place := self._places.pop(connection, None)) is not None:
            room, whose = place
            room.leave(connection, whose)

    def _take(self, connection: Seated, room: _Room, whose: str) -> None:
        self._places[connection] = room, whose
        if (going := room.take(connection, whose)) is not None:
            self.leave(going)
            going.close_at_once()


def _network_of(address: str) -> str:
    """Whoever has an address has all of its network."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(IPv6Address(int(parsed) >> _IPV6_HOST_BITS << _IPV6_HOST_BITS))
