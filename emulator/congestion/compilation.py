"""How a program's generated module gets its transport, with congestion controls or without."""

import hashlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numba import float64, njit, types
from numba.core.errors import NumbaError

from emulator.congestion.control import CongestionControl, Event
from emulator.jit import INNER_OPTIONS

PLAIN_TRANSPORT = "from emulator.engine.transport import deliver, leave_nic, time_out"
"""Line that imports the transport without controls."""

_COUNTS = {"delivered", "marked", "acknowledged", "next", "in_flight"}
_FLAGS = {"is_limited", "is_recovering"}


def controlled_transport(controls: tuple[CongestionControl, ...]) -> str:
    """Return the lines that make the transport with these controls, in place of ``PLAIN_TRANSPORT``.

    The hash of all that the controls' functions use is part of them, so that no module with other functions passes for
    this one. Raises ValueError for a function that cannot be imported by name.
    """
    lines = ["from emulator.engine.controlled_transport import controlled"]
    names = []
    for index, control in enumerate(controls):
        own = []
        for function in control.functions:
            module, name = _home(control, function)
            own.append(f"{function.__name__}_{index}")
            lines.append(f"from {module} import {name} as {own[-1]}")
        names.append(f"({', '.join(own)})")
    functions = f"({', '.join(names)},)"
    digest = hashlib.sha256(b"".join(sorted(set(_used(controls))))).hexdigest()
    lines += [
        f"# {digest}",
        f"deliver, leave_nic, time_out, begin_inside = controlled({functions})",
    ]
    return "\n".join(lines)


BEGIN = '''

@njit(cache=True, **OPTIONS)
def begin_transfer(state, flow, num_packets, tail_bytes):
    """Begin a transfer."""
    begin_inside(state, flow, num_packets, tail_bytes)
'''
"""Function that programs with controls have besides."""


def require_compilable(control: CongestionControl) -> None:
    """Raise ValueError for a function of a control that numba cannot compile, with numba's reason."""
    fields = [
        types.int64 if name in _COUNTS else types.boolean if name in _FLAGS else types.float64 for name in Event._fields
    ]
    arguments = float64[::1], types.NamedTuple(fields, Event)  # type: ignore[no-untyped-call]
    for function in control.functions:
        compiled = njit(**INNER_OPTIONS)(function)
        try:
            compiled.compile(arguments)
        except NumbaError as error:
            raise ValueError(f"{_place(control, function)} cannot be compiled: {error}") from error
        returned = compiled.nopython_signatures[0].return_type
        if not isinstance(returned, types.Number):
            raise ValueError(f"{_place(control, function)} must return a window in packets, not {returned}")


def _place(control: CongestionControl, function: Callable[..., float]) -> str:
    return f"congestion control {control.name!r}: {getattr(function, '__qualname__', function)}"


def _home(control: CongestionControl, function: Callable[..., float]) -> tuple[str, str]:
    """Return the module and the name from which a function is imported."""
    module, name = getattr(function, "__module__", ""), getattr(function, "__name__", "")
    if getattr(sys.modules.get(module), name, None) is not function or module == "__main__":
        raise ValueError(f"{_place(control, function)} is no function of an importable module")
    return module, name


def _used(controls: tuple[CongestionControl, ...]) -> Iterator[bytes]:
    """Yield the files of all functions that the controls' functions call, and the values of names that they use."""
    seen: set[Any] = set()
    waiting: list[Any] = [function for control in controls for function in control.functions]
    while waiting:
        function = waiting.pop()
        if function in seen:
            continue
        seen.add(function)
        yield Path(function.__code__.co_filename).read_bytes()
        for name in function.__code__.co_names:
            value = function.__globals__.get(name)
            inner = getattr(value, "py_func", None)
            if inner is not None:
                waiting.append(inner)
            elif isinstance(value, int | float | np.number):
                yield f"{function.__module__}.{name}={value!r}".encode()
