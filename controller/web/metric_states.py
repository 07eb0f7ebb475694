"""Reads what is so in a controller by now, and makes metrics of it.

Reading takes place in the event loop, and is short; counting what was read takes longer, and may be done in a thread.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from prometheus_client import Metric

from controller import metrics
from controller.api.context import ServiceContext
from controller.links.link_health import DeadCable
from controller.metrics import SWITCHES, summed
from controller.planning.decision import Decision
from controller.profiling.measured import ProfilingResults
from controller.registry.jobs import RegisteredJob
from controller.rules.job_rules import levels_in_force
from controller.southbound.southbound import SwitchCondition, SwitchStatus
from hostlib.wire.sequence_window import SequenceWindow

_Samples = dict[tuple[str, ...], float]


@dataclass(frozen=True, slots=True)
class ControllerStates:
    """What was so in a controller at a time: immutable objects, and some that only other threads' counts need."""

    decision: Decision | None
    jobs: Sequence[RegisteredJob]
    profiling: ProfilingResults
    switches: Sequence[SwitchStatus]
    dead_cables: Sequence[DeadCable]
    num_cables: int
    num_drained: int
    windows: Sequence[SequenceWindow]
    drops: _Samples
    differences: _Samples
    plain: Sequence[Metric]
    """The metrics that take no counting."""


def read_states(context: ServiceContext) -> ControllerStates:
    """Read the states of an active controller; to be called in its event loop."""
    planner, telemetry, now_s = context.planner, context.telemetry, context.clock.now_s()
    found = context.discoverer
    drops = [(("controller", str(reason)), float(count)) for reason, count in (+telemetry.rejected).items()]
    drops += [(("controller", reason), count) for reason, count in ({} if found is None else found.rejected).items()]
    for dropped in telemetry.dropped_by_hosts.values():
        drops += [(("agents", reason), packets) for reason, packets in dropped.items()]
    return ControllerStates(
        decision=planner.decision,
        jobs=context.registry.jobs_unordered,
        profiling=context.profiling,
        switches=context.southbound.statuses(),
        dead_cables=planner.links.dead_cables(now_s),
        num_cables=len(context.registry.fabric.links) // 2,
        num_drained=len(planner.links.drained_links(now_s)) // 2,
        windows=telemetry.windows,
        drops=summed(drops),
        differences=summed(((each.kind,), 1.0) for each in (() if found is None else found.differences)),
        plain=tuple(_plain(context, now_s)),
    )


def _plain(context: ServiceContext, now_s: float) -> Iterator[Metric]:
    planner, store = context.planner, context.store
    next_end_s = context.registry.next_lease_end_s
    yield metrics.POLICY.family({(planner.policy.name,): 1.0})
    yield metrics.PLAN_NUMBER.value(0 if planner.decision is None else planner.decision.number)
    yield metrics.STREAMS.value(context.directives.num_followers)
    yield metrics.NEXT_LEASE_END.family({} if next_end_s is None else {(): max(0.0, next_end_s - now_s)})
    yield metrics.DRAINS.value(len(context.draining.drains))
    pause = planner.interventions.pause
    yield metrics.PAUSED.value(0 if pause is None else 1 + pause.is_released)
    yield metrics.PINS.value(len(planner.interventions.pins))
    yield metrics.ACCEPTED.value(context.telemetry.accepted)
    yield metrics.WORST_LAG.value(context.watchdog.worst_stall_s)
    if store is not None:
        yield metrics.TERM.family({} if store.term is None else {(): store.term})
        yield metrics.DATABASE_UP.value(not store.database.health.problem)
        yield metrics.DATABASE_QUEUE.value(store.database.num_waiting)
        yield metrics.AUDIT_QUEUE.value(store.trail.num_waiting)
        yield metrics.AUDIT_LOST.value(store.trail.num_lost)
        yield metrics.RECORDED.value(planner.recorded_number or 0)


@dataclass(slots=True)
class StateCounter:
    """Counts what was read; what follows from a decision alone is counted once."""

    _counted_for: Decision | None = None
    _flows: _Samples = field(default_factory=dict)
    _num_steered: int = 0
    _num_cut_off: int = 0
    _levels: dict[str, int] = field(default_factory=dict)

    def families(self, states: ControllerStates | None) -> Iterator[Metric]:
        """The metrics of a controller's states; None: it stands by."""
        yield metrics.LEADS.value(states is not None)
        if states is None:
            return
        yield from states.plain
        if states.decision is not self._counted_for:
            self._count(states.decision)
        yield metrics.JOBS.family(self._jobs(states))
        yield metrics.FLOWS.family(self._flows)
        yield metrics.LEVELS.value(len(self._flows))
        yield metrics.STEERED.value(self._num_steered)
        yield metrics.CUT_OFF.value(self._num_cut_off)
        yield from _of_switches(states.switches, states.decision)
        yield metrics.CABLES.family(_cables(states))
        yield metrics.DIFFERENCES.family(states.differences)
        yield metrics.PAIRS.value(len(states.windows))
        yield metrics.RECEIVED.value(sum(window.received for window in states.windows))
        yield metrics.MISSING.value(sum(window.missing for window in states.windows))
        yield metrics.DROPS.family(states.drops)

    def _count(self, decision: Decision | None) -> None:
        self._flows, self._levels, self._num_steered, self._num_cut_off = {}, {}, 0, 0
        if decision is not None:
            plans = decision.plan.flows.values()
            self._flows = {(str(level),): flows for level, flows in Counter(plan.level for plan in plans).items()}
            self._num_steered = sum(plan.path is not None for plan in plans)
            self._num_cut_off = sum(flow.is_cut_off for job in decision.snapshot.jobs for flow in job.flows)
            self._levels = levels_in_force(decision.plan, decision.snapshot)
        self._counted_for = decision

    def _jobs(self, states: ControllerStates) -> _Samples:
        planned = () if states.decision is None else states.decision.plan.jobs
        planned_names = {job.name for job in planned}
        profiling, counted = states.profiling, Counter[tuple[str, ...]]()
        for job in states.jobs:
            name = job.request.name
            if job.request.profile is not None:
                source = "told"
            elif profiling.measured(name) is not None:
                source = "measured"
            else:
                source = "being measured" if profiling.profiled == name else "unknown"
            counted[str(self._levels[name]) if name in planned_names else "", source] += 1
        return {labels: float(count) for labels, count in counted.items()}


def _of_switches(switches: Sequence[SwitchStatus], decision: Decision | None) -> Iterator[Metric]:
    conditions = dict.fromkeys(SwitchCondition, 0) | Counter(status.condition for status in switches)
    yield metrics.CONDITIONS.family({(condition,): count for condition, count in conditions.items()})
    labelled = [(SWITCHES.of(status.name), status) for status in switches]
    yield metrics.CONDITION.family(summed(((label, status.condition), 1.0) for label, status in labelled))
    named = [(label, status) for label, status in labelled if label != metrics.OTHER]
    yield metrics.CONTACT.family({(label,): status.changed_ago_s for label, status in named})
    yield metrics.RULES.family(
        summed(((label,), status.num_rules) for label, status in labelled if status.num_rules is not None)
    )
    if decision is not None:
        rules, job_rules = decision.rules, decision.job_rules
        planned = (
            ((label,), float(len(rules.get(status.name, ())) + len(job_rules.get(status.name, ()))))
            for label, status in labelled
        )
        yield metrics.PLANNED_RULES.family(summed(planned))


def _cables(states: ControllerStates) -> _Samples:
    dead = Counter(str(cable.state) for cable in states.dead_cables)
    num_used = states.num_cables - sum(dead.values()) - states.num_drained
    return {("used",): num_used, ("drained",): states.num_drained, **{(state,): n for state, n in dead.items()}}
