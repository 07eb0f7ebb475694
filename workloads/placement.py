"""Which GPUs, and therefore which NICs, a job uses on its hosts."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from topologies.fabric import Fabric
from workloads.scenario import JobSpecification, Scenario


@dataclass(frozen=True, slots=True)
class Placement:
    """GPUs of a job and the NICs next to them, by host, each in ascending order."""

    gpus: Mapping[str, tuple[int, ...]]
    nics: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class _Holding:
    job: str
    gpus: tuple[int, ...]
    from_s: float
    until_s: float


class GpuLedger:
    """Which GPUs of which host are taken, by whom and when."""

    def __init__(self, gpus_per_host: int) -> None:
        self._gpus_per_host = gpus_per_host
        self._holdings: defaultdict[str, list[_Holding]] = defaultdict(list)

    def take(self, job: str, host: str, count: int, from_s: float, until_s: float) -> tuple[int, ...]:
        """Give a job the host's first GPUs that nobody holds in [from_s, until_s).

        Raises ValueError, naming the holders, where there are fewer than ``count``; nothing is taken then.
        """
        rivals = [holding for holding in self._holdings[host] if holding.from_s < until_s and from_s < holding.until_s]
        held = {gpu for rival in rivals for gpu in rival.gpus}
        free = tuple(gpu for gpu in range(self._gpus_per_host) if gpu not in held)
        if len(free) < count:
            holders = ", ".join(dict.fromkeys(rival.job for rival in rivals))
            raise ValueError(
                f"expected at most {len(free)} GPUs, asked for {count}: {host} has {self._gpus_per_host}"
                + (f", of which {len(held)} are held at the same time by {holders}" if rivals else "")
            )
        self._holdings[host].append(_Holding(job, free[:count], from_s, until_s))
        return free[:count]


def end_s(arrival_s: float, duration_s: float | None) -> float:
    """When a job gives its GPUs back: infinity if only a run can tell (the job counts iterations)."""
    return float("inf") if duration_s is None else arrival_s + duration_s


def place(scenario: Scenario, fabric: Fabric) -> tuple[Placement, ...]:
    """A placement per job: jobs in the scenario's order take the first free GPUs of each of their hosts.

    GPU g is next to NIC ``g * NICs // GPUs`` of its host. Raises ValueError where GPUs do not suffice.
    """
    ledger = GpuLedger(fabric.gpus_per_host)
    return tuple(_place(job, ledger, fabric) for job in scenario.jobs)


def _place(job: JobSpecification, ledger: GpuLedger, fabric: Fabric) -> Placement:
    until_s = end_s(job.arrival_s, job.duration_s)
    gpus = {host: ledger.take(job.name, host, job.gpus_per_host, job.arrival_s, until_s) for host in job.hosts}
    return Placement(
        gpus,
        {
            host: tuple(dict.fromkeys(gpu * len(fabric.nics[host]) // fabric.gpus_per_host for gpu in taken))
            for host, taken in gpus.items()
        },
    )
