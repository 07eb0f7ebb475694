from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.expansion import expand_phases
from workloads.placement import Placement
from workloads.task_graph import Computation, FlowSpec, GroupTransfer
from workloads.workload import PhasesWorkload


def job(hosts: int, **keys: Any) -> tuple[PhasesWorkload, Placement]:
    """Expand a workload on NICs 4 to 7 of every host, but only 4 and 5 on the last."""
    names = [f"h{number}" for number in range(hosts)]
    workload = PhasesWorkload.model_validate({"type": "phases", "compute_s": 2.0, "comm_start": 0.25, **keys})
    nics = dict.fromkeys(names, (4, 5, 6, 7)) | {names[-1]: (4, 5)}
    return workload, Placement(dict.fromkeys(names, (4, 5, 6, 7)), nics)


def test_communication_starts_inside_the_computation() -> None:
    workload, placement = job(2, bytes=8.0, pattern="ring")
    assert expand_phases(workload, placement).tasks == (
        Computation("before communication", ("h0", "h1"), 0.5),
        Computation("during communication", ("h0", "h1"), 1.5, after=(0,)),
        GroupTransfer("communication", after=(0,)),
    )


@pytest.mark.parametrize(
    ("comm_start", "durations", "waits_for"), [(0.0, [2.0], ()), (1.0, [2.0], (0,)), (0.5, [1.0, 1.0], (0,))]
)
def test_computations_of_no_length_are_left_out(
    comm_start: float, durations: list[float], waits_for: tuple[int, ...]
) -> None:
    graph = expand_phases(*job(2, bytes=8.0, pattern="ring", comm_start=comm_start))
    assert [task.duration_s for task in graph.tasks if isinstance(task, Computation)] == durations
    assert [task.after for task in graph.tasks if isinstance(task, GroupTransfer)] == [waits_for]


@pytest.mark.parametrize("traffic", [{"bytes": 8.0, "pattern": "ring"}, {"flows": []}])
def test_a_job_without_traffic_only_computes(traffic: dict[str, Any]) -> None:
    graph = expand_phases(*job(1, **traffic))
    assert graph.flow_groups == ()
    assert graph.tasks == (Computation("before communication", ("h0",), 2.0),)


def test_a_transfer_is_one_flow_per_nic_of_the_source() -> None:
    graph = expand_phases(*job(2, bytes=8.0, pattern="ring"))
    assert graph.flow_groups[0].flows == (
        FlowSpec("h0", 4, "h1", 4, 2.0),
        FlowSpec("h0", 5, "h1", 5, 2.0),
        FlowSpec("h0", 6, "h1", 4, 2.0),
        FlowSpec("h0", 7, "h1", 5, 2.0),
        FlowSpec("h1", 4, "h0", 4, 4.0),
        FlowSpec("h1", 5, "h0", 5, 4.0),
    )


def test_flows_per_pair_wraps_around_the_nics() -> None:
    graph = expand_phases(*job(2, flows=[{"source": "h1", "destination": "h0", "bytes": 9}], flows_per_pair=3))
    assert graph.flow_groups[0].flows == (
        FlowSpec("h1", 4, "h0", 4, 3.0),
        FlowSpec("h1", 5, "h0", 5, 3.0),
        FlowSpec("h1", 4, "h0", 6, 3.0),
    )


@pytest.mark.parametrize(
    ("pattern", "pairs"),
    [
        ("ring", {("h0", "h1"): 6.0, ("h1", "h2"): 6.0, ("h2", "h3"): 6.0, ("h3", "h0"): 6.0}),
        ("pairs", {("h0", "h1"): 6.0, ("h2", "h3"): 6.0}),
        ("all_to_all", {(f"h{a}", f"h{b}"): 2.0 for a in range(4) for b in range(4) if a != b}),
    ],
)
def test_patterns_say_who_sends_to_whom(pattern: str, pairs: dict[tuple[str, str], float]) -> None:
    graph = expand_phases(*job(4, bytes=6.0, pattern=pattern, flows_per_pair=1))
    flows = graph.flow_groups[0].flows
    assert {(flow.source_host, flow.destination_host): flow.size_bytes for flow in flows} == pairs
    assert len(flows) == len(pairs)


@given(
    hosts=st.integers(2, 9),
    flows_per_pair=st.none() | st.integers(1, 9),
    sent=st.floats(1.0, 1e15),
    pattern=st.sampled_from(["ring", "all_to_all"]),
)
def test_every_host_sends_and_receives_its_bytes(
    hosts: int, flows_per_pair: int | None, sent: float, pattern: str
) -> None:
    graph = expand_phases(*job(hosts, bytes=sent, pattern=pattern, flows_per_pair=flows_per_pair))
    out: defaultdict[str, float] = defaultdict(float)
    into: defaultdict[str, float] = defaultdict(float)
    for flow in graph.flow_groups[0].flows:
        out[flow.source_host] += flow.size_bytes
        into[flow.destination_host] += flow.size_bytes
    everyone = dict.fromkeys((f"h{number}" for number in range(hosts)), sent)
    assert dict(out) == pytest.approx(everyone)
    assert dict(into) == pytest.approx(everyone)
