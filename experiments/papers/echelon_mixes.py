"""Random mixes of jobs for the evaluation ``echelon``, at an offered load.

Each job has four hosts of its own, alternately on the two sides of a dumbbell, so that all traffic of a ring or a
pipeline crosses the one cable; hosts' links are as fast as that. A mix is two jobs of one kind of parallelism, or one
job of each kind. Drawn uniformly for each job: its model (``workloads.models``), the number of parts of its iteration
(``_PARTS``), and its arrival within the first iteration. A seed gives the same draw at every load.

The *offered load* of a link is a sum over jobs: the bytes that a job sends over it per iteration, over the time of the
job's iteration alone (``workloads.isolated_run``), over the link's rate. Rates are chosen so that the hottest link has
the requested load. As iterations alone take longer on slower links, the rate is found by a root search.
"""

import random
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from scipy.optimize import brentq

from topologies.ecmp import hash_multipliers
from topologies.routing import Routing
from workloads.isolated_run import candidate_paths, run_isolated
from workloads.jobs import training_jobs
from workloads.models import ModelName
from workloads.scenario import Scenario

COMPUTE_JITTER = 0.02
"""Standard deviation of computation times, as a fraction: keeps results independent of phases that jobs lock into."""
WARM_UP, MEASURED = 2, 6
"""Length of the warm-up and of the window of measurement, in iterations of the slowest job alone."""
HOSTS = 4
GPUS_PER_HOST = 8
LEAST_LOAD = 0.05
"""A smaller load needs links faster than scenarios allow."""
_FASTEST_GBPS, _SLOWEST_GBPS = 1e5, 0.1
"""The rate is searched between these."""


class Kind(StrEnum):
    """The kind of parallelism of a mix's jobs."""

    GPIPE = "gpipe"
    ONE_FORWARD_ONE_BACKWARD = "1f1b"
    FSDP = "fsdp"
    DATA_PARALLEL = "dp"
    TENSOR_PARALLEL = "tp"
    MIXED = "mixed"


SINGLE_KINDS = tuple(kind for kind in Kind if kind is not Kind.MIXED)

_PARTS: Mapping[Kind, tuple[str, tuple[int, ...]]] = {
    Kind.GPIPE: ("micro_batches", (4, 8)),
    Kind.ONE_FORWARD_ONE_BACKWARD: ("micro_batches", (4, 8)),
    Kind.FSDP: ("layer_groups", (4, 6, 8)),
    Kind.DATA_PARALLEL: ("buckets", (1, 2, 4, 8)),
    Kind.TENSOR_PARALLEL: ("layers", (1, 2)),
}
"""The workload key that sets the parts of an iteration, and its values."""


@dataclass(frozen=True, slots=True)
class _DrawnJob:
    """A job without times; ``arrival`` is a fraction of its iteration in isolation."""

    name: str
    workload: Mapping[str, object]
    arrival: float


def drawn_mix(kind: Kind, load: float, seed: int) -> Scenario:
    """Return the mix of a seed as a scenario whose hottest link has this offered load.

    Raises:
        ValueError: The load is less than ``LEAST_LOAD`` or not less than 1.
    """
    if not LEAST_LOAD <= load < 1:
        raise ValueError(f"the offered load must be at least {LEAST_LOAD:g} and less than 1, not {load}")
    chance = random.Random(f"{kind}/{seed}")
    kinds = SINGLE_KINDS if kind is Kind.MIXED else (kind, kind)
    jobs = [_drawn_job(one, number, chance) for number, one in enumerate(kinds)]
    name = f"{kind} at load {load:g}"

    def beyond(gbps: float) -> float:
        return offered_load(_scenario(name, seed, jobs, gbps)) - load

    # No iteration is shorter than on the fastest links, so the load in bit/s is largest there.
    most_gbps = offered_load(_scenario(name, seed, jobs, _FASTEST_GBPS)) * _FASTEST_GBPS / load
    gbps = float(brentq(beyond, _SLOWEST_GBPS, 1.01 * most_gbps, rtol=1e-6))
    return _scenario(name, seed, jobs, gbps, _isolated_jobs(_scenario(name, seed, jobs, gbps)).iteration_times_s)


def offered_load(scenario: Scenario) -> float:
    """Return the load of the hottest link, as a fraction, with every flow spread evenly over its candidate paths."""
    rates_bps = scenario.topology.build().rates_bps
    return max(bps / rates_bps[link] for link, bps in _isolated_jobs(scenario).sent_bps.items())


@dataclass(frozen=True, slots=True)
class _IsolatedJobs:
    """The iteration time of each job in isolation, and the rate at which all jobs would then send over each link."""

    iteration_times_s: list[float]
    sent_bps: Mapping[int, float]


def _isolated_jobs(scenario: Scenario) -> _IsolatedJobs:
    fabric = scenario.topology.build()
    routing = Routing(fabric, hash_multipliers(fabric.switches, scenario.seed))
    times_s: list[float] = []
    sent_bps: defaultdict[int, float] = defaultdict(float)
    for job in training_jobs(scenario, fabric):
        times_s.append(run_isolated(job, routing).iteration_time_s)
        for flow in (flow for group in job.graph.flow_groups for flow in group.flows):
            paths = candidate_paths(flow, routing)
            for path in paths:
                for link in path:
                    sent_bps[link] += flow.size_bytes * 8 / len(paths) / times_s[-1]
    return _IsolatedJobs(times_s, sent_bps)


def _drawn_job(kind: Kind, number: int, chance: random.Random) -> _DrawnJob:
    key, values = _PARTS[kind]
    workload: dict[str, object] = {"model": chance.choice(list(ModelName)), key: chance.choice(values)}
    if kind in (Kind.GPIPE, Kind.ONE_FORWARD_ONE_BACKWARD):
        workload |= {"type": "pp", "schedule": kind.value}
    else:
        workload |= {"type": kind.value}
    return _DrawnJob(f"{kind}-{number + 1}", workload, chance.random())


def _scenario(
    name: str, seed: int, jobs: list[_DrawnJob], gbps: float, isolated_s: list[float] | None = None
) -> Scenario:
    """Return the mix on links of a rate; without isolated iteration times, arrivals and window have no meaning."""
    hosts_per_side = HOSTS // 2 * len(jobs)
    isolated_s = isolated_s or [1.0] * len(jobs)
    ends_s = (WARM_UP + MEASURED) * max(isolated_s)
    arrivals_s = [job.arrival * one_s for job, one_s in zip(jobs, isolated_s, strict=True)]
    return Scenario.model_validate(
        {
            "name": name,
            "seed": seed,
            "topology": {
                "kind": "dumbbell",
                "hosts_per_side": hosts_per_side,
                "gpus_per_host": GPUS_PER_HOST,
                "host_link_gbps": gbps,
                "bottleneck_gbps": gbps,
            },
            "jobs": [
                {
                    "name": job.name,
                    "hosts": [
                        f"h{side * hosts_per_side + HOSTS // 2 * number + place}"
                        for place in range(HOSTS // 2)
                        for side in range(2)
                    ],
                    "gpus_per_host": GPUS_PER_HOST,
                    "arrival_s": arrival_s,
                    "duration_s": ends_s - arrival_s,
                    "workload": job.workload,
                }
                for number, (job, arrival_s) in enumerate(zip(jobs, arrivals_s, strict=True))
            ],
            "compute_jitter": COMPUTE_JITTER,
            "measure": {"from_s": WARM_UP * max(isolated_s), "to_s": ends_s},
        }
    )
