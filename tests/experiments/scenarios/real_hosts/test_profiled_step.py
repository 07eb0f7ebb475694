"""PyTorch's profiler names what takes time in an iteration."""

import time

import pytest


def test_the_ranges_are_those_in_no_other_in_order() -> None:
    torch = pytest.importorskip("torch", reason="nothing is profiled: make torch installs PyTorch")
    from experiments.scenarios.real_hosts.profiled_step import profiled

    def step() -> None:
        with torch.profiler.record_function("forward"):
            time.sleep(0.02)
            with torch.profiler.record_function("inside"):
                time.sleep(0.02)
        with torch.profiler.record_function("short"):
            pass
        with torch.profiler.record_function("backward"):
            time.sleep(0.02)

    first, second = profiled(step)
    assert (first.name, second.name) == ("forward", "backward")
    assert first.end_s - first.begin_s > 0.035
    assert 0 <= first.begin_s <= first.end_s <= second.begin_s
