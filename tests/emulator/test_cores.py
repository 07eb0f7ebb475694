"""A fabric on several cores does, to the byte, what it does on one."""

from functools import cache
from random import Random

import pytest

from emulator.compiler.program import Program, compile_program
from emulator.partition import partition
from tests.bmv2.small_programs import REPLICATION
from tests.emulator.loads import Load, drawn_fabric
from tests.emulator.programs import trainyard


@cache
def replication() -> Program:
    return compile_program(REPLICATION.json.read_text())


@pytest.mark.parametrize("seed", range(8))
def test_hosts_and_switches_do_the_same_on_any_number_of_cores(seed: int) -> None:
    fabric = drawn_fabric(Random(seed))
    serial = Load(seed, fabric, trainyard(), 1).carry_out()
    for cores in (2, 3, 4):
        assert Load(seed, fabric, trainyard(), cores).carry_out() == serial


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_copies_do_the_same_on_any_number_of_cores(seed: int) -> None:
    fabric = drawn_fabric(Random(seed))
    serial = Load(seed, fabric, replication(), 1, is_routed=False).carry_out()
    for cores in (2, 3, 4):
        assert Load(seed, fabric, replication(), cores, is_routed=False).carry_out() == serial
