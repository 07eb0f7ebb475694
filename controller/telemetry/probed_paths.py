"""What planning takes from telemetry: paths that flows have by themselves, paths to avoid, ports that lead, loads."""

from collections.abc import Container

from controller.rules.flow_rules import FlowRulesBySwitch
from controller.telemetry.telemetry import Telemetry
from topologies.addressing import FiveTuple
from topologies.ecmp import FabricHash
from topologies.fabric import Path
from topologies.routing import Routing


class ProbedPaths:
    """Telemetry at the time ``now_s`` of a decision, as far as it can be asked beside the rules in force.

    Where the hash is known it says which way a flow takes: only the host that a flow goes to could say otherwise.
    """

    def __init__(self, telemetry: Telemetry, fabric_hash: FabricHash) -> None:
        self._telemetry = telemetry
        self._fabric_hash = fabric_hash
        self._led: frozenset[FiveTuple] = frozenset()
        self._plans = 0

    @property
    def version(self) -> tuple[int, int]:
        """Another one whenever paths of flows, or which of them are to be avoided, may have changed."""
        return self._telemetry.version, self._plans

    def note_rules(self, rules: FlowRulesBySwitch) -> None:
        """These rules are in force: where one leads a flow, probes do not tell what the hash does with it."""
        led = frozenset(rule.five_tuple for some in rules.values() for rule in some if rule.next_link is not None)
        if led != self._led:
            self._led, self._plans = led, self._plans + 1

    def hashed_path(self, flow: FiveTuple, now_s: float) -> Path | None:
        """The path that a hash that is not known gives a flow; None where probes do not tell."""
        if self._fabric_hash is FabricHash.KNOWN:
            return None
        return None if flow in self._led else self._telemetry.path_of(flow, now_s)

    @property
    def silent_links(self) -> frozenset[int]:
        """Links by which probes have ceased to come."""
        return self._telemetry.silent_links

    def lost_paths(self, flow: FiveTuple) -> frozenset[Path]:
        """Paths that nothing comes by between a flow's NICs."""
        return self._telemetry.lost_paths(flow)

    def rerouted(self, routing: Routing) -> None:
        """The switches route so from now on."""
        self._telemetry.rerouted(routing.dead)

    def steered_five_tuple(
        self, flow: FiveTuple, path: Path, taken: Container[FiveTuple], now_s: float
    ) -> FiveTuple | None:
        """The flow from the lowest port, not ``taken``, that probes know to lead along a path; None without one."""
        flows = self._telemetry.flows_along(flow, path, now_s)
        return next((found for found in flows if found not in taken and found not in self._led), None)

    def foreign_loads_bps(self, now_s: float) -> dict[int, float]:
        """What links carry beside what registered jobs send, as far as it was measured lately."""
        return self._telemetry.foreign_loads.loads_bps(now_s)
