"""The result of a run of one scenario under one policy, from which tables, JSON and reports are made."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from policies.enforcement import Enforcement
from policies.plan import JobPlan
from topologies.fabric import Fabric, Path
from workloads.events import ScenarioEvent
from workloads.replay import CommunicationInterval, ComputeInterval, Iteration, ProfiledInterval
from workloads.scenario import ProfileSource


@dataclass(frozen=True, slots=True)
class JobResult:
    """One job: its times, the policy's last decision for it, its iterations, and when it computed and sent.

    ``profile`` is where the controller had the job's profile from. ``iteration_time_s`` is the mean inside the
    measurement window, None where no whole iteration lies there; ``jct_s`` is the time from arrival to departure, None
    where the run ended first, or a program of the job failed (``failure`` says how). ``speed`` is the iteration rate in
    the window over that of the ideal, which is 1 / slowdown: 0 for a starved job, None for one that is never in the
    window.
    """

    name: str
    profile: ProfileSource
    gpus: int
    iteration_time_s: float | None
    ideal_iteration_time_s: float
    speed: float | None
    jct_s: float | None
    intensity: float | None
    correction_factor: float | None
    priority: float | None
    level: int | None
    reason: str
    iterations: tuple[Iteration, ...]
    computing: tuple[ComputeInterval, ...]
    communicating: tuple[CommunicationInterval, ...]
    profiled: tuple[ProfiledInterval, ...] = ()
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class FlowGroupResult:
    """One flow group: its mean tardiness over the instances that finished in the window, None where none did.

    Excess tardiness is tardiness minus that of the job in isolation.
    """

    job: str
    group: str
    tardiness_s: float | None
    excess_tardiness_s: float | None


@dataclass(frozen=True, slots=True)
class FlowResult:
    """The last path of a flow, and the bytes that it sends in one iteration."""

    job: str
    path: Path
    size_bytes: float


@dataclass(frozen=True, slots=True)
class LoadSample:
    """Utilisation of every link by level over one interval: ``utilisation[link][level]``, 0 to 1.

    ``queued_bytes[link][level]`` waited for the link at the end of the interval; None where the back end has no queues.
    """

    from_s: float
    to_s: float
    utilisation: tuple[tuple[float, ...], ...]
    queued_bytes: tuple[tuple[float, ...], ...] | None = None


@dataclass(frozen=True, slots=True)
class AppliedPlan:
    """A Plan that came into force at ``since_s``: the decisions by job, and the number of flow rules on all switches.

    ``flow_group_levels`` has the level of the most urgent flow of each group, by job and group.
    """

    since_s: float
    num_rules: int
    jobs: Mapping[str, JobPlan]
    flow_group_levels: Mapping[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
class Stretch:
    """The GPU utilisation in a part of the window, None where no GPU was allocated in it."""

    from_s: float
    to_s: float
    gpu_utilisation: float | None


@dataclass(frozen=True, slots=True)
class RunResult:
    """A whole run, measured from ``window_from_s`` to ``window_to_s``; it ended at ``ended_s``.

    ``plans`` are in order of time, ``events`` those of the scenario that happened. ``stretches`` split the window at
    these events; ``steps`` split it evenly, each about as long as the longest iteration.
    """

    scenario: str
    policy: str
    backend: str
    enforcement: Enforcement
    seed: int
    scale: float
    fabric: Fabric
    gpu_utilisation: float
    ideal_gpu_utilisation: float
    fluid_bound_gpu_utilisation: float
    window_from_s: float
    window_to_s: float
    ended_s: float
    num_rules: int
    packet_hops: int
    jobs: tuple[JobResult, ...]
    flow_groups: tuple[FlowGroupResult, ...]
    flows: tuple[FlowResult, ...]
    loads: tuple[LoadSample, ...]
    plans: tuple[AppliedPlan, ...]
    events: tuple[ScenarioEvent, ...]
    stretches: tuple[Stretch, ...]
    steps: tuple[Stretch, ...]

    @property
    def starved_jobs(self) -> int:
        """How many jobs complete no iteration in the window, although it has room for one of the ideal."""
        return sum(job.speed == 0 for job in self.jobs)

    @property
    def worst_speed(self) -> float | None:
        """The least speed of a job; None where no job is in the window."""
        return min((job.speed for job in self.jobs if job.speed is not None), default=None)

    @property
    def total_tardiness_s(self) -> float:
        """The sum of the groups' mean tardiness."""
        return sum(group.tardiness_s for group in self.flow_groups if group.tardiness_s is not None)


def run_object(result: RunResult) -> dict[str, Any]:
    """Return what ``trainyard run -o json`` prints of a run, but for the file, its hash, the seed and versions."""
    return {
        "scenario": result.scenario,
        "policy": result.policy,
        "backend": result.backend,
        "enforcement": result.enforcement,
        "gpu_utilisation": result.gpu_utilisation,
        "ideal_gpu_utilisation": result.ideal_gpu_utilisation,
        "fluid_bound_gpu_utilisation": result.fluid_bound_gpu_utilisation,
        "starved_jobs": result.starved_jobs,
        "worst_speed": result.worst_speed,
        "jobs": [
            {
                "name": job.name,
                "profile": job.profile,
                "iteration_time_s": job.iteration_time_s,
                "ideal_iteration_time_s": job.ideal_iteration_time_s,
                "speed": job.speed,
                "jct_s": job.jct_s,
                "failure": job.failure,
                "intensity": job.intensity,
                "correction_factor": job.correction_factor,
                "priority": job.priority,
                "level": job.level,
            }
            for job in result.jobs
        ],
        "flow_groups": [
            {
                "job": group.job,
                "group": group.group,
                "tardiness_s": group.tardiness_s,
                "excess_tardiness_s": group.excess_tardiness_s,
            }
            for group in result.flow_groups
        ],
        "total_tardiness_s": result.total_tardiness_s,
        "stretches": [
            {"from_s": stretch.from_s, "to_s": stretch.to_s, "gpu_utilisation": stretch.gpu_utilisation}
            for stretch in result.stretches
        ],
    }
