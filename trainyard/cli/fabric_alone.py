"""An emulated fabric by itself: its switches wait for whatever controller comes, in wall-clock time."""

import asyncio
import gc
import signal
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress

from emulator.compiler.layout import UnsupportedError
from emulator.compiler.program import compile_program
from emulator.engine.events import END_PS
from emulator.entries import SwitchError
from emulator.fabric import EmulatedFabric
from emulator.p4runtime.errors import RequestError
from emulator.p4runtime.pipeline import Pipeline, compiled_pipeline
from emulator.p4runtime.server import serve, serve_each
from emulator.p4runtime.service import P4RuntimeService
from emulator.p4runtime.tls import ServerTls
from emulator.ports import CPU_PORT, DROP_PORT
from emulator.wall_clock import WallClock
from topologies.fabric import Fabric


class ClockEndError(Exception):
    """The fabric has been served for as long as its clock can count."""


class FabricAlone:
    """The switches of a fabric, all with the pipeline that ``p4info`` and ``json`` hold as p4c emits them.

    Making one compiles the pipeline. Raises ValueError where the pipeline is corrupt, the emulator cannot run it or a
    table cannot hold an entry that it brings, or a switch has a cable at ``cpu_port`` or ``drop_port``.
    """

    def __init__(
        self, fabric: Fabric, p4info: str, json: str, *, cpu_port: int = CPU_PORT, drop_port: int = DROP_PORT
    ) -> None:
        try:
            self._pipeline: Pipeline = compiled_pipeline(p4info, json.encode())
            self._emulated = EmulatedFabric(fabric, compile_program(json, drop_port=drop_port), cpu_port=cpu_port)
        except (RequestError, SwitchError, UnsupportedError) as error:
            raise ValueError(str(error)) from error
        self._emulated.run(0)

    async def serve(self, address: str, *, port_per_switch: bool, tls: ServerTls | None = None) -> None:
        """Serve P4Runtime until SIGTERM or SIGINT stops the clock; prints where once every switch answers.

        With a port per switch, they count up from that of the address, and gNMI tells the state of the switch's ports.
        With ``tls`` every client has to show a certificate. Raises OSError where an address cannot be bound, and
        ClockEndError 26.7 days later.
        """
        # To go through what compiling has left takes the garbage collector 0.2 s, while controllers wait.
        gc.freeze()
        exclusive = asyncio.Lock()
        emulated = self._emulated

        def send_packet(switch: str, octets: bytes) -> None:
            emulated.packet_out(switch, octets)
            clock.wake()

        service = P4RuntimeService(emulated.switches.values(), self._pipeline, exclusive, send_packet)
        clock = WallClock(emulated, exclusive, service.deliver)
        host, _, first_port = address.rpartition(":")
        async with AsyncExitStack() as stack:
            if port_per_switch:
                ports = await stack.enter_async_context(serve_each(service, host, int(first_port), tls))
            else:
                ports = dict.fromkeys(emulated.switches, await stack.enter_async_context(serve(service, address, tls)))
            passing = asyncio.create_task(clock.run(END_PS))
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, passing.cancel)
            self._print_addresses({name: f"{host}:{port}" for name, port in ports.items()})
            with suppress(asyncio.CancelledError):
                await passing
                raise ClockEndError("the fabric's clock has come to its end, 26.7 days after its start")

    def _print_addresses(self, addresses: Mapping[str, str]) -> None:
        switches = self._emulated.switches.values()
        width = max(len("switch"), *(len(switch.name) for switch in switches))
        rows = [f"{switch.device_id:>9}  {switch.name:{width}}  {addresses[switch.name]}" for switch in switches]
        print(f"device id  {'switch':{width}}  P4Runtime address", *rows, sep="\n", flush=True)
