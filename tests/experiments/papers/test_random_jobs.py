import pytest

from experiments.papers.random_jobs import KINDS, FabricName, random_arrivals, random_mix
from workloads.scenario import Scenario
from workloads.validation import find_problems


def scenarios(seed: int) -> list[Scenario]:
    return [draw for on in FabricName for draw in (random_mix(seed, on), random_arrivals(seed, on, 30))]


@pytest.mark.parametrize("seed", range(1, 6))
def test_drawn_scenarios_are_valid_and_repeatable(seed: int) -> None:
    """No GPU has two jobs at a time, which a scenario's own checks find."""
    for scenario in scenarios(seed):
        assert not find_problems(scenario.model_dump(mode="json", exclude_none=True))
    assert scenarios(seed) == scenarios(seed)


def test_seeds_and_kinds_differ() -> None:
    drawn = [random_mix(seed, FabricName.TESTBED) for seed in range(1, 21)]
    assert len({mix.jobs for mix in drawn}) == 20
    kinds = {(job.workload.type, len(job.hosts or ()), job.gpus_per_host) for mix in drawn for job in mix.jobs}
    assert kinds == {("dp", kind.hosts, kind.gpus_per_host) for kind in KINDS}
    arrivals = random_arrivals(1, FabricName.TESTBED, 300).jobs
    assert len(arrivals) == 300
    assert [job.arrival_s for job in arrivals] == sorted(job.arrival_s for job in arrivals)
