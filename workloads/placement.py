"""Placement: the GPUs, and therefore the NICs, that a job uses on its hosts."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Self

from topologies.fabric import Fabric
from workloads.scenario import GpuChoice, JobSpecification, PlacementPolicy, Scenario
from workloads.schedulers.baselines import hosts_by_affinity


@dataclass(frozen=True, slots=True)
class Placement:
    """GPUs of a job and the NICs next to them, by host, each in ascending order."""

    gpus: Mapping[str, tuple[int, ...]]
    nics: Mapping[str, tuple[int, ...]]

    @classmethod
    def on(cls, fabric: Fabric, gpus: Mapping[str, tuple[int, ...]]) -> Self:
        """Return the placement on these GPUs; GPU g is next to NIC ``g * NICs // GPUs`` of its host."""
        beside = {host: _nics_beside_gpus(fabric, host) for host in gpus}
        return cls(gpus, {host: tuple(dict.fromkeys(beside[host][gpu] for gpu in of)) for host, of in gpus.items()})


@dataclass(frozen=True, slots=True)
class _Holding:
    job: str
    gpus: tuple[int, ...]
    from_s: float
    until_s: float


class GpuLedger:
    """Allocations of GPUs to jobs over time."""

    def __init__(self, gpus_per_host: int) -> None:
        self._gpus_per_host = gpus_per_host
        self._holdings: defaultdict[str, list[_Holding]] = defaultdict(list)

    def free(self, host: str, from_s: float, until_s: float) -> tuple[int, ...]:
        """Return the GPUs of a host that no job holds in [from_s, until_s)."""
        held = {gpu for rival in self._rivals(host, from_s, until_s) for gpu in rival.gpus}
        return tuple(gpu for gpu in range(self._gpus_per_host) if gpu not in held)

    def _rivals(self, host: str, from_s: float, until_s: float) -> list[_Holding]:
        return [holding for holding in self._holdings[host] if holding.from_s < until_s and from_s < holding.until_s]

    def take(
        self,
        job: str,
        host: str,
        count: int,
        from_s: float,
        until_s: float,
        preference: Callable[[int], tuple[int, ...]] | None = None,
    ) -> tuple[int, ...]:
        """Allocate GPUs of a host that are free in [from_s, until_s), the first in the order of ``preference``.

        Raises ValueError, naming the holders, if fewer than ``count`` are free; then nothing is allocated.
        """
        free = self.free(host, from_s, until_s)
        if len(free) < count:
            rivals = self._rivals(host, from_s, until_s)
            holders = ", ".join(dict.fromkeys(rival.job for rival in rivals))
            raise ValueError(
                f"expected at most {len(free)} GPUs, asked for {count}: {host} has {self._gpus_per_host}"
                + (
                    f", of which {self._gpus_per_host - len(free)} are held at the same time by {holders}"
                    if rivals
                    else ""
                )
            )
        taken = tuple(sorted(sorted(free, key=preference)[:count]))
        self._holdings[host].append(_Holding(job, taken, from_s, until_s))
        return taken


def end_s(arrival_s: float, duration_s: float | None) -> float:
    """Return when a job releases its GPUs; infinity for a job that counts iterations."""
    return float("inf") if duration_s is None else arrival_s + duration_s


def place(scenario: Scenario, fabric: Fabric) -> tuple[Placement, ...]:
    """Place jobs in the scenario's order, on free GPUs of their hosts. Raises ValueError where there are too few."""
    ledger = GpuLedger(fabric.gpus_per_host)
    return tuple(_place(job, ledger, fabric) for job in scenario.jobs)


def choose_hosts(
    ledger: GpuLedger,
    fabric: Fabric,
    count: int,
    gpus_per_host: int,
    policy: PlacementPolicy,
    from_s: float,
    until_s: float,
) -> tuple[str, ...]:
    """Choose hosts with enough free GPUs in [from_s, until_s), in the fabric's order.

    ``affinity`` chooses hosts under as few switches as possible, by ``hosts_by_affinity`` (Crux, section 6.1).
    ``spread`` takes one host under each switch in turn. A host belongs to the switch of its first NIC. Raises
    ValueError where too few hosts are free.
    """
    by_switch: defaultdict[str, list[str]] = defaultdict(list)
    for host, nics in fabric.nics.items():
        if len(ledger.free(host, from_s, until_s)) >= gpus_per_host:
            by_switch[fabric.links[nics[0].link].destination].append(host)
    num_free = sum(map(len, by_switch.values()))
    if num_free < count:
        raise ValueError(f"expected at most {num_free} hosts with {gpus_per_host} free GPUs, asked for {count}")
    if policy is PlacementPolicy.SPREAD:
        turns = zip_longest(*by_switch.values())
        chosen = [host for turn in turns for host in turn if host is not None][:count]
    else:
        chosen = list(hosts_by_affinity(tuple(by_switch.values()), count))
    return tuple(sorted(chosen, key=fabric.host_index.__getitem__))


def _place(job: JobSpecification, ledger: GpuLedger, fabric: Fabric) -> Placement:
    until_s = end_s(job.arrival_s, job.duration_s)
    hosts = job.hosts
    if hosts is None:
        assert job.gpus is not None
        policy = job.placement or PlacementPolicy.AFFINITY
        count = job.gpus // job.gpus_per_host
        hosts = choose_hosts(ledger, fabric, count, job.gpus_per_host, policy, job.arrival_s, until_s)
    gpus: dict[str, tuple[int, ...]] = {}
    for host in hosts:
        beside = _nics_beside_gpus(fabric, host)

        def turn(gpu: int, beside: tuple[int, ...] = beside) -> tuple[int, ...]:
            """Order GPUs so that NICs take turns."""
            return (beside[:gpu].count(beside[gpu]), gpu)

        preference = turn if job.gpu_choice is GpuChoice.PER_NIC else None
        gpus[host] = ledger.take(job.name, host, job.gpus_per_host, job.arrival_s, until_s, preference)
    return Placement.on(fabric, gpus)


def _nics_beside_gpus(fabric: Fabric, host: str) -> tuple[int, ...]:
    return tuple(gpu * len(fabric.nics[host]) // fabric.gpus_per_host for gpu in range(fabric.gpus_per_host))
