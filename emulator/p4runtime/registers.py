"""RegisterEntry (P4Runtime specification, section 9.7)."""

from collections.abc import Iterator

from finsy.proto import p4r

from emulator.p4runtime.bytestrings import decode_value, encode_value
from emulator.p4runtime.cells import require_modify, selected_cells
from emulator.p4runtime.errors import invalid_argument
from emulator.p4runtime.target import Target


def write_register(target: Target, kind: p4r.Update.Type.ValueType, message: p4r.RegisterEntry) -> None:
    """Set a cell, or all cells if the index is not set.

    Raises RequestError: INVALID_ARGUMENT for a missing value or one that is no bit string, OUT_OF_RANGE for one that
    does not fit.
    """
    require_modify(kind, "a register entry")
    register = target.schema.register(message.register_id)
    indices = selected_cells(f"register {register.name}", register.size, message)
    if message.data.WhichOneof("data") != "bitstring":
        raise invalid_argument(f"register {register.name}: its cells are bit strings")
    value = decode_value(message.data.bitstring, register.width_bits, f"register {register.name}")
    for index in indices:
        target.switch.set_register(register.name, index, value)


def read_registers(target: Target, request: p4r.RegisterEntry) -> Iterator[p4r.RegisterEntry]:
    """Return the cells that a request selects; id 0 selects all registers, no index all cells. Raises RequestError."""
    if request.register_id:
        registers = [target.schema.register(request.register_id)]
    elif request.HasField("index"):
        raise invalid_argument("a read of all registers (register_id 0) takes no index")
    else:
        registers = list(target.schema.registers.values())
    for register in registers:
        for index in selected_cells(f"register {register.name}", register.size, request):
            entry = p4r.RegisterEntry(register_id=register.id, index=p4r.Index(index=index))
            entry.data.bitstring = encode_value(target.switch.register(register.name, index))
            yield entry
