"""Runtimes on Ray and on this machine side by side, for ``benchmarks/islands.py``; an interpreter that has Ray runs it.

It reads a JSON list from each line of stdin, [figure], and answers with a line of JSON: seconds of a node. The first
line that it writes says that Ray has started.
"""

import json
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import ray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import runtime as rt

CHAIN = 128
_WARM_UP, _RUNS = 10, 30
_PATIENCE_S = 60.0


@rt.function(library="numpy", outputs=lambda x: x)
def add_one(x: Any) -> Any:
    """Add 1."""
    return x + 1


def chain_on(runtime: rt.Runtime) -> Callable[[], float]:
    """Return what runs a chain on a runtime, and returns the time of a node."""
    devices = runtime.make_virtual_device_set()
    placed = [rt.pmap(add_one, devices=devices.add_slice(1)) for _ in range(2)]

    @rt.program
    def chain(x: Any) -> Any:
        for node in range(CHAIN):
            x = placed[node % 2](x)
        return x

    def taken_s() -> float:
        x = np.zeros(1024, np.float32)
        started_s = time.perf_counter()
        result = chain(x).wait(_PATIENCE_S)
        node_s = (time.perf_counter() - started_s) / CHAIN
        assert (result.numpy() == CHAIN).all()
        return node_s

    return taken_s


def chained() -> dict[str, float]:
    """Measure chains in turn on both."""
    with ExitStack() as stack:
        runtimes = {
            "local": stack.enter_context(rt.local(hosts=2, devices=1)),
            "ray": stack.enter_context(rt.on_ray(hosts=2, devices=1)),
        }
        chains = {name: chain_on(runtime) for name, runtime in runtimes.items()}
        for _ in range(_WARM_UP):
            for chain in chains.values():
                chain()
        taken_s: dict[str, list[float]] = {name: [] for name in chains}
        for _ in range(_RUNS):
            for name, chain in chains.items():
                taken_s[name].append(chain())
    return {name: median(each) for name, each in taken_s.items()}


def main() -> None:
    """Answer until stdin ends."""
    ray.init(address="local", num_cpus=16, include_dashboard=False, _node_ip_address="127.0.0.1", log_to_driver=False)
    print(json.dumps(ray.__version__), flush=True)
    for line in sys.stdin:
        (figure,) = json.loads(line)
        print(json.dumps({"chained": chained}[figure]()), flush=True)
    ray.shutdown()


if __name__ == "__main__":
    main()
