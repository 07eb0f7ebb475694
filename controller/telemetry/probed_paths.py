"""Present telemetry to planning: the paths of flows, broken links and paths, ports that lead along a path, loads."""

from collections.abc import Container

from controller.telemetry.telemetry import Telemetry
from topologies.addressing import FiveTuple
from topologies.ecmp import FabricHash
from topologies.fabric import Path
from topologies.routing import Routing


class ProbedPaths:
    """The findings of probes beside the rules in force, at the time ``now_s`` of a decision.

    With a known hash the paths of flows follow from it, and no host has to be believed.
    """

    def __init__(self, telemetry: Telemetry, fabric_hash: FabricHash, *, has_ordinary_switches: bool = False) -> None:
        self._telemetry = telemetry
        self._fabric_hash = fabric_hash
        self._has_ordinary_switches = has_ordinary_switches
        self._steered: frozenset[FiveTuple] = frozenset()
        self._num_rule_changes = 0

    @property
    def version(self) -> tuple[int, int]:
        """Differs whenever the paths of flows, or which of them are broken, may have changed."""
        return self._telemetry.version, self._num_rule_changes

    @property
    def follows_rules(self) -> bool:
        """Whether it matters which flows rules steer: where the hash of any switch is unknown."""
        return self._fabric_hash is FabricHash.UNKNOWN or self._has_ordinary_switches

    def set_steered(self, steered: frozenset[FiveTuple]) -> None:
        """Set the flows that rules steer: probes do not show what an unknown hash does with them."""
        if self.follows_rules and steered != self._steered:
            self._steered, self._num_rule_changes = steered, self._num_rule_changes + 1

    def hashed_path(self, flow: FiveTuple, now_s: float) -> Path | None:
        """Return the path that an unknown hash gives a flow, None if probes do not show it."""
        if self._fabric_hash is FabricHash.KNOWN:
            return None
        return None if flow in self._steered else self._telemetry.path_of(flow, now_s)

    def seen_path(self, flow: FiveTuple, now_s: float) -> Path | None:
        """Return the path that probes of a flow take, whether rules steer it or not; None if not known."""
        return self._telemetry.path_of(flow, now_s)

    def has_port(self, flow: FiveTuple, path: Path, now_s: float) -> bool:
        """Return whether a source port is known that leads along a path without rules."""
        return any(found not in self._steered for found in self._telemetry.flows_along(flow, path, now_s))

    @property
    def silent_links(self) -> frozenset[int]:
        """Links that lose all probes."""
        return self._telemetry.silent_links

    def black_holes(self, flow: FiveTuple) -> frozenset[Path]:
        """Return the paths that lose all probes between the NICs of a flow."""
        return self._telemetry.black_holes(flow)

    def set_routing(self, routing: Routing) -> None:
        """Set how the switches route from now on."""
        self._telemetry.reroute(routing.dead)

    def find_paths(self, whole: Routing) -> None:
        """Find the candidate paths of a routing, which takes long, so that ``use_paths`` does not."""
        self._telemetry.find_paths(whole)

    def use_paths(self, whole: Routing) -> None:
        """Use the candidate paths of a routing of the whole fabric from now on."""
        self._telemetry.use_paths(whole)

    def steered_five_tuple(
        self, flow: FiveTuple, path: Path, taken: Container[FiveTuple], now_s: float
    ) -> FiveTuple | None:
        """Return the flow from the lowest port, not ``taken``, that leads along a path; None if none is known."""
        flows = self._telemetry.flows_along(flow, path, now_s)
        return next((found for found in flows if found not in taken and found not in self._steered), None)

    def foreign_loads_bps(self, now_s: float) -> dict[int, float]:
        """Return what links carry beside the traffic of registered jobs, as measured recently."""
        return self._telemetry.foreign_loads.loads_bps(now_s)
