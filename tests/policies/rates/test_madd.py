import math

import numpy as np
import pytest
from hypothesis import given

from policies.baselines.varys import bottleneck_times, sebf
from policies.rates.loads import remaining_by_link
from policies.rates.madd import madd
from policies.rates.network import Network, Order
from tests.policies.coflow_benchmark import benchmark, bytes_by_coflow_and_port, flows_by_coflow, needs_the_benchmark
from tests.policies.rates.references import Case, cases, plain_madd


def test_flows_of_a_group_end_with_its_slowest() -> None:
    case = Case([8.0, 8.0], [(0,), (0,), (1,)], [[0, 1, 2]], [3.0, 1.0, 2.0])
    *on_the_bottleneck, other = madd(*case.arguments)
    assert on_the_bottleneck == [6.0, 2.0]
    assert other == 8.0, "4 to end with the others, and 4 that nobody else can use"


def test_the_next_group_gets_what_the_first_does_not_need() -> None:
    case = Case([8.0, 8.0], [(0,), (1,), (1,)], [[0, 1], [2]], [4.0, 2.0, 9.0])
    assert madd(*case.arguments).tolist() == [8.0, 4.0, 4.0]


def test_a_group_that_finds_a_link_used_up_gets_leftovers_only() -> None:
    case = Case([8.0, 8.0], [(0,), (0,), (1,)], [[0], [1, 2]], [1.0, 1.0, 1.0])
    assert madd(*case.arguments).tolist() == [8.0, 0.0, 8.0]


def test_what_has_ended_gets_nothing() -> None:
    case = Case([8.0], [(0,), (0,)], [[0, 1]], [0.0, 1.0])
    assert madd(*case.arguments).tolist() == [0.0, 8.0]


@given(cases())
def test_agrees_with_the_plain_version(case: Case) -> None:
    assert madd(*case.arguments) == pytest.approx(plain_madd(case), abs=1e-9)


@given(cases())
def test_nobody_can_be_given_more_and_no_link_carries_more_than_it_can(case: Case) -> None:
    carried = case.carried(madd(*case.arguments))
    assert all(load <= capacity * (1 + 1e-9) for load, capacity in zip(carried, case.capacities, strict=True))
    for tier in case.tiers:
        for flow in tier:
            if case.values[flow] > 0:
                assert any(carried[link] >= case.capacities[link] * (1 - 1e-9) for link in case.paths[flow])


@needs_the_benchmark
def test_varys_on_the_coflow_benchmark_agrees_with_the_plain_version() -> None:
    paths, sizes, ends = flows_by_coflow()
    num_links = 2 * benchmark().num_ports
    network = Network.of(np.full(num_links, 2.0**30), paths)
    in_file_order = Order(np.arange(len(paths)), np.array(ends[:-1]), np.array(ends[1:]))
    by_link = remaining_by_link(network, in_file_order, np.array(sizes))
    order = sebf(bottleneck_times(by_link * 8 / 2.0**30), np.ones(len(ends) - 1))
    rates = madd(network, in_file_order.rearranged(order), np.array(sizes))

    by_port = bytes_by_coflow_and_port()
    assert order.tolist() == sorted(range(len(by_port)), key=lambda coflow: max(by_port[coflow]))
    left = [2.0**30] * num_links
    plain = [0.0] * len(paths)
    for coflow in order.tolist():
        used = [port for port, size_bytes in enumerate(by_port[coflow].tolist()) if size_bytes > 0]
        duration = max(by_port[coflow, port] / left[port] if left[port] > 1.0 else math.inf for port in used)
        for port in used:
            left[port] -= by_port[coflow, port] / duration
        for flow in range(ends[coflow], ends[coflow + 1]):
            plain[flow] = sizes[flow] / duration
    for coflow in order.tolist():
        for flow in range(ends[coflow], ends[coflow + 1]):
            source, destination = paths[flow]
            extra = max(min(left[source], left[destination]), 0.0)
            plain[flow] += extra
            left[source] -= extra
            left[destination] -= extra
    assert np.abs(rates - np.array(plain)).max() < 1.0, "bit/s, on ports of 2^30"
