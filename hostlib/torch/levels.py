"""The levels at which this process sends, on connections that belong to its process groups."""

import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from ipaddress import IPv4Address

from hostlib.torch.leader import Row
from hostlib.torch.sockets import AdoptedSocket, Endpoints, connections

RENDEZVOUS_LEVEL = 7
"""The connections of the store are few and slow, and nobody can start without them."""
_LOOKS_EVERY_S = 3.0
"""A look takes 10 ms in a process with thousands of open files."""


class Levels:
    """Marks connections.

    Attributes:
        plan_number: The Plan in force; None before the first.
        of_groups: By flow group, the level of what this process sends for it.
        iteration_before_s: How long iterations took before the first Plan.
        rendezvous_port: The store's port; None: it has none.
    """

    def __init__(self) -> None:
        self.plan_number: int | None = None
        self.of_groups: dict[str, int] = {}
        self.iteration_before_s: float | None = None
        self.rendezvous_port: int | None = None
        self._own: tuple[AdoptedSocket, ...] = ()
        self._counted: dict[Endpoints, tuple[int, int]] = {}
        self._rendezvous: frozenset[Endpoints] = frozenset()
        self._look_at_s = 0.0

    def apply(self, plan_number: int, rows: Iterable[Row], iteration_s: float | None) -> None:
        """Send at the levels of a Plan from now on; a connection that is gone is passed over."""
        if self.plan_number is None:
            self.iteration_before_s = iteration_s
        levels: dict[Endpoints, int] = {}
        of_groups: dict[str, int] = {}
        for _, group, ends, level in rows:
            if ends is not None:
                address, port, peer_address, peer_port = ends
                levels[Endpoints(IPv4Address(address), port, IPv4Address(peer_address), peer_port)] = level
            of_groups[group] = max(level, of_groups.get(group, 0))
        self._own = _marked(levels)
        self.plan_number, self.of_groups = plan_number, of_groups

    @property
    def most_urgent(self) -> int | None:
        """The highest level of this process; None before the first Plan."""
        return max(self.of_groups.values(), default=None)

    def mark_rendezvous(self) -> None:
        """Send at the most urgent level to and from the store; it looks for connections every few seconds."""
        now_s = time.monotonic()
        if self.rendezvous_port is None or now_s < self._look_at_s:
            return
        self._look_at_s = now_s + _LOOKS_EVERY_S
        found = frozenset(each for each in connections() if self.rendezvous_port in (each.port, each.peer_port))
        _marked(dict.fromkeys(found - self._rendezvous, RENDEZVOUS_LEVEL))
        self._rendezvous = found

    def counters(self) -> tuple[int, int]:
        """Return the payload that marked connections have sent, and the segments that were sent again.

        Those that have ended count with what they had when this was last asked.
        """
        for connection in self._own:
            with suppress(OSError):  # it has ended
                self._counted[connection.endpoints] = connection.sent_bytes() or 0, connection.retransmissions() or 0
        counted = list(self._counted.values())
        return sum(sent_bytes for sent_bytes, _ in counted), sum(again for _, again in counted)


def _marked(levels: Mapping[Endpoints, int]) -> tuple[AdoptedSocket, ...]:
    """Send on connections at these levels; return those that are still there."""
    marked = []
    for endpoints, connection in AdoptedSocket.open_all(levels.keys()).items():
        with suppress(OSError):  # it has ended meanwhile
            connection.set_level(levels[endpoints])
            marked.append(connection)
    return tuple(marked)
