"""An emulated fabric in wall-clock time, which serves P4Runtime to any controller."""

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
    """The clock of the emulator has reached the last time that it can count."""


class StandaloneEmulator:
    """The switches of a fabric, all with one pipeline, in wall-clock time.

    Args:
        fabric: The fabric.
        p4info: P4Info of the pipeline in text form, as p4c emits it.
        json: BMv2 JSON of the same pipeline. It is compiled here.
        cpu_port: Port of packets from and to the controller.
        drop_port: Egress port of packets that the pipeline drops.

    Raises:
        ValueError: The pipeline is corrupt, the emulator cannot run it, a table cannot hold one of its entries, or a
            switch has a cable at ``cpu_port`` or ``drop_port``.
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
        """Serve P4Runtime until SIGTERM or SIGINT; prints the addresses once every switch answers.

        Args:
            address: Where to listen, ``HOST:PORT``.
            port_per_switch: Serve every switch at a port of its own, counted up from that of the address, with gNMI for
                the state of its ports.
            tls: Serve TLS, and require a certificate of every client.

        Raises:
            OSError: An address cannot be bound.
            ClockEndError: The emulator has run for 26.7 days.
        """
        # Else the garbage collector visits what compiling has left, which takes 0.2 s while controllers wait.
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
                raise ClockEndError("the clock has reached its end, 26.7 days after the start")

    def _print_addresses(self, addresses: Mapping[str, str]) -> None:
        switches = self._emulated.switches.values()
        width = max(len("switch"), *(len(switch.name) for switch in switches))
        rows = [f"{switch.device_id:>9}  {switch.name:{width}}  {addresses[switch.name]}" for switch in switches]
        print(f"device id  {'switch':{width}}  P4Runtime address", *rows, sep="\n", flush=True)
