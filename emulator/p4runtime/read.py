"""Reads of a switch's entities with wildcards, in messages that any client accepts (specification, section 13)."""

from collections.abc import Iterable, Iterator

from finsy.proto import p4r

from emulator.entries import SwitchError
from emulator.p4runtime.action_profiles import read_groups, read_members
from emulator.p4runtime.counters import read_counters, read_direct_counters
from emulator.p4runtime.errors import SUCCESS, RequestError, invalid_argument, result_of, unimplemented
from emulator.p4runtime.meters import read_direct_meters, read_meters
from emulator.p4runtime.registers import read_registers
from emulator.p4runtime.replication import read_replications
from emulator.p4runtime.table_entries import read_table_entries
from emulator.p4runtime.target import Target
from emulator.p4runtime.value_sets import read_value_sets

MAX_RESPONSE_BYTES = 500_000
"""Some thousand entities, which are put together in some milliseconds. gRPC clients refuse more than 4 MiB."""


def read_batch(target: Target, requests: Iterable[p4r.Entity]) -> tuple[list[p4r.Entity], list[p4r.Error]]:
    """Return the entities that the requests select, and one result per request; a failed request has no entities."""
    entities: list[p4r.Entity] = []
    results: list[p4r.Error] = []
    for _ in reading(target, requests, entities, results):
        pass
    return entities, results


def reading(
    target: Target, requests: Iterable[p4r.Entity], entities: list[p4r.Entity], results: list[p4r.Error]
) -> Iterator[None]:
    """Do the same step by step, one for each entity and each request."""
    for request in requests:
        first = len(entities)
        try:
            for entity in read_entities(target, request):
                entities.append(entity)
                yield
            results.append(SUCCESS)
        except (RequestError, SwitchError) as error:
            del entities[first:]
            results.append(result_of(error))
        yield


def read_entities(target: Target, request: p4r.Entity) -> Iterator[p4r.Entity]:
    """Return the entities that one request selects. Raises RequestError or SwitchError."""
    match request.WhichOneof("entity"):
        case "table_entry":
            for entry in read_table_entries(target, request.table_entry):
                yield p4r.Entity(table_entry=entry)
        case "action_profile_member":
            for member in read_members(target, request.action_profile_member):
                yield p4r.Entity(action_profile_member=member)
        case "action_profile_group":
            for group in read_groups(target, request.action_profile_group):
                yield p4r.Entity(action_profile_group=group)
        case "counter_entry":
            for counter in read_counters(target, request.counter_entry):
                yield p4r.Entity(counter_entry=counter)
        case "direct_counter_entry":
            for direct_counter in read_direct_counters(target, request.direct_counter_entry):
                yield p4r.Entity(direct_counter_entry=direct_counter)
        case "meter_entry":
            for meter in read_meters(target, request.meter_entry):
                yield p4r.Entity(meter_entry=meter)
        case "direct_meter_entry":
            for direct_meter in read_direct_meters(target, request.direct_meter_entry):
                yield p4r.Entity(direct_meter_entry=direct_meter)
        case "register_entry":
            for register in read_registers(target, request.register_entry):
                yield p4r.Entity(register_entry=register)
        case "value_set_entry":
            for value_set in read_value_sets(target, request.value_set_entry):
                yield p4r.Entity(value_set_entry=value_set)
        case "digest_entry":
            for digest in target.digests.read(target.schema, request.digest_entry):
                yield p4r.Entity(digest_entry=digest)
        case "packet_replication_engine_entry":
            for replication in read_replications(target, request.packet_replication_engine_entry):
                yield p4r.Entity(packet_replication_engine_entry=replication)
        case None:
            raise invalid_argument("the request's entity is not set")
        case other:
            raise unimplemented(f"reading a {other} is not supported")


def responses(entities: Iterable[p4r.Entity]) -> Iterator[p4r.ReadResponse]:
    """Return the entities in as few messages as MAX_RESPONSE_BYTES allows."""
    response = p4r.ReadResponse()
    size_bytes = 0
    for entity in entities:
        # Tag and length take at most six more bytes.
        entity_bytes = entity.ByteSize() + 6
        if response.entities and size_bytes + entity_bytes > MAX_RESPONSE_BYTES:
            yield response
            response = p4r.ReadResponse()
            size_bytes = 0
        response.entities.append(entity)
        size_bytes += entity_bytes
    if response.entities:
        yield response
