"""What entries of counters, meters and registers have in common: cells of an array that are only ever modified."""

from collections.abc import Iterable

import grpc
from finsy.proto import p4r

from emulator.p4runtime.errors import RequestError, invalid_argument


def require_modify(kind: p4r.Update.Type.ValueType, what: str) -> None:
    """Raises RequestError, INVALID_ARGUMENT, for an update of another type."""
    if kind != p4r.Update.MODIFY:
        raise invalid_argument(f"{what} can only be modified")


def selected_cells(
    where: str, size: int, message: p4r.CounterEntry | p4r.MeterEntry | p4r.RegisterEntry
) -> Iterable[int]:
    """The cell that an entry names, or all of the array where it has no index.

    Raises RequestError: INVALID_ARGUMENT for a negative index, OUT_OF_RANGE for one behind the end.
    """
    if not message.HasField("index"):
        return range(size)
    index = message.index.index
    if index < 0:
        raise invalid_argument(f"{where}: the index cannot be {index}")
    if index >= size:
        raise RequestError(grpc.StatusCode.OUT_OF_RANGE, f"{where} has {size} cells, and none at {index}")
    return (index,)
