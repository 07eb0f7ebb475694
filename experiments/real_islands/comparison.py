"""Two tenants on two islands and one link, under one policy after the other."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import runtime as rt
from experiments.real_islands.network import islands_network
from experiments.real_islands.programs import Program, data_parallel, initial_state, pipelined
from experiments.real_islands.rates import Trained, train_alone, train_together
from runtime.pipelines import gpipe
from runtime.traces import announced_before_producer_end
from topologies.specification import DumbbellSpecification

TENANTS = ("pipeline", "replicas")
ISLANDS = ("island-0", "island-1")
LINK_GBPS = 0.1
"""Half of what a machine of two cores carries, beside hosts and devices (docs/real-hosts.md)."""
MICRO_BATCHES, STAGE_S, ACTIVATION_BYTES = 16, 0.02, 187_500
"""A micro-batch takes 15 ms on the link, and 20 ms on its stage."""
FORWARD_S, BACKWARD_S, BUCKETS, GRADIENT_BYTES = 0.05, 0.1, 4, 4_000_000
"""Gradients take 320 ms on the link: this tenant waits for it most of the time."""
_STEPS_ALONE = 6


@dataclass(frozen=True, slots=True)
class Compared:
    """What a policy gave both tenants: the time of a step together, by tenant, and what devices ran and hosts sent."""

    policy: str
    step_s: dict[str, float]
    announced_share: float | None
    events: Sequence[dict[str, Any]]


def specification(link_gbps: float = LINK_GBPS) -> DumbbellSpecification:
    """Return the fabric: an island on each side, with a host for each tenant."""
    return DumbbellSpecification(
        kind="dumbbell", hosts_per_side=len(TENANTS), host_link_gbps=link_gbps, bottleneck_gbps=link_gbps
    )


def built(tenant: str, client: rt.Runtime) -> tuple[Program, Sequence[Any]]:
    """Return the program of a tenant, on its own host of each island, with the state that it starts from."""
    place = TENANTS.index(tenant)
    devices = client.make_virtual_device_set()
    slices = [
        devices.add_slice(1, island=island, constraints=rt.Constraints(hosts=(str(number * len(TENANTS) + place),)))
        for number, island in enumerate(ISLANDS)
    ]
    if tenant == "pipeline":
        program = pipelined(
            slices, gpipe, micro_batches=MICRO_BATCHES, stage_s=STAGE_S, activation_bytes=ACTIVATION_BYTES
        )
    else:
        program = data_parallel(
            slices, forward_s=FORWARD_S, backward_s=BACKWARD_S, buckets=BUCKETS, gradient_bytes=GRADIENT_BYTES
        )
    return program, initial_state(slices)


async def alone() -> dict[str, float]:
    """Return the time of a step of each tenant that has the link for itself."""
    async with islands_network(specification(), "ecmp") as network:
        with await _runtime(network.hosts, network.controller) as runtime:
            trained = {}
            for tenant in TENANTS:
                run = partial(train_alone, runtime, runtime.tokens[tenant], partial(built, tenant), _STEPS_ALONE)
                trained[tenant] = (await asyncio.to_thread(run)).step_s
            return trained


async def compared(policies: Sequence[str], for_s: float) -> AsyncIterator[Compared]:
    """Yield what each policy gives both tenants, who run beside each other for a time.

    Raises RunError where this machine makes no hosts.
    """
    for policy in policies:
        async with islands_network(specification(), policy) as network:
            with await _runtime(network.hosts, network.controller) as runtime:
                tenants = [(runtime.tokens[tenant], partial(built, tenant)) for tenant in TENANTS]
                trained, events = await asyncio.to_thread(train_together, runtime, tenants, for_s)
        yield Compared(policy, _steps(trained), announced_before_producer_end(events), events)


def _steps(trained: Sequence[Trained]) -> dict[str, float]:
    return {tenant: each.step_s for tenant, each in zip(TENANTS, trained, strict=True)}


async def _runtime(hosts: dict[int, Any], controller: str) -> rt.LocalRuntime:
    start = partial(
        rt.local,
        islands=len(ISLANDS),
        hosts=len(TENANTS),
        devices=1,
        weights=dict.fromkeys(TENANTS, 1.0),
        network_hosts=hosts,
        controller=controller,
    )
    return await asyncio.to_thread(start)
