"""Coflows on one big switch: by hand, compared with a plain implementation, and in any order."""

import random
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from policies.open_groups import OpenGroups
from policies.registry import find_policy
from simulator.coflow_options import CoflowPolicy, Recompute
from simulator.coflows import run_coflows
from tests.policies.coflow_benchmark import FILE, bytes_by_coflow_and_port, needs_the_benchmark
from tests.policies.rates.references import Case, plain_madd, plain_max_min, plain_order_greedy
from workloads.coflow_trace import CoflowTrace, parse_coflow_trace

MEGABYTE_PER_S = 8 * 2.0**20
"""A port of this rate carries a megabyte of a trace in a second."""

POLICIES = pytest.mark.parametrize("policy", CoflowPolicy)


def ends_s(
    text: str, policy: CoflowPolicy, recompute: Recompute = Recompute.FLOW, *, offline: bool = False
) -> list[float]:
    trace = parse_coflow_trace(text)
    return run_coflows(trace, policy, recompute, MEGABYTE_PER_S, offline=offline).ends_s.tolist()


TWO_ON_A_PORT = "2 2\na 0 1 0 1 1:4\nb 1000 1 0 1 0:1\n"
"""Four megabytes, and a second later one, out of the same port."""


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (CoflowPolicy.FAIR, [5.0, 3.0]),
        (CoflowPolicy.FIFO, [4.0, 5.0]),
        (CoflowPolicy.VARYS, [5.0, 2.0]),
        (CoflowPolicy.SINCRONIA, [5.0, 2.0]),
    ],
)
def test_two_coflows_on_one_port(policy: CoflowPolicy, expected: list[float]) -> None:
    assert ends_s(TWO_ON_A_PORT, policy) == expected


def test_offline_all_are_there_from_the_start() -> None:
    assert ends_s(TWO_ON_A_PORT, CoflowPolicy.VARYS, offline=True) == [5.0, 1.0]


def test_flows_that_end_early_leave_their_ports_to_others_at_once_or_at_the_next_coflow() -> None:
    """Coflow a keeps port 0 busy for 4 s and has all of port 1 until its flow there ends after 1 s; b needs both."""
    text = "3 2\na 0 2 2 2 0 0 4 1 1 1\nb 0 2 2 1 0 2 1 1 2 5\n"
    assert ends_s(text, CoflowPolicy.VARYS) == pytest.approx([4.0, 7.0])
    assert ends_s(text, CoflowPolicy.VARYS, Recompute.COFLOW) == pytest.approx([4.0, 10.0])


def test_a_percentile_between_two_times() -> None:
    run = run_coflows(
        parse_coflow_trace("4 3\na 0 1 0 1 0:1\nb 0 1 1 1 1:2\nc 0 1 2 1 2:3\n"),
        CoflowPolicy.FAIR,
        Recompute.FLOW,
        MEGABYTE_PER_S,
    )
    assert (run.average_cct_s, run.p95_cct_s, run.makespan_s) == (2.0, pytest.approx(2.9), 3.0)


ODD_MS = (0, 137, 311, 523, 751)


@st.composite
def traces(draw: st.DrawFn) -> str:
    """Up to five coflows on three ports; coarse sizes, and arrivals so odd that rounding decides no tie."""
    lines = []
    for number in range(draw(st.integers(1, 5))):
        pairs = draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=5, unique=True))
        sizes = draw(st.lists(st.integers(1, 6), min_size=len(pairs), max_size=len(pairs)))
        flows = " ".join(
            f"{source} {destination} {size}" for (source, destination), size in zip(pairs, sizes, strict=True)
        )
        arrival_ms = draw(st.integers(0, 3)) * 1000 + ODD_MS[number]
        lines.append(f"{number} {arrival_ms} {len(pairs)} 3 3 {flows}")
    return "\n".join([f"3 {len(lines)}", *lines])


@pytest.mark.slow
@POLICIES
@given(text=traces())
def test_rates_set_at_every_flows_end_are_those_of_the_plain_version(policy: CoflowPolicy, text: str) -> None:
    trace = parse_coflow_trace(text)
    ends = run_coflows(trace, policy, Recompute.FLOW, MEGABYTE_PER_S).ends_s
    assert ends.tolist() == pytest.approx(plain_ends_s(trace, policy, at_every_flow=True), rel=1e-6)


@pytest.mark.parametrize("policy", [CoflowPolicy.FAIR, CoflowPolicy.VARYS])
@given(text=traces())
def test_rates_set_at_coflow_events_are_those_of_the_plain_version(policy: CoflowPolicy, text: str) -> None:
    trace = parse_coflow_trace(text)
    ends = run_coflows(trace, policy, Recompute.COFLOW, MEGABYTE_PER_S).ends_s
    assert ends.tolist() == pytest.approx(plain_ends_s(trace, policy, at_every_flow=False), rel=1e-6)


@pytest.mark.slow
@POLICIES
@given(text=traces())
def test_every_coflow_ends_however_seldom_rates_are_set(policy: CoflowPolicy, text: str) -> None:
    assert min(ends_s(text, policy, Recompute.COFLOW)) > 0.0


@POLICIES
def test_the_order_of_lines_and_flows_does_not_matter(policy: CoflowPolicy) -> None:
    chance = random.Random(1)
    coflows = []
    for number in range(30):
        flows = {
            (chance.randrange(40), chance.randrange(40)): chance.randrange(1, 50)
            for _ in range(chance.randrange(1, 60))
        }
        coflows.append((number, chance.randrange(60_000), list(flows.items())))

    def text() -> str:
        lines = []
        for number, arrival_ms, flows in coflows:
            words = " ".join(f"{source} {destination} {size}" for (source, destination), size in flows)
            lines.append(f"{number} {arrival_ms} {len(flows)} 40 40 {words}")
        return "\n".join([f"40 {len(lines)}", *lines])

    expected = ends_s(text(), policy)
    chance.shuffle(coflows)
    for _, _, flows in coflows:
        chance.shuffle(flows)
    assert ends_s(text(), policy) == expected


@needs_the_benchmark
def test_no_coflow_of_the_benchmark_is_faster_than_its_busiest_port_allows() -> None:
    run = run_coflows(parse_coflow_trace(FILE.read_text()), CoflowPolicy.VARYS, Recompute.COFLOW, 2.0**30)
    alone_s = bytes_by_coflow_and_port().max(axis=1) * 8 / 2.0**30
    assert ((run.ends_s - run.arrivals_s) >= alone_s * (1 - 1e-9)).all()


def plain_ends_s(trace: CoflowTrace, policy: CoflowPolicy, *, at_every_flow: bool) -> list[float]:
    """A reference that visits all flows at every event and uses the plain allocators."""
    left = dict(enumerate((trace.size_bytes / 2**20).tolist()))
    paths = [
        (int(source), trace.num_ports + int(destination))
        for source, destination in zip(trace.sources, trace.destinations, strict=True)
    ]
    of = {flow: coflow for coflow in range(len(trace.names)) for flow in range(*trace.starts[coflow : coflow + 2])}
    ends: dict[int, float] = {}
    now_s, rates, order, is_coflow_event = 0.0, dict[int, float](), list[int](), True
    while len(ends) < len(trace.names):
        under_way = [flow for flow in left if trace.arrivals_s[of[flow]] <= now_s]
        if is_coflow_event:
            order = _plain_order(trace, policy, {of[flow] for flow in under_way}, left, of)
        if is_coflow_event or at_every_flow:
            tiers = [[flow for flow in under_way if of[flow] == coflow] for coflow in order]
            if policy is CoflowPolicy.FAIR:
                tiers = [under_way]
            values = [1.0 if policy is CoflowPolicy.FAIR else left.get(flow, 0.0) for flow in range(len(paths))]
            found = PLAIN[policy](Case([1.0] * (2 * trace.num_ports), paths, tiers, values))
            rates = dict(zip((flow for tier in tiers for flow in tier), found, strict=True))
        due_s = [now_s + left[flow] / rates[flow] for flow in under_way if rates[flow] > 1e-9]
        next_s = min([*due_s, *(at_s for at_s in trace.arrivals_s.tolist() if at_s > now_s)])
        for flow in under_way:
            left[flow] -= rates[flow] * (next_s - now_s)
        now_s = next_s
        for flow in [flow for flow in under_way if left[flow] < 1e-8]:
            del left[flow]
        complete = {of[flow] for flow in under_way} - {of[flow] for flow in left}
        ends |= dict.fromkeys(complete, now_s)
        is_coflow_event = bool(complete) or now_s in trace.arrivals_s
    return [ends[coflow] for coflow in range(len(trace.names))]


def _plain_order(
    trace: CoflowTrace, policy: CoflowPolicy, coflows: set[int], left: dict[int, float], of: dict[int, int]
) -> list[int]:
    present = sorted(coflows)
    if policy is CoflowPolicy.FAIR or not present:
        return present
    table = np.zeros((len(present), 2 * trace.num_ports))
    for flow, rest in left.items():
        if of[flow] in coflows:
            table[present.index(of[flow]), [trace.sources[flow], trace.num_ports + trace.destinations[flow]]] += rest
    order_groups, started_s = find_policy(policy).order_groups, trace.arrivals_s[present]
    assert order_groups is not None
    order = order_groups(OpenGroups(started_s, partial(csr_array, table)))
    for seed in range(3):
        noise = 1 + 1e-6 * np.random.default_rng(seed).random(table.shape)
        # Where coflows tie, rounding decides, and either order is right.
        assume((order_groups(OpenGroups(started_s, partial(csr_array, table * noise))) == order).all())
    return [present[position] for position in order]


PLAIN: dict[CoflowPolicy, Callable[[Case], list[float]]] = {
    CoflowPolicy.FAIR: plain_max_min,
    CoflowPolicy.FIFO: plain_order_greedy,
    CoflowPolicy.VARYS: plain_madd,
    CoflowPolicy.SINCRONIA: plain_order_greedy,
}
