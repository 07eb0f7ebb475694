"""The surroundings of a planner: the parts it reads and writes, and its options."""

from dataclasses import dataclass
from typing import Protocol

from controller.clock import Clock
from controller.links.link_health import LinkHealth
from controller.planning.directives import DirectivePublisher
from controller.planning.interventions import Interventions
from controller.planning.snapshots import Snapshots
from controller.registry.attendance import Attendance
from controller.registry.registry import Registry
from controller.southbound.southbound import Southbound
from controller.telemetry.probed_paths import ProbedPaths
from policies.enforcement import Cadence
from policies.plan import Plan
from policies.policy import Policy
from policies.snapshot import Snapshot
from topologies.ecmp import FabricHash
from topologies.routing import Routing
from topologies.steering import Steering


class PlanRecorder(Protocol):
    """Records every Plan; ``controller.store.recorder`` writes them to the database."""

    number: int
    """The number of the last Plan of the controller before; 0 where there is none."""
    plan: Plan | None
    """That Plan; None where there is none, or it was decided on another fabric."""
    recorded_number: int
    """The number of the last Plan that is recorded by now."""

    def begin_plan(self, number: int) -> None:
        """Record requests to switches under this Plan from now on."""

    def record(self, number: int, snapshot: Snapshot, plan: Plan) -> None:
        """Record a Plan that has come into force, in the background."""

    async def flush(self) -> None:
        """Wait until all Plans are recorded, or could not be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannerContext:
    """The parts and options of a Planner."""

    registry: Registry
    snapshots: Snapshots
    routing: Routing
    """The routing of the whole fabric."""
    policy: Policy
    southbound: Southbound
    """The switches, to which rules are written."""
    directives: DirectivePublisher
    """The publisher that passes directives on to jobs."""
    clock: Clock
    steering: Steering = Steering.RULE
    """The means by which flows leave the path of the hash."""
    fabric_hash: FabricHash = FabricHash.KNOWN
    """Whether the hash of the switches is known."""
    cadence: Cadence = Cadence.JOB_EVENT
    """The events after which the policy wants to decide again."""
    probed: ProbedPaths | None = None
    """The findings of probes; None: hosts do not probe."""
    links: LinkHealth | None = None
    """The health of links; None: all are up."""
    grace_s: float | None = None
    """For how long jobs of a former controller may come back, and their rules stay; None: one lease."""
    recorder: PlanRecorder | None = None
    """The record of Plans; None: there is none, and no Plan of a former controller is known."""
    policy_time_limit_s: float | None = None
    """A longer decision is abandoned; None: no limit."""
    interventions: Interventions | None = None
    """What operators have decided by hand; None: nothing."""
    attendance: Attendance | None = None
    """Until when all calls are served, which may renew leases; None: they always are."""
