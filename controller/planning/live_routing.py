"""The routing that switches have by now: that of the whole fabric, less the links that are dead or drained."""

from controller.background import run_planning
from controller.clock import Clock
from controller.links.link_health import LinkHealth, links_of
from controller.links.link_log import LinkLog
from controller.rules.flow_rules import FlowRulesBySwitch, steered_flows
from controller.telemetry.probed_paths import ProbedPaths
from topologies.fabric_match import FabricMatch
from topologies.routing import Routing


class LiveRouting:
    """The routing around dead links that is on the switches, or is being written to them.

    Attributes:
        links: The health of links.
        now: The routing. Whoever writes another one to the switches calls ``use``.
        is_new: Whether a routing of the whole fabric has been found since rules were last written.
    """

    def __init__(self, routing: Routing, links: LinkHealth, clock: Clock, probed: ProbedPaths | None) -> None:
        self.links = links
        self.now = routing
        self.is_new = False
        self._clock = clock
        self._probed = probed
        self._probed_whole = routing
        self._log = LinkLog(routing.fabric)

    def wanted(self, now_s: float) -> Routing:
        """The routing without the links that are dead by now; the very same where nothing has changed."""
        return self.now.without(self.links.dead_links(now_s), self.links.drained_links(now_s))

    def failed_since(self, routing: Routing) -> frozenset[int]:
        """Links that are down by now and not known to be in a routing."""
        return self.links.failed_links(self._clock.now_s()) - (routing.dead - routing.drained)

    def with_failed(self, routing: Routing, failed: frozenset[int]) -> Routing:
        """A routing without links that have failed, but with drained ones that are to be used again by now."""
        drained = (routing.drained & self.links.drained_links(self._clock.now_s())) - failed
        return routing.without((routing.dead - routing.drained) | failed | drained, drained)

    def use(self, routing: Routing) -> None:
        """Use this routing from now on, and log the links that are down or up again."""
        dead_cables = self.links.dead_cables(self._clock.now_s())
        self._log.tell(routing.dead, dead_cables, routing.drained)
        # That of the whole fabric may have been found to be another one meanwhile.
        if routing.whole is not self.now.whole:
            routing = self.now.without(routing.dead, routing.drained)
        self.now = routing
        self._tell_probes()

    def use_found(self, routing: Routing) -> None:
        """Use this routing of the whole fabric, which has been found on the switches, without the same links."""
        self.now = routing.without(self.now.dead, self.now.drained)
        self.is_new = True

    def take_over(self, before: "LiveRouting", match: FabricMatch) -> None:
        """Go on with the dead links of another fabric. Switches are routed as before, and over no new cable."""
        self.links.take_over(before.links, match.cables)
        coming = links_of(match.coming)
        dead, drained = (
            coming.union(match.links[link] for link in links if link in match.links)
            for links in (before.now.dead, before.now.drained)
        )
        self.now = self.now.without(dead, drained)
        self._log.know(dead - coming, drained - coming)
        self._tell_probes()

    async def find_probed_paths(self, routing: Routing) -> None:
        """Find the paths that probes are to take, where the routing of the whole fabric is another one than before."""
        if self._probed is not None and routing.whole is not self._probed_whole:
            await run_planning(self._probed.find_paths, routing.whole)
            self._probed.use_paths(routing.whole)
            self._probed_whole = routing.whole

    async def tell_probes_of_rules(self, rules: FlowRulesBySwitch) -> None:
        """Have probes go where these rules lead flows, where they follow rules."""
        if self._probed is not None and self._probed.follows_rules:
            self._probed.set_steered(await run_planning(steered_flows, rules))

    def _tell_probes(self) -> None:
        if self._probed is not None:
            self._probed.set_routing(self.now)
