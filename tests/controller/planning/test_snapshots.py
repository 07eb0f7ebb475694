"""Snapshots of a registry."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from controller.planning.snapshots import Snapshots
from controller.registry.registry import Registry
from controller.registry.requests import FlowGroupRequest, FlowRequest, JobRequest, NicReference
from controller.telemetry.probed_paths import ProbedPaths
from controller.telemetry.telemetry import Telemetry
from policies.flows import FlowKey
from policies.job import Profile
from policies.snapshot import OrderKeeper, Snapshot
from topologies.addressing import FiveTuple
from topologies.ecmp import FabricHash, hash_multipliers
from topologies.fabric import Path
from topologies.routing import Routing
from topologies.specification import ClosSpecification

FABRIC = ClosSpecification(
    kind="clos", tors=2, aggs=2, hosts_per_tor=2, host_link_gbps=100, uplink_gbps=100, uplinks_per_pair=2
).build()
ROUTING = Routing(FABRIC, hash_multipliers(FABRIC.switches, seed=1))


class Shown(Telemetry):
    """Telemetry that shows of every flow and pair what a test says."""

    def __init__(self) -> None:
        super().__init__(ROUTING, lease_s=10.0)
        self.paths: dict[FiveTuple, Path] = {}
        self.silent: frozenset[int] = frozenset()
        self.lost: dict[FiveTuple, frozenset[Path]] = {}

    def path_of(self, flow: FiveTuple, _: float) -> Path | None:
        return self.paths.get(flow)

    def black_holes(self, flow: FiveTuple) -> frozenset[Path]:
        return self.lost.get(flow, frozenset())

    @property
    def silent_links(self) -> frozenset[int]:
        return self.silent


def registered(registry: Registry, name: str, ends: tuple[str, str], num_flows: int = 2) -> None:
    """A job of two hosts that send to each other."""
    there, back = (NicReference(host, 0) for host in ends)
    flows = (FlowRequest(there, back, 1_000_000, 0.0), FlowRequest(back, there, 1_000_000, 0.0)) * num_flows
    registry.register_job(JobRequest(name, ends, 16, Profile(1.0, 0.5, 16.0)), now_s=0.0)
    registry.register_flow_groups(name, [FlowGroupRequest("ring", flows)])


def test_a_snapshot_has_the_registered_jobs(
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


def test_a_job_is_rebuilt_only_where_it_has_changed() -> None:
    registry, shown = Registry(FABRIC, 10.0), Shown()
    probed = ProbedPaths(shown, FabricHash.UNKNOWN)
    registered(registry, "one", ("h0", "h2"))
    registered(registry, "other", ("h1", "h3"))
    snapshots = Snapshots(registry, ROUTING, 8, 1, probed)
    one, other = snapshots.take(0.0, None).jobs
    # Rules that lead flows of which no probe tells.
    probed.set_steered(frozenset([one.flows[0].five_tuple]))
    assert snapshots.take(1.0, None).jobs[0] is one
    # One flow turns out to take another path, the others still that of the hash.
    moved, *others = one.flows
    path = next(path for path in moved.candidates if path != moved.hashed_path)
    shown.paths[moved.five_tuple] = path
    probed.set_steered(frozenset())
    seen = snapshots.take(2.0, None)
    assert seen.jobs[0].flows == (replace(moved, hashed_path=path, is_hash_probed=True), *others)
    assert seen.jobs[1] is other


def test_a_path_that_is_lost_to_a_pair_is_no_candidate_of_its_flows_alone() -> None:
    registry, shown = Registry(FABRIC, 10.0), Shown()
    registered(registry, "one", ("h0", "h2"), num_flows=1)
    snapshots = Snapshots(registry, ROUTING, 8, 1, ProbedPaths(shown, FabricHash.KNOWN))
    there, back = snapshots.take(0.0, None).jobs[0].flows
    shown.lost[there.five_tuple], shown.version = frozenset({there.hashed_path}), 1
    without, same = snapshots.take(1.0, None).jobs[0].flows
    assert (set(without.candidates), same) == ({*there.candidates} - {there.hashed_path}, back)
    # What would leave none says that something else is wrong.
    shown.lost[there.five_tuple], shown.version = frozenset(there.candidates), 2
    assert snapshots.take(2.0, None).jobs[0].flows == (there, back)


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_reused_jobs_equal_rebuilt_ones(data: st.DataObject) -> None:
    registry, shown = Registry(FABRIC, 10.0), Shown()
    probed = ProbedPaths(shown, FabricHash.UNKNOWN)
    kept = Snapshots(registry, ROUTING, 8, 1, probed)
    routing = ROUTING
    for _ in range(data.draw(st.integers(2, 8))):
        flows = [flow for job in kept.take(0.0, None, routing).jobs for flow in job.flows]
        match data.draw(st.sampled_from(("register", "deregister", "cables", "rules", "paths", "silent", "lost"))):
            case "register":
                ends = data.draw(st.permutations(FABRIC.hosts))
                name = data.draw(st.sampled_from("abc"))
                registry.deregister(name)
                registered(registry, name, (ends[0], ends[1]), data.draw(st.integers(1, 2)))
            case "deregister":
                registry.deregister(data.draw(st.sampled_from("abc")))
            case "cables":
                cables = data.draw(st.sets(st.integers(0, len(FABRIC.cables) - 1), max_size=3))
                routing = ROUTING.without({link for cable in cables for link in (2 * cable, 2 * cable + 1)})
            case "rules" if flows:
                chosen = data.draw(st.sets(st.sampled_from(range(len(flows)))))
                probed.set_steered(frozenset(flows[number].five_tuple for number in chosen))
            case "paths" if flows:
                flow = data.draw(st.sampled_from(range(len(flows))))
                nics = FABRIC.nic_by_address
                ends = nics[flows[flow].five_tuple.source_address], nics[flows[flow].five_tuple.destination_address]
                shown.paths[flows[flow].five_tuple] = data.draw(st.sampled_from(ROUTING.candidate_paths(*ends)))
                shown.version += 1
            case "lost" if flows:
                flow = data.draw(st.sampled_from(range(len(flows))))
                candidates = flows[flow].candidates
                shown.lost[flows[flow].five_tuple] = frozenset(
                    data.draw(st.sets(st.sampled_from(candidates), max_size=3))
                )
                shown.version += 1
            case "silent":
                shown.silent = frozenset(data.draw(st.sets(st.integers(0, len(FABRIC.links) - 1), max_size=4)))
                shown.version += 1
        anew: Snapshot = Snapshots(registry, ROUTING, 8, 1, probed).take(1.0, None, routing)
        assert kept.take(1.0, None, routing).jobs == anew.jobs
