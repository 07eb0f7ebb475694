"""Measures the error of iteration periods found from counters: ``period_error`` of ``benchmarks/telemetry.py``.

The traffic of one iteration is that of the job in isolation on the simulator, on the paper's testbed. The lengths of
iterations then vary uniformly within 20 % of the job's own: idle times grow or shrink and, where that is not enough,
the whole iteration does. A counter of the job's bytes is read about every 20 ms, from a random moment of an iteration
until 30 whole iterations have passed.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np

# Run as a file, it finds the packages beside it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from controller.profiling.options import ProfilingOptions
from controller.profiling.profiler import ITERATIONS
from controller.profiling.rhythm import find_rhythm
from experiments.scenarios.simulated import run_on_simulator
from policies.arrays import FloatArray
from policies.enforcement import Enforcement
from workloads.scenario import Scenario

SEEDS = 20
SPREAD = 0.2
SAMPLE_S = ProfilingOptions().sample_s
READING_S = 0.002
_IDLE_SHARE = 1e-3

WORKLOADS: Mapping[str, dict[str, object]] = {
    "gpt, data parallel": {"type": "dp", "model": "gpt"},
    "bert, data parallel": {"type": "dp", "model": "bert"},
    "resnet, data parallel": {"type": "dp", "model": "resnet"},
    "gpt, parameter server": {"type": "ps", "model": "gpt"},
    "bert, parameter server": {"type": "ps", "model": "bert"},
    "resnet, parameter server": {"type": "ps", "model": "resnet"},
    "gpt, sharded": {"type": "fsdp", "model": "gpt", "layer_groups": 6},
    "gpt, pipeline": {"type": "pp", "model": "gpt", "micro_batches": 8, "schedule": "1f1b"},
    "bert, pipeline": {"type": "pp", "model": "bert", "micro_batches": 4, "schedule": "gpipe"},
    "gpt, in buckets": {"type": "dp", "model": "gpt", "buckets": 8},
    "gpt, tensor parallel": {"type": "tp", "model": "gpt", "layers": 8},
    "gpt, experts": {"type": "moe", "model": "gpt", "layers": 8},
}
TOPOLOGY = {
    "kind": "clos",
    "tors": 6,
    "aggs": 8,
    "hosts_per_tor": 2,
    "nics_per_host": 8,
    "host_link_gbps": 800,
    "uplink_gbps": 100,
    "uplinks_per_pair": 2,
}


def period_errors() -> dict[str, list[float]]:
    """Return the relative errors of the mean period by workload and seed; infinite where no period was found."""
    return {
        name: [_error(*timeline, seed) for seed in range(SEEDS)]
        for name, timeline in ((name, _iteration(workload)) for name, workload in WORKLOADS.items())
    }


def _iteration(workload: dict[str, object]) -> tuple[FloatArray, FloatArray]:
    """Return an iteration of an isolated job as the lengths of short intervals and the bytes sent in each."""
    scenario = Scenario.model_validate(
        {
            "name": "alone",
            "topology": TOPOLOGY,
            "jobs": [
                {
                    "name": "job",
                    "hosts": ["h0", "h2", "h4", "h6"],
                    "gpus_per_host": 8,
                    "iterations": 3,
                    "workload": workload,
                }
            ],
        }
    )
    result = run_on_simulator(scenario, "crux", Enforcement.LEVELS, on_progress=lambda *_: None)
    begin_s, end_s = (
        min(interval.start_s for interval in result.jobs[0].computing if interval.iteration == iteration)
        for iteration in (1, 2)
    )
    senders = [nic.link for nics in result.fabric.nics.values() for nic in nics]
    rates_bytes_per_s = np.array([result.fabric.links[link].rate_bps / 8 for link in senders])
    samples = [sample for sample in result.loads if begin_s <= sample.from_s and sample.to_s <= end_s]
    lengths_s = np.array([sample.to_s - sample.from_s for sample in samples])
    busy = np.array([[sum(sample.utilisation[link]) for link in senders] for sample in samples])
    return lengths_s, lengths_s * (busy @ rates_bytes_per_s)


def _error(lengths_s: FloatArray, sent_bytes: FloatArray, seed: int) -> float:
    """Return the error for one job whose iterations vary, read from a random moment on."""
    random = np.random.default_rng(seed)
    is_idle = sent_bytes <= _IDLE_SHARE * sent_bytes.max()
    period_s, idle_s = lengths_s.sum(), lengths_s[is_idle].sum()
    stretched = []
    for length_s in period_s * random.uniform(1 - SPREAD, 1 + SPREAD, ITERATIONS + 2):
        rest_s = length_s - (period_s - idle_s)
        idle_times = rest_s / idle_s if idle_s > 0 and rest_s > 0 else 0.0
        busy_times = 1.0 if idle_times > 0 else length_s / (period_s - idle_s)
        stretched.append(lengths_s * np.where(is_idle, idle_times, busy_times))
    times_s = np.concatenate([[0.0], np.cumsum(stretched)])
    counted = np.concatenate([[0.0], np.cumsum(np.tile(sent_bytes, len(stretched)))])
    ends_s = np.cumsum([iteration_s.sum() for iteration_s in stretched])
    read_s = np.arange(random.uniform(0.0, ends_s[0]), ends_s[ITERATIONS] + random.uniform(0.0, 0.5), SAMPLE_S)
    read_s += random.uniform(0.0, READING_S, len(read_s))
    rhythm = find_rhythm(read_s, np.floor(np.interp(read_s, times_s, counted)))
    truth_s = float(np.diff(ends_s[: ITERATIONS + 1]).mean())
    return np.inf if rhythm is None else abs(rhythm.period_s / truth_s - 1)


if __name__ == "__main__":
    for workload, errors in period_errors().items():
        print(f"{workload:24} mean {np.mean(errors):.2%}, largest {np.max(errors):.2%}")
