"""Common parts of counter, meter and register entries: cells of an array that can only be modified."""

from collections.abc import Iterable

import grpc
from finsy.proto import p4r

from emulator.p4runtime.errors import RequestError, invalid_argument


def require_modify(kind: p4r.Update.Type.ValueType, what: str) -> None:
    """Raise RequestError, INVALID_ARGUMENT, for an update other than MODIFY."""
    if kind != p4r.Update.MODIFY:
        raise invalid_argument(f"{what} can only be modified")


def selected_cells(
    where: str, size: int, message: p4r.CounterEntry | p4r.MeterEntry | p4r.RegisterEntry
) -> Iterable[int]:
    """Return the cell that an entry names, or all cells of the array if it has no index.

    Raises RequestError: INVALID_ARGUMENT for a negative index, OUT_OF_RANGE for one beyond the end.
    """
    if not message.HasField("index"):
        return range(size)
    index = message.index.index
    if index < 0:
        raise invalid_argument(f"{where}: the index cannot be {index}")
    if index >= size:
        raise RequestError(grpc.StatusCode.OUT_OF_RANGE, f"{where} has {size} cells, and none at {index}")
    return (index,)
