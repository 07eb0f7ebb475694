"""The public benchmark of 526 coflows, where it lies in the folder beside the checkout."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from controller.policy.rates.network import FloatArray
from workloads.coflow_benchmark import CoflowBenchmark, parse_coflow_benchmark

_FILE = Path(__file__).parents[3] / "shared/data/coflow/FB2010-1Hr-150-0.txt"

needs_the_benchmark = pytest.mark.skipif(not _FILE.exists(), reason=f"the coflow benchmark is not at {_FILE}")


@cache
def benchmark() -> CoflowBenchmark:
    return parse_coflow_benchmark(_FILE.read_text())


def bytes_by_coflow_and_port() -> FloatArray:
    """Bytes of every coflow (row) on the racks' ingress ports, then on their egress ports."""
    num_racks = benchmark().num_racks
    sums = np.zeros((len(benchmark().coflows), 2 * num_racks))
    for row, coflow in enumerate(benchmark().coflows):
        for rack, size_bytes in coflow.receives:
            sums[row, num_racks + rack] += size_bytes
        for rack in coflow.sends:
            sums[row, rack] += sum(size_bytes for _, size_bytes in coflow.receives) / len(coflow.sends)
    return sums


def flows_by_coflow() -> tuple[list[tuple[int, int]], list[float], list[int]]:
    """Every flow's ports and bytes, coflow after coflow, and where each coflow's flows begin and end."""
    paths, sizes, ends = [], [], [0]
    for coflow in benchmark().coflows:
        for rack, size_bytes in coflow.receives:
            paths += [(sender, benchmark().num_racks + rack) for sender in coflow.sends]
            sizes += [size_bytes / len(coflow.sends)] * len(coflow.sends)
        ends.append(len(paths))
    return paths, sizes, ends
