"""The record of a run, and the results measured from it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from controller.planning.decision import Decision
from experiments.scenarios.results import (
    AppliedPlan,
    FlowGroupResult,
    FlowResult,
    JobResult,
    LoadSample,
    RunResult,
    Stretch,
)
from hostlib import types as hosts
from policies.enforcement import Enforcement
from policies.flows import FlowKey
from policies.plan import JobPlan
from topologies.fabric import Fabric, Path
from topologies.routing import Routing
from workloads.events import ScenarioEvent
from workloads.isolated_run import IsolatedRun
from workloads.measures import (
    Window,
    allocated_gpu_seconds,
    gpu_utilisation,
    job_windows,
    mean_iteration_time_s,
    speed,
    stretches,
    utilisations_in,
)
from workloads.measures import run_window as measured_window
from workloads.replay import JobHistory
from workloads.scenario import Scenario
from workloads.utilisation_bounds import fluid_bound_gpu_utilisation, ideal_gpu_utilisation


@dataclass(frozen=True, slots=True)
class PlanSummary:
    """A Plan in short: the decisions for jobs, the paths of flows, and the number of flow rules on all switches.

    ``flow_group_levels`` has the level of the most urgent flow of each group, by job and group.
    """

    num_rules: int
    jobs: tuple[JobPlan, ...]
    paths: Mapping[FlowKey, Path]
    flow_group_levels: Mapping[tuple[str, str], int]

    @classmethod
    def of(cls, decision: Decision) -> Self:
        """Return the summary of a decision made in this process."""
        plans = decision.plan.flows
        flows = [flow for job in decision.snapshot.jobs for flow in job.registered_flows]
        paths = {flow.key: plans[flow.key].path or flow.hashed_path for flow in flows}
        levels = _most_urgent((flow.key, plans[flow.key].level) for flow in flows)
        return cls(decision.num_rules, decision.plan.jobs, paths, levels)

    @classmethod
    def from_controller(cls, plan: hosts.PlanInForce, fabric: Fabric) -> Self:
        """Return the summary of the Plan in force that a controller has sent."""
        jobs = tuple(
            JobPlan(
                name=job.name,
                rank=job.rank,
                level=job.level,
                intensity=job.intensity,
                correction_factor=job.correction_factor,
                priority=job.priority,
                time_shift_s=job.time_shift_s,
                reason=job.reason,
            )
            for job in plan.jobs
        )
        keys = [FlowKey(flow.job, flow.flow_group, flow.flow) for flow in plan.flows]
        paths = {key: _links(flow.path, fabric) for key, flow in zip(keys, plan.flows, strict=True)}
        levels = _most_urgent((key, flow.level) for key, flow in zip(keys, plan.flows, strict=True))
        return cls(plan.num_rules, jobs, paths, levels)


@dataclass
class RunRecord:
    """What a run records as it goes.

    ``tardiness`` has the finish time and the tardiness of every instance, in seconds, by job and flow group; ``plans``
    has the time at which each Plan came into force.
    """

    replays: list[JobHistory]
    loads: list[LoadSample] = field(default_factory=list)
    tardiness: dict[tuple[str, str], list[tuple[float, float]]] = field(default_factory=dict)
    plans: list[tuple[float, PlanSummary]] = field(default_factory=list)
    ended_s: float = 0.0

    def plans_until(self, time_s: float) -> list[PlanSummary]:
        """Return the Plans that came into force up to a time, oldest first; or the first Plan where none had."""
        return [plan for since_s, plan in self.plans if since_s <= time_s] or [plan for _, plan in self.plans[:1]]


def result_of(
    scenario: Scenario,
    policy: str,
    routing: Routing,
    record: RunRecord,
    isolated: Mapping[str, IsolatedRun],
    *,
    backend: str,
    enforcement: Enforcement = Enforcement.LEVELS,
    scale: float = 1.0,
    packet_hops: int = 0,
    events: Iterable[ScenarioEvent] = (),
) -> RunResult:
    """Measure a run that is over; ``events`` are those of its scenario, ``isolated`` its jobs alone on the fabric.

    Raises:
        ValueError: No GPU was allocated inside the measurement window.
    """
    jobs = [replay.job for replay in record.replays]
    isolated_s = {name: alone.iteration_time_s for name, alone in isolated.items()}
    windows = job_windows(scenario, record.replays, isolated_s)
    window = measured_window(scenario, record.replays)
    plans = record.plans_until(window.to_s)
    job_decisions = {job.name: job for plan in plans for job in plan.jobs}
    paths = {key: path for plan in plans for key, path in plan.paths.items()}
    size_bytes = {
        FlowKey(job.name, group.name, number): flow.size_bytes
        for job in jobs
        for group in job.graph.flow_groups
        for number, flow in enumerate(group.flows)
    }
    happened = tuple(event for event in events if event.at_s <= record.ended_s)

    def measured(parts: Iterable[Window]) -> tuple[Stretch, ...]:
        split = list(parts)
        of_parts = utilisations_in(split, record.replays, windows)
        return tuple(Stretch(part.from_s, part.to_s, busy) for part, busy in zip(split, of_parts, strict=True))

    return RunResult(
        scenario=scenario.name,
        policy=policy,
        backend=backend,
        enforcement=enforcement,
        seed=scenario.seed,
        scale=scale,
        fabric=routing.fabric,
        gpu_utilisation=gpu_utilisation(record.replays, windows),
        ideal_gpu_utilisation=ideal_gpu_utilisation(
            jobs, routing, allocated_gpu_seconds(record.replays, windows), isolated_s
        ),
        fluid_bound_gpu_utilisation=fluid_bound_gpu_utilisation(
            jobs, routing, {name: own.length_s / window.length_s for name, own in windows.items()}, isolated_s
        ),
        window_from_s=window.from_s,
        window_to_s=window.to_s,
        ended_s=record.ended_s,
        num_rules=max((plan.num_rules for plan in plans), default=0),
        packet_hops=packet_hops,
        jobs=tuple(
            _job(
                replay,
                windows[replay.job.name],
                isolated[replay.job.name],
                job_decisions.get(replay.job.name),
            )
            for replay in record.replays
        ),
        flow_groups=tuple(
            _flow_group(replay, group.name, windows[replay.job.name], isolated[replay.job.name], record)
            for replay in record.replays
            for group in replay.job.graph.flow_groups
        ),
        flows=tuple(FlowResult(key.job, path, size_bytes[key]) for key, path in paths.items() if key in size_bytes),
        loads=tuple(record.loads),
        plans=tuple(
            AppliedPlan(since_s, plan.num_rules, {job.name: job for job in plan.jobs}, plan.flow_group_levels)
            for since_s, plan in record.plans
        ),
        events=happened,
        stretches=measured(stretches(window, (event.at_s for event in happened))),
        steps=measured(_steps(window, max(isolated_s.values()))),
    )


def _steps(window: Window, step_s: float) -> list[Window]:
    """Split a window into equal parts of about ``step_s`` seconds."""
    num_steps = max(1, round(window.length_s / step_s)) if step_s > 0 else 1
    return stretches(window, (window.from_s + window.length_s * step / num_steps for step in range(1, num_steps)))


def _job(replay: JobHistory, window: Window, isolated: IsolatedRun, decision: JobPlan | None) -> JobResult:
    departed_s, arrival_s = replay.departed_s, replay.job.specification.arrival_s
    return JobResult(
        name=replay.job.name,
        profile=replay.job.specification.profile,
        gpus=replay.job.gpus,
        iteration_time_s=mean_iteration_time_s(replay, window),
        ideal_iteration_time_s=isolated.iteration_time_s,
        speed=speed(replay, window, isolated.iteration_time_s),
        jct_s=None if departed_s is None or replay.failure is not None else departed_s - arrival_s,
        intensity=decision.intensity if decision else None,
        correction_factor=decision.correction_factor if decision else None,
        priority=decision.priority if decision else None,
        level=decision.level if decision else None,
        reason=decision.reason if decision else "",
        iterations=tuple(replay.iterations),
        computing=tuple(replay.computing),
        communicating=tuple(replay.communicating),
        profiled=tuple(replay.profiled),
        failure=replay.failure,
    )


def _flow_group(
    replay: JobHistory, group: str, window: Window, isolated: IsolatedRun, record: RunRecord
) -> FlowGroupResult:
    instances = record.tardiness.get((replay.job.name, group), [])
    measured = [tardiness_s for end_s, tardiness_s in instances if window.from_s <= end_s <= window.to_s]
    tardiness_s = sum(measured) / len(measured) if measured else None
    excess_s = None if tardiness_s is None else tardiness_s - isolated.tardiness_s[group]
    return FlowGroupResult(replay.job.name, group, tardiness_s, excess_s)


def _most_urgent(levels: Iterable[tuple[FlowKey, int]]) -> dict[tuple[str, str], int]:
    """Return the highest level of each flow group, by job and group."""
    highest: dict[tuple[str, str], int] = {}
    for key, level in levels:
        group = key.job, key.group
        highest[group] = max(level, highest.get(group, level))
    return highest


def _links(path: hosts.Path, fabric: Fabric) -> Path:
    hops = zip(path.nodes, path.nodes[1:], path.links, strict=False)
    return tuple(fabric.links_between(here, there)[parallel] for here, there, parallel in hops)
