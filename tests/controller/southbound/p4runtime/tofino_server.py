"""A Tofino's P4Runtime server in memory, which keeps entries by its P4Info, and a controller's folder for it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from finsy.proto import p4i, p4r
from google.protobuf import text_format

from emulator.p4runtime.aborting import Aborting
from emulator.p4runtime.errors import (
    SUCCESS,
    RequestError,
    failed_precondition,
    invalid_argument,
    not_found,
    require_success,
    resource_exhausted,
    result_of,
)
from emulator.p4runtime.schema import Schema, read_schema
from emulator.p4runtime.translate import decode_action, decode_key
from p4src import BUILD, P4INFO, PROGRAM, TNA_P4INFO
from tests.controller.southbound.p4runtime.memory_server import MemoryServer, identity
from tests.tna_p4info import tna_p4info


def pipeline_folder(folder: Path, tofino: p4i.P4Info) -> Path:
    """Fill a folder with the programs of all targets, that for Tofino with this P4Info."""
    for path, text in (
        (PROGRAM, PROGRAM.read_text()),
        (P4INFO, P4INFO.read_text()),
        (TNA_P4INFO, text_format.MessageToString(tofino)),
    ):
        place = folder / path.relative_to(BUILD)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return folder


class TofinoServer(MemoryServer):
    """One switch that runs the program of a P4Info, and refuses whatever contradicts it. A read has one message.

    ``room`` has how many entries tables really take, by name, where that is less than the P4Info says. Without a
    P4Info it runs no program.
    """

    def __init__(self, p4info: p4i.P4Info | None = None, **room: int) -> None:
        super().__init__()
        self.room = room
        if p4info is not None:
            self.config.p4info.CopyFrom(p4info)

    @property
    def schema(self) -> Schema:
        if not self.config.HasField("p4info"):
            raise failed_precondition("pipeline is not ready")
        described = p4i.P4Info()
        described.CopyFrom(self.config.p4info)
        del described.registers[:]  # those of TNA may have pairs of numbers, and nobody reads them
        return read_schema(described)

    async def GetForwardingPipelineConfig(self, _: Any, context: Any) -> p4r.GetForwardingPipelineConfigResponse:  # noqa: N802
        async with Aborting(context):
            assert self.schema
        return p4r.GetForwardingPipelineConfigResponse(config=self.config)

    async def SetForwardingPipelineConfig(self, request: Any, context: Any) -> p4r.SetForwardingPipelineConfigResponse:  # noqa: N802
        self.entities.clear()
        return await super().SetForwardingPipelineConfig(request, context)

    async def Read(self, request: Any, context: Any) -> AsyncIterator[p4r.ReadResponse]:  # noqa: N802
        async with Aborting(context):
            schema, response = self.schema, p4r.ReadResponse()
            for wanted in request.entities:
                if wanted.WhichOneof("entity") != "table_entry":
                    raise invalid_argument("only tables are read")
                table = schema.table(wanted.table_entry.table_id)
                kept = [entity for entity in self.entities.values() if entity.table_entry.table_id == table.id]
                is_default = wanted.table_entry.is_default_action
                response.entities.extend(e for e in kept if e.table_entry.is_default_action == is_default)
            yield response

    async def Write(self, request: Any, context: Any) -> p4r.WriteResponse:  # noqa: N802
        results = []
        async with Aborting(context):
            schema = self.schema
            for update in request.updates:
                try:
                    self._write(schema, update)
                    results.append(SUCCESS)
                except RequestError as error:
                    results.append(result_of(error))
            require_success("updates", results)
        return p4r.WriteResponse()

    def _write(self, schema: Schema, update: p4r.Update) -> None:
        if update.entity.WhichOneof("entity") != "table_entry":
            raise invalid_argument("only tables are written")
        entry = update.entity.table_entry
        table = schema.table(entry.table_id)
        if not entry.is_default_action:
            decode_key(table, entry.match, entry.priority)
        key = identity(update.entity)
        if update.type == p4r.Update.DELETE:
            if key not in self.entities:
                raise not_found(f"table {table.name} has no such entry")
            del self.entities[key]
        else:
            decode_action(schema, table, entry.action.action, as_default=entry.is_default_action)
            if (update.type == p4r.Update.MODIFY) != (key in self.entities or entry.is_default_action):
                raise invalid_argument(f"table {table.name}: inserted twice, or not there to modify")
            alias = table.name.rpartition(".")[2]
            taken = sum(each.table_entry.table_id == table.id for each in self.entities.values())
            if key not in self.entities and taken >= self.room.get(alias, table.size):
                raise resource_exhausted(f"table {table.name} is full")
            self.entities[key] = update.entity
        self.updates.append(update)


def tofino(**room: int) -> TofinoServer:
    """A switch that runs the program of this build."""
    return TofinoServer(tna_p4info(), **room)
