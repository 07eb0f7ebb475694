"""Full clusters for ``benchmarks/policies.py``: the job sizes of a production trace on a three-layer Clos.

Sizes are drawn from those of the GPU jobs in Alibaba's Lingjun trace of 2023, capped so that the jobs just fill the
cluster. Placement is about the worst possible, so that a policy has much to decide: hosts come in random order, and
jobs that fit on one host are spread over several. A job on one GPU sends nothing.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from controller.planning.snapshots import link_states
from policies.flows import Flow, FlowGroup, FlowKey
from policies.job import Job, Profile
from policies.snapshot import Snapshot
from topologies.addressing import FLOW_DESTINATION_PORT, UDP_PROTOCOL, FiveTuple
from topologies.ecmp import hash_multipliers
from topologies.fabric import Cable, Fabric, Nic
from topologies.paths import Paths
from topologies.routing import Routing

GPUS_PER_HOST = 8
NUM_LEVELS = 8

TRACE_SIZES = {
    8: 859, 32: 426, 16: 383, 1: 219, 4: 184, 256: 145, 64: 105, 2: 102, 48: 78, 60: 47, 24: 31, 6: 27, 512: 23,
    72: 23, 88: 16, 128: 16, 80: 16, 3: 12, 400: 12, 12: 12, 40: 8, 120: 4,
}  # fmt: skip
"""How many jobs of the trace have so many GPUs, for numbers with more than three jobs."""


@dataclass(frozen=True)
class Cluster:
    """A three-layer Clos: pods of ToRs and aggregation switches, planes of core switches; it is full of jobs.

    ``nics_per_host`` is 8, with a flow per NIC, or 1, with a flow per host and job. Two NICs in different pods have
    ``aggs_per_pod * cores_per_plane`` candidate paths.
    """

    num_jobs: int
    pods: int
    tors_per_pod: int
    hosts_per_tor: int
    nics_per_host: int
    aggs_per_pod: int = 8
    cores_per_plane: int = 8
    link_gbps: float = 400.0

    @property
    def num_hosts(self) -> int:
        """The number of hosts."""
        return self.pods * self.tors_per_pod * self.hosts_per_tor

    @property
    def num_gpus(self) -> int:
        """The number of GPUs."""
        return self.num_hosts * GPUS_PER_HOST

    @cached_property
    def fabric(self) -> Fabric:
        """Hosts h0…, ToRs t0…, aggregation switches a0… and core switches c0…, each in order of the pods."""
        tors, aggs = self.pods * self.tors_per_pod, self.pods * self.aggs_per_pod
        ends = [
            (f"h{host}", f"t{host // self.hosts_per_tor}")
            for host in range(self.num_hosts)
            for _ in range(self.nics_per_host)
        ]
        ends += [
            (f"t{tor}", f"a{tor // self.tors_per_pod * self.aggs_per_pod + plane}")
            for tor in range(tors)
            for plane in range(self.aggs_per_pod)
        ]
        ends += [
            (f"a{agg}", f"c{agg % self.aggs_per_pod * self.cores_per_plane + core}")
            for agg in range(aggs)
            for core in range(self.cores_per_plane)
        ]
        switches = [f"t{number}" for number in range(tors)] + [f"a{number}" for number in range(aggs)]
        switches += [f"c{number}" for number in range(self.aggs_per_pod * self.cores_per_plane)]
        cables = tuple(Cable(pair, self.link_gbps * 1e9, 1e-6) for pair in ends)
        return Fabric(tuple(f"h{host}" for host in range(self.num_hosts)), tuple(switches), cables, GPUS_PER_HOST)

    @cached_property
    def routing(self) -> Routing:
        """Routing with the ECMP hash of seed 1."""
        return Routing(self.fabric, hash_multipliers(self.fabric.switches, seed=1))

    def snapshot(self, seed: int) -> Snapshot:
        """Return the cluster full of jobs, drawn and placed at random."""
        chance = random.Random(seed)
        sizes = _capped(chance.choices(list(TRACE_SIZES), list(TRACE_SIZES.values()), k=self.num_jobs), self.num_gpus)
        hosts = list(self.fabric.hosts)
        chance.shuffle(hosts)
        jobs = []
        for number, (size, (nics, stride)) in enumerate(zip(sizes, self._placements(sizes, hosts), strict=True)):
            name = f"job-{number:04}"
            compute_s = 10 ** chance.uniform(-1, 0.5)
            # In isolation, a job sends for between 0.2 and 2 times as long as it computes.
            size_bytes = compute_s * chance.uniform(0.2, 2) * self.link_gbps * 1e9 / 8
            ends = [
                (nic, nics[position + stride if position + stride < len(nics) else position % stride])
                for position, nic in enumerate(nics)
            ]
            flows = tuple(
                self._flow(FlowKey(name, "ring", position), number, source, destination, size_bytes)
                for position, (source, destination) in enumerate(ends)
                if source.host != destination.host
            )
            profile = Profile(compute_s, chance.random(), compute_s * size)
            jobs.append(Job(name, float(number), size, profile, (FlowGroup("ring", flows),)))
        return Snapshot(0.0, link_states(self.fabric), tuple(jobs), NUM_LEVELS)

    def _placements(self, sizes: Sequence[int], hosts: Sequence[str]) -> Iterator[tuple[list[Nic], int]]:
        """Yield the NICs of every job, and the stride from a NIC to its counterpart on the next host."""
        nics = self.fabric.nics
        num_whole = -(-sum(size for size in sizes if size > GPUS_PER_HOST) // GPUS_PER_HOST)
        in_order = [(host, gpu) for host in hosts[:num_whole] for gpu in range(GPUS_PER_HOST)]
        across = [(host, gpu) for gpu in range(GPUS_PER_HOST) for host in hosts[num_whole:]]
        whole, spread = iter(in_order), iter(across)
        for size in sizes:
            gpus = list(islice(whole if size > GPUS_PER_HOST else spread, size))
            if self.nics_per_host == 1:
                yield [nics[host][0] for host in dict(gpus)], 1
            else:
                yield [nics[host][gpu] for host, gpu in gpus], GPUS_PER_HOST if size > GPUS_PER_HOST else 1

    def _flow(self, key: FlowKey, number: int, source: Nic, destination: Nic, size_bytes: float) -> Flow:
        # Two jobs on the same NICs need different ports.
        port = 49_152 + number
        five_tuple = FiveTuple(source.address, destination.address, UDP_PROTOCOL, port, FLOW_DESTINATION_PORT)
        candidates = Paths(self.routing.candidate_paths(source, destination))
        return Flow(key, five_tuple, size_bytes, 0.0, candidates, self.routing.hashed_path(five_tuple))


def _capped(sizes: Sequence[int], num_gpus: int) -> list[int]:
    """Cap sizes so that they fill the GPUs; GPUs that remain go to jobs at the cap."""
    cap = max(cap for cap in range(1, max(sizes) + 1) if sum(min(size, cap) for size in sizes) <= num_gpus)
    free = num_gpus - sum(min(size, cap) for size in sizes)
    capped = []
    for size in sizes:
        capped.append(min(size, cap + (free > 0)))
        free -= capped[-1] > cap
    return capped
