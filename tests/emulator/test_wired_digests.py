"""Digests of real frames, and a program whose actions have loops where real interfaces are attached."""

import asyncio
from functools import cache

from emulator.compiler.program import Program, compile_program
from emulator.observations import PacketIn
from emulator.wired_fabric import WiredFabric
from tests.bmv2.small_programs import DIGESTS, LOOPS, SmallProgram
from tests.emulator.lab import LAB, packets_of, run
from tests.namespaces import Namespaces
from tests.patience import until
from topologies.fabric import Cable, Fabric

HOSTS = ("host1", "host2", "host3")
FABRIC = Fabric(HOSTS, ("switch",), tuple(Cable((host, "switch"), 1e12, 0.0) for host in HOSTS), 1)
SOURCE = bytes.fromhex("0a1122334455")


@cache
def compiled(program: SmallProgram) -> Program:
    """A program for real interfaces, compiled once."""
    return compile_program(program.json.read_text(), is_wired=True)


def made(lab: Namespaces, program: SmallProgram) -> WiredFabric:
    """A switch with a wire on each port."""
    wires = {(host, 0): f"f{port}" for port, host in enumerate(HOSTS, start=1)}
    return WiredFabric(FABRIC, compiled(program), wires, namespace=lab.file(LAB))


def test_digests_of_real_frames_are_told(lab: Namespaces) -> None:
    async def scenario() -> None:
        fabric, found = made(lab, DIGESTS), list[PacketIn]()
        serving = asyncio.create_task(fabric.serve(found.extend))
        await fabric.is_passing.wait()
        async with fabric.exclusive:
            fabric.switches["switch"].clear()
        with packets_of(lab, "e3") as sender:
            for _ in range(5):
                sender.send(b"\2" + SOURCE + bytes(60))
            await until(lambda: len(found) == 5)
        assert {(packet.switch, packet.digest, packet.octets) for packet in found} == {("switch", 2, SOURCE + b"\2")}
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)

    run(scenario)


def test_a_real_frame_for_which_a_loop_does_not_end_is_counted(lab: Namespaces) -> None:
    async def scenario() -> None:
        fabric = made(lab, LOOPS)
        serving = asyncio.create_task(fabric.serve(lambda _: None))
        await fabric.is_passing.wait()
        async with fabric.exclusive:
            fabric.switches["switch"].clear()
        with packets_of(lab, "e1") as sender:
            sender.send(bytes([3, 0, 2]) + bytes(60))
            await until(lambda: fabric.drops("switch").too_many_repeats == 1)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)

    run(scenario)
