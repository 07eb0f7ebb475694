"""What of a fabric is down while the events of a scenario happen."""

from topologies.fabric import Fabric
from workloads.scenario import ElementState, ScenarioEvent


class Outages:
    """Cables that are cut and switches without power.

    A cable is back at once. A switch serves again, and its links with it, when ``recover`` is called: not as soon as it
    comes up.
    """

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._cut: set[int] = set()
        self._switches: set[str] = set()

    def happen(self, event: ScenarioEvent) -> None:
        """A cable goes down or comes up, or a switch goes down."""
        if event.switch is not None:
            self._switches.add(event.switch)
        elif event.link is not None:
            link = self._fabric.links_between(*event.link)[event.parallel]
            both = {link, self._fabric.reverse(link)}
            self._cut = self._cut | both if event.state is ElementState.DOWN else self._cut - both

    def recover(self, switch: str) -> None:
        """A switch serves again."""
        self._switches.remove(switch)

    @property
    def links(self) -> frozenset[int]:
        """The links that carry nothing."""
        ends = (link.index for link in self._fabric.links if {link.source, link.destination} & self._switches)
        return frozenset(self._cut.union(ends))
