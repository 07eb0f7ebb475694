"""Entries that age where real interfaces are attached: hit by real frames, told idle by the machine's clock."""

import asyncio

from emulator.ageing import IdleEntry
from emulator.compiler.program import compile_program
from emulator.entries import ActionCall, EntryKey, FieldMatch
from emulator.wired_fabric import WiredFabric
from tests.bmv2.small_programs import AGEING
from tests.emulator.lab import LAB, packets_of, run
from tests.namespaces import Namespaces
from tests.patience import until
from topologies.fabric import Cable, Fabric

HOSTS = ("host1", "host2", "host3")
FABRIC = Fabric(HOSTS, ("switch",), tuple(Cable((host, "switch"), 1e12, 0.0) for host in HOSTS), 1)
LEARNED, TIMEOUT_PS = "ingress.learned", 50_000_000_000


def test_real_frames_hit_entries_and_silence_is_told(lab: Namespaces) -> None:
    async def scenario() -> None:
        wires = {(host, 0): f"f{port}" for port, host in enumerate(HOSTS, start=1)}
        program = compile_program(AGEING.json.read_text(), is_wired=True)
        fabric, found = WiredFabric(FABRIC, program, wires, namespace=lab.file(LAB)), list[IdleEntry]()
        switch = fabric.switches["switch"]
        serving = asyncio.create_task(fabric.serve(lambda _: found.extend(switch.idle_entries())))
        await fabric.is_passing.wait()
        key = EntryKey((FieldMatch(7, 0xFF),))
        async with fabric.exclusive:
            switch.clear()
            switch.insert(LEARNED, key, ActionCall("ingress.forward", (2,)))
            inserted_ps = switch.last_hit_ps(LEARNED, key)
        with packets_of(lab, "e1") as sender:
            sender.send(bytes([7, 1]) + bytes(60))

            async def has_been_hit() -> bool:
                async with fabric.exclusive:
                    return switch.last_hit_ps(LEARNED, key) > inserted_ps

            while not await has_been_hit():
                await asyncio.sleep(0.001)
            async with fabric.exclusive:
                hit_ps = switch.last_hit_ps(LEARNED, key)
                # The fabric waits for news, of which there is none but this.
                switch.set_idle_timeout(LEARNED, key, TIMEOUT_PS)
            await until(lambda: len(found) >= 2)
        assert {(entry.table, entry.key) for entry in found} == {(LEARNED, key)}
        first, second = (entry.time_ps for entry in found[:2])
        assert first - hit_ps >= TIMEOUT_PS
        assert second - first >= TIMEOUT_PS
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)

    run(scenario)
