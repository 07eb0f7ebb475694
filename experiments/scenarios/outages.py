"""What of a fabric is down while the events of a scenario happen."""

from collections.abc import Mapping

from controller.links.link_health import PortStates
from topologies.fabric import Fabric
from workloads.events import ElementState, ScenarioEvent


class Outages:
    """Cables that are cut, switches without power, and hosts that stand still, whose cables are dark.

    A cable or a host is back at once. A switch serves again, and its links with it, when ``recover`` is called: not as
    soon as it comes up.
    """

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._cut: set[int] = set()
        self._nodes: set[str] = set()

    def happen(self, event: ScenarioEvent) -> None:
        """A cable or a host goes down or comes up, or a switch goes down."""
        is_down = event.state is ElementState.DOWN
        if event.link is not None:
            link = self._fabric.links_between(*event.link)[event.parallel]
            both = {link, self._fabric.reverse(link)}
            self._cut = self._cut | both if is_down else self._cut - both
        elif event.switch is not None:
            self._nodes.add(event.switch)
        elif event.host is not None:
            (self._nodes.add if is_down else self._nodes.remove)(event.host)

    def recover(self, switch: str) -> None:
        """A switch serves again."""
        self._nodes.remove(switch)

    @property
    def links(self) -> frozenset[int]:
        """The links that carry nothing."""
        ends = (link.index for link in self._fabric.links if {link.source, link.destination} & self._nodes)
        return frozenset(self._cut.union(ends))

    @property
    def port_states(self) -> PortStates:
        """What switches with power say of their ports."""
        down = self.links
        states: dict[str, Mapping[int, bool]] = {}
        for switch in self._fabric.switches:
            if switch not in self._nodes:
                leaving = self._fabric.links_from[switch]
                states[switch] = {link.source_port: link.index not in down for link in leaving}
        return states
