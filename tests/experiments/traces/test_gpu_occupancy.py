"""Jobs have their GPUs for as long as was logged, whatever they complete."""

import pytest

from experiments.traces.gpu_occupancy import run_occupancies
from experiments.traces.run import TraceOptions
from experiments.traces.steady_state import ACCURATE, SkipOptions
from tests.experiments.traces.jobs import DUMBBELL, simulated
from workloads.traces.gpu_occupancy import Occupancy

SECOND_BYTES = 12.5e9
"""The bytes that the bottleneck carries in a second."""


def stay(name: str, from_s: float, to_s: float) -> Occupancy:
    """Return a job that computes for 1 s and sends for 1 s in isolation."""
    hosts = {"a": ("h0", "h2"), "b": ("h1", "h3")}[name]
    allocation = {host: tuple(range(8)) for host in hosts}
    return Occupancy(simulated(name, 1.0, SECOND_BYTES, 2.0, 10), allocation, from_s, to_s)


@pytest.mark.parametrize("skip", [ACCURATE, SkipOptions(), SkipOptions(tolerance=None)])
@pytest.mark.parametrize(("policy", "expected_s"), [("ecmp", [1000.0, 1000.0]), ("crux", [1500.0, 1500.0])])
def test_two_jobs_on_one_link(policy: str, expected_s: list[float], skip: SkipOptions) -> None:
    """In step they share it and take 3 s an iteration; out of step both have it alone, from the second iteration on."""
    both = [stay("a", 0.0, 3000.0), stay("b", 0.0, 3000.0)]
    computed_s = run_occupancies(both, DUMBBELL, policy, TraceOptions(reaction_delay_s=0.0, skip=skip))
    assert computed_s.tolist() == pytest.approx(expected_s, abs=1.0)


def test_a_job_that_ends_leaves_the_link_to_others() -> None:
    """The jobs are in step for 30 s, then one is alone for 20 s; its last iteration counts in part."""
    part = [stay("a", 0.0, 30.0), stay("b", 0.0, 50.5)]
    computed_s = run_occupancies(part, DUMBBELL, "ecmp", TraceOptions(reaction_delay_s=0.0))
    assert computed_s.tolist() == pytest.approx([10.0, 20.5])
