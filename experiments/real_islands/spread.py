"""A program on several islands of a fabric beside the same program on one island, where nothing crosses a network."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import runtime as rt
from experiments.real_islands.network import islands_network
from experiments.real_islands.programs import Program, data_parallel, initial_state, pipelined
from experiments.real_islands.rates import train_alone
from runtime.pipelines import gpipe
from runtime.traces import announced_before_producer_end
from topologies.specification import DumbbellSpecification

LINK_GBPS = 0.1
_BYTES_PER_S = LINK_GBPS * 1e9 / 8
MICRO_BATCHES, STAGE_S = 64, 0.02
"""With fewer micro-batches, the first and the last one wait too long for their hops: 32 leave 0.964 on four islands."""
FORWARD_S, BACKWARD_S, BUCKETS = 0.1, 0.4, 16
_SHARE = 0.4
"""Of a step for which links carry what crosses islands, in both directions together."""
_STEPS = 5

OnSlices = Callable[[Sequence[rt.VirtualSlice]], Program]


@dataclass(frozen=True, slots=True)
class Spread:
    """The time of a step on one island and on several, and which share of transfers was announced in time."""

    one_s: float
    several_s: float
    announced_share: float | None

    @property
    def share(self) -> float:
        """How fast the program is on several islands, as a share of how fast it is on one."""
        return self.one_s / self.several_s


def pipeline_on(slices: Sequence[rt.VirtualSlice]) -> Program:
    """Return a pipeline with a stage on each slice, whose activations take their share of a step on each link."""
    step_s = 2 * STAGE_S * (MICRO_BATCHES + len(slices) - 1)
    activation_bytes = round(_SHARE * step_s * _BYTES_PER_S / (2 * MICRO_BATCHES))
    return pipelined(slices, gpipe, micro_batches=MICRO_BATCHES, stage_s=STAGE_S, activation_bytes=activation_bytes)


def replicas_on(slices: Sequence[rt.VirtualSlice]) -> Program:
    """Return data parallelism with a replica on each of two slices; gradients take their share of a step each way."""
    gradient_bytes = round(_SHARE * (FORWARD_S + BACKWARD_S) * _BYTES_PER_S)
    return data_parallel(
        slices, forward_s=FORWARD_S, backward_s=BACKWARD_S, buckets=BUCKETS, gradient_bytes=gradient_bytes
    )


async def spread(program: OnSlices, islands: int) -> Spread:
    """Measure a program on one island of so many hosts, and on so many islands of one host each, ranked by EchelonFlow.

    Raises RunError where this machine makes no hosts.
    """
    with await asyncio.to_thread(partial(rt.local, islands=1, hosts=islands, devices=1)) as runtime:
        one_s, _ = await asyncio.to_thread(_measured, runtime, program, ["island-0"] * islands)
    specification = DumbbellSpecification(
        kind="dumbbell", hosts_per_side=(islands + 1) // 2, host_link_gbps=LINK_GBPS, bottleneck_gbps=LINK_GBPS
    )
    async with islands_network(specification, "echelonflow") as network:
        hosts = {number: network.hosts[_host(number, islands)] for number in range(islands)}
        start = partial(rt.local, islands, 1, 1, network_hosts=hosts, controller=network.controller)
        with await asyncio.to_thread(start) as runtime:
            names = [f"island-{number}" for number in range(islands)]
            several_s, events = await asyncio.to_thread(_measured, runtime, program, names)
    return Spread(one_s, several_s, announced_before_producer_end(events))


def _host(number: int, islands: int) -> int:
    """Return the host of an island: two islands on either side of the fabric's link, four by twos."""
    return number if islands > 2 else number * ((islands + 1) // 2)


def _measured(
    runtime: rt.LocalRuntime, program: OnSlices, islands: Sequence[str]
) -> tuple[float, list[dict[str, Any]]]:
    def build(client: rt.Runtime) -> tuple[Program, Sequence[Any]]:
        devices = client.make_virtual_device_set()
        slices = [devices.add_slice(1, island=island) for island in islands]
        return program(slices), initial_state(slices)

    trained = train_alone(runtime, runtime.tokens["local"], build, _STEPS)
    return trained.step_s, runtime.trace()
