"""Random events on the emulator, checked at every pause; ``make chaos`` runs many more."""

import os
import subprocess
import sys

import pytest

from tests.chaos.run import play

_EVENTS_PER_SEED = 125


@pytest.mark.parametrize("seed", range(1, 5))
def test_a_world_recovers_from_random_events(seed: int) -> None:
    outcome = play(seed, _EVENTS_PER_SEED)
    assert outcome.num_messages > 10 * _EVENTS_PER_SEED
    assert outcome.num_arrived > _EVENTS_PER_SEED / 2


def test_a_seed_gives_the_same_run_in_another_process() -> None:
    """The other process hashes strings differently, and so orders sets of them differently."""
    seed, num_events = 2, 30
    program = f"from tests.chaos.run import play; print(play({seed}, {num_events}).digest)"
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    other = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert other.strip() == play(seed, num_events).digest
