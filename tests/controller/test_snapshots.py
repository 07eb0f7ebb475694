"""From the registry to the Snapshot."""

from controller.policy.flows import FlowKey
from controller.policy.snapshot import OrderKeeper
from controller.registration import FlowGroupRequest, JobRequest
from controller.registry import Registry
from controller.snapshots import Snapshots
from topologies.routing import Routing


def test_snapshot_holds_what_was_registered(
    registry: Registry, routing: Routing, job: JobRequest, ring: FlowGroupRequest
) -> None:
    registry.register_job(job, now_s=3.0)
    registry.register_flow_groups("gpt", [ring])
    snapshot = Snapshots(registry, routing, num_levels=4, seed=7).take(5.0, previous=None)

    assert (snapshot.time_s, snapshot.num_levels, snapshot.seed) == (5.0, 4, 7)
    (seen,) = snapshot.jobs
    assert (seen.name, seen.arrival_s, seen.gpus, seen.profile) == ("gpt", 3.0, 16, job.profile)
    there, back = seen.flows
    assert (there.key, back.key) == (FlowKey("gpt", "ring", 0), FlowKey("gpt", "ring", 1))
    # Two aggregation switches, two parallel links on each of the two hops.
    assert len(there.candidates) == 8
    assert there.hashed_path in there.candidates
    assert routing.fabric.nodes_of(back.hashed_path)[0] == "h2"


def test_hosts_keep_the_order_on_the_links_that_leave_them(registry: Registry, routing: Routing) -> None:
    links = Snapshots(registry, routing, num_levels=8, seed=1).take(0.0, previous=None).links
    by_host = {index for index, link in enumerate(links) if link.order_keeper is OrderKeeper.HOST}
    assert by_host == {nics[0].link for nics in routing.fabric.nics.values()}
