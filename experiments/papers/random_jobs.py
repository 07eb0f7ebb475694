"""Random jobs on the fabric of Crux's testbed, or with half its uplinks, where the paper's mixes are too few; seeded.

A job is one of ``KINDS``, each as likely, those of the paper's mixes and a few of their like. Its hosts are drawn, too,
from all that have room: as scattered as a scheduler would leave them that does not look at the network.
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
"""As in the paper's mixes."""
MEAN_INTERVAL_S, MEAN_DURATION_S = 60.0, 600.0
"""Between arrivals, and of jobs: ten would be there in the mean if there were room."""
MOST_TURNED_AWAY = 3


@dataclass(frozen=True, slots=True)
class Kind:
    """A model on so many hosts, with so many GPUs of each."""

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
    """The fabrics, named after a shipped scenario each."""

    TESTBED = "fig20"
    FEWER_UPLINKS = "fewer-uplinks"


def random_mix(seed: int, on: FabricName) -> Scenario:
    """Jobs that arrive together, drawn until three in a row have found no room."""
    draws = _Draws(f"mix {seed}", on)
    turned_away = 0
    while turned_away < MOST_TURNED_AWAY:
        turned_away = 0 if draws.admit(0.0, MIX_DURATION_S) else turned_away + 1
    return draws.scenario(f"random-{seed}", seed, warm_up_iterations=1)


def random_arrivals(seed: int, on: FabricName, num_jobs: int) -> Scenario:
    """So many jobs, which come and go: intervals and durations are exponential, who finds no room does not come."""
    draws = _Draws(f"arrivals {seed}", on)
    arrival_s = 0.0
    while len(draws.jobs) < num_jobs:
        arrival_s += draws.chance.expovariate(1 / MEAN_INTERVAL_S)
        draws.admit(round(arrival_s, 3), round(draws.chance.expovariate(1 / MEAN_DURATION_S) + 1, 3))
    return draws.scenario(f"arrivals-{seed}", seed)


class _Draws:
    """The jobs drawn so far, and who holds which GPUs when."""

    def __init__(self, seed: str, on: FabricName) -> None:
        self.chance = random.Random(seed)
        self.jobs: list[JobSpecification] = []
        self._topology = load_scenario(SHIPPED_SCENARIOS / f"{on}.yaml").topology
        self._fabric = self._topology.build()
        self._ledger = GpuLedger(self._fabric.gpus_per_host)

    def admit(self, arrival_s: float, duration_s: float) -> bool:
        """Draw a job; it is one of ``jobs`` where there is room for it."""
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
        """The jobs on their fabric."""
        return Scenario(
            name=name,
            topology=self._topology,
            jobs=tuple(self.jobs),
            seed=seed,
            warm_up_iterations=warm_up_iterations,
        )
