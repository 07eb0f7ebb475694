"""How a program gets its transport, with congestion controls or without."""

from collections.abc import Callable, Mapping
from typing import Any

from emulator.congestion.control import CongestionControl, Event
from emulator.engine.controlled_transport import Functions, controlled
from emulator.native.code import BOOL, F64, I64, Array, LoweringError, Record
from emulator.native.module import Inlined, Module

_COUNTS = {"delivered", "marked", "acknowledged", "next", "in_flight"}
_FLAGS = {"is_limited", "is_recovering"}
ARGUMENTS = (
    Array(F64),
    Record(tuple((name, I64 if name in _COUNTS else BOOL if name in _FLAGS else F64) for name in Event._fields)),
)
"""Types of the arguments of a control's functions: a flow's words, and an event."""

BEGIN_SOURCE = '''

def begin_transfer(state, flow, num_packets, tail_bytes):
    """Begin a transfer."""
    begin_inside(state, flow, num_packets, tail_bytes)
'''
"""Function that programs with controls have besides."""


def transport_of(controls: tuple[Functions, ...]) -> Mapping[str, Any]:
    """Return the functions of the transport with controls of these functions, by the event loop's names for them.

    Without controls there are none: the event loop has those of ``emulator.engine.transport``.
    """
    if not controls:
        return {}
    made = controlled(controls)
    return {
        "deliver": made.deliver,
        "leave_nic": made.leave_nic,
        "time_out": made.time_out,
        "begin_inside": made.begin,
    }


def require_compilable(control: CongestionControl) -> None:
    """Raise ValueError for a function of a control that cannot become machine code, with the place and the reason."""
    for function in control.functions:
        try:
            result = Module().function(Inlined(function), ARGUMENTS).result
        except LoweringError as error:
            raise ValueError(f"{_place(control, function)} cannot be compiled: {error}") from error
        if result not in (F64, I64):
            raise ValueError(f"{_place(control, function)} must return a window in packets, not {result or 'nothing'}")


def _place(control: CongestionControl, function: Callable[..., float]) -> str:
    return f"congestion control {control.name!r}: {getattr(function, '__qualname__', function)}"
