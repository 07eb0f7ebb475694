"""What measures islands on Ray beside those of this machine runs, and checks what it computes."""

import numpy as np
import pytest

from benchmarks.runtime_peers import started_ray
from tests.interpreters import interpreter_with


@pytest.mark.slow
def test_chains_run_in_turn_on_ray_and_on_this_machine() -> None:
    python = interpreter_with("ray", "2.60.0", "ray", f"numpy=={np.__version__}")
    ray = started_ray(str(python), "islands_ray_worker.py")
    if isinstance(ray, str):
        pytest.skip(f"islands on Ray are not measured: {ray}")
    try:
        found = ray.ask("chained")
    finally:
        ray.close()
    assert found.keys() == {"local", "ray"}
    assert min(found.values()) > 0
