"""Batches of updates, each carried out or refused on its own (P4Runtime specification, section 12)."""

from collections.abc import Iterable, Iterator

from finsy.proto import p4r

from emulator.entries import SwitchError
from emulator.p4runtime.action_profiles import write_group, write_member
from emulator.p4runtime.counters import write_counter, write_direct_counter
from emulator.p4runtime.errors import (
    SUCCESS,
    RequestError,
    invalid_argument,
    require_success,
    result_of,
    unimplemented,
)
from emulator.p4runtime.meters import write_direct_meter, write_meter
from emulator.p4runtime.registers import write_register
from emulator.p4runtime.replication import write_replication
from emulator.p4runtime.roles import ALL, DEFAULT_ROLE, Permissions, require_covered
from emulator.p4runtime.table_entries import write_table_entry
from emulator.p4runtime.target import Target
from emulator.p4runtime.value_sets import write_value_set

_TYPES = frozenset((p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE))


def write_batch(target: Target, updates: Iterable[p4r.Update]) -> None:
    """Carry out all updates in order, continuing after failures (CONTINUE_ON_ERROR).

    Raises BatchError if any failed; the others are done.
    """
    results: list[p4r.Error] = []
    for _ in writing(target, updates, results):
        pass
    require_success("updates", results)


def writing(
    target: Target,
    updates: Iterable[p4r.Update],
    results: list[p4r.Error],
    role: str = DEFAULT_ROLE,
    permissions: Permissions = ALL,
) -> Iterator[None]:
    """Carry out the updates of a role step by step, and append the result of each."""
    for update in updates:
        results.append(_attempt(target, update, role, permissions))
        yield


def write_update(target: Target, update: p4r.Update) -> None:
    """Carry out one update. Raises RequestError or SwitchError, and then changes nothing."""
    if update.type not in _TYPES:
        given = f"has the unknown number {update.type}" if update.type else "is not set"
        raise invalid_argument(f"the update's type {given}")
    entity = update.entity
    match entity.WhichOneof("entity"):
        case "table_entry":
            write_table_entry(target, update.type, entity.table_entry)
        case "action_profile_member":
            write_member(target, update.type, entity.action_profile_member)
        case "action_profile_group":
            write_group(target, update.type, entity.action_profile_group)
        case "counter_entry":
            write_counter(target, update.type, entity.counter_entry)
        case "direct_counter_entry":
            write_direct_counter(target, update.type, entity.direct_counter_entry)
        case "meter_entry":
            write_meter(target, update.type, entity.meter_entry)
        case "direct_meter_entry":
            write_direct_meter(target, update.type, entity.direct_meter_entry)
        case "register_entry":
            write_register(target, update.type, entity.register_entry)
        case "value_set_entry":
            write_value_set(target, update.type, entity.value_set_entry)
        case "digest_entry":
            target.digests.write(target.schema, update.type, entity.digest_entry)
        case "packet_replication_engine_entry":
            write_replication(target, update.type, entity.packet_replication_engine_entry)
        case None:
            raise invalid_argument("the update's entity is not set")
        case other:
            raise unimplemented(f"writing a {other} is not supported")


def _attempt(target: Target, update: p4r.Update, role: str, permissions: Permissions) -> p4r.Error:
    try:
        require_covered(permissions, role, update.entity)
        if target.log is not None:
            target.log.require_room(update)
        write_update(target, update)
        if target.log is not None:
            target.log.append(update)
    except (RequestError, SwitchError) as error:
        return result_of(error)
    return SUCCESS
