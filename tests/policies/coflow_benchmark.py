"""The public benchmark of 526 coflows, read from the folder beside the checkout where it exists."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from policies.rates.network import FloatArray
from workloads.coflow_trace import CoflowTrace, parse_coflow_trace

FILE = Path(__file__).parents[3] / "shared/data/coflow/FB2010-1Hr-150-0.txt"

needs_the_benchmark = pytest.mark.skipif(not FILE.exists(), reason=f"the coflow benchmark is not at {FILE}")


@cache
def benchmark() -> CoflowTrace:
    return parse_coflow_trace(FILE.read_text())


def bytes_by_coflow_and_port() -> FloatArray:
    """Bytes of every coflow (row) on the racks' ingress ports, then on their egress ports."""
    trace = benchmark()
    sums = np.zeros((len(trace.names), 2 * trace.num_ports))
    rows = np.repeat(np.arange(len(trace.names)), np.diff(trace.starts))
    np.add.at(sums, (rows, trace.sources), trace.size_bytes)
    np.add.at(sums, (rows, trace.num_ports + trace.destinations), trace.size_bytes)
    return sums


def flows_by_coflow() -> tuple[list[tuple[int, int]], list[float], list[int]]:
    """Every flow's ports and bytes, coflow after coflow, and where each coflow's flows begin and end."""
    trace = benchmark()
    paths = list(zip(trace.sources.tolist(), (trace.num_ports + trace.destinations).tolist(), strict=True))
    return paths, trace.size_bytes.tolist(), trace.starts.tolist()
