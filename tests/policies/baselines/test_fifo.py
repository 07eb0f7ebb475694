from policies.baselines.fifo import fifo
from policies.snapshot import Snapshot
from tests.policies.builders import GBPS, make_job, make_links

ONE_LINK = ((0,),)


def test_jobs_in_the_order_in_which_they_came() -> None:
    arrivals = {"a": 2.0, "b": 1.0, "c": 2.0}
    jobs = tuple(make_job(name, [(1e9, ONE_LINK)], arrival_s=arrival_s) for name, arrival_s in arrivals.items())
    plan = fifo(Snapshot(3.0, make_links(GBPS), jobs, num_levels=2))
    assert [(job.name, job.level) for job in plan.jobs] == [("b", 1), ("a", 0), ("c", 0)]
    assert [flow.order for flow in plan.flows.values()] == [0, 1, 2]
