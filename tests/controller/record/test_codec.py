"""A job of a Snapshot is the same after it is encoded as facts and decoded."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.record.codec import FOREIGN_LOADS, PROFILED, Setting, SnapshotCodec, encode_telemetry
from controller.record.graph_codec import graph_from_text, graph_text
from policies.flows import Flow, FlowGroup, FlowKey
from policies.job import MAX_COMPUTE_S, Job, Profile
from policies.task_graph import Computation, TaskGraph, Transfer
from topologies.addressing import UDP_PROTOCOL, FiveTuple
from topologies.clos import ClosSpecification, DumbbellSpecification
from topologies.fat_tree import FatTreeSpecification
from topologies.paths import Paths
from topologies.routing import Routing
from topologies.specification import Topology


@st.composite
def task_graphs(draw: st.DrawFn) -> TaskGraph:
    """A graph of several tasks."""
    tasks: list[Computation | Transfer] = [Computation(draw(_DURATIONS))]
    for number in range(1, draw(st.integers(1, 6))):
        after = tuple(draw(st.sets(st.integers(0, number - 1))))
        is_sent = draw(st.booleans())
        tasks.append(Transfer((2 * number, 1000), after) if is_sent and number == 1 else Computation(0.1, after))
    return TaskGraph(tuple(tasks), draw(st.booleans()))


_DURATIONS = st.floats(0, MAX_COMPUTE_S, exclude_min=True)

TOPOLOGIES = (
    ClosSpecification(
        kind="clos", tors=2, aggs=3, hosts_per_tor=2, host_link_gbps=100, uplink_gbps=100, uplinks_per_pair=2
    ),
    DumbbellSpecification(kind="dumbbell", hosts_per_side=2, host_link_gbps=100, bottleneck_gbps=100),
    FatTreeSpecification(kind="fat_tree", k=4, host_link_gbps=100, uplink_gbps=100),
)


def _facts(topology: Topology) -> tuple[SnapshotCodec, Routing]:
    setting = Setting(topology=topology, hash_seed=1, policy="crux", num_levels=8, seed=1)
    routing = setting.routing()
    return SnapshotCodec(setting, routing), routing


def _job(routing: Routing) -> Job:
    """A flow between any two hosts."""
    hosts = routing.fabric.hosts[:6]
    flows = []
    for source, destination in ((one, other) for one in hosts for other in hosts if one != other):
        nics = routing.fabric.nics[source][0], routing.fabric.nics[destination][0]
        five_tuple = FiveTuple(nics[0].address, nics[1].address, UDP_PROTOCOL, 50_000, 4791)
        key = FlowKey("gpt", "ring", len(flows))
        paths = Paths(routing.candidate_paths(*nics))
        flows.append(Flow(key, five_tuple, 10**9, 0.1, paths, routing.hashed_path(five_tuple)))
    return Job("gpt", 1 / 3, 16, Profile(0.1, 0.2, 0.3), (FlowGroup("ring", tuple(flows)), FlowGroup("none", ())))


@pytest.mark.parametrize("topology", TOPOLOGIES, ids=lambda topology: topology.kind)
def test_paths_are_written_only_where_some_are_missing(topology: Topology) -> None:
    facts, routing = _facts(topology)
    job = _job(routing)
    body = facts.encode_job(job)
    assert set(body["candidates"]) == {None}
    assert facts.decode_job("gpt", json.loads(json.dumps(body))) == job
    ring = job.flow_groups[0]
    flows = list(ring.flows)
    chosen = max(range(len(flows)), key=lambda number: len(flows[number].candidates))
    fewer = Paths(flows[chosen].candidates[1:] or flows[chosen].candidates)
    flows[chosen] = replace(flows[chosen], candidates=fewer, hashed_path=fewer[0], is_hash_probed=True)
    without = replace(job, flow_groups=(replace(ring, flows=tuple(flows)), *job.flow_groups[1:]))
    body = facts.encode_job(without)
    assert facts.decode_job("gpt", json.loads(json.dumps(body))) == without


@given(task_graphs())
def test_a_task_graph_is_the_same_after_it_is_written_and_read(graph: TaskGraph) -> None:
    assert graph_from_text(graph_text(graph)) == graph
    assert len(json.loads(graph_text(graph))["tasks"]) == len(graph.tasks)


def test_a_long_task_graph_is_written_in_parts() -> None:
    graph = TaskGraph(tuple(Computation(0.1, (number - 1,) if number else ()) for number in range(2_500)))
    assert graph_from_text(graph_text(graph)) == graph


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"is_guessed":false}',
        '{"is_guessed":0,"tasks":[[0.5,[]]]}',
        '{"is_guessed":false,"tasks":[[0.5]]}',
        '{"is_guessed":false,"tasks":[["0.5",[]]]}',
        '{"is_guessed":false,"tasks":[[NaN,[]]]}',
        '{"is_guessed":false,"tasks":[[-0.5,[]]]}',
        '{"is_guessed":false,"tasks":[[0.5,[0]]]}',
        '{"is_guessed":false,"tasks":[[0.5,[]],[[-1],[0]]]}',
        '{"is_guessed":false,"tasks":[[0.5,[]],[[],[0]]]}',
        '{"is_guessed":false,"tasks":[[0.5,[]],[[0],[0]],[[0],[0]]]}',
    ],
)
def test_a_text_that_is_no_task_graph_is_not_read(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        graph_from_text(text)


def test_a_job_is_written_with_its_task_graph_and_one_of_an_older_record_has_none() -> None:
    facts, routing = _facts(TOPOLOGIES[0])
    job = _job(routing)
    assert "task_graph" not in facts.encode_job(job)
    sent = Transfer(tuple(range(len(job.flows))), (0,))
    told = replace(job, task_graph=TaskGraph((Computation(1 / 3), sent), is_guessed=True))
    assert facts.decode_job("gpt", json.loads(json.dumps(facts.encode_job(told)))) == told


def test_a_measured_job_is_written_with_its_hosts_and_level() -> None:
    facts, routing = _facts(TOPOLOGIES[0])
    job = replace(_job(routing), measured_hosts=("h0", "h1"))
    assert facts.decode_job("gpt", json.loads(json.dumps(facts.encode_job(job)))) == job
    snapshot = facts.decode_snapshot(1.0, [job], None, None, "gpt")
    assert (snapshot.profiled, snapshot.num_levels) == ("gpt", 7)
    assert dict(encode_telemetry(snapshot))[PROFILED] == "gpt"


def test_foreign_loads_are_written_by_link() -> None:
    facts, _ = _facts(TOPOLOGIES[0])
    snapshot = facts.decode_snapshot(1.0, [], None, {"3": 2.5e9, "14": 1.0}, None)
    assert snapshot.foreign_loads_bps == {3: 2.5e9, 14: 1.0}
    body = dict(encode_telemetry(snapshot))[FOREIGN_LOADS]
    assert facts.decode_snapshot(1.0, [], None, json.loads(json.dumps(body)), None) == snapshot
    assert dict(encode_telemetry(facts.decode_snapshot(1.0, [], None, None, None)))[FOREIGN_LOADS] is None


def test_paths_in_the_order_of_somebody_elses_groups_come_back_in_that_order() -> None:
    codec, routing = _facts(TOPOLOGIES[2])
    source, destination = (routing.fabric.nics[host][0] for host in (routing.fabric.hosts[0], routing.fabric.hosts[-1]))
    five_tuple = FiveTuple(source.address, destination.address, UDP_PROTOCOL, 50_000, 4791)
    paths = routing.candidate_paths(source, destination)
    for order in (paths, paths[::-1], (paths[0], paths[2], paths[1], paths[3])):
        flow = Flow(FlowKey("gpt", "ring", 0), five_tuple, 1000, 0.0, Paths(order), order[0])
        job = Job("gpt", 0.0, 16, Profile(1.0, 0.5, 16.0), (FlowGroup("ring", (flow,)),))
        body = json.loads(json.dumps(codec.encode_job(job)))
        assert (body["candidates"] == [None]) == (order == paths)
        assert codec.decode_job("gpt", body).flow_groups[0].flows[0].candidates == order
