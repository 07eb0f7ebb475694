"""Two islands on hosts of an emulated fabric: the real controller ranks what a program sends, and switches obey."""

import asyncio
import subprocess
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runtime as rt
from controller.config import ControllerConfig
from controller.switch_addresses import SwitchAddress
from experiments.scenarios.controller_process import ControllerProcess
from experiments.scenarios.real_hosts.emulator_process import EmulatorProcess
from hostlib.connection import Connection
from runtime.substrates.interface import NetworkHost
from runtime.traces import announced_before_producer_end
from tests.patience import PATIENCE_S
from tests.runtime.ranking import opened_sockets, until
from topologies.namespaces.fabric_namespaces import FabricNamespaces
from topologies.namespaces.host_network import NetworkError
from topologies.specification import ClosSpecification, DumbbellSpecification, Topology
from topologies.steering import Steering

pytestmark = pytest.mark.slow

SPECIFICATION = DumbbellSpecification(kind="dumbbell", hosts_per_side=1, host_link_gbps=0.2, bottleneck_gbps=0.2)
TWO_WAYS = ClosSpecification(kind="clos", tors=2, aggs=2, hosts_per_tor=1, host_link_gbps=0.2, uplink_gbps=0.2)
ITEMS = 1 << 14
MICRO_BATCHES = 4


@rt.function(library="numpy", outputs=lambda x: x)
def stage(x: Any) -> Any:
    """Take so long that a busy machine seems to double it in no run: the program would be registered anew."""
    import time

    time.sleep(0.1)
    return x + 1


def pipelined(runtime: rt.Runtime) -> Any:
    """A program whose micro-batches pass a stage on each island."""
    slices = [runtime.make_virtual_device_set().add_slice(1, island=f"island-{number}") for number in range(2)]
    first, second = (rt.pmap(stage, devices=each) for each in slices)

    @rt.program
    def program(*micro_batches: Any) -> Any:
        return tuple(second(first(each)) for each in micro_batches)

    return program


def run(program: Any) -> None:
    """Run a program twice, and see that it is right."""
    given = [np.full(ITEMS, float(number)) for number in range(MICRO_BATCHES)]
    for results in (program(*given), program(*given)):
        for number, result in enumerate(results):
            assert (result.numpy(PATIENCE_S) == number + 2).all()


def plan_of(runtime: rt.Runtime) -> int | None:
    """The number of the plan that ranks the only job; None where there is none."""
    jobs = runtime.status()["network"]["jobs"]
    return jobs[0]["plan"] if len(jobs) == 1 else None


def transfers_of(runtime: rt.Runtime) -> list[dict[str, Any]]:
    return [event for event in runtime.trace() if event.get("cat") == "transfer"]


@asynccontextmanager
async def fabric(
    folder: Path, topology: Topology = SPECIFICATION, steering: Steering = Steering.RULE
) -> AsyncIterator[tuple[ControllerProcess, dict[int, NetworkHost]]]:
    """A fabric with its controller; skipped where hosts cannot be made."""
    built = topology.build()
    with ExitStack() as stack:
        try:
            namespaces = stack.enter_context(FabricNamespaces(built))
        except NetworkError as error:
            pytest.skip(f"no islands are tried on a fabric: {error}")
        async with EmulatorProcess(built, namespaces, is_real_time=False, on_loss=print) as emulator:
            switches = tuple(
                SwitchAddress(name=name, address=emulator.address, device_id=number)
                for number, name in enumerate(built.switches, start=1)
            )
            listen = f"unix:{folder}/controller"
            config = ControllerConfig(
                listen=listen, topology=topology, switches=switches, policy="crux", steering=steering
            )
            async with ControllerProcess(config) as controller:
                # Until the controller has written base routing, no ping is answered.
                ping = namespaces.command("h0", "ping", "-c", "1", "-w", str(int(PATIENCE_S)), "h1")
                await asyncio.to_thread(subprocess.run, ping, check=True, capture_output=True)
                hosts = {
                    number: NetworkHost(name, f"10.0.{number}.1", tuple(namespaces.command(name)))
                    for number, name in enumerate(built.hosts)
                }
                yield controller, hosts


def test_transfers_are_ranked_and_go_on_while_the_controller_is_away(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with fabric(tmp_path) as (controller, hosts):
            starting = asyncio.to_thread(
                rt.local, islands=2, devices=1, network_hosts=hosts, controller=controller.address
            )
            runtime = await starting
            try:
                program = pipelined(runtime)
                await asyncio.to_thread(run, program)
                await asyncio.to_thread(until, lambda: plan_of(runtime) is not None or run(program))
                await asyncio.to_thread(check_ranked, runtime, program)
                async with Connection(controller.address) as connection:
                    told = (await connection.plan()).flows
                assert len(told) == MICRO_BATCHES
                assert {flow.five_tuple.protocol for flow in told} == {6}
                assert {flow.source.host for flow in told} == {"h0"}

                await controller.kill()
                before = len(await asyncio.to_thread(transfers_of, runtime))
                await asyncio.to_thread(run, program)
                after = await asyncio.to_thread(transfers_of, runtime)
                assert len(after) == before + 2 * MICRO_BATCHES

                await controller.restart()
                async with Connection(controller.address) as connection:
                    while not (await connection.plan()).flows:
                        await asyncio.sleep(0.1)
                await asyncio.to_thread(check_ranked, runtime, program)
            finally:
                await asyncio.to_thread(runtime.close)

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))


def test_flows_send_from_the_ports_that_give_them_the_paths_of_the_plan(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with fabric(tmp_path, TWO_WAYS, Steering.SOURCE_PORT) as (controller, hosts):
            starting = asyncio.to_thread(
                rt.local, islands=2, devices=1, network_hosts=hosts, controller=controller.address
            )
            runtime = await starting
            try:
                program = pipelined(runtime)
                await asyncio.to_thread(run, program)
                await asyncio.to_thread(until, lambda: plan_of(runtime) is not None or run(program))
                async with Connection(controller.address) as connection:
                    told = (await connection.plan()).flows
                assert len({flow.path for flow in told}) == 2
                assert all(flow.steered for flow in told)
                ports = {flow.five_tuple.source_port for flow in told}
                assert len(ports) == MICRO_BATCHES
                await asyncio.to_thread(until, lambda: {port for port, _ in sockets_of(runtime)} == ports)
                await asyncio.to_thread(check_ranked, runtime, program)
                assert runtime.status()["network"]["jobs"][0]["unsteered"] == 0
            finally:
                await asyncio.to_thread(runtime.close)

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))


def sockets_of(runtime: rt.Runtime) -> list[tuple[int, int]]:
    """Port and level of the connections that the first host has opened over the fabric, as its kernel has them."""
    slice_ = runtime.make_virtual_device_set().add_slice(1, island="island-0")
    seen = rt.pmap(opened_sockets, devices=slice_, out_axes=None)(np.zeros(1)).numpy(PATIENCE_S)
    return [(int(port), int(level)) for port, level in seen if level >= 0]


def check_ranked(runtime: rt.Runtime, program: Any) -> None:
    """See that what a program sends was announced before it was made, and goes at the level of its flow."""
    until(lambda: all(level >= 0 for host in runtime.status()["hosts"] for _, _, level, _ in host["flows"]))
    before = len(transfers_of(runtime))
    run(program)
    transfers = transfers_of(runtime)[before:]
    assert len(transfers) == 2 * MICRO_BATCHES
    assert announced_before_producer_end(transfers) == 1.0
    levels = {event["args"]["level"] for event in transfers}
    assert None not in levels
    assert all(event["args"]["ranked_us"] < event["ts"] for event in transfers)
    assert levels == {level for _, level in sockets_of(runtime)}
