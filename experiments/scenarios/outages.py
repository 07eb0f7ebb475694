"""The elements of a fabric that are down during a run."""

from collections.abc import Mapping

from controller.links.link_health import PortStates
from topologies.fabric import Fabric
from workloads.events import ScenarioEvent


class Outages:
    """Cut cables, switches without power, and hosts that are down, whose cables are dark."""

    def __init__(self, fabric: Fabric) -> None:
        self.switches: set[str] = set()
        self._fabric = fabric
        self._cut: set[int] = set()
        self._hosts: set[str] = set()

    def set_element(self, event: ScenarioEvent, *, up: bool) -> None:
        """Take the cable, switch or host that an event names down, or bring it up."""
        if event.link is not None:
            link = self._fabric.links_between(*event.link)[event.parallel]
            both = {link, self._fabric.reverse(link)}
            self._cut = self._cut - both if up else self._cut | both
        elif event.switch is not None:
            (self.switches.discard if up else self.switches.add)(event.switch)
        elif event.host is not None:
            (self._hosts.discard if up else self._hosts.add)(event.host)

    @property
    def dark_links(self) -> frozenset[int]:
        """The links that carry nothing whatever switches do: cut, or at a host that is down."""
        return self._with_links_at(self._hosts)

    @property
    def links(self) -> frozenset[int]:
        """The links that carry nothing."""
        return self._with_links_at(self._hosts | self.switches)

    @property
    def port_states(self) -> PortStates:
        """The port states that switches with power report: which ports are up."""
        down = self.links
        states: dict[str, Mapping[int, bool]] = {}
        for switch in self._fabric.switches:
            if switch not in self.switches:
                leaving = self._fabric.links_from[switch]
                states[switch] = {link.source_port: link.index not in down for link in leaving}
        return states

    def _with_links_at(self, nodes: set[str]) -> frozenset[int]:
        ends = (link.index for link in self._fabric.links if not nodes.isdisjoint((link.source, link.destination)))
        return frozenset(self._cut.union(ends))
