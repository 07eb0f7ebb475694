"""Writes to the target of a test, update by update."""

from finsy.proto import p4r, rpc_code

from emulator.p4runtime.errors import BatchError
from emulator.p4runtime.target import Target
from emulator.p4runtime.write import write_batch
from tests.emulator.p4runtime.messages import INSERT


def write(target: Target, kind: p4r.Update.Type.ValueType, entity: p4r.Entity) -> p4r.Error:
    """The result of one update."""
    try:
        write_batch(target, [p4r.Update(type=kind, entity=entity)])
    except BatchError as error:
        (result,) = error.results
        return result
    return p4r.Error(canonical_code=rpc_code.OK)


def put(target: Target, *entities: p4r.Entity) -> None:
    """Insert what a test starts from."""
    for entity in entities:
        result = write(target, INSERT, entity)
        assert result.canonical_code == rpc_code.OK, result.message
