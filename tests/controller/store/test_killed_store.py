"""A process killed with SIGKILL while it stores: acknowledged changes are there, and the others whole or not at all."""

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

from controller.registry.registry import Registry
from tests.controller.store.registering import FABRIC, LEASE_S, change, held, restored
from tests.patience import PATIENCE_S

_KILLS = int(os.environ.get("CHAOS_KILLS", "2"))
_SEED = int(os.environ.get("CHAOS_SEED", "1"))
_LONGEST_LIFE_S = 0.2
_ROOT = Path(__file__).resolve().parents[3]


def _acknowledged(database: str, first: int, life_s: float) -> int:
    """How many steps a process has acknowledged when it is killed, so long after its first one."""
    command = (sys.executable, "-m", "tests.controller.store.registering", database, str(first))
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=_ROOT) as process:
        assert process.stdout is not None
        assert select.select([process.stdout], [], [], PATIENCE_S)[0]
        time.sleep(life_s)
        process.kill()
        numbers = process.stdout.read().decode().split("\n")[:-1]
    assert process.returncode == -signal.SIGKILL
    return int(numbers[-1])


@pytest.mark.slow
def test_acknowledged_changes_survive_a_kill_with_leases_and_instances(address: str) -> None:
    draws = Random(_SEED)
    number = 0
    for _ in range(_KILLS):
        model = Registry(FABRIC, LEASE_S)
        model.restore(held(restored(address)), 0.0)
        acknowledged = _acknowledged(address, number, draws.uniform(0, _LONGEST_LIFE_S))
        assert acknowledged > number
        for step in range(number, acknowledged):
            change(model, step)
        number, before = acknowledged, held(model)
        found = held(restored(address))
        if found != before:  # the kill came between storing the next and saying so
            change(model, number)
            number += 1
            assert found == held(model)
