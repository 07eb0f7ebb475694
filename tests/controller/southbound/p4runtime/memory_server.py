"""A P4Runtime server in memory, and the controller's side of it, over gRPC on loopback."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc.aio
import pytest
from finsy.proto import p4r, p4r_grpc

from controller.config import ControllerConfig
from controller.southbound.p4runtime.switches import P4RuntimeSouthbound
from controller.switch_addresses import SwitchAddress
from topologies.routing import Routing

ALREADY_EXISTS = 6
MAX_REQUEST_BYTES = 256 << 20
"""What BMv2's and Tofino's server takes in one message: a program has some MB."""


class MemoryServer(p4r_grpc.P4RuntimeServicer):
    """One switch: grants every election id, holds every entity, refuses writes to the tables in ``full``."""

    def __init__(self) -> None:
        self.config = p4r.ForwardingPipelineConfig()
        self.entities: dict[bytes, p4r.Entity] = {}
        self.election_ids: list[int] = []
        self.num_pushes = 0
        self.takes_programs = True
        self.updates: list[p4r.Update] = []
        self.full: set[int] = set()
        self.higher_bid = asyncio.Event()
        self.stop: Callable[[], Awaitable[None]] | None = None

    async def StreamChannel(self, requests: AsyncIterator[Any], _: Any) -> AsyncIterator[Any]:  # noqa: N802
        async for request in requests:
            self.election_ids.append(request.arbitration.election_id.high << 64 | request.arbitration.election_id.low)
            yield p4r.StreamMessageResponse(arbitration=request.arbitration)
            await self.higher_bid.wait()
            taken = p4r.MasterArbitrationUpdate()
            taken.CopyFrom(request.arbitration)
            taken.election_id.high += 1
            taken.status.code = ALREADY_EXISTS
            yield p4r.StreamMessageResponse(arbitration=taken)

    async def Capabilities(self, _: Any, __: Any) -> p4r.CapabilitiesResponse:  # noqa: N802
        return p4r.CapabilitiesResponse(p4runtime_api_version="1.3.0")

    async def GetForwardingPipelineConfig(self, _: Any, __: Any) -> p4r.GetForwardingPipelineConfigResponse:  # noqa: N802
        return p4r.GetForwardingPipelineConfigResponse(config=self.config)

    async def SetForwardingPipelineConfig(self, request: Any, context: Any) -> p4r.SetForwardingPipelineConfigResponse:  # noqa: N802
        if not self.takes_programs:
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, "fixed function")
        self.config = request.config
        self.num_pushes += 1
        return p4r.SetForwardingPipelineConfigResponse()

    async def Read(self, request: Any, _: Any) -> AsyncIterator[p4r.ReadResponse]:  # noqa: N802
        for wanted in request.entities:
            kind = wanted.WhichOneof("entity")
            is_default = wanted.table_entry.is_default_action
            found = [
                entity
                for entity in self.entities.values()
                if entity.WhichOneof("entity") == kind and entity.table_entry.is_default_action == is_default
            ]
            yield p4r.ReadResponse(entities=found)

    async def Write(self, request: Any, context: Any) -> p4r.WriteResponse:  # noqa: N802
        for update in request.updates:
            if update.entity.table_entry.table_id in self.full:
                await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "the table is full")
            self.updates.append(update)
            if update.type == p4r.Update.DELETE:
                del self.entities[identity(update.entity)]
            else:
                self.entities[identity(update.entity)] = update.entity
        return p4r.WriteResponse()


def identity(entity: p4r.Entity) -> bytes:
    """The entity without what it does."""
    named = p4r.Entity()
    named.CopyFrom(entity)
    match entity.WhichOneof("entity"):
        case "table_entry":
            named.table_entry.ClearField("action")
            named.table_entry.ClearField("metadata")
        case "action_profile_member":
            named.action_profile_member.ClearField("action")
        case "action_profile_group":
            named.action_profile_group.ClearField("members")
    return named.SerializeToString(deterministic=True)


@asynccontextmanager
async def serving(memory: MemoryServer, address: str = "127.0.0.1:0", name: str = "s0") -> AsyncIterator[SwitchAddress]:
    """The address of a switch that answers as long as the context lasts."""
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", MAX_REQUEST_BYTES)])
    p4r_grpc.add_P4RuntimeServicer_to_server(memory, server)
    port = server.add_insecure_port(address)
    await server.start()
    memory.stop = lambda: server.stop(None)
    try:
        yield SwitchAddress(name=name, address=f"127.0.0.1:{port}", device_id=3)
    finally:
        await server.stop(None)


def connected(
    addresses: Sequence[SwitchAddress], routing: Routing, read_back_s: float | None = None
) -> P4RuntimeSouthbound:
    """The controller's side of switches."""
    fields = ControllerConfig.model_fields
    pipeline, election_id = fields["pipeline"].default, fields["election_id"].default
    return P4RuntimeSouthbound(addresses, routing, pipeline, election_id, read_back_s=read_back_s)


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the controller logs; the daemon turns off what finsy does."""
    return [record.getMessage() for record in caplog.records if record.name.startswith("controller")]
