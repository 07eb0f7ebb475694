"""P4Runtime service over the switches of a fabric, as gRPC calls it."""

import asyncio
import copy
from collections.abc import AsyncIterator, Iterable, Mapping
from itertools import count

import grpc
from finsy.proto import U128, p4r, p4r_grpc

from emulator.compiler.program import Program
from emulator.observations import PacketIn
from emulator.p4runtime.aborting import Aborting
from emulator.p4runtime.device import Device, SendPacket
from emulator.p4runtime.errors import (
    not_found,
    permission_denied,
    require_success,
    resource_exhausted,
    unimplemented,
)
from emulator.p4runtime.pipeline import Pipeline
from emulator.p4runtime.programs import Programs
from emulator.p4runtime.read import reading, responses
from emulator.p4runtime.roles import Permissions, covered
from emulator.p4runtime.slicing import MAX_STEPS, BetweenSlices, give_way, in_slices, to_the_end
from emulator.p4runtime.stream import StreamSession
from emulator.p4runtime.write import writing
from emulator.switch import EmulatedSwitch

API_VERSION = "1.4.1"

_READS = 4
_TAKEN_WITHIN_S = 30.0

# A client may send a number that has no name.
_ATOMICITIES: dict[int, str] = {number: name for name, number in p4r.WriteRequest.Atomicity.items()}


class P4RuntimeService(p4r_grpc.P4RuntimeServicer):
    """All switches of a fabric, distinguished by their device ids.

    ``program`` is the pipeline that all switches were compiled for, or that of each switch by its name; a device has
    none until a controller sets it. With ``programs`` a controller may set any other, which is compiled while packets
    pass; without, others are refused. The service holds ``exclusive`` while it reads or writes switches, and never
    while it awaits anything. The fabric's clock takes the same lock to advance, so a batch takes effect between two
    packets. ``send_packet`` is the fabric's ``packet_out``, called while ``exclusive`` is held; without it a PacketOut
    is refused. The caller must pass packets from CPU ports to ``deliver``. ``between_slices`` is awaited, with
    ``exclusive`` held, between parts of a long request. Raises ValueError if two switches have the same id.
    """

    def __init__(
        self,
        switches: Iterable[EmulatedSwitch],
        program: Pipeline | Mapping[str, Pipeline],
        exclusive: asyncio.Lock,
        send_packet: SendPacket | None = None,
        *,
        between_slices: BetweenSlices = give_way,
        programs: Programs | None = None,
    ) -> None:
        self._programs = programs
        self._compiling = asyncio.Lock()
        self._between_slices = between_slices
        self._devices: dict[int, Device] = {}
        for switch in switches:
            if switch.device_id in self._devices:
                other = self._devices[switch.device_id].switch
                raise ValueError(f"switches {other.name!r} and {switch.name!r} both have device id {switch.device_id}")
            own = program.get(switch.name) if isinstance(program, Mapping) else program
            self._devices[switch.device_id] = Device(switch, own, send_packet, programs.load if programs else None)
        self._exclusive = exclusive
        self._reads = asyncio.Semaphore(_READS)
        self._stream_numbers = count()

    @property
    def switches(self) -> tuple[EmulatedSwitch, ...]:
        """Served switches."""
        return tuple(device.switch for device in self._devices.values())

    @property
    def exclusive(self) -> asyncio.Lock:
        """Held by whoever reads or writes the switches."""
        return self._exclusive

    def load(self, switch: str, updates: Iterable[p4r.Update]) -> None:
        """Set the pipeline of a switch and carry out updates, as a controller would; call it before serving.

        Raises BatchError, which has a result for each update.
        """
        device = next(device for device in self._devices.values() if device.switch.name == switch)
        device.load(list(updates))

    def alone(self, switch: EmulatedSwitch) -> "P4RuntimeService":
        """Return this service for one of its switches, with the same device, streams and pipeline."""
        service = copy.copy(self)
        service._devices = {switch.device_id: self._devices[switch.device_id]}
        return service

    def deliver(self, packets: Iterable[PacketIn]) -> None:
        """Pass packets from the switches' CPU ports, and digests, to the primaries of the roles that receive them.

        Also tell the primaries of entries that have become idle. Call it with the fabric's ``packets_in`` after each
        advance of its clock, in the event loop's thread.
        """
        devices = {device.switch.name: device for device in self._devices.values()}
        for packet in packets:
            if packet.digest:
                devices[packet.switch].learn(packet)
            else:
                devices[packet.switch].packet_in(packet.octets)
        for device in self._devices.values():
            if device.switch.ages:
                device.tell_idle()

    # grpc.aio also accepts a coroutine that writes to the stream; the generated base class does not declare it.
    async def StreamChannel(  # type: ignore[override]  # noqa: N802
        self,
        request_iterator: AsyncIterator[p4r.StreamMessageRequest],
        context: grpc.aio.ServicerContext[p4r.StreamMessageRequest, p4r.StreamMessageResponse],
    ) -> None:
        """Serve arbitration and packets until the client ends the stream."""
        session = StreamSession(next(self._stream_numbers), self._devices, self._exclusive)
        async with Aborting(context):
            await session.run(request_iterator, context.write)

    async def Write(  # noqa: N802
        self, request: p4r.WriteRequest, context: grpc.aio.ServicerContext[p4r.WriteRequest, p4r.WriteResponse]
    ) -> p4r.WriteResponse:
        """Carry out a batch of updates for the primary controller of a role."""
        async with Aborting(context), self._exclusive:
            # The primary may have changed while this call waited, so everything is checked here.
            device, permissions = self._primary_device(request)
            target = device.addressed()
            if request.atomicity != p4r.WriteRequest.CONTINUE_ON_ERROR:
                name = _ATOMICITIES.get(request.atomicity, request.atomicity)
                raise unimplemented(f"atomicity {name} is not supported, only CONTINUE_ON_ERROR")
            if len(request.updates) > MAX_STEPS:
                raise resource_exhausted(f"a write of more than {MAX_STEPS:,} entities")
            results: list[p4r.Error] = []
            await in_slices(
                writing(target, request.updates, results, request.role, permissions), "a write", self._between_slices
            )
            require_success("updates", results)
        return p4r.WriteResponse()

    async def Read(  # type: ignore[override]  # noqa: N802
        self, request: p4r.ReadRequest, context: grpc.aio.ServicerContext[p4r.ReadRequest, p4r.ReadResponse]
    ) -> None:
        """Return a device's entities at one moment."""
        entities: list[p4r.Entity] = []
        results: list[p4r.Error] = []
        # Few at a time, so that others' writes come in between, and few answers are held for slow clients.
        async with Aborting(context), self._reads:
            async with self._exclusive:
                device = self._device(request.device_id)
                permissions = device.clients.permissions(request.role)
                target = device.addressed()
                await in_slices(reading(target, request.entities, entities, results), "a read", self._between_slices)
            try:
                async with asyncio.timeout(_TAKEN_WITHIN_S):
                    for response in responses(covered(permissions, entities)):
                        await context.write(response)
            except TimeoutError:
                raise resource_exhausted(f"the answer was not taken within {_TAKEN_WITHIN_S:g} s") from None
            require_success("reads", results)

    async def SetForwardingPipelineConfig(  # noqa: N802
        self,
        request: p4r.SetForwardingPipelineConfigRequest,
        context: grpc.aio.ServicerContext[
            p4r.SetForwardingPipelineConfigRequest, p4r.SetForwardingPipelineConfigResponse
        ],
    ) -> p4r.SetForwardingPipelineConfigResponse:
        """Verify, save or commit a pipeline for the primary controller."""
        config = request.config if request.HasField("config") else None
        async with Aborting(context):
            async with self._exclusive:
                device = self._pushed_device(request)
                unknown = device.program_to_compile(request.action, config)
                if unknown is None:
                    await to_the_end(device.configure(request.action, config), self._between_slices)
            if unknown is not None:
                program = await self._compiled(unknown)
                async with self._exclusive:
                    # Packets have passed meanwhile, and the primary may have changed.
                    device = self._pushed_device(request)
                    await to_the_end(device.configure(request.action, config, program), self._between_slices)
        return p4r.SetForwardingPipelineConfigResponse()

    async def GetForwardingPipelineConfig(  # noqa: N802
        self,
        request: p4r.GetForwardingPipelineConfigRequest,
        context: grpc.aio.ServicerContext[
            p4r.GetForwardingPipelineConfigRequest, p4r.GetForwardingPipelineConfigResponse
        ],
    ) -> p4r.GetForwardingPipelineConfigResponse:
        """Return the pipeline of a device."""
        async with Aborting(context):
            pipeline = self._device(request.device_id).require_target().pipeline
        return p4r.GetForwardingPipelineConfigResponse(config=pipeline.part(request.response_type))

    async def Capabilities(  # noqa: N802
        self,
        _request: p4r.CapabilitiesRequest,
        _context: grpc.aio.ServicerContext[p4r.CapabilitiesRequest, p4r.CapabilitiesResponse],
    ) -> p4r.CapabilitiesResponse:
        """Return the served version of P4Runtime."""
        return p4r.CapabilitiesResponse(p4runtime_api_version=API_VERSION)

    async def _compiled(self, device_config: bytes) -> Program:
        """Return a program, compiled by a thread of its own, one after the other.

        A thread cannot be stopped, so the next one waits for it even if its client has left.
        """
        assert self._programs is not None
        await self._compiling.acquire()
        compiling = asyncio.ensure_future(asyncio.to_thread(self._programs.compile, device_config))
        compiling.add_done_callback(lambda _: self._compiling.release())
        return await asyncio.shield(compiling)

    def _pushed_device(self, request: p4r.SetForwardingPipelineConfigRequest) -> Device:
        device, permissions = self._primary_device(request)
        if not permissions.pushes_pipeline:
            raise permission_denied(f"role {request.role!r} sets no pipeline")
        return device

    def _device(self, device_id: int) -> Device:
        device = self._devices.get(device_id)
        if device is None:
            raise not_found(f"there is no device {device_id}")
        device.require_power()
        return device

    def _primary_device(
        self, request: p4r.WriteRequest | p4r.SetForwardingPipelineConfigRequest
    ) -> tuple[Device, Permissions]:
        device = self._device(request.device_id)
        if request.role_id:
            raise unimplemented(f"role id {request.role_id}: roles by number are not supported, only by name")
        election_id = U128.decode(request.election_id) if request.HasField("election_id") else None
        return device, device.require_primary(election_id, request.role)
