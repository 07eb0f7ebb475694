"""An emulated fabric by itself: its switches wait for whatever controller comes, in wall-clock time."""

import asyncio
import signal
from contextlib import suppress

from emulator.compiler.layout import UnsupportedError
from emulator.compiler.program import compile_program
from emulator.fabric import EmulatedFabric
from emulator.p4runtime.errors import RequestError
from emulator.p4runtime.pipeline import Pipeline, compiled_pipeline
from emulator.p4runtime.server import serve
from emulator.p4runtime.service import P4RuntimeService
from emulator.wall_clock import WallClock
from topologies.fabric import Fabric

_END_PS = 2**63 - 1


class FabricAlone:
    """The switches of a fabric, all with the pipeline that ``p4info`` and ``json`` hold as p4c emits them.

    Making one compiles the pipeline. Raises ValueError where the pipeline is corrupt or the emulator cannot run it.
    """

    def __init__(self, fabric: Fabric, p4info: str, json: str) -> None:
        try:
            self._pipeline: Pipeline = compiled_pipeline(p4info, json.encode())
            self._emulated = EmulatedFabric(fabric, compile_program(json))
        except (RequestError, UnsupportedError) as error:
            raise ValueError(str(error)) from error
        self._emulated.run(0)

    async def serve(self, address: str) -> None:
        """Serve P4Runtime until SIGTERM or SIGINT stops the clock; prints where once every switch answers.

        Raises OSError where the address cannot be bound.
        """
        exclusive = asyncio.Lock()
        service = P4RuntimeService(self._emulated.switches.values(), self._pipeline, exclusive)
        async with serve(service, address) as port:
            clock = asyncio.create_task(WallClock(self._emulated, exclusive).run(_END_PS))
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, clock.cancel)
            self._print_addresses(f"{address.rpartition(':')[0]}:{port}")
            with suppress(asyncio.CancelledError):
                await clock

    def _print_addresses(self, address: str) -> None:
        switches = self._emulated.switches.values()
        width = max(len("switch"), *(len(switch.name) for switch in switches))
        rows = [f"{switch.device_id:>9}  {switch.name:{width}}  {address}" for switch in switches]
        print(f"device id  {'switch':{width}}  P4Runtime address", *rows, sep="\n", flush=True)
