"""Where the flows of a simulated run go: as they are planned or, where links may fail, as switches lead them now."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from controller.planning.decision import Decision
from experiments.scenarios.connections import Connections
from experiments.scenarios.forwarding import Forwarding
from experiments.scenarios.instances import GroupKey
from experiments.scenarios.ways import Way, undecided_tier, ways_of
from policies.enforcement import Tiers
from policies.flows import FlowKey
from topologies.addressing import FiveTuple
from topologies.fabric import Path
from topologies.routing import Routing
from workloads.task_graph import FlowSpec


class FlowWays:
    """The ways of all flows of all jobs, on the hash's paths until a decision knows them.

    Links may only fail where they ``may_fail``: there a flow goes where switches lead its packets, whatever the Plan
    says, and is lost where nothing comes of them. No rule leads acknowledgements.
    """

    def __init__(
        self,
        routing: Routing,
        specifications: Mapping[GroupKey, Sequence[FlowSpec]],
        connections: Connections,
        tiers: Tiers,
        *,
        may_fail: bool,
    ) -> None:
        self._fabric = routing.fabric
        self._tiers = tiers
        self._forwarding = Forwarding(routing, {}) if may_fail else None
        self._five_tuples = {
            FlowKey(*key, number): five_tuple
            for key in specifications
            for number, five_tuple in enumerate(connections[key[0]][key[1]])
        }
        self._planned = {
            key: Way(
                (*routing.hashed_path(five_tuple), *self._inside(specifications[key.job, key.group][key.flow])),
                0,
                undecided_tier(tiers),
            )
            for key, five_tuple in self._five_tuples.items()
        }
        self._ways = dict(self._planned)

    def __getitem__(self, key: FlowKey) -> Way:
        return self._ways[key]

    def sent_as(self, key: FlowKey) -> FiveTuple | None:
        """The 5-tuple of what a flow sends from now on, where it matters: where links may fail."""
        return None if self._forwarding is None else self._five_tuples[key]

    def follow(self, decision: Decision, routing: Routing) -> set[str]:
        """Flows are to travel as a decision says; returns the jobs of those that now go another way.

        Switches hold its rules from now on, and base routing is this.
        """
        ways = ways_of(decision.snapshot, decision.plan, self._tiers)
        if self._forwarding is None:
            return self._change(ways)
        self._planned |= ways
        self._five_tuples |= {flow.key: flow.five_tuple for job in decision.snapshot.jobs for flow in job.flows}
        self._forwarding = Forwarding(routing, decision.rules, self._forwarding.down)
        return self._change(self._carried_now())

    def lose(self, links: frozenset[int]) -> set[str]:
        """From now on these links carry nothing, and all others do; returns the jobs of flows that go another way.

        Raises ValueError where links may not fail.
        """
        if self._forwarding is None:
            raise ValueError("what switches do is not known: links may not fail")
        self._forwarding = replace(self._forwarding, down=links)
        return self._change(self._carried_now())

    def of_packets(self, way: Way, five_tuple: FiveTuple | None) -> Way:
        """Where packets of a 5-tuple go that were to go a way."""
        if self._forwarding is None or five_tuple is None:
            return way
        path, back = self._forwarding.path(five_tuple), self._forwarding.path(five_tuple.reverse)
        if path is None or back is None:
            return replace(way, is_lost=True)
        inside = (link for link in way.path if link >= len(self._fabric.links))
        return replace(way, path=(*path, *inside), is_lost=False)

    def _carried_now(self) -> dict[FlowKey, Way]:
        return {key: self.of_packets(way, self._five_tuples[key]) for key, way in self._planned.items()}

    def _change(self, ways: Mapping[FlowKey, Way]) -> set[str]:
        changed = {key.job for key, way in ways.items() if self._ways[key] != way}
        self._ways |= ways
        return changed

    def _inside(self, flow: FlowSpec) -> Path:
        """Links inside the hosts of a flow."""
        nics = self._fabric.nics
        ends = nics[flow.source_host][flow.source_nic], nics[flow.destination_host][flow.destination_nic]
        return self._fabric.host_links_between(*ends)
