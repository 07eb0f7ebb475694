"""Jobs on many ranks: how long a run takes, and whether what it plays together ends as every flow by itself.

The run plays computations of a job that end together as one event, and flows of a transfer with the same path and size
as one. The reference plays every task and every flow by itself, in another engine (``policies.model.playing_jobs``).
"""

import random
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from controller.planning.snapshots import link_states
from experiments.scenarios.modelled import ModelledScenario
from experiments.scenarios.simulated import run_on_simulator
from policies.model.bundles import Bundles
from policies.model.picoseconds import PS_PER_S
from policies.model.playing_jobs import PlayingJobs
from policies.model.routed_flows import first_link
from policies.model.tiers import places_on_hops, tiers_and_places
from policies.policy import decide
from policies.rates.network import Network
from policies.registry import find_policy
from policies.task_graph import Transfer
from workloads.combined.fitting import combined_problems
from workloads.combined_workload import CombinedWorkload
from workloads.scenario import Scenario

DRAWN_CASES = 6
_ITERATIONS = 3
_MODELS = {
    "llama-3-8b": {"tensor": [1, 2, 4, 8], "expert": [1]},
    "llama-3-70b": {"tensor": [4, 8], "expert": [1]},
    "gpt-3-175b": {"tensor": [8], "expert": [1]},
    "mixtral-8x7b": {"tensor": [1, 2, 4], "expert": [1, 4, 8]},
}


def simulate_1024() -> dict[str, float]:
    """Return the processor seconds and the most memory of a process that simulates 1,024 ranks; imports not counted."""
    command, root = [sys.executable, "-m", "benchmarks.every_rank"], Path(__file__).resolve().parent.parent
    printed = subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE, text=True).stdout
    seconds, peak_bytes = printed.split()
    return {"simulate_1024_s": float(seconds), "simulate_1024_memory_bytes": float(peak_bytes)}


def bundled_errors(num_cases: int = DRAWN_CASES, seed: int = 1) -> dict[str, float]:
    """Return by drawn case the largest relative error of the end of an iteration."""
    errors = {}
    for number in range(num_cases):
        scenario, policy = drawn_case(random.Random(f"{seed}/{number}"), f"case-{number}")
        errors[f"{number} {policy}: {described(scenario)}"] = bundled_error(scenario, policy)
    return errors


def bundled_error(scenario: Scenario, policy: str) -> float:
    """Return the largest relative error of the end of an iteration, until the first job departs."""
    result = run_on_simulator(scenario, policy, on_progress=lambda *_: None)
    departs_s = min(job.iterations[-1].end_s for job in result.jobs)
    playing, names = _every_flow(scenario, policy)
    playing.run(departs_s * 1.01 + 0.001)
    errors = []
    for job in result.jobs:
        ends_s = playing.ends_s(names.index(job.name))
        for iteration in job.iterations:
            if iteration.end_s <= departs_s:
                errors.append(abs(iteration.end_s - ends_s[iteration.number]) / ends_s[iteration.number])
    return float(max(errors))


def _every_flow(scenario: Scenario, policy: str) -> tuple[PlayingJobs, list[str]]:
    """Return the jobs of a scenario under a policy's Plan, where every flow is by itself on all of its links."""
    modelled = ModelledScenario.of(scenario)
    plan = decide(find_policy(policy), modelled.snapshot)
    flows, num_flows = [], []
    for job in modelled.played:
        for task in job.played_graph.tasks:
            if isinstance(task, Transfer):
                flows += [job.flows[number] for number in task.flows]
                num_flows.append(len(task.flows))
    plans = [plan.flows[flow.key] for flow in flows]
    outside = [of.path or flow.hashed_path for flow, of in zip(flows, plans, strict=True)]
    paths = [(*path, *flow.host_links) for path, flow in zip(outside, flows, strict=True)]
    levels = np.array([of.level for of in plans], dtype=np.int64)
    orders = np.array([of.order for of in plans], dtype=np.int64)
    tiers, places = tiers_and_places(levels, orders, np.array([first_link(flow) for flow in flows], dtype=np.int64))
    num_hops, num_outside = (np.array(list(map(len, of)), dtype=np.int64) for of in (paths, outside))
    network = Network.of(
        link_states(modelled.routing.fabric).rates_bps, paths, places_on_hops(places, num_hops, num_outside)
    )
    fabric = modelled.routing.fabric
    delays_s = np.array([link.delay_s for link in fabric.links] + [0.0] * len(fabric.host_links))
    latency_ps = np.array([round(delays_s[list(path)].sum() * PS_PER_S) for path in paths], dtype=np.int64)
    playing = PlayingJobs(
        [job.played_graph for job in modelled.played],
        np.zeros(len(modelled.played)),
        np.array(num_flows, dtype=np.int64),
        np.array([flow.size_bytes for flow in flows]),
        Bundles(network, np.ones(len(flows)), tiers, levels, latency_ps),
    )
    return playing, [job.name for job in modelled.jobs]


def drawn_case(chance: random.Random, name: str) -> tuple[Scenario, str]:
    """Draw one to three jobs of 64 to 256 ranks on a fabric that may be oversubscribed, and a policy."""
    num_hosts = 64
    nics = chance.choice([1, 2, 8])
    hosts = [f"h{number}" for number in range(num_hosts)]
    if chance.random() < 0.5:
        chance.shuffle(hosts)
    jobs = []
    left = chance.choice([1, 2, 3])
    while left:
        num_ranks = chance.choice([64, 128, 256])
        workload = _drawn_workload(chance, num_ranks)
        if workload is None or num_ranks // 8 > len(hosts):
            continue
        own, hosts = hosts[: num_ranks // 8], hosts[num_ranks // 8 :]
        jobs.append(
            {"name": f"job-{left}", "hosts": own, "gpus_per_host": 8, "iterations": _ITERATIONS, "workload": workload}
        )
        left -= 1
    topology = {
        **{"kind": "clos", "tors": 8, "aggs": chance.choice([2, 4]), "hosts_per_tor": num_hosts // 8},
        **{"gpus_per_host": 8, "nics_per_host": nics, "host_link_gbps": 1600},
        "uplink_gbps": chance.choice([400, 1600, 3200]),
    }
    document = {"name": name, "topology": topology, "jobs": jobs, "reaction_delay_s": 0.0, "seed": chance.randrange(99)}
    return Scenario.model_validate(document), chance.choice(["ecmp", "crux"])


def _drawn_workload(chance: random.Random, num_ranks: int) -> dict[str, Any] | None:
    """Draw a job's workload; None where what is drawn does not divide."""
    model = chance.choice(list(_MODELS))
    tensor, pipeline = chance.choice(_MODELS[model]["tensor"]), chance.choice([1, 2, 4])
    context, schedule = chance.choice([1, 1, 2]), chance.choice(["1f1b", "gpipe", "interleaved", "zero_bubble_v"])
    replicas = num_ranks // (tensor * pipeline * context)
    workload = {
        **{"type": "combined", "model": model, "device": {"name": "h100", "efficiency": 0.45}},
        **{"tensor": tensor, "pipeline": pipeline, "context": context, "schedule": schedule},
        **{"expert": chance.choice(_MODELS[model]["expert"]), "batch": max(1, replicas) * chance.choice([2, 4, 8])},
        **{"zero": chance.choice([0, 1, 2, 3]), "buckets": chance.choice([1, 4])},
        **{
            "recompute": chance.choice(["none", "selective", "full"]),
            "order": chance.choice(["tp-cp-dp-pp", "tp-cp-pp-dp"]),
        },
        "all_reduce": chance.choice(["nccl", "ring", "tree", "hierarchical"]),
    }
    try:
        fits = not list(combined_problems(CombinedWorkload.model_validate(workload), num_ranks // 8, 8))
    except ValueError:
        return None
    return workload if fits else None


def described(scenario: Scenario) -> str:
    """Return the jobs of a case in short."""
    return "; ".join(_described(job.workload, len(job.hosts or ()) * 8) for job in scenario.jobs)


def _described(workload: object, num_ranks: int) -> str:
    assert isinstance(workload, CombinedWorkload)
    degrees = workload.tensor, workload.context, workload.expert, workload.pipeline
    return (
        f"{workload.model} on {num_ranks}, {' x '.join(map(str, degrees))}, ZeRO-{workload.zero}, {workload.schedule}"
    )


def llama_on_1024(iterations: int, hosts: int = 128) -> Scenario:
    """Return Llama 3 70B with TP 8, PP 8 and DP 16 on 1,024 of 10,240 GPUs, 32 micro-batches in each replica."""
    workload = {
        **{"type": "combined", "model": "llama-3-70b", "device": {"name": "h100", "efficiency": 0.5}},
        **{"tensor": 8, "pipeline": 8, "batch": 4 * hosts, "zero": 1, "buckets": 4},
    }
    topology = {
        **{"kind": "clos", "tors": 80, "aggs": 16, "hosts_per_tor": 16, "uplink_gbps": 3200},
        **{"gpus_per_host": 8, "nics_per_host": 8, "host_link_gbps": 3200},
    }
    job = {"name": "llama", "gpus": 8 * hosts, "gpus_per_host": 8, "placement": "affinity", "iterations": iterations}
    return Scenario.model_validate({"name": "scale", "topology": topology, "jobs": [{**job, "workload": workload}]})


def main() -> None:
    """Simulate 20 iterations on 1,024 ranks; print the processor seconds that it took and the process's most memory."""
    run_on_simulator(llama_on_1024(1, hosts=8), "ecmp", on_progress=lambda *_: None)  # compiles
    start_s = time.process_time()
    run_on_simulator(llama_on_1024(20), "ecmp", on_progress=lambda *_: None)
    print(time.process_time() - start_s, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


if __name__ == "__main__":
    main()
