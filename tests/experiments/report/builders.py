"""Results of runs that never took place, with numbers that are easy to find again."""

from itertools import pairwise

from experiments.scenarios.results import AppliedPlan, FlowResult, JobResult, LoadSample, RunResult, Stretch
from policies.enforcement import Enforcement
from topologies.fabric import Fabric
from topologies.specification import ClosSpecification
from workloads.events import ScenarioEvent
from workloads.replay import CommunicationInterval, ComputeInterval, Iteration
from workloads.scenario import ProfileSource

NUM_LEVELS = 8
SAMPLE_S = 0.1
ENDED_S = 10.0


def make_fabric() -> Fabric:
    """Hosts h0, h1 on t0 and h2, h3 on t1; both ToRs have two cables to each of a0 and a1; two NICs per host."""
    return ClosSpecification(
        kind="clos",
        tors=2,
        aggs=2,
        hosts_per_tor=2,
        nics_per_host=2,
        host_link_gbps=100,
        uplink_gbps=50,
        uplinks_per_pair=2,
    ).build()


def links_between(fabric: Fabric, source: str, destination: str) -> list[int]:
    return [link.index for link in fabric.links_from[source] if link.destination == destination]


def make_job(
    name: str = "gpt",
    iteration_time_s: float | None = 1.0,
    level: int | None = 7,
    intensity: float | None = 10.0,
    compute_s: float = 0.5,
    profile: ProfileSource = ProfileSource.REPORTED,
) -> JobResult:
    """Computes ``compute_s`` at the beginning of every second and communicates for the rest of it."""
    seconds = range(int(ENDED_S))
    return JobResult(
        name=name,
        profile=profile,
        gpus=8,
        iteration_time_s=iteration_time_s,
        ideal_iteration_time_s=0.8,
        speed=None if iteration_time_s is None else 0.8 / iteration_time_s,
        jct_s=ENDED_S,
        intensity=intensity,
        correction_factor=1.0,
        priority=intensity,
        level=level,
        reason="",
        iterations=tuple(Iteration(n, n, n + 1.0) for n in seconds),
        computing=tuple(ComputeInterval("compute", ("h0", "h2"), n, n, n + compute_s) for n in seconds),
        communicating=tuple(CommunicationInterval("ring", n, n + compute_s, n + 1.0, 1e6) for n in seconds),
    )


def make_loads(fabric: Fabric, load_of: dict[tuple[int, int], float]) -> tuple[LoadSample, ...]:
    """Every tenth of a second the same load by link and level."""
    utilisation = tuple(
        tuple(load_of.get((link.index, level), 0.0) for level in range(NUM_LEVELS)) for link in fabric.links
    )
    return tuple(
        LoadSample(number * SAMPLE_S, (number + 1) * SAMPLE_S, utilisation)
        for number in range(round(ENDED_S / SAMPLE_S))
    )


def make_result(
    policy: str = "ecmp",
    gpu_utilisation: float = 0.5,
    jobs: tuple[JobResult, ...] | None = None,
    scenario: str = "made-up",
    loads: tuple[LoadSample, ...] | None = None,
    events: tuple[ScenarioEvent, ...] = (),
    plans: tuple[AppliedPlan, ...] = (),
) -> RunResult:
    """The first job sends from h0 to h2 by a0; the uplink it takes is loaded at its level."""
    jobs = (make_job(),) if jobs is None else jobs
    fabric = make_fabric()
    hops = (("h0", "t0"), ("t0", "a0"), ("a0", "t1"), ("t1", "h2"))
    path = tuple(links_between(fabric, *hop)[0] for hop in hops)
    if loads is None:
        loads = make_loads(fabric, {(link, jobs[0].level or 0): 0.4 for link in path})
    return RunResult(
        scenario=scenario,
        policy=policy,
        backend="emulator",
        enforcement=Enforcement.LEVELS,
        seed=1,
        scale=100.0,
        fabric=fabric,
        gpu_utilisation=gpu_utilisation,
        ideal_gpu_utilisation=0.9,
        fluid_bound_gpu_utilisation=0.8,
        window_from_s=1.0,
        window_to_s=9.0,
        ended_s=ENDED_S,
        num_rules=3,
        packet_hops=1000,
        jobs=jobs,
        flow_groups=(),
        flows=(FlowResult(jobs[0].name, path, 1e6),),
        loads=loads,
        plans=plans,
        events=events,
        stretches=tuple(
            Stretch(*ends, gpu_utilisation) for ends in pairwise((1.0, *(event.at_s for event in events), 9.0))
        ),
        steps=(Stretch(1.0, 5.0, gpu_utilisation / 2), Stretch(5.0, 9.0, gpu_utilisation)),
    )
