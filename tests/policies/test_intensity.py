import pytest

from policies.arrays import FloatArray
from policies.intensity import Demand, demand
from policies.job import Job
from tests.policies.builders import GBPS, make_job, make_links


def spread_demand(job: Job, link_rates_bps: FloatArray) -> Demand:
    return demand(job, link_rates_bps, lambda flow: flow.candidates)


def test_bottleneck_is_the_link_that_takes_longest_not_the_one_with_most_bytes() -> None:
    links = make_links(10 * GBPS, 1 * GBPS)
    job = make_job("a", [(1e9, ((0,),)), (0.5e9, ((0, 1),))], work=8.0)
    found = spread_demand(job, links.rates_bps)
    assert found.bytes_by_link.tolist() == [1.5e9, 0.5e9]
    assert found.iteration.comm_s == pytest.approx(4.0)
    assert found.intensity == pytest.approx(2.0)


def test_flows_are_spread_evenly_until_a_path_is_chosen() -> None:
    links = make_links(GBPS, GBPS, GBPS)
    job = make_job("a", [(1e9, ((0, 1), (0, 2)))], work=8.0)
    spread = spread_demand(job, links.rates_bps)
    assert spread.bytes_by_link.tolist() == [1e9, 0.5e9, 0.5e9]
    chosen = demand(job, links.rates_bps, lambda flow: (flow.hashed_path,))
    assert chosen.bytes_by_link.tolist() == [1e9, 0.0, 1e9]


def test_iteration_overlaps_computation_and_communication() -> None:
    links = make_links(8 * GBPS)
    job = make_job("a", [(3e9, ((0,),))], compute_s=2.0, comm_start=0.5)
    assert spread_demand(job, links.rates_bps).iteration.duration_s == pytest.approx(4.0)
    job = make_job("a", [(0.5e9, ((0,),))], compute_s=2.0, comm_start=0.5)
    assert spread_demand(job, links.rates_bps).iteration.duration_s == pytest.approx(2.0)


@pytest.mark.parametrize("flows", [[], [(0.0, ((0,),))]])
def test_job_that_sends_nothing_has_no_intensity(flows: list[tuple[float, tuple[tuple[int, ...], ...]]]) -> None:
    assert spread_demand(make_job("a", flows), make_links(GBPS).rates_bps).intensity is None


def test_job_that_computes_nothing_has_intensity_nought() -> None:
    job = make_job("a", [(1e9, ((0,),))], compute_s=0.0, work=0.0)
    assert spread_demand(job, make_links(GBPS).rates_bps).intensity == 0.0
