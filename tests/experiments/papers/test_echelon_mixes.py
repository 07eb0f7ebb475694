import pytest

from experiments.papers.echelon_mixes import MEASURED, SINGLE_KINDS, WARM_UP, Kind, drawn_mix, offered_load
from topologies.clos import DumbbellSpecification
from workloads.jobs import training_jobs
from workloads.scenario import Scenario


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("load", [0.4, 0.8])
def test_a_mix_has_the_requested_load_and_all_jobs_in_its_window(kind: Kind, load: float) -> None:
    mix = drawn_mix(kind, load, 1)
    assert offered_load(mix) == pytest.approx(load, abs=1e-5)
    assert [job.name.rpartition("-")[0] for job in mix.jobs] == (
        list(SINGLE_KINDS) if kind is Kind.MIXED else [kind, kind]
    )
    assert mix.measure is not None
    assert mix.measure.to_s / mix.measure.from_s == pytest.approx((WARM_UP + MEASURED) / WARM_UP)
    for job in mix.jobs:
        assert job.duration_s is not None
        assert job.arrival_s < mix.measure.from_s
        assert job.arrival_s + job.duration_s >= mix.measure.to_s - 1e-9


def test_all_flows_cross_the_cable() -> None:
    mix = drawn_mix(Kind.MIXED, 0.4, 1)
    assert isinstance(mix.topology, DumbbellSpecification)
    left = {f"h{number}" for number in range(mix.topology.hosts_per_side)}
    for job in training_jobs(mix, mix.topology.build()):
        flows = [flow for group in job.graph.flow_groups for flow in group.flows]
        assert all((flow.source_host in left) != (flow.destination_host in left) for flow in flows)


def test_a_seed_draws_the_same_jobs_at_every_load() -> None:
    def drawn(mix: Scenario) -> list[object]:
        return [job.workload for job in mix.jobs]

    assert drawn_mix(Kind.MIXED, 0.4, 3) == drawn_mix(Kind.MIXED, 0.4, 3)
    assert drawn(drawn_mix(Kind.MIXED, 0.4, 3)) == drawn(drawn_mix(Kind.MIXED, 0.8, 3))
    assert len({str(drawn(drawn_mix(Kind.MIXED, 0.4, seed))) for seed in range(1, 6)}) > 1


@pytest.mark.parametrize("load", [0.04, 1.0, -0.5, float("nan")])
def test_impossible_loads_are_refused(load: float) -> None:
    with pytest.raises(ValueError, match=r"the offered load must be at least 0\.05 and less than 1"):
        drawn_mix(Kind.GPIPE, load, 1)
