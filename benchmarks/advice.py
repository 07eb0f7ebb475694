"""How good the first choice of ``trainyard advise`` is: drawn models on drawn clusters.

Each first choice is compared with the alternatives that the advice simulates, and with others: of ways to divide the
job that are drawn from all whose quick bound leaves them a chance to be faster, those with the lowest predictions. All
run on the simulator's model.
"""

import random
import statistics
import time
from collections.abc import Iterator, Mapping
from typing import Any

from controller.registry.errors import RegistrationError
from experiments.advice.results import Advice
from experiments.advice.search import advise_job
from experiments.advice.simulation import simulate
from policies.registry import as_policy
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing
from workloads.combined.alternatives import Ways
from workloads.combined.bounds import QuickBounds
from workloads.combined.timeline import EdgeSwitches, predicted
from workloads.combined_workload import CombinedWorkload
from workloads.placement import place
from workloads.scenario import Scenario

NUM_CASES = 50
_DRAWN = 40
"""Further alternatives that are predicted for each case."""
_SIMULATED = 4
"""Those with the lowest predictions are simulated."""
_MOST_FLOWS = 10_000
"""A larger alternative takes long to simulate."""


def ratios(num_cases: int = NUM_CASES, first_seed: int = 1) -> Iterator[Mapping[str, Any]]:
    """Yield a row for every case: the time of the first choice, over the best that was simulated."""
    for seed in range(first_seed, first_seed + num_cases):
        scenario = drawn_scenario(seed)
        policy = as_policy(random.Random(seed).choice(["crux", "ecmp"]))
        started_s = time.process_time()
        advice = advise_job(scenario, "job", policy, is_given=False)
        advised_s = time.process_time() - started_s
        best = advice.best
        assert best.simulated_s is not None, f"case {seed}: nothing was simulated"
        times_s = [each.simulated_s for each in advice.alternatives if each.simulated_s is not None]
        times_s += others_s(scenario, advice, seed)
        yield {
            "seed": seed,
            "model": advice.model,
            "gpus": advice.gpus,
            "policy": policy.name,
            "ratio": best.simulated_s / min(times_s),
            "simulated": len(times_s),
            "prediction_error": best.predicted_s / best.simulated_s - 1,
            "is_complete": advice.is_complete,
            "process_s": advised_s,
        }


def others_s(scenario: Scenario, advice: Advice, seed: int) -> list[float]:
    """Return the simulated times of alternatives that might be faster than the first choice by their bound."""
    (job,), fabric = scenario.jobs, scenario.topology.build()
    (placement,), template = place(scenario, fabric), job.workload
    assert isinstance(template, CombinedWorkload)
    routing = Routing(fabric, hash_multipliers(fabric.switches, scenario.seed))
    ways = Ways(template, len(placement.gpus), job.gpus_per_host)
    switches = EdgeSwitches.of(fabric, placement)
    bounds = QuickBounds(template, placement, switches)
    promising = [
        way.workload
        for layout in ways.layouts()
        if bounds.of_layout(layout) < advice.best.iteration_s
        for way in ways.of_layout(layout)
        if way.fits and bounds.of_way(way.workload) < advice.best.iteration_s
    ]
    drawn = random.Random(seed).sample(promising, min(_DRAWN, len(promising)))
    predictions = [(predicted(workload, placement, switches), workload) for workload in drawn]
    times_s: list[float] = []
    for prediction, workload in sorted(predictions, key=lambda each: each[0].iteration_s):
        if len(times_s) == _SIMULATED:
            break
        if prediction.num_flows > _MOST_FLOWS:
            continue
        try:
            iteration = simulate(
                *(scenario, job, workload, placement, routing, as_policy(advice.policy), prediction.iteration_s)
            )
        except RegistrationError:
            continue
        times_s.append(iteration.iteration_s)
    return times_s


def worst_and_median(rows: list[Mapping[str, Any]]) -> tuple[float, float]:
    """Return the largest ratio, and the median."""
    of_cases = [float(row["ratio"]) for row in rows]
    return max(of_cases), statistics.median(of_cases)


def drawn_scenario(seed: int) -> Scenario:
    """Draw a cluster and a job that has all of it, or a part; every model fits somehow."""
    draw = random.Random(f"advice {seed}")
    per_host = draw.choice([4, 8])
    num_gpus = draw.choice([8, 16, 32, 32, 64, 128])
    model, efficiency = _drawn_model(draw, num_gpus)
    nics = draw.choice([each for each in (1, 2, 4, 8) if each <= per_host])
    nic_gbps = draw.choice([100, 200, 400])
    num_hosts = max(2, num_gpus // per_host)
    workload = {
        "type": "combined",
        "model": model,
        "device": {"name": draw.choice(["a100", "h100", "h200"]), "efficiency": efficiency},
        "batch": num_gpus * draw.choice([1, 2, 4]),
        "buckets": draw.choice([1, 4]),
        "nic_gbps": float(nic_gbps),
    }
    job = {"name": "job", "gpus": num_gpus, "gpus_per_host": per_host, "iterations": 2, "workload": workload}
    return Scenario.model_validate(
        {
            "name": f"case {seed}",
            "topology": {**_drawn_topology(draw, num_hosts, nics, nic_gbps), "gpus_per_host": per_host},
            "seed": seed,
            "jobs": [job],
        }
    )


def _drawn_topology(draw: random.Random, num_hosts: int, nics: int, nic_gbps: int) -> dict[str, Any]:
    if draw.random() < 0.25 and nics == 1:
        arity = next(each for each in (4, 6, 8, 10) if each**3 // 4 >= num_hosts)
        return {"kind": "fat_tree", "k": arity, "host_link_gbps": nic_gbps, "uplink_gbps": nic_gbps}
    per_tor = draw.choice([each for each in (2, 4, 8) if each <= num_hosts])
    aggs = draw.choice([2, 4])
    oversubscription = draw.choice([1, 2, 4])
    return {
        "kind": "clos",
        "tors": max(2, -(-num_hosts // per_tor)),
        "aggs": aggs,
        "hosts_per_tor": per_tor,
        "nics_per_host": nics,
        "host_link_gbps": nic_gbps * nics,
        "uplink_gbps": per_tor * nics * nic_gbps / aggs / oversubscription,
    }


def _drawn_model(draw: random.Random, num_gpus: int) -> tuple[object, float]:
    """Draw a public model that so many GPUs can hold, or a model of tokens."""
    efficiency = draw.choice([0.3, 0.4, 0.5])
    public = ["llama-3-8b", "vit-l-16", *(["mixtral-8x7b"] if num_gpus >= 32 else [])]
    public += ["llama-3-70b"] if num_gpus >= 64 else []
    if draw.random() < 0.5:
        return draw.choice(public), efficiency
    heads = draw.choice([16, 32, 64])
    block: list[dict[str, Any]] = [
        {"type": "norm"},
        {"type": "attention", "heads": heads, "key_value_heads": draw.choice([heads, 8])},
        {"type": "norm"},
    ]
    if draw.random() < 0.3:
        block.append({"type": "moe", "experts": 8, "active": 2, "hidden": 128 * heads})
    else:
        block.append({"type": "mlp", "hidden": 512 * heads})
    layers: list[dict[str, Any]] = [
        {"type": "embedding", "vocabulary": 32000, "width": 128 * heads},
        {"type": "block", "repeat": draw.choice([16, 24, 32, 48]), "layers": block},
        {"type": "linear", "name": "head", "outputs": 32000},
    ]
    return {"name": "drawn", "tokens": draw.choice([1024, 2048, 4096]), "layers": layers}, efficiency
