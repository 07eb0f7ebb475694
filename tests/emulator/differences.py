"""Compares drawn programs with the plain interpreter: ``python -m tests.emulator.differences FIRST LAST``.

The programs run as the Python that the compiler generates, which needs no compilation.
"""

import json
import sys
from contextlib import suppress

import numpy as np

from emulator.compiler import jumps
from emulator.compiler.layout import UnsupportedError
from emulator.compiler.program import compile_program
from emulator.entries import CounterValue
from tests.emulator.drawn.scenarios import Scenario, drawn
from tests.emulator.interpreter import Interpreter
from tests.emulator.lone_switch import LoneSwitch

_REPEATS = 40  # enough to be told from endless, and soon over without machine code


class RefusedError(Exception):
    """The emulator does not execute the program."""


def differences(seed: int, *, is_python: bool) -> list[str]:
    """What the compiled program of a seed does otherwise than the interpreter. Raises RefusedError.

    ``is_python``: it runs as Python, and not as machine code.
    """
    scenario = drawn(seed)
    before, jumps.MAX_REPEATS = jumps.MAX_REPEATS, _REPEATS
    try:
        return _compared(scenario, is_python=is_python)
    except UnsupportedError as error:
        raise RefusedError(str(error)) from error
    finally:
        jumps.MAX_REPEATS = before


def _compared(scenario: Scenario, *, is_python: bool) -> list[str]:
    program = compile_program(json.dumps(scenario.program))
    switch, reference = LoneSwitch(program, is_python=is_python), Interpreter(scenario.program)
    for table, entries in scenario.entries.items():
        for key, call in entries.items():
            switch.control.insert(table, key, call)
    reference.entries |= scenario.entries
    for name, members in scenario.value_sets.items():
        if name in program.resources.value_sets:
            switch.control.value_set(name).replace(members)
    reference.value_sets |= scenario.value_sets
    found = []
    for number, packet in enumerate(scenario.packets):
        with np.errstate(all="ignore"):
            sent = switch.process(packet)
        expected = reference.process(packet)
        if sent != expected:
            found.append(f"packet {number}: {sent}, not {expected}")
    for array, size in (("narrow", 5), ("broad", 7)):
        cells = [switch.control.register(array, index) for index in range(size)]
        expected_cells = [reference.registers.get((array, index), 0) for index in range(size)]
        if cells != expected_cells:
            found.append(f"register {array}: {cells}, not {expected_cells}")
    for index in range(6):
        counted, wanted = switch.control.counter("cells", index), reference.counters.get(("cells", index), [0, 0])
        if counted != CounterValue(*wanted):
            found.append(f"counter {index}: {counted}, not {wanted}")
    for table, entries in scenario.entries.items():
        if program.resources.tables[table].has_counters:
            for key in entries:
                direct = switch.control.direct_counter(table, key)
                wanted = reference.direct_counters.get((table, key), [0, 0])
                if direct != CounterValue(*wanted):
                    found.append(f"counter of {key} in {table}: {direct}, not {wanted}")
    return found


def main() -> None:
    """Compare the programs from FIRST to LAST - 1; the exit status is 1 where any differs."""
    refused = different = 0
    for seed in range(*map(int, sys.argv[1:3])):
        try:
            found = differences(seed, is_python=True)
        except RefusedError as error:
            refused += 1
            print(f"{seed}: {error}")
            continue
        different += bool(found)
        for line in found:
            print(f"{seed}: {line}")
    print(f"{different} differ, {refused} are refused")
    with suppress(BrokenPipeError):
        sys.stdout.flush()
    sys.exit(bool(different))


if __name__ == "__main__":
    main()
