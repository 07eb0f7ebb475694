"""Traces of packets for clients: one call of a service of its own, with JSON in and out, beside P4Runtime.

P4Runtime and gNMI know nothing like it. The request is an object with the keys of ``TraceRequest``; the answer is the
trace, as the JSON or the text of ``emulator.tracing.text``.
"""

import asyncio
import json
from collections.abc import Callable
from typing import Annotated, Literal

import grpc
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from emulator.tracing.steps import PacketTrace
from emulator.tracing.text import as_json, as_text

SERVICE, METHOD = "trainyard.emulator.PacketTraces", "Trace"
PATH = f"/{SERVICE}/{METHOD}"

TracePacket = Callable[[str, int, bytes, int | None], PacketTrace]
"""Traces a packet from a switch's port on: the switch, the port, bytes and length; raises ValueError if it cannot."""


class TraceRequest(BaseModel):
    """A packet to trace; ``octets`` are hexadecimal digits, and ``length`` is that of ``octets`` unless given."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    switch: str
    port: Annotated[int, Field(ge=0, le=511)]
    octets: Annotated[str, Field(pattern=r"^([0-9a-fA-F]{2})*$")]
    length: Annotated[int, Field(ge=0, le=65_535)] | None = None
    form: Literal["text", "json"] = "json"


class PacketTraces:
    """The call. The fabric stands still while a packet is traced; ``exclusive`` is the service's."""

    def __init__(self, trace: TracePacket, exclusive: asyncio.Lock) -> None:
        self._trace = trace
        self._exclusive = exclusive

    def add_to(self, server: grpc.aio.Server) -> None:
        """Serve the call."""
        handler = grpc.unary_unary_rpc_method_handler(
            self._answer, request_deserializer=bytes, response_serializer=bytes
        )
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {METHOD: handler}),))

    async def _answer(self, message: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        try:
            request = TraceRequest.model_validate_json(message)
            async with self._exclusive:
                arguments = request.switch, request.port, bytes.fromhex(request.octets), request.length
                found = await asyncio.to_thread(self._trace, *arguments)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"{place}: {first['msg']}" if place else first["msg"])
        except ValueError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        text = as_text(found) if request.form == "text" else json.dumps(as_json(found))
        return text.encode()
