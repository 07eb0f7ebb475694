"""Links inside hosts count in t and in k, and the host orders them; jobs do not contend for levels on them."""

from dataclasses import replace

import pytest

from policies.crux.policy import crux
from policies.flows import Flow
from policies.job import Job
from policies.snapshot import Links, LinkState, OrderKeeper, Snapshot
from tests.policies.builders import GBPS, make_job, make_links

PCIE = 4


def through_pcie(job: Job) -> Job:
    """The job with its flows over the PCIe link."""

    def inside(flow: Flow) -> Flow:
        return replace(flow, host_links=(PCIE,))

    groups = tuple(replace(group, flows=tuple(map(inside, group.flows))) for group in job.flow_groups)
    return replace(job, flow_groups=groups)


def test_jobs_that_share_a_link_inside_a_host_are_ranked_but_need_no_levels() -> None:
    links = Links((*make_links(*[10 * GBPS] * 4), LinkState(1 * GBPS, OrderKeeper.HOST)))
    strong = through_pcie(make_job("strong", [(1e9, ((0, 1),))], work=8.0))
    weak = through_pcie(make_job("weak", [(1e9, ((2, 3),))], work=1.0))
    plan = crux(Snapshot(time_s=0.0, links=links, jobs=(strong, weak)))
    assert [(job.name, job.level) for job in plan.jobs] == [("strong", 7), ("weak", 7)]
    assert [plan.flows[flow.key].order for flow in (*strong.flows, *weak.flows)] == [0, 1]
    # t is the 8 s on the PCIe link, not the 0.8 s on the fabric.
    assert [job.intensity for job in plan.jobs] == pytest.approx([1.0, 0.125])
