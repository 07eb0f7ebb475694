"""Random jobs on the fabric of Crux's testbed, or on one with half its uplinks.

A job is one of ``KINDS``, each equally likely: those of the paper's mixes and similar ones. Its hosts are drawn from
all that have room, as scattered as under a scheduler that ignores the network.
"""

import random
from dataclasses import dataclass
from enum import StrEnum

from workloads.loading import SHIPPED_SCENARIOS, load_scenario
from workloads.models import ModelName
from workloads.placement import GpuLedger
from workloads.scenario import JobSpecification, Scenario
from workloads.workload import DataParallelWorkload

MIX_DURATION_S = 14.0
"""The duration of the paper's mixes."""
MEAN_INTERVAL_S, MEAN_DURATION_S = 60.0, 600.0
"""Means of the times between arrivals and of durations: ten jobs on average if there is room for all."""
MOST_TURNED_AWAY = 3
"""A mix is complete after this many jobs in a row found no room."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of job: its model, its hosts, and its GPUs on each."""

    model: ModelName
    hosts: int
    gpus_per_host: int


KINDS = (
    Kind(ModelName.GPT, 2, 8),
    Kind(ModelName.GPT, 4, 8),
    Kind(ModelName.GPT, 6, 8),
    Kind(ModelName.BERT, 2, 4),
    Kind(ModelName.BERT, 2, 8),
    Kind(ModelName.BERT, 4, 4),
    Kind(ModelName.RESNET, 2, 4),
    Kind(ModelName.RESNET, 4, 4),
)


class FabricName(StrEnum):
    """The fabrics, each named after a shipped scenario."""

    TESTBED = "fig20"
    FEWER_UPLINKS = "fewer-uplinks"


def random_mix(seed: int, on: FabricName) -> Scenario:
    """Return jobs that arrive together, drawn until ``MOST_TURNED_AWAY`` in a row find no room."""
    draws = _Draws(f"mix {seed}", on)
    turned_away = 0
    while turned_away < MOST_TURNED_AWAY:
        turned_away = 0 if draws.admit(0.0, MIX_DURATION_S) else turned_away + 1
    return draws.scenario(f"random-{seed}", seed, warm_up_iterations=1)


def random_arrivals(seed: int, on: FabricName, num_jobs: int) -> Scenario:
    """Return jobs that come and go. Intervals and durations are exponential; a job that finds no room is left out."""
    draws = _Draws(f"arrivals {seed}", on)
    arrival_s = 0.0
    while len(draws.jobs) < num_jobs:
        arrival_s += draws.chance.expovariate(1 / MEAN_INTERVAL_S)
        draws.admit(round(arrival_s, 3), round(draws.chance.expovariate(1 / MEAN_DURATION_S) + 1, 3))
    return draws.scenario(f"arrivals-{seed}", seed)


class _Draws:
    """The jobs drawn so far, and the GPUs that each holds over time."""

    def __init__(self, seed: str, on: FabricName) -> None:
        self.chance = random.Random(seed)
        self.jobs: list[JobSpecification] = []
        self._topology = load_scenario(SHIPPED_SCENARIOS / f"{on}.yaml").topology
        self._fabric = self._topology.build()
        self._ledger = GpuLedger(self._fabric.gpus_per_host)

    def admit(self, arrival_s: float, duration_s: float) -> bool:
        """Draw a job and add it to ``jobs`` where there is room; returns whether there is."""
        kind = self.chance.choice(KINDS)
        until_s = arrival_s + duration_s
        free = [
            host
            for host in self._fabric.hosts
            if len(self._ledger.free(host, arrival_s, until_s)) >= kind.gpus_per_host
        ]
        if len(free) < kind.hosts:
            return False
        hosts = self.chance.sample(free, kind.hosts)
        name = f"{kind.model}-{len(self.jobs) + 1}"
        for host in hosts:
            self._ledger.take(name, host, kind.gpus_per_host, arrival_s, until_s)
        workload = DataParallelWorkload(type="dp", model=kind.model)
        self.jobs.append(
            JobSpecification(
                name=name,
                hosts=tuple(hosts),
                gpus_per_host=kind.gpus_per_host,
                arrival_s=arrival_s,
                duration_s=duration_s,
                workload=workload,
            )
        )
        return True

    def scenario(self, name: str, seed: int, warm_up_iterations: int = 0) -> Scenario:
        """Return the jobs on their fabric as a scenario."""
        return Scenario(
            name=name,
            topology=self._topology,
            jobs=tuple(self.jobs),
            seed=seed,
            warm_up_iterations=warm_up_iterations,
        )
