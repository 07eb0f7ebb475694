"""Measures the runtime: ``python benchmarks/runtime.py [--json] [--rounds N] [FIGURE …]``.

Server, executors and clients are processes and threads of this machine. Devices are timers where that is said. The
benchmark checks all results. A figure is the median of the rounds. Names in ``FIGURE`` choose groups of figures
(``--help`` lists them).

- ``chained_s_per_node``: a program of 128 calls that alternate between two hosts, each adding 1 to 4 kB, over its
  nodes, from the call until the result is there.
- ``op_by_op_s``: the same without a program, each call one of its own, without waiting; per call.
- ``op_by_op_over_ray``, ``chained_over_ray``: the time of a node by Ray's actors over that of single calls and of a
  program of 128 nodes. Each node adds 1 to a scalar in a shard on each of 1, 2, 4 or 8 hosts, and the least counts.
  Ray's nodes are actor calls that take each other's references, without waiting, in both.
- ``fused_overhead_over_ray``: a call that adds 1 128 times in every shard: what it takes beyond the bare loop, over
  what it takes so with Ray, at most.
- ``pipelined_over_compiled_graph``: programs a second of four stages on four hosts, eight under way, over those of
  Ray's compiled graph.
- ``allreduce_chained_share``: a program of 128 calls that each reduce a scalar over 1, 2, 4 or 8 hosts and add 1: a
  node of torch.distributed's own loop over the time of a node, the least.
- ``smallest_computation_s``: the smallest timer on four hosts, called one after the other without waiting, of which at
  least 95 % of the time is spent computing. So many controllers that lose no time at all are the measure.
- ``table1_share``: training a small transformer on two hosts: the time of a step (``table1_step_s``) by plain
  torch.distributed over that on the runtime. Losses are the same, bit by bit.
- ``parallel_over_sequential_16``: a chain of 16 stages, each on a host of its own that takes 1 ms to prepare a
  computation: the time by sequential dispatch over the time by parallel dispatch. ``parallel_over_sequential_1`` to
  ``_8`` are for fewer stages.
- ``table2_share``: a step of training in S stages, each on a host of its own, with M = 4 S micro-batches by GPipe's
  schedule; forward and backward are timers of 10 ms. The time that the schedule takes at least, (M + S - 1) x 20 ms,
  over the time taken: the least of S = 4, 8, 16. ``table2_drop`` is how much less it is at 16 than at 4.
- ``multi_client_share``: 1, 2, 4, 8 and 16 clients keep one device of timers of 1.04 and of 2.4 ms busy: the share of
  time that it computes, the least of all. ``multi_client_drop`` is how much that falls, at most, as clients are added.
- ``share_error``: four clients with weights 1:1:1:1 and 1:2:4:8 and timers of 2 ms: how far the time that each gets in
  1,000 of them is from its share, relative to the share, at most. The device's own trace says what ran.
- ``failure_detected_s``: from killing an executor until a client that waits for a result of it has the error, at most.
- ``shared_memory_share``, ``tcp_share``: the time of copying 64 MB, and of passing them in a bare loop of sendall and
  recv_into, over that of a call that takes as much from another host into memory of its own. ``handle_s``: the time
  between the end of a computation and the start of one on another host that reads 64 MB of it where they lie
  (``benchmarks/runtime_transfers.py``).
- ``lower_s``, ``lower_cached_s``: to lower a program of 16 stages on 1,000 hosts with 8,000 devices, and to find it
  again. Each host reads its own part out of what it gets, which is not counted.
- ``grants_per_s``: of gangs of 64 devices (``benchmarks/gang_grants.py``).
"""

import argparse
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

# Run as a file, it finds the packages beside it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import runtime as rt
from benchmarks.budgets import Budget, budget_rows, print_budget_rows
from benchmarks.gang_grants import grants_per_s
from benchmarks.provenance import print_figures, provenance
from benchmarks.runtime_clients import PATIENCE_S, QUANTA, Figures, clients, shares
from benchmarks.runtime_peers import Ray, beside_ray, collectives, started_ray, training
from benchmarks.runtime_transfers import transfers
from runtime.arrays import ArraySpec, Sharding
from runtime.lowering.assign import AT_CLIENT, Placement
from runtime.lowering.cache import LoweringCache
from runtime.pipelines import gpipe, interleaved
from runtime.program import Call, Input, Output, Program, Value

CHAIN = 128
COMPUTATIONS_S = (0.25e-3, 0.35e-3, 0.5e-3, 0.7e-3, 1e-3, 1.4e-3, 2e-3, 2.8e-3, 4e-3, 8e-3)

BUDGETS = (
    Budget("op_by_op_over_ray", 3.0, is_least=True),
    Budget("chained_over_ray", 8.0, is_least=True),
    Budget("chained_s_per_node", 80e-6, is_least=False),
    Budget("allreduce_chained_share", 0.9, is_least=True),
    Budget("fused_overhead_over_ray", 0.2, is_least=False),
    Budget("pipelined_over_compiled_graph", 2.0, is_least=True),
    Budget("smallest_computation_s", 1.5e-3, is_least=False),
    Budget("table1_share", 0.97, is_least=True),
    Budget("parallel_over_sequential_16", 4.0, is_least=True),
    Budget("table2_share", 0.92, is_least=True),
    Budget("table2_drop", 0.05, is_least=False),
    Budget("multi_client_share", 0.95, is_least=True),
    Budget("multi_client_drop", 0.05, is_least=False),
    Budget("share_error", 0.02, is_least=False),
    Budget("failure_detected_s", 1.0, is_least=False),
    Budget("shared_memory_share", 0.8, is_least=True),
    Budget("tcp_share", 0.9, is_least=True),
    Budget("handle_s", 200e-6, is_least=False),
    Budget("lower_s", 0.05, is_least=False),
    Budget("lower_cached_s", 1e-3, is_least=False),
    Budget("grants_per_s", 50_000, is_least=True),
)

_OF_RAY = ("op_by_op_over_ray", "chained_over_ray", "fused_overhead_over_ray", "pipelined_over_compiled_graph")


@rt.function(library="numpy", outputs=lambda x: x)
def add_one(x: Any) -> Any:
    """Add 1."""
    return x + 1


def chains() -> Figures:
    """Measure programs of many small computations, and single calls."""
    with rt.local(islands=1, hosts=2, devices=1) as runtime:
        devices = runtime.make_virtual_device_set()
        placed = [rt.pmap(add_one, devices=devices.add_slice(1)) for _ in range(2)]

        @rt.program
        def chain(x: Any) -> Any:
            for node in range(CHAIN):
                x = placed[node % 2](x)
            return x

        x = np.zeros(1024, np.float32)
        chain(x).numpy(PATIENCE_S)  # lowers, loads and connects
        started_s = time.perf_counter()
        chained = chain(x).wait(PATIENCE_S)
        chained_s = time.perf_counter() - started_s
        started_s = time.perf_counter()
        called: Any = x
        for node in range(CHAIN):
            called = placed[node % 2](called)
        called.wait(PATIENCE_S)
        called_s = time.perf_counter() - started_s
        assert (chained.numpy() == CHAIN).all()
        assert (called.numpy() == CHAIN).all()
        return {"chained_s_per_node": chained_s / CHAIN, "op_by_op_s": called_s / CHAIN}


def dispatch() -> Figures:
    """Measure parallel against sequential dispatch."""
    taken_s = {
        (mode, stages): _chain_of_hosts_s(stages, mode)
        for stages in (1, 2, 4, 8, 16)
        for mode in ("sequential", "parallel")
    }
    return {
        f"parallel_over_sequential_{stages}": taken_s["sequential", stages] / taken_s["parallel", stages]
        for stages in (1, 2, 4, 8, 16)
    }


def _chain_of_hosts_s(stages: int, mode: str) -> float:
    with rt.local(islands=1, hosts=stages, devices=1, dispatch=mode, preparation_s=1e-3) as runtime:
        devices = runtime.make_virtual_device_set()
        placed = [rt.pmap(add_one, devices=devices.add_slice(1)) for _ in range(stages)]

        @rt.program
        def chain(x: Any) -> Any:
            for each in placed:
                x = each(x)
            return x

        x = np.zeros(1024, np.float32)
        for _ in range(3):  # executors connect and load
            chain(x).wait(PATIENCE_S)
        taken_s = []
        for _ in range(31):
            started_s = time.perf_counter()
            chained = chain(x).wait(PATIENCE_S)
            taken_s.append(time.perf_counter() - started_s)
            assert (chained.numpy() == stages).all()
        return median(taken_s)


def pipelines() -> Figures:
    """Measure pipelines of timers."""
    shares = {stages: _pipeline_share(stages, 4 * stages, 0.01) for stages in (4, 8, 16)}
    return {"table2_share": min(shares.values()), "table2_drop": shares[4] - shares[16]}


def _pipeline_share(stages: int, micro_batches: int, duration_s: float) -> float:
    with rt.local(islands=1, hosts=stages, devices=1) as runtime:
        devices = runtime.make_virtual_device_set()
        slices = [devices.add_slice(1) for _ in range(stages)]
        forward = [rt.pmap(rt.timer(duration_s), devices=each) for each in slices]
        backward = [rt.pmap(rt.timer(duration_s), devices=each, in_axes=None, out_axes=None) for each in slices]

        @rt.program
        def step(batches: Any) -> Any:
            taken = {(0, number): each for number, each in enumerate(batches)}
            gradients: dict[tuple[int, int], Any] = {}
            for each in interleaved(gpipe(stages, micro_batches)):
                stage, number = each.stage, each.micro_batch
                if each.kind == "forward":
                    taken[stage + 1, number] = forward[stage](taken[stage, number])
                else:
                    after = gradients.get((stage + 1, number), taken[stages, number])
                    gradients[stage, number] = backward[stage](after, taken[stage, number])
            return [gradients[0, number] for number in range(micro_batches)]

        batches = [np.zeros(1024, np.float32) for _ in range(micro_batches)]
        _wait_for(step(batches))
        started_s = time.perf_counter()
        _wait_for(step(batches))
        taken_s = time.perf_counter() - started_s
    return (micro_batches + stages - 1) * 2 * duration_s / taken_s


def _wait_for(arrays: list[rt.Array]) -> None:
    for array in arrays:
        array.wait(PATIENCE_S)


def smallest() -> Figures:
    """Measure the smallest computation that keeps devices busy."""
    found_s = [duration_s for duration_s in COMPUTATIONS_S if _busy_share(duration_s) >= 0.95]
    return {"smallest_computation_s": min(found_s, default=float("inf"))}


def _busy_share(duration_s: float) -> float:
    """Return the share of the time that gangs of four hosts compute, which one client calls one after the other."""
    with rt.local(islands=1, hosts=4, devices=1) as runtime:
        wait = rt.pmap(rt.timer(duration_s), devices=runtime.make_virtual_device_set().add_slice(4))
        x: Any = np.zeros(4, np.float32)
        for _ in range(20):
            x = wait(x)
        x.wait(PATIENCE_S)
        under_way: deque[rt.Array] = deque()
        started_s = time.perf_counter()
        for _ in range(QUANTA):
            if len(under_way) == 64:
                under_way.popleft().wait(PATIENCE_S)
            x = wait(x)
            under_way.append(x)
        x.wait(PATIENCE_S)
        return QUANTA * duration_s / (time.perf_counter() - started_s)


def failures() -> Figures:
    """Measure how soon the death of an executor is known."""
    with rt.local(islands=1, hosts=1, devices=1) as runtime:
        devices = runtime.make_virtual_device_set()
        waiting = rt.pmap(rt.timer(PATIENCE_S), devices=devices.add_slice(1))(np.zeros(1))
        (host,) = runtime.status()["hosts"]
        os.kill(host["pid"], signal.SIGKILL)
        started_s = time.perf_counter()
        try:
            waiting.wait(PATIENCE_S)
        except rt.LostError:
            return {"failure_detected_s": time.perf_counter() - started_s}
    raise AssertionError("a result of a killed executor came")


def lowering() -> Figures:
    """Measure lowering for many hosts."""
    stages, hosts, devices_per_host = 16, 1_000, 8
    devices = [(host, device) for host in range(hosts) for device in range(devices_per_host)]
    size = len(devices) // stages
    slices = {
        stage: Placement("island", *map(tuple, zip(*devices[stage * size : (stage + 1) * size], strict=True)))
        for stage in range(stages)
    }
    spec, sharding = ArraySpec((size, 128), "float32"), Sharding(0, size)
    made = tuple(
        Call(0, "stage", stage, (Input(Value(stage), sharding),), (Output(spec, sharding),)) for stage in range(stages)
    )
    program = Program("stages", (spec,), made, (Value(stages),))
    cache = LoweringCache()
    started_s = time.perf_counter()
    lowered = cache.lowered(0, program, 0, slices, [AT_CLIENT])
    lower_s = time.perf_counter() - started_s
    started_s = time.perf_counter()
    assert cache.lowered(0, program, 0, slices, [AT_CLIENT]) is lowered
    assert len(lowered.subprogram_of_host) == hosts
    return {"lower_s": lower_s, "lower_cached_s": time.perf_counter() - started_s}


def grants() -> Figures:
    """Measure the schedulers."""
    return {"grants_per_s": grants_per_s()}


_MEASURES = (chains, collectives, training, smallest, dispatch, pipelines, clients, shares, transfers)
GROUPS: Mapping[str, Callable[[], Figures]] = {each.__name__: each for each in (*_MEASURES, failures, lowering, grants)}
_WORST = {"failure_detected_s", "share_error"}
"""Of these the largest of the rounds counts."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure the runtime.")
    names = [*GROUPS, "beside_ray"]
    parser.add_argument("groups", nargs="*", choices=[*names, []], metavar="FIGURE", help=", ".join(names))
    parser.add_argument("--ray", metavar="PYTHON", default=sys.executable, help="an interpreter that has Ray")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--rounds", type=int, default=5, help="of which figures are the medians")
    options = parser.parse_args()
    groups = dict(GROUPS)
    chosen = options.groups or names
    not_measured: dict[str, str] = {}
    with ExitStack() as stack:
        if "beside_ray" in chosen:
            ray = started_ray(options.ray)
            if isinstance(ray, Ray):
                stack.callback(ray.close)
                groups["beside_ray"] = partial(beside_ray, ray)
            else:
                not_measured |= dict.fromkeys(_OF_RAY, ray)
        rounds = _rounds([groups[name] for name in chosen if name in groups], options.rounds)
    figures = {name: max(values) if name in _WORST else median(values) for name, values in rounds.items()}
    result: dict[str, object] = {
        **provenance(("numpy",)),
        **figures,
        **dict.fromkeys(not_measured),
        "rounds": rounds,
        "not_measured": not_measured,
    }
    rows = budget_rows(BUDGETS, figures)
    if options.json:
        print_figures({**result, "budgets": rows}, as_json=True)
    else:
        print_figures(figures, as_json=False)
        print_budget_rows(rows)
        for name, reason in not_measured.items():
            print(f"{name:32} not measured: {reason}")


def _rounds(measures: Sequence[Callable[[], Figures]], number: int) -> dict[str, list[float]]:
    """Return what each round found, by figure."""
    found: dict[str, list[float]] = {}
    for _ in range(number):
        for measure in measures:
            for name, value in measure().items():
                found.setdefault(name, []).append(value)
    return found


if __name__ == "__main__":
    main()
