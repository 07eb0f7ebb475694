"""First pass: virtual devices become physical ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from runtime.arrays import Sharding
from runtime.program import Program

CLIENT_HOST = -1
"""Where arguments lie that come with the request: the client, which the server speaks for."""


def host_cpus_of(slice_: int) -> int:
    """Return the number under which programs name the CPUs of the hosts of a slice; these numbers are negative."""
    return -1 - slice_


@dataclass(frozen=True)
class Placement:
    """Where shards lie: shard i on device ``devices[i]``, counted within its host, of host ``hosts[i]``.

    The CPUs of a host are its device ``runtime.store.buffers.HOST``.
    """

    island: str
    hosts: tuple[int, ...]
    devices: tuple[int, ...]

    @cached_property
    def shards_by_host(self) -> Mapping[int, tuple[int, ...]]:
        """The shards on each host, in order."""
        found: dict[int, list[int]] = {}
        for shard, host in enumerate(self.hosts):
            found.setdefault(host, []).append(shard)
        return {host: tuple(shards) for host, shards in found.items()}


@dataclass(frozen=True)
class Layout:
    """How an array lies in the runtime: its sharding, and where its shards are."""

    sharding: Sharding
    placement: Placement


AT_CLIENT = Layout(Sharding(None, 1), Placement("", (CLIENT_HOST,), (0,)))
"""The layout of an argument that comes whole with the request."""


def placements_of(program: Program, slices: Mapping[int, Placement]) -> tuple[Placement, ...]:
    """Return the placement of each call of a program.

    Raises ValueError for a slice that is not there, or that has not one device for each shard of a call on it.
    """
    found = []
    for _, call in program.nodes():
        placement = slices.get(call.slice)
        if placement is None:
            raise ValueError(f"{program.name}: {call.name}: slice {call.slice} has no devices")
        for sharding in call.shardings():
            if sharding.shards != len(placement.hosts):
                raise ValueError(
                    f"{program.name}: {call.name} has {sharding.shards} shards, and slice {call.slice} has "
                    f"{len(placement.hosts)} devices"
                )
        found.append(placement)
    return tuple(found)
