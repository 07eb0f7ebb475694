from policies.baselines.taccl_star import taccl_star
from policies.snapshot import Snapshot
from tests.policies.builders import GBPS, make_job, make_links

LINKS = make_links(GBPS, GBPS, GBPS, GBPS)


def test_the_longest_way_first_then_most_bytes() -> None:
    jobs = (
        make_job("near", [(9e9, ((0,),))]),
        make_job("far", [(1e9, ((0, 1, 2),)), (1e9, ((3,),))]),
        make_job("far-and-large", [(4e9, ((1, 2, 3),))]),
        make_job("nothing-goes-far", [(0.0, ((0, 1, 2, 3),)), (10e9, ((0,),))]),
    )
    plan = taccl_star(Snapshot(0.0, LINKS, jobs, num_levels=2))
    assert [(job.name, job.level) for job in plan.jobs] == [
        ("far-and-large", 1),
        ("far", 1),
        ("nothing-goes-far", 0),
        ("near", 0),
    ]
    assert "crosses 3 links" in plan.jobs[0].reason


def test_flows_take_the_least_loaded_path_in_order_of_arrival() -> None:
    either = ((0,), (1,))
    jobs = (
        make_job("a", [(1e9, either)], arrival_s=2.0),
        make_job("b", [(2e9, either), (1e9, either)], arrival_s=1.0),
    )
    plan = taccl_star(Snapshot(3.0, LINKS, jobs))
    assert {(key.job, key.flow): flow.path for key, flow in plan.flows.items()} == {
        ("b", 0): (0,),
        ("b", 1): (1,),
        ("a", 0): (1,),
    }


def test_load_is_time_not_bytes() -> None:
    jobs = make_job("a", [(2e9, ((0,),))]), make_job("b", [(1e9, ((1,),))]), make_job("c", [(1e9, ((1,), (0,)))])
    plan = taccl_star(Snapshot(0.0, make_links(4 * GBPS, GBPS), jobs))
    assert next(flow.path for key, flow in plan.flows.items() if key.job == "c") == (0,)
