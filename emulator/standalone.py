"""An emulated fabric in wall-clock time, which serves P4Runtime to any controller."""

import asyncio
import gc
import logging
import signal
import sys
import time
from collections.abc import Awaitable, Iterable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from emulator.compiler.layout import UnsupportedError
from emulator.compiler.program import Program, compile_program
from emulator.engine.events import END_PS
from emulator.entries import SwitchError
from emulator.fabric import EmulatedFabric
from emulator.observations import PacketIn
from emulator.p4runtime.entry_files import EntryFile, places_of, updates_of
from emulator.p4runtime.errors import BatchError, RequestError
from emulator.p4runtime.pipeline import Pipeline, compiled_pipeline
from emulator.p4runtime.programs import ProgramsOfFabric
from emulator.p4runtime.readable import EntryError
from emulator.p4runtime.server import serve, serve_each
from emulator.p4runtime.service import P4RuntimeService
from emulator.p4runtime.tls import ServerTls
from emulator.packet_io.messages import PacketAddress
from emulator.packet_io.packet_sockets import packet_sockets
from emulator.ports import CPU_PORT, DROP_PORT
from emulator.real_time import RealTime, RealTimeError
from emulator.tracing.packet_trace import trace_packet
from emulator.tracing.steps import PacketTrace
from emulator.wall_clock import WallClock
from emulator.wired_fabric import QUEUE_BYTES, WiredFabric
from topologies.fabric import Fabric

_SWITCH_INTERVAL_S = 0.0005
"""So long the thread that passes frames waits for another thread's Python."""
_LOG = logging.getLogger(__name__)

NO_ENTRIES: Mapping[str, EntryFile] = MappingProxyType({})
NO_PACKETS: Mapping[str, PacketAddress] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Wires:
    """Real interfaces, in place of hosts.

    Attributes:
        interfaces: By host and number of its NIC, the name of an interface.
        namespace: A file of their network namespace; None: that of the process.
        mtu_bytes: The longest IP packet; None: that of the interfaces.
        queue_bytes: What each queue of the fabric holds.
        is_real_time: Whether the process is to have real-time priority.
    """

    interfaces: Mapping[tuple[str, int], str]
    namespace: Path | None = None
    mtu_bytes: int | None = None
    queue_bytes: int = QUEUE_BYTES
    is_real_time: bool = False


@dataclass(frozen=True, slots=True)
class PipelineTexts:
    """P4Info in text form and BMv2 JSON of one pipeline, as p4c emits them; ``name`` says whose they are."""

    name: str
    p4info: str
    json: str


class ClockEndError(Exception):
    """The clock of the emulator has reached the last time that it can count."""


class StandaloneEmulator:
    """The switches of a fabric in wall-clock time, each with its pipeline.

    Args:
        fabric: The fabric.
        pipeline: The pipeline, which is compiled here.
        own: Pipelines of switches that have another one, by the switches' names. They are compiled here, too.
        cpu_port: Port of packets from and to the controller.
        drop_port: Egress port of packets that the pipeline drops.
        wires: Real interfaces; None: the fabric has no hosts.
        entries: By switch, what it holds from the start. A switch without has no pipeline until a controller sets one.
        packets: By switch, where programs exchange packets with it; not with ``wires``, whose hosts do.

    Raises:
        InterfaceError: An interface is not there, or may not be used.
        ValueError: The pipeline is corrupt, the emulator cannot run it, a table cannot hold one of its entries, or a
            switch has a cable at ``cpu_port`` or ``drop_port``.
    """

    def __init__(
        self,
        fabric: Fabric,
        pipeline: PipelineTexts,
        *,
        own: Mapping[str, PipelineTexts] = MappingProxyType({}),
        cpu_port: int = CPU_PORT,
        drop_port: int = DROP_PORT,
        wires: Wires | None = None,
        entries: Mapping[str, EntryFile] = NO_ENTRIES,
        packets: Mapping[str, PacketAddress] = NO_PACKETS,
    ) -> None:
        self._wires = wires
        self._packets = packets
        self._clock: WallClock | None = None
        texts = {switch: own.get(switch, pipeline) for switch in fabric.switches}
        compiled = {
            each: _compiled(each, drop_port, is_wired=wires is not None) for each in {*texts.values()} or {pipeline}
        }
        self._pipelines = {switch: compiled[each][0] for switch, each in texts.items()}
        programs = {switch: compiled[each][1] for switch, each in texts.items()} or compiled[pipeline][1]
        try:
            if wires is None:
                self._emulated = EmulatedFabric(fabric, programs, cpu_port=cpu_port)
                self._emulated.run(0)
                self._emulated.prepare_packets()
            else:
                self._emulated = WiredFabric(
                    *(fabric, programs, wires.interfaces),
                    namespace=wires.namespace,
                    mtu_bytes=wires.mtu_bytes,
                    queue_limit_bytes=wires.queue_bytes,
                    cpu_port=cpu_port,
                )
        except SwitchError as error:
            raise ValueError(str(error)) from error
        self._programs = ProgramsOfFabric(self._emulated, drop_port=drop_port, is_wired=wires is not None)
        self._service = self._made_service()
        for switch, file in entries.items():
            self._load(switch, file)

    def _made_service(self) -> P4RuntimeService:
        emulated = self._emulated
        switches = emulated.switches.values()
        if isinstance(emulated, WiredFabric):
            return P4RuntimeService(
                *(switches, self._pipelines, emulated.exclusive, emulated.packet_out),
                between_slices=emulated.breathe,
                programs=self._programs,
            )

        def send_packet(switch: str, octets: bytes) -> None:
            emulated.packet_out(switch, octets)
            self._wake()

        return P4RuntimeService(switches, self._pipelines, asyncio.Lock(), send_packet, programs=self._programs)

    def _load(self, switch: str, file: EntryFile) -> None:
        try:
            self._service.load(switch, updates_of(file, self._pipelines[switch].message.p4info))
        except BatchError as error:
            results = zip(places_of(file), error.results, strict=True)
            lines = [f"{place}: {result.message}" for place, result in results if result.canonical_code]
            raise ValueError("; ".join(f"entries of {switch}: {line}" for line in lines)) from error
        except EntryError as error:
            raise ValueError("; ".join(f"entries of {switch}: {line}" for line in str(error).splitlines())) from error

    def _wake(self) -> None:
        if self._clock is not None:
            self._clock.wake()

    async def serve(
        self, address: str, *, port_per_switch: bool, tls: ServerTls | None = None, pcap: Path | None = None
    ) -> None:
        """Serve P4Runtime until SIGTERM or SIGINT; prints the addresses once every switch answers.

        Args:
            address: Where to listen, ``HOST:PORT``.
            port_per_switch: Serve every switch at a port of its own, counted up from that of the address, so that gNMI
                clients need not name it.
            tls: Serve TLS, and require a certificate of every client.
            pcap: A folder for files with the packets of all ports (``emulator.port_files``).

        Raises:
            OSError: An address cannot be bound, or a file not written.
            ClockEndError: The emulator has run for 26.7 days.
        """
        # Else the garbage collector visits what compiling has left, which takes 0.2 s while controllers wait.
        gc.freeze()
        emulated = self._emulated
        service = self._service
        if pcap is not None:
            emulated.record_packets(pcap, starts_ns=time.time_ns() - emulated.now_ps // 1000)
        async with AsyncExitStack() as stack:
            if isinstance(emulated, WiredFabric):
                sys.setswitchinterval(_SWITCH_INTERVAL_S)
                passing = asyncio.create_task(self._to_the_end(emulated.serve(service.deliver)))
                begun = asyncio.create_task(emulated.is_passing.wait())
                await asyncio.wait((passing, begun), return_when=asyncio.FIRST_COMPLETED)
                if passing.done():
                    begun.cancel()
                    await passing
            else:
                attaching = packet_sockets(emulated, self._packets, service.exclusive, self._wake)
                reach_programs = await stack.enter_async_context(attaching)

                def deliver(packets: Iterable[PacketIn]) -> None:
                    service.deliver(packets)
                    reach_programs(emulated.captured())

                self._clock = WallClock(emulated, service.exclusive, deliver)
                passing = asyncio.create_task(self._to_the_end(self._clock.run(END_PS)))
            host, _, first_port = address.rpartition(":")
            if port_per_switch:
                serving = serve_each(service, host, int(first_port), tls, emulated.set_port, self._trace)
                ports = await stack.enter_async_context(serving)
            else:
                port = await stack.enter_async_context(serve(service, address, tls, emulated.set_port, self._trace))
                ports = dict.fromkeys(emulated.switches, port)
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, passing.cancel)
            if self._wires is not None and self._wires.is_real_time:
                self._become_real_time()
            self._print_addresses({name: f"{host}:{port}" for name, port in ports.items()})
            with suppress(asyncio.CancelledError):
                await passing

    def _trace(self, switch: str, port: int, octets: bytes, length: int | None) -> PacketTrace:
        return trace_packet(self._emulated, switch, port, octets, length=length)

    @staticmethod
    async def _to_the_end(passing: Awaitable[object]) -> None:
        await passing
        raise ClockEndError("the clock has reached its end, 26.7 days after the start")

    def _become_real_time(self) -> None:
        """Ask for real time, or warn; the process has it until it ends, or until it hogs its core."""
        signal.signal(signal.SIGXCPU, signal.SIG_IGN)  # it may come as soon as there is a limit
        try:
            real_time = RealTime()
        except RealTimeError as error:
            signal.signal(signal.SIGXCPU, signal.SIG_DFL)
            _LOG.warning("%s; the emulator goes on without", error)
            return

        def end(*_: object) -> None:
            real_time.end()
            _LOG.warning("real time has ended: the emulator has not left its core for 200 ms")

        # Not by the event loop, which may be what does not leave the core.
        signal.signal(signal.SIGXCPU, end)

    def _print_addresses(self, addresses: Mapping[str, str]) -> None:
        switches = self._emulated.switches.values()
        width = max(len("switch"), *(len(switch.name) for switch in switches))
        rows = [f"{switch.device_id:>9}  {switch.name:{width}}  {addresses[switch.name]}" for switch in switches]
        print(f"device id  {'switch':{width}}  P4Runtime address", *rows, sep="\n", flush=True)


def _compiled(texts: PipelineTexts, drop_port: int, *, is_wired: bool) -> tuple[Pipeline, Program]:
    """Return a pipeline and its program. Raises ValueError, with the pipeline's name."""
    try:
        pipeline = compiled_pipeline(texts.p4info, texts.json.encode())
        return pipeline, compile_program(texts.json, drop_port=drop_port, is_wired=is_wired)
    except (RequestError, SwitchError, UnsupportedError, ValueError) as error:
        raise ValueError(f"{texts.name}: {error}") from error
