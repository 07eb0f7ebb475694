"""The levels at which this process sends, on connections that belong to its process groups."""

import threading
from collections.abc import Iterable
from ipaddress import IPv4Address

from hostlib.torch.leader import Row
from hostlib.torch.sockets import AdoptedSocket, Endpoints, connections

RENDEZVOUS_LEVEL = 7
"""The connections of the store are few and slow, and nobody can start without them."""


class Levels:
    """Marks connections.

    Attributes:
        plan_number: The Plan in force; None before the first.
        of_groups: By process group, the level of what this process sends for it.
        iteration_before_s: How long iterations took before the first Plan.
        rendezvous_port: The store's port; None: it has none.
    """

    def __init__(self) -> None:
        self.plan_number: int | None = None
        self.of_groups: dict[str, int] = {}
        self.iteration_before_s: float | None = None
        self.rendezvous_port: int | None = None
        self._own: frozenset[Endpoints] = frozenset()
        self._rendezvous: frozenset[Endpoints] = frozenset()
        self._lock = threading.Lock()

    def apply(self, plan_number: int, rows: Iterable[Row], iteration_s: float | None) -> None:
        """Send at the levels of a Plan from now on; a connection that is gone is passed over."""
        if self.plan_number is None:
            self.iteration_before_s = iteration_s
        own, of_groups = set(), dict[str, int]()
        for _, group, address, port, peer_address, peer_port, level in rows:
            endpoints = Endpoints(IPv4Address(address), port, IPv4Address(peer_address), peer_port)
            of_groups[group] = max(level, of_groups.get(group, 0))
            if _mark(endpoints, level):
                own.add(endpoints)
        with self._lock:
            self._own = frozenset(own)
        self.plan_number, self.of_groups = plan_number, of_groups

    def mark_rendezvous(self) -> None:
        """Send at the most urgent level to and from the store."""
        if self.rendezvous_port is None:
            return
        found = frozenset(each for each in connections() if self.rendezvous_port in (each.port, each.peer_port))
        for endpoints in found - self._rendezvous:
            _mark(endpoints, RENDEZVOUS_LEVEL)
        self._rendezvous = found

    def counters(self) -> tuple[int, int]:
        """Return the payload that the marked connections have sent, and the segments that were sent again."""
        with self._lock:
            own = self._own
        sent_bytes = retransmissions = 0
        for endpoints in own:
            found = AdoptedSocket.open(endpoints)
            if found is not None:
                try:
                    sent_bytes += found.sent_bytes() or 0
                    retransmissions += found.retransmissions() or 0
                finally:
                    found.close()
        return sent_bytes, retransmissions


def _mark(endpoints: Endpoints, level: int) -> bool:
    found = AdoptedSocket.open(endpoints)
    if found is None:
        return False
    try:
        found.set_level(level)
    except OSError:
        return False  # it has ended meanwhile
    finally:
        found.close()
    return True
