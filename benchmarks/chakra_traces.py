"""Synthetic Chakra traces, and how fast they are imported."""

import tempfile
import time
from pathlib import Path
from typing import Any

from workloads.chakra.folders import forget_traces, read_trace
from workloads.chakra.wire import VERSION, CollectiveType, Metadata, Node, NodeType, framed

RANKS, LAYERS, KERNELS = 4, 500, 50
"""Each layer is so many kernels, each launched by the CPU, and a reduction of its gradients: 202,004 nodes in all."""
RUNS = 3


def import_nodes_per_s() -> float:
    """Return how many nodes are read, checked and joined in a second of processor time; of the fastest of some runs."""
    with tempfile.TemporaryDirectory() as name:
        for rank in range(RANKS):
            (Path(name) / f"trace.{rank}.et").write_bytes(_trace())
        best_s = float("inf")
        for _ in range(RUNS):
            forget_traces()
            started_s = time.process_time()
            trace = read_trace(Path(name))
            best_s = min(best_s, time.process_time() - started_s)
    return trace.num_nodes / best_s


def _trace() -> bytes:
    """Return a trace with the attributes that Chakra's converter gives the nodes of PyTorch."""
    content = [
        framed(Metadata(version=VERSION)),
        framed(Node(id=1, type=NodeType.METADATA, name="process")),
    ]
    number, launched, reduced = 1, 1, 1
    for layer in range(LAYERS):
        for kernel in range(KERNELS):
            number += 2
            launch = _node(number - 1, NodeType.COMPUTATION, "cudaLaunchKernel", is_cpu=True, deps=(launched,))
            run = _node(number, NodeType.COMPUTATION, f"gemm {layer} {kernel}", is_cpu=False, deps=(number - 1,))
            launched = number - 1
            content += (framed(launch), framed(run))
        number += 1
        reduce = _node(number, NodeType.COLLECTIVE, "ncclDevKernel", is_cpu=False, deps=(number - 1, reduced))
        reduce.attr.add(name="comm_type", int64_val=CollectiveType.ALL_REDUCE)
        reduce.attr.add(name="comm_size", int64_val=25_000_000)
        reduced = number
        content.append(framed(reduce))
    return b"".join(content)


def _node(number: int, kind: NodeType, name: str, *, is_cpu: bool, deps: tuple[int, ...]) -> Any:
    node = Node(id=number, type=kind, name=name, data_deps=deps, duration_micros=7 if is_cpu else 40)
    for key in ("rf_id", "fw_parent", "seq_id", "scope", "tid", "fw_tid"):
        node.attr.add(name=key, int64_val=number)
    node.attr.add(name="op_schema", string_val="")
    node.attr.add(name="is_cpu_op", bool_val=is_cpu)
    return node
