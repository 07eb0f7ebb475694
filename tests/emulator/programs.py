"""The programs under test; a compiled one is shared by all tests of a process."""

import json
from functools import cache
from typing import Any

from emulator.compiler.program import Program, compile_program
from p4src import PROGRAM

Json = dict[str, Any]


def trainyard_json() -> Json:
    """A fresh copy of what p4c made of Trainyard's program."""
    document: Json = json.loads(PROGRAM.read_text())
    return document


@cache
def trainyard() -> Program:
    """Trainyard's program."""
    return compile_program(PROGRAM.read_text())
