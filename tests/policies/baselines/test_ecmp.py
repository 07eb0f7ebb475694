from policies.baselines.ecmp import ecmp
from policies.plan import FlowPlan
from policies.snapshot import Snapshot
from tests.policies.builders import GBPS, make_job, make_links


def test_everything_is_left_to_the_hash() -> None:
    either = ((0,), (0, 1))
    jobs = (
        make_job("a", [(1e9, either)], arrival_s=2.0),
        make_job("b", [(1e9, either)], arrival_s=1.0, work=4.0),
        make_job("c", [], arrival_s=1.0),
    )
    plan = ecmp(Snapshot(time_s=2.0, links=make_links(GBPS, GBPS / 2), jobs=jobs))
    assert [(job.name, job.rank, job.level) for job in plan.jobs] == [("b", 0, 0), ("c", 1, 0), ("a", 2, 0)]
    assert [job.intensity for job in plan.jobs] == [4.0 / 16, None, 1.0 / 16]
    assert {job.correction_factor for job in plan.jobs} == {job.priority for job in plan.jobs} == {None}
    assert set(plan.flows.values()) == {FlowPlan(path=None, level=0, order=0)}
    assert len(plan.flows) == 2
