"""Rules, paths and levels that each arrival and departure of a scenario's jobs changes under a policy.

The controller's own code decides, makes rules and compares them with those that switches hold. There are no switches,
and nothing runs between events: a job departs ``duration_s`` after its arrival.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from controller.planning.decision import Decision
from controller.rules.flow_rules import FlowRule
from controller.southbound.p4runtime.entries import Entity, flow_entry, key_of
from controller.southbound.p4runtime.states import difference
from controller.southbound.states import EntryKey, UpdateKind
from experiments.scenarios.connections import open_connections
from experiments.scenarios.in_process import InProcessController
from policies.flows import FlowKey
from policies.plan import Plan
from policies.plan_difference import plan_difference
from policies.snapshot import Snapshot
from topologies.ecmp import hash_multipliers
from topologies.fabric import Fabric, Path
from topologies.routing import Routing
from workloads.jobs import TrainingJob, training_jobs
from workloads.scenario import Scenario


@dataclass(frozen=True, slots=True)
class EventChange:
    """The changes of one event.

    Rules are inserted, modified and deleted over all switches. ``of_staying_jobs`` counts those for flows of jobs that
    neither come nor go with the event; ``moved_flows`` and ``level_changes`` count these jobs' flows with another path
    and flow groups with another level. ``modelled_gpu_utilisation`` is that of the plan by the policy's own model, None
    where the policy has no model or there is no job.
    """

    inserted: int
    modified: int
    deleted: int
    of_staying_jobs: int
    moved_flows: int
    level_changes: int
    modelled_gpu_utilisation: float | None

    @property
    def rules(self) -> int:
        """Number of updates sent to switches."""
        return self.inserted + self.modified + self.deleted


def job_events(scenario: Scenario, policy: Callable[[Snapshot], Plan]) -> Iterator[EventChange]:
    """Yield the change of each arrival and departure by time; departures come before arrivals of the same time.

    All jobs need a ``duration_s``.

    Raises:
        ValueError: The policy cannot decide.
    """
    fabric = scenario.topology.build()
    routing = Routing(fabric, hash_multipliers(fabric.switches, scenario.seed))
    jobs = training_jobs(scenario, fabric)
    connections = open_connections(jobs, fabric)
    controller = InProcessController(
        routing, connections, policy, scenario.steering, scenario.seed, scenario.num_levels
    )
    rules = _Rules(fabric)
    before = controller.decide(0.0)
    for time_s, arrives, job in sorted(_events(jobs), key=lambda event: event[:2]):
        if arrives:
            controller.register(job)
        else:
            controller.deregister(job.name)
        after = controller.decide(time_s)
        yield _change(before, after, rules)
        before = after


def _events(jobs: tuple[TrainingJob, ...]) -> Iterator[tuple[float, bool, TrainingJob]]:
    for job in jobs:
        arrival_s, duration_s = job.specification.arrival_s, job.specification.duration_s
        assert duration_s is not None
        yield arrival_s, True, job
        yield arrival_s + duration_s, False, job


class _Rules:
    """The table entries of rules, each made once."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._known: dict[FlowRule, tuple[EntryKey, Entity]] = {}

    def held(self, decision: Decision) -> dict[str, dict[EntryKey, Entity]]:
        """Return the entries of a decision, by switch and key."""
        return {switch: dict(map(self._entry, rules)) for switch, rules in decision.rules.items()}

    def _entry(self, rule: FlowRule) -> tuple[EntryKey, Entity]:
        if rule not in self._known:
            entry = flow_entry(rule, self._fabric)
            self._known[rule] = key_of(entry), entry
        return self._known[rule]

    def of_jobs(self, decision: Decision, jobs: set[str]) -> set[EntryKey]:
        """Return the keys of entries for flows of these jobs."""
        tuples = {flow.five_tuple for job in decision.snapshot.jobs if job.name in jobs for flow in job.flows}
        rules = (rule for of_switch in decision.rules.values() for rule in of_switch)
        return {self._entry(rule)[0] for rule in rules if rule.five_tuple in tuples}


def _change(before: Decision, after: Decision, rules: _Rules) -> EventChange:
    plans = plan_difference(before.plan, after.plan)
    staying_jobs = {job.name for job in after.plan.jobs} - set(plans.came)
    staying = rules.of_jobs(before, staying_jobs) | rules.of_jobs(after, staying_jobs)
    held, desired = rules.held(before), rules.held(after)
    kinds: Counter[UpdateKind] = Counter()
    of_staying_jobs = 0
    for switch in held.keys() | desired.keys():
        for stage in difference(held.get(switch, {}), desired.get(switch, {})):
            kinds.update(update.kind for update in stage)
            of_staying_jobs += sum(key_of(update.entity) in staying for update in stage)
    paths, paths_now = _paths(before), _paths(after)
    return EventChange(
        inserted=kinds[UpdateKind.INSERT],
        modified=kinds[UpdateKind.MODIFY],
        deleted=kinds[UpdateKind.DELETE],
        of_staying_jobs=of_staying_jobs,
        # A flow that is steered to the path that the hash gives has not moved.
        moved_flows=sum(paths[flow.key] != paths_now[flow.key] for flow in plans.moved),
        level_changes=len(plans.levels),
        modelled_gpu_utilisation=_modelled(after),
    )


def _paths(decision: Decision) -> dict[FlowKey, Path]:
    plans = decision.plan.flows
    return {flow.key: plans[flow.key].path or flow.hashed_path for job in decision.snapshot.jobs for flow in job.flows}


def _modelled(decision: Decision) -> float | None:
    jobs, worth = decision.snapshot.jobs, decision.plan.worth
    return worth.decided / sum(job.gpus for job in jobs) if jobs and worth is not None else None
