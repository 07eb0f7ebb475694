"""The decision pipeline: a Snapshot becomes a Plan, and the Plan a Decision.

The live controller, runs in one process, replay and ``trainyard plan`` all decide by this code. It is pure: the caller
takes Snapshots, changes the registry and writes to switches. The live controller calls each step in a thread and
changes the registry in between; everybody else calls the steps one after the other.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from controller.planning.decision import Decision, Draft
from controller.planning.failover_rules import best_effort_where_cut_off
from controller.planning.pinned_plan import with_pins
from controller.planning.steering import probed_port_changes, source_port_changes, with_source_ports
from controller.rules.flow_rules import flow_rules
from controller.rules.job_rules import job_rules
from policies.flows import FlowKey
from policies.plan import Plan
from policies.snapshot import Snapshot
from policies.validation import check_plan
from topologies.addressing import FiveTuple
from topologies.ecmp import FabricHash
from topologies.routing import Routing
from topologies.steering import Steering

if TYPE_CHECKING:
    # gRPC is slow to import, and decisions do not need it.
    from controller.telemetry.probed_paths import ProbedPaths


@dataclass(frozen=True, slots=True)
class DecisionPipeline:
    """The steps from a Snapshot to a Decision under one policy: ``decide``, ``draft``, ``finish``.

    Where the hash of the fabric is unknown, only paths that probes have shown (``probed``) steer by source port.
    """

    policy: Callable[[Snapshot], Plan]
    steering: Steering = Steering.RULE
    fabric_hash: FabricHash = FabricHash.KNOWN
    probed: "ProbedPaths | None" = None

    def decide(self, snapshot: Snapshot) -> Plan:
        """The Plan as the policy decides it, which is the next Snapshot's ``previous``.

        Raises:
            ValueError: The policy cannot decide on the Snapshot, or its Plan is invalid (InvalidPlanError).
        """
        plan = self.policy(snapshot)
        check_plan(plan, snapshot)
        return plan

    def draft(self, snapshot: Snapshot, decided: Plan, routing: Routing) -> Draft:
        """The Plan as it is carried out, with the pins of operators, and the source ports that it asks for.

        Raises InvalidPlanError for a pin that no Plan can have.
        """
        plan = with_pins(decided, snapshot)
        if plan is not decided:
            check_plan(plan, snapshot)
        plan = best_effort_where_cut_off(plan, snapshot)
        return Draft(snapshot, plan, self._port_changes(plan, snapshot, routing))

    def finish(self, number: int, draft: Draft, changed: Collection[FlowKey], routing: Routing) -> Decision:
        """The Decision, once the flows ``changed`` have the ports that the draft asks for; rules lead all others."""
        plan, snapshot = draft.plan, draft.snapshot
        if self.steering is Steering.SOURCE_PORT:
            five_tuples = {key: draft.port_changes[key] for key in changed}
            is_probed = self.fabric_hash is FabricHash.UNKNOWN
            snapshot = with_source_ports(snapshot, plan, five_tuples, is_probed=is_probed)
        rules = flow_rules(plan, snapshot, routing, self.fabric_hash)
        return Decision(number, snapshot, plan, rules, job_rules(plan, snapshot, routing.fabric))

    def _port_changes(self, plan: Plan, snapshot: Snapshot, routing: Routing) -> Mapping[FlowKey, FiveTuple]:
        if self.steering is not Steering.SOURCE_PORT:
            return {}
        if self.fabric_hash is FabricHash.KNOWN:
            return source_port_changes(plan, snapshot, routing, self.probed)
        return {} if self.probed is None else probed_port_changes(plan, snapshot, self.probed)
