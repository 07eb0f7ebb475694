"""The rules of a Decision on one fabric, as they stand on switches once the controller has gone over to another one."""

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace

from controller.planning.decision import Decision
from controller.planning.failover_rules import without_dead_paths
from controller.rules.flow_rules import FlowRule
from topologies.fabric_match import FabricMatch


@dataclass(frozen=True, slots=True)
class StandingRules:
    """The rules of ``decision``, which names links by the numbers of a former fabric; ``links`` has those of now."""

    decision: Decision
    links: Mapping[int, int]

    def then(self, match: FabricMatch) -> "StandingRules":
        """The same rules on the next fabric."""
        links = {former: match.links[now] for former, now in self.links.items() if now in match.links}
        return StandingRules(self.decision, links)

    def held(self, dead: Set[int]) -> Decision:
        """The decision with its rules by the numbers of now, and without those of flows whose paths cross dead links.

        Its Snapshot and its Plan still have the former numbers.
        """
        gone = {link for link in self._crossed() if (now := self.links.get(link)) is None or now in dead}
        rules = without_dead_paths(self.decision, gone)
        return replace(
            self.decision, rules={switch: tuple(map(self._renumbered, some)) for switch, some in rules.items()}
        )

    def _crossed(self) -> Iterator[int]:
        plans = self.decision.plan.flows
        for job in self.decision.snapshot.jobs:
            for flow in job.flows:
                yield from plans[flow.key].path or flow.hashed_path

    def _renumbered(self, rule: FlowRule) -> FlowRule:
        return rule if rule.next_link is None else replace(rule, next_link=self.links[rule.next_link])
