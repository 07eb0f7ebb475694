"""A job alone is no slower under any policy than on the fabric's hash without levels."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.scenarios.modelled import ModelledScenario
from experiments.scenarios.simulated import run_on_simulator
from policies.job import Job
from policies.plan import Plan
from policies.policy import Policy, decide
from policies.registry import find_policy, policy_names
from workloads.scenario import Scenario

_SLOWER = 1.001
CHOOSING = ("crux", "crux-ps-pa", "taccl-star", "trainyard")
"""Policies that choose paths. Jobs that do not tell their task graphs may be slower on these."""
ON_HASHED_PATHS = sorted({*policy_names()} - {*CHOOSING, "ecmp"})

CLOS = {"kind": "clos", "tors": 2, "aggs": 2, "hosts_per_tor": 2, "uplink_gbps": 100}
DUMBBELL = {"kind": "dumbbell", "hosts_per_side": 2, "bottleneck_gbps": 50, "bottleneck_links": 2}
SCHEDULES = ("gpipe", "1f1b", "interleaved", "interleaved_zero_bubble", "zero_bubble_v", "dual_pipe_v")
WORKLOADS: dict[str, dict[str, Any]] = {
    "phases": {"type": "phases", "compute_s": 0.5, "comm_start": 0.5, "bytes": 5e9, "pattern": "all_to_all"},
    "dp": {"type": "dp", "model": "bert"},
    "dp in buckets": {"type": "dp", "model": "gpt", "buckets": 3},
    "zero": {"type": "zero", "model": "bert", "buckets": 3},
    "zero without overlap": {"type": "zero", "model": "bert", "buckets": 3, "overlap": False},
    "ps": {"type": "ps", "model": "resnet"},
    "tp": {"type": "tp", "model": "gpt", "layers": 2},
    "moe": {"type": "moe", "model": "bert", "layers": 2, "chunks": 2},
    "cp": {"type": "cp", "model": "gpt", "layers": 2},
    "fsdp": {"type": "fsdp", "model": "gpt", "layer_groups": 3},
    "fsdp, two in flight": {"type": "fsdp", "model": "bert", "layer_groups": 6, "prefetch": 2},
    **{schedule: {"type": "pp", "model": "gpt", "micro_batches": 4, "schedule": schedule} for schedule in SCHEDULES},
}


def scenario(topology: dict[str, Any], hosts: list[str], workload: dict[str, Any], seed: int = 1) -> Scenario:
    job = {"name": "only", "hosts": hosts, "gpus_per_host": 8, "iterations": 4, "workload": workload}
    fabric = {"gpus_per_host": 8, "nics_per_host": 2, "host_link_gbps": 200} | topology
    return Scenario.model_validate({"name": "alone", "seed": seed, "topology": fabric, "jobs": [job]})


def time_s(of: Scenario, plan: Plan) -> float:
    none = Plan(plan.policy, (), {})
    policy = Policy(plan.policy, "one Plan", lambda snapshot: plan if snapshot.jobs else none)
    (job,) = run_on_simulator(of, policy, on_progress=lambda *_: None).jobs
    assert job.iteration_time_s is not None
    return job.iteration_time_s


def routes(plan: Plan, job: Job) -> tuple[object, ...]:
    """Everything in a Plan that a job alone can feel."""
    plans = [plan.flows[flow.key] for flow in job.flows]
    level, order = min(one.level for one in plans), min(one.order for one in plans)
    paths = (one.path or flow.hashed_path for one, flow in zip(plans, job.flows, strict=True))
    levels = ((one.level - level, one.order - order) for one in plans)
    return plan.jobs[0].time_shift_s or 0.0, *zip(paths, levels, strict=True)


def slower(of: Scenario, policies: Sequence[str], told: Sequence[str] = ()) -> dict[str, float]:
    """The times of an iteration over that under ecmp, where they are longer, as ``_SLOWER`` says.

    Policies decide with the job's task graph and without it; those of ``told`` only with it.
    """
    modelled = ModelledScenario.of(of)
    snapshot, graph = modelled.snapshot, modelled.jobs[0].reported_graph
    guessed = replace(snapshot, jobs=(replace(snapshot.jobs[0], task_graph=None),))
    known = replace(snapshot, jobs=(replace(snapshot.jobs[0], task_graph=graph),))
    plans = {
        f"{name}, {kind}": decide(find_policy(name), seen)
        for name in ("ecmp", *policies)
        for kind, seen in (("guessed", guessed), ("known", known))
    } | {f"{name}, known": decide(find_policy(name), known) for name in told}
    times_s: dict[tuple[object, ...], float] = {}
    found = {}
    for name, plan in plans.items():
        felt = routes(plan, snapshot.jobs[0])
        if felt not in times_s:
            times_s[felt] = time_s(of, plan)
        found[name] = times_s[felt]
    return {name: time / found["ecmp, known"] for name, time in found.items() if time > _SLOWER * found["ecmp, known"]}


@pytest.mark.slow
@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)
@pytest.mark.parametrize(
    ("topology", "hosts"),
    [(CLOS, ["h0", "h2"]), (CLOS, ["h0", "h2", "h1", "h3"]), (DUMBBELL, ["h2", "h0", "h1"])],
    ids=["two hosts", "four hosts", "dumbbell"],
)
def test_no_policy_slows_a_job_that_is_alone(
    topology: dict[str, Any], hosts: list[str], workload: dict[str, Any]
) -> None:
    assert slower(scenario(topology, hosts, workload), ON_HASHED_PATHS, CHOOSING) == {}


@st.composite
def lone_jobs(draw: st.DrawFn) -> Scenario:
    """One job on two to four hosts of a small Clos fabric or of a dumbbell."""
    topology = dict(draw(st.sampled_from([CLOS, DUMBBELL])))
    topology |= {"nics_per_host": draw(st.sampled_from([1, 2, 4]))}
    topology |= {"host_link_gbps": draw(st.sampled_from([50, 100, 200]))}
    if draw(st.booleans()):
        topology |= {"pcie": {"gbps": draw(st.sampled_from([100, 300])), "nics_per_switch": 1}}
    workload = dict(draw(st.sampled_from(list(WORKLOADS.values()))))
    for key in ("layers", "chunks", "buckets", "micro_batches", "layer_groups"):
        if key in workload and not (key == "chunks" and workload["type"] == "pp"):
            workload[key] = draw(st.integers(4, 8) if key == "micro_batches" else st.integers(1, 5))
    if "model" in workload:
        workload["model"] = draw(st.sampled_from(["gpt", "bert", "resnet"]))
    workload["flows_per_pair"] = draw(st.sampled_from([None, 1, 3]))
    hosts = draw(st.permutations(["h0", "h1", "h2", "h3"]))[: draw(st.integers(2, 4))]
    if workload["type"] == "fsdp" and len(hosts) == 4:
        workload["replicas"] = draw(st.sampled_from([1, 2]))
    return scenario(topology, hosts, workload, draw(st.integers(1, 100)))


@pytest.mark.slow
@settings(max_examples=15)
@given(lone_jobs())
def test_levels_slow_no_job_that_is_alone_on_the_paths_of_the_hash(of: Scenario) -> None:
    assert slower(of, ON_HASHED_PATHS, CHOOSING) == {}
