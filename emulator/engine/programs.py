"""Event loops of several programs in one fabric: each processes the events of its switches and hands over to the next.

Every program has an event loop of its own, compiled with it (``emulator.engine.loop``), and all of them work on the
same state. A loop returns at an event of a switch with another program and leaves the event where it is. Calls go
through the loops' addresses, so that a program is compiled once, whatever others are in its fabric.
"""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from emulator.engine.state import PROGRAM, WANTED_PROGRAM, Integer, State
from emulator.jit import compiled, inlined
from emulator.native.callable import Entry, kind_of
from emulator.native.intrinsics import CallAddress

call_loop: Callable[[Integer, State, NDArray[np.uint64], Integer], None] = cast(Any, CallAddress())
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


def address_of(run: Entry, state: State, memory: NDArray[np.uint64]) -> int:
    """Return the address of a program's event loop, which is compiled or loaded from the cache if it was not yet."""
    return run.inner_address(tuple(map(kind_of, (state, memory, 0))))
