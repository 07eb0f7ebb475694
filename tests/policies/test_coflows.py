from dataclasses import replace

from hypothesis import given

from policies.coflows import job_coflows, seconds_by_link
from policies.flows import Flow, FlowKey
from policies.intensity import demand
from policies.snapshot import Snapshot
from tests.policies.builders import GBPS, make_job, make_links, snapshots


@given(snapshots())
def test_a_jobs_coflow_is_its_demand_on_the_paths_of_the_hash(snapshot: Snapshot) -> None:
    link_rates_bps = snapshot.links.rates_bps

    def hashed(flow: Flow) -> tuple[tuple[int, ...]]:
        return (flow.hashed_path,)

    for coflow in job_coflows(snapshot):
        asked = demand(coflow.job, link_rates_bps, hashed)
        seconds = dict(zip(coflow.links.tolist(), coflow.seconds.tolist(), strict=True))
        expected = enumerate((asked.bytes_by_link * 8 / link_rates_bps).tolist())
        assert seconds == {link: time_s for link, time_s in expected if time_s > 0}
        assert (coflow.iteration, coflow.intensity) == (asked.iteration, asked.intensity)


def test_chosen_paths_and_links_inside_hosts_count() -> None:
    job = make_job("a", [(1e9, ((0,), (1,)))])
    (group,) = job.flow_groups
    job = replace(job, flow_groups=(replace(group, flows=(replace(group.flows[0], host_links=(2,)),)),))
    snapshot = Snapshot(0.0, make_links(GBPS, GBPS, GBPS / 2), (job,))
    by_link = seconds_by_link(job_coflows(snapshot, {FlowKey("a", "all-reduce", 0): (0,)}))
    assert by_link.toarray().tolist() == [[8.0, 0.0, 16.0]]
