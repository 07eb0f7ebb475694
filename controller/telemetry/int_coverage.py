"""Which pairs of NICs have switches with INT alone on all their paths."""

from collections.abc import Set

from topologies.fabric import Nic
from topologies.routing import Routing


class IntCoverage:
    """Says whether probes between two NICs show anything.

    Paths depend on the first switch and on the destination alone. What was found of these is kept for as long as the
    fabric has the same routing, whatever links are dead.
    """

    def __init__(self, without_int: Set[str]) -> None:
        self._without_int = without_int
        self._routing: Routing | None = None
        self._known: dict[tuple[str, int], bool] = {}

    def covers(self, source: Nic, destination: Nic, routing: Routing) -> bool:
        """Return whether no path between two NICs crosses a switch without INT, also over links that are dead now."""
        if not self._without_int:
            return True
        whole = routing.whole
        if whole is not self._routing:
            self._routing = whole
            self._known.clear()
        links = whole.fabric.links
        ends = links[source.link].destination, destination.link
        if (known := self._known.get(ends)) is None:
            paths = whole.candidate_paths(source, destination)
            known = not any(links[link].source in self._without_int for path in paths for link in path)
            self._known[ends] = known
        return known
