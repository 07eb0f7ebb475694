"""Event loops of several programs in one fabric: each processes the events of its switches and hands over to the next.

Every program has an event loop of its own, compiled with it (``emulator.engine.loop``), and all of them work on the
same state. A loop returns at an event of a switch with another program and leaves the event where it is. Calls go
through the loops' addresses, so that a program is compiled once, whatever others are in its fabric.
"""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba import typeof, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from emulator.engine.state import PROGRAM, WANTED_PROGRAM, Integer, State
from emulator.jit import compiled, inlined


def _call_loop(_: Any, _address: Any, state: Any, memory: Any, _until_ps: Any) -> Any:
    """Return the numba signature and the LLVM code generator of ``call_loop``."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = signature.args[1:]
        kind = context.call_conv.get_function_type(types.none, kinds)
        function = builder.inttoptr(arguments[0], kind.as_pointer())
        status, _ = context.call_conv.call_function(builder, function, types.none, kinds, arguments[1:])
        with builder.if_then(status.is_error):
            context.call_conv.return_status_propagate(builder, status)
        return context.get_dummy_value()

    return types.void(types.int64, state, memory, types.int64), code


call_loop: Callable[[Integer, State, NDArray[np.uint64], Integer], None] = cast(Any, intrinsic(_call_loop))
"""Run the event loop at an address."""


@inlined
def run_programs(state: State, memory: NDArray[np.uint64], until_ps: int) -> None:
    """Process events as one program's ``run`` does, by the loops of all programs in turn."""
    scalars = state.scalars
    while True:
        scalars[WANTED_PROGRAM] = 0
        call_loop(state.loops[scalars[PROGRAM]], state, memory, until_ps)
        if scalars[WANTED_PROGRAM] == 0:
            return
        scalars[PROGRAM] = scalars[WANTED_PROGRAM]


@compiled
def run_mixed(state: State, memory: NDArray[np.uint64], until_ps: int) -> None:
    """Do what ``run_programs`` does, for Python."""
    run_programs(state, memory, until_ps)


def address_of(run: Any, state: State, memory: NDArray[np.uint64]) -> int:
    """Return the address of a program's event loop, which is compiled or loaded from the cache if it was not yet."""
    signature = tuple(map(typeof, (state, memory, 0)))
    run.compile(signature)
    compiled_loop = run.overloads[signature]
    return int(compiled_loop.library.get_pointer_to_function(compiled_loop.fndesc.llvm_func_name))
