"""The comparison with astra-sim says when that is absent, and plays its own training iterations as they are written."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.astra_sim import LINK_GBPS, Case, ours_s
from benchmarks.training_traces import (
    ACTIVATION_BYTES,
    BACKWARD_MICROS,
    FORWARD_MICROS,
    STEP_MICROS,
    write_pipeline,
    write_tensor_parallel,
)

BYTES_PER_S = LINK_GBPS * 1e9 / 8
COMPUTED_S = (8 * (FORWARD_MICROS + BACKWARD_MICROS) + STEP_MICROS) / 1e6


def test_it_says_that_astra_sim_is_absent(tmp_path: Path) -> None:
    script = Path(__file__).parents[2] / "benchmarks" / "astra_sim.py"
    done = subprocess.run(
        [sys.executable, str(script), "--astra-sim", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "astra-sim is absent" in done.stderr


@pytest.mark.parametrize(
    ("write", "sent_s"),
    [
        # 16 reductions of six steps, each of a quarter of the bytes and 500 ns.
        (write_tensor_parallel, 16 * 6 * (ACTIVATION_BYTES / 4 / BYTES_PER_S + 500e-9)),
        # The last stage waits for three stages before it, and the first one then waits for them.
        (
            write_pipeline,
            6 * (ACTIVATION_BYTES / BYTES_PER_S + 500e-9) + 3 * (FORWARD_MICROS + BACKWARD_MICROS) / 1e6,
        ),
    ],
)
def test_an_iteration_takes_what_is_reckoned(tmp_path: Path, write: Callable[[Path, int], None], sent_s: float) -> None:
    write(tmp_path, 4)
    assert ours_s(Case("iteration", tmp_path, 4, "Ring", 1)) == pytest.approx(COMPUTED_S + sent_s, rel=1e-3)
